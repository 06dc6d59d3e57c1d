"""What an agent held, learnt and had refused stands beside the words in which it came up."""

from __future__ import annotations

from html import escape

from evaluatorq.model.cognition import CognitionRecord
from evaluatorq.model.results import SimulationResult
from evaluatorq.packs.triage import PACK
from evaluatorq.reports.held import lines_beside, path_of
from evaluatorq.reports.markdown import escaped
from evaluatorq.reports.transcript import conversation_view, render_conversation
from evaluatorq.simulation import simulate
from evaluatorq.simulation.reports import export_html, export_markdown

RULES = {"scale": {"name": "severity", "levels": ["minor", "major"], "gravest": "last"}, "decides": "/severity"}


def step(row: int, turn: int, **held: object) -> dict[str, object]:
    return {"row": row, "turn": turn, "assessment": held}


def test_a_level_is_said_again_only_when_something_about_it_is_another() -> None:
    record = CognitionRecord.model_validate(
        {
            "truth": {"severity": "major"},
            "rules": RULES,
            "assessments": [
                step(1, 1, value="minor", confidence="low", rationale="a\nguess", source="extractor"),
                step(3, 1, value="minor", confidence="low", rationale="a\nguess", source="extractor"),
                step(5, 2, value="minor", confidence=0.5),
                step(7, 2, value="major", source="tool"),
            ],
        }
    )
    assert lines_beside(record) == {
        1: (("holds", "minor, low: a guess (read in the words)"),),
        5: (("holds", "minor, 0.5 (returned with the words)"),),
        7: (("holds", "major (from the call)"),),
    }
    assert path_of(record) == "minor (turn 1) → major (turn 2); right is major"


def test_nothing_held_is_nothing_said() -> None:
    assert lines_beside(None) == {}
    assert path_of(None) is None
    assert path_of(CognitionRecord()) is None


def test_what_was_refused_is_said_with_its_reason() -> None:
    twice = {"turn": 1, "row": 4, "call": "c", "value": "Chest  pain", "refused": "duplicate"}
    taken = {"turn": 1, "row": 4, "call": "c", "value": "sweating", "stored": "sweating"}
    record = CognitionRecord.model_validate({"lists": {"red_flags": [taken, twice]}})
    assert lines_beside(record) == {4: (("refused", "Chest pain: duplicate"),)}


async def test_a_conversation_is_shown_with_them() -> None:
    result: SimulationResult = (await simulate(pack=PACK.name, offline=True, only="chest-pain-arm"))[0]
    shown = render_conversation(conversation_view(result, 0), width=100)
    turn = shown.split("Turn 1\n")[1].split("Turn 2\n")[0]
    assert "holds  3, low: Nothing is known yet. (returned with the words)" in shown.split("Turn 1\n")[0]
    assert [line.split()[0] for line in turn.splitlines() if line[2:3].strip()][:4] == [
        "user",
        "learns",
        "learns",
        "tool",
    ]
    assert "learns  chief complaint: chest pain (user, explicit)" in turn
    assert "held      3 (turn 0) → 2 (turn 1); right is 2" in shown


async def test_reports_tell_what_was_held_and_learnt_as_the_terminal_does() -> None:
    results = await simulate(pack=PACK.name, offline=True, only="chest-pain-arm")
    shown = render_conversation(conversation_view(results[0], 0), width=400)
    told = [line.strip() for line in shown.splitlines() if line.strip().startswith(("holds", "learns", "held"))]
    assert len(told) > 3
    page, marked_down = export_html(results), export_markdown(results)
    for line in told:
        kind, words = line.split(maxsplit=1)
        assert escape(words) in page
        assert f"- *{kind}* {escaped(words)}" in marked_down or f"- {kind}: {escaped(words)}" in marked_down
