"""The HTML and Markdown reports: the same facts as the terminal, nothing of other people's obeyed, nothing loaded."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from sample_results import HELD, OPEN, SEEN, dead, result

from evaluatorq.errors import ConfigError
from evaluatorq.model.messages import assistant, tool_call, tool_result, user
from evaluatorq.model.results import SimulationResult, TurnMetrics
from evaluatorq.model.runs import SimulationRecommendation, SimulationRun
from evaluatorq.model.usage import Usage
from evaluatorq.reports.document import Document
from evaluatorq.reports.html import html_report
from evaluatorq.reports.markdown_report import markdown_report
from evaluatorq.reports.terminal import About, render_summary
from evaluatorq.simulation.reports import export_html, export_markdown
from evaluatorq.store.runs import read_run

DATA = Path(__file__).parents[1] / "data"
SAVED = [
    *sorted((DATA / "published_runs").glob("*_*-*.json")),
    *(path for path in sorted((DATA / "legacy").glob("*.json")) if path.stem != "traits_beyond_the_scale"),
]
VOID = {"meta", "br", "rect", "path", "line", "circle", "link", "img"}
EVIL = (
    "<script>alert(1)</script><img src=x onerror=y> </details>\n# Head\n- [x](javascript:1) ![i](http://evil.example/i)"
    "\x1b[31m\x00 `a` ``` |b| @everyone #1 www.evil.example {{ 7*7 }} \u202e \ud800 </style>\"'>"
)
AUDIT = [{"id": "criteria_2", "occurred": True, "message_index": 3, "source": "judge"}]


class Page(HTMLParser):
    """Checks nesting and collects what the tests ask for."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.marked: list[str] = []
        self.words = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.words += data
        if "mark" in self.open:
            self.marked.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


def some() -> list[SimulationResult]:
    metrics = [TurnMetrics(turn_number=1, token_usage=Usage(), response_quality=0.4)]
    return [
        result(HELD, row=0, turn_metrics=metrics),
        result(HELD, SEEN, goal=False, row=1, persona="Bo", criteria_audit=AUDIT),
        result(HELD, OPEN, row=2, scenario="Refund"),
        dead("target", row=3),
        dead("user_simulator", row=4, token_usage_known=False),
    ]


def a_run(**more: object) -> SimulationRun:
    fields = {
        "run_name": "nightly", "created_at": "2026-11-30T10:00:00Z", "mode": "simulate", "target_kind": "callback",
        "target": "shop", "evaluator_names": ["goal_achieved"], "total_results": 5, "scorer_averages": {},
        "results": some(), "run_id": "ab" * 16, "offline": True, "config": {"max_turns": 4},
    }  # fmt: skip
    return SimulationRun.model_validate({**fields, **more})


def hostile() -> SimulationRun:
    """Hostile words wherever words can come from outside."""
    criterion = {"id": "criteria_0", "description": EVIL, "type": "must_not_happen", "passed": False, "evidence": EVIL}
    talk = [
        user(EVIL),
        assistant(EVIL, [tool_call("call_1", EVIL, {EVIL: EVIL})]),
        tool_result("call_1", EVIL),
        assistant(EVIL),
    ]
    bad = {
        "messages": talk, "persona": EVIL, "scenario": EVIL, "reason": EVIL,
        "turn_metrics": [TurnMetrics(turn_number=1, token_usage=Usage(), judge_reason=EVIL, response_quality=0.1)],
    }  # fmt: skip
    failed = result(
        criterion, **bad, usage_by_role={EVIL: Usage(total_tokens=1)},
        expectations={"met": False, "failures": [{"name": "tools", "expected": EVIL, "actual": EVIL, "subject": EVIL}]},
        claims=[{"words": EVIL, "message_index": 1, "turn": 1, "backed": False, "requires": EVIL}],
        observations=[{"turn": 1, "events": [EVIL], "read_error": EVIL}],
        cognition={"assessments": [{"row": 1, "turn": 1, "assessment": {"value": EVIL, "rationale": EVIL}}]},
    )  # fmt: skip
    failed.metadata.update({"scenario_goal": EVIL, "evaluator_scores": {EVIL: 0.5}})
    broken = dead("target", **bad)
    broken.metadata["error_type"] = EVIL
    advice = SimulationRecommendation(result_index=0, persona=EVIL, scenario=EVIL, triggers=[EVIL], suggestions=[EVIL])
    return a_run(
        results=[failed, broken], total_results=2, run_name=EVIL, target=EVIL, executive_summary=EVIL,
        recommendations=[advice], applied_suggestions=[EVIL], config={EVIL: EVIL}, models={EVIL: EVIL},
        generation_problems=[EVIL],
    )  # fmt: skip


@pytest.mark.parametrize("run", [a_run(), hostile()], ids=["plain", "hostile"])
def test_the_page_is_well_formed_loads_nothing_and_runs_nothing(run: SimulationRun) -> None:
    text = export_html(run)
    page = Page(text)
    assert page.open == []
    assert {tag for tag, _ in page.tags} & {"script", "img", "link", "iframe", "object", "form", "base"} == set()
    for _, attrs in page.tags:
        assert not [name for name in attrs if name.startswith("on") or name in ("src", "xlink:href")]
        assert (attrs.get("href") or "#").startswith("#")
    assert "url(" not in text.split("</style>")[0]
    assert "@import" not in text
    assert "\x1b" not in text
    text.encode()


def test_the_page_has_landmarks_ordered_headings_scoped_tables_and_links_that_lead_somewhere() -> None:
    page = Page(export_html(a_run()))
    for landmark in ("header", "nav", "main", "footer", "h1", "title"):
        assert len(page.all(landmark)) == 1
    assert page.all("html") == [{"lang": "en"}]
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all(cell.get("scope") in ("row", "col") for cell in page.all("th"))
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {link["href"] for link in page.all("a")} <= {f"#{name}" for name in ids}
    assert all(chart["role"] == "img" and chart["aria-label"] for chart in page.all("svg"))


def test_hostile_words_are_shown_as_words() -> None:
    run = hostile()
    page = Page(export_html(run))
    assert "<script>alert(1)</script>" in page.words
    assert "\\x1b[31m\\x00" in page.words
    assert "{{ 7*7 }}" in page.words
    assert "\u202e" not in page.words


def test_hostile_words_make_no_markup_in_markdown() -> None:
    text = export_markdown(hostile())
    bare = re.sub(r"(?<![\\`])(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert not re.search(r"(?<!\\)<(?!/?details>|/?summary>)", re.sub(r"^>", "", bare, flags=re.MULTILINE))
    assert not re.search(r"(?<!\\)\]\(|(?<!\\)!\[|@everyone|www\.|https?:", bare)
    assert text.count("<details>") == text.count("\n</details>") == 2
    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1
    assert "\x1b" not in text
    text.encode()


def test_rows_of_markdown_tables_have_the_cells_of_their_heads() -> None:
    for run in (a_run(), hostile()):
        width = 0
        for line in export_markdown(run).splitlines():
            cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
            assert not (cells and width) or cells == width
            width = cells


def test_all_renderers_tell_the_same_facts() -> None:
    run = a_run()
    document = Document.of(run.results, About.run(run), run)
    terminal = render_summary(document.summary, document.about, width=200)
    page = " ".join(Page(html_report(document)).words.split())
    marked_down = markdown_report(document)
    for verdict, count in document.summary.verdicts.items():
        assert re.search(rf"{verdict} +{count}\b", terminal)
        assert f"{verdict} | {count} |" in marked_down
        assert re.search(rf"{count} ?. {verdict}", page)
    for told in ("1 of 3", "refunded the full amount", "happened but must not"):
        assert told in terminal
        assert told in page
        assert told in marked_down
    assert "simulated user" in page
    assert "simulated user" in marked_down
    for caveat in ("Offline", "1 of 5 verdicts on criteria were not audited", "did not tell all tokens"):
        assert caveat in page
        assert caveat in marked_down.replace("\\", "")


def test_failures_come_first_and_the_quote_is_marked_where_it_was_said() -> None:
    page = Page(export_html(a_run()))
    assert [talk["id"] for talk in page.all("details") if "id" in talk] == ["c1", "c3", "c4", "c2", "c0"]
    assert page.marked.count("refunded the full amount") == 2


def test_the_words_of_an_untrue_claim_are_marked_as_those_of_a_check_are() -> None:
    claim = {"words": "refunded the full", "message_index": 3, "turn": 1, "backed": False, "requires": "a call"}
    page = Page(export_html(a_run(results=[result(claims=[claim])])))
    assert "refunded the full" in page.marked
    assert "✗ said to be done and was not" in page.words
    assert "Without untrue claims" in page.words
    marked_down = export_markdown(a_run(results=[result(claims=[claim])]))
    assert "  - ❌ said to be done and was not: `refunded the full`" in marked_down
    assert "- ❌ claimed: turn 1" in marked_down


def test_applied_recommendations_are_marked() -> None:
    advice = SimulationRecommendation(result_index=1, persona="Bo", scenario="S", suggestions=["Do this", "Do that"])
    run = a_run(recommendations=[advice], applied_suggestions=["Do this"])
    assert export_html(run).count("✓ applied:") == 1
    assert "- ✅ applied: Do this\n- Do that" in export_markdown(run)


def test_a_run_of_a_thousand_stays_a_file_that_opens_and_says_what_it_leaves_out() -> None:
    many = [result(HELD, row=row) for row in range(995)] + some()
    text = export_html(many)
    page = Page(text)
    talks = [talk["id"] for talk in page.all("details") if "id" in talk]
    assert len(talks) == 200
    assert talks[0] == "c1"
    assert "800 are left out" in page.words
    assert len(text) < 1_500_000


def test_long_messages_are_cut_but_not_within_a_quote() -> None:
    talk = [user("Hi"), assistant("x" * 9000 + " refunded the full amount " + "y" * 9000)]
    audit = [{"id": "criteria_2", "occurred": True, "message_index": 1, "source": "judge"}]
    page = Page(export_html([result(SEEN, goal=False, messages=talk, criteria_audit=audit)]))
    assert page.marked.count("refunded the full amount") == 2
    assert "more characters)" in page.words
    assert "y" * 100 not in page.words


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
def test_saved_runs_of_any_age_become_reports(path: Path) -> None:
    run = read_run(path)
    page = Page(export_html(run))
    assert page.open == []
    assert len([talk for talk in page.all("details") if "id" in talk]) == len(run.results)
    assert export_markdown(run).count("<details>") == len(run.results)


def test_a_run_without_conversations_is_a_report_too() -> None:
    assert "No conversation was had." in export_html([])
    assert "No conversation was had." in export_markdown([])


def test_without_the_extra_the_install_line_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ConfigError, match=r"pip install 'evaluatorq\[html\]'"):
        export_html([])
