"""What a person reads: the few facts that matter, in 80 columns, without colour, and never obeyed by the terminal."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_results import HELD, MISSED, OPEN, SEEN, TALK, dead, result

from evaluatorq.model.judgments import CriterionAudit
from evaluatorq.model.messages import assistant, user
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.usage import Usage
from evaluatorq.reports.listing import ListedRun, render_listing
from evaluatorq.reports.terminal import About, render_conversations, render_summary
from evaluatorq.reports.text import one_line, printable
from evaluatorq.reports.transcript import conversation_view, render_conversation
from evaluatorq.reports.view import Summary
from evaluatorq.testing import a_datapoint, a_plan
from made_runs import datapoints, talk

ABOUT = About("nightly", run_id="0123456789abcdef", target="mine:agent")
MIXED = [result(HELD), result(SEEN), result(HELD, OPEN), dead("target"), dead("judge")]


def flat(text: str) -> str:
    return " ".join(text.split())


def summary_of(*results: object, **about: object) -> str:
    return render_summary(Summary.of(results or MIXED), About(**{"name": "nightly", **about}))


def conversation(of: object, **how: object) -> str:
    return render_conversation(conversation_view(of, 0), **how)


def test_the_summary_says_what_passed_what_did_not_and_whose_fault_it_was():
    text = flat(summary_of())
    assert "passed 1" in text
    assert "failed 1" in text
    assert "unknown 1" in text
    assert "errored 2" in text
    assert "the agent 1, judge 1" in text


def test_a_share_comes_with_its_denominator_and_its_worst_and_best_case():
    assert "1 of 3 passed (33 %); 2 undecided, so 20 % to 60 % of 5" in flat(summary_of())


@pytest.mark.parametrize(("passed", "of", "shown"), [(999, 1000, "over 99 %"), (1, 1000, "under 1 %")])
def test_almost_all_is_not_all_and_almost_none_is_not_none(passed: int, of: int, shown: str):
    results = [result() for _ in range(passed)] + [result(goal=False) for _ in range(of - passed)]
    assert f"({shown})" in summary_of(*results)


def test_the_words_that_decided_stand_beside_the_failure():
    text = flat(summary_of())
    assert "[1] Ann · Late parcel happened but must not: behaviour 2 “refunded the full amount” (turn 1)" in text


def test_offline_is_labelled():
    assert "offline: simulated users and checks, no model" in flat(summary_of(offline=True))
    assert "offline" not in summary_of()


def test_paths_and_commands_are_never_wrapped():
    path, command = "/very/long/" + "folder/" * 30 + "run.json", "evaluatorq sim show " + "0" * 80 + " 3"
    lines = summary_of(saved=path, next_steps=[(command, "reads it")]).splitlines()
    assert any(line.endswith(path) for line in lines)
    assert any(command in line for line in lines)


def test_tokens_are_told_by_role_and_unknown_ones_are_called_so():
    spent = result(token_usage=Usage(total_tokens=1030), usage_by_role={"target": Usage(total_tokens=1030)})
    text = flat(summary_of(spent, result(token_usage_known=False)))
    assert "1,060 (the agent 1,030); 1 conversation did not tell all" in text


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"offline": True, "target_type": "DemoAgent"}, "none: no model was asked"),
        ({"offline": True, "target_type": "function"}, "none reported by the agent"),
        ({"models": {"judge": "m"}}, "none: no model gave an answer"),
        ({"offline": True, "target_kind": "openai_model"}, "none: no model gave an answer"),
        ({}, "none reported"),
    ],
)
def test_no_tokens_are_not_no_questions(asked: dict[str, object], words: str):
    about = About.plan(a_plan(a_datapoint(), **asked))
    assert f"Tokens  {words}\n" in render_summary(Summary.of([result(token_usage=Usage())]), about)


def undecided(**scores: float) -> SimulationResult:
    one = result(goal=False, goal_known=False)
    one.metadata["evaluator_scores"] = scores
    return one


def test_a_goal_that_nobody_could_decide_is_no_zero_in_any_rate_or_mean():
    both = {"goal_achieved": 0.0, "conversation_quality": 0.3, "criteria_met": 1.0}
    text = summary_of(undecided(**both), undecided(**both))
    assert "Goals                 none of 2 decided" in text
    assert "goal_achieved         unknown, goal undecided in 2\n" in text
    assert "conversation_quality  unknown, goal undecided in 2\n" in text
    assert "criteria_met          1.00 mean of 2\n" in text
    known = result()
    known.metadata["evaluator_scores"] = {"goal_achieved": 1.0}
    assert "1.00 mean of 1, goal undecided in 1, 1 left out" in flat(
        summary_of(known, undecided(goal_achieved=0.0), dead("judge"))
    )


def test_what_is_not_shown_first_is_counted():
    trouble = [result(SEEN, scenario=f"scenario {number // 2}") for number in range(14)]
    text = summary_of(*trouble)
    assert text.count("the same in 1 more") == 5
    assert "  and 2 more kinds of trouble, in 4 conversations\n" in text
    assert "more kind" not in summary_of(*trouble[:10])


def test_scores_say_what_was_left_out():
    one = result()
    one.metadata["evaluator_scores"] = {"goal_achieved": 1.0}
    assert "1.00 mean of 1, 1 left out" in flat(summary_of(one, dead("judge")))


@pytest.mark.parametrize("width", [60, 80, 110])
def test_every_page_fits_its_width(width: int):
    long = result(SEEN, persona="A persona with a long name " * 4, scenario="A scenario with one too " * 4)
    summary = Summary.of([long, *MIXED])
    pages = [
        render_summary(summary, ABOUT, width=width),
        render_conversations(summary.lines, width=width),
        conversation(long, width=width),
    ]
    for line in "".join(pages).splitlines():
        assert len(line) <= width


def test_without_colour_there_is_no_control_character():
    pages = summary_of() + conversation(result(SEEN)) + render_conversations(Summary.of(MIXED).lines)
    assert [char for char in pages if unicodedata.category(char) == "Cc" and char != "\n"] == []


def test_with_colour_the_words_are_the_same():
    plain = render_summary(Summary.of(MIXED), ABOUT)
    colored = render_summary(Summary.of(MIXED), ABOUT, color=True)
    assert "\x1b[" in colored
    assert flat(re.sub(r"\x1b\[[0-9;]*m", "", colored)) == flat(plain)


HOSTILE = "\x1b]0;owned\x07\x1b[2Jbye\r\x9b31m\u202egnp.exe \ud83d"


def test_what_an_agent_says_is_shown_and_never_obeyed():
    talk = [user(HOSTILE), assistant(HOSTILE)]
    nasty = result(
        {**SEEN, "evidence": HOSTILE, "description": HOSTILE}, messages=talk, persona=HOSTILE, reason=HOSTILE
    )
    summary = Summary.of([nasty, dead("target", reason=HOSTILE)])
    pages = render_summary(summary, About(HOSTILE, target=HOSTILE, saved=HOSTILE)) + conversation(nasty)
    pages += render_conversations(summary.lines)
    assert [char for char in pages if char != "\n" and unicodedata.category(char) in ("Cc", "Cf", "Cs")] == []
    assert "\\x1b[2Jbye" in pages
    pages.encode()


LIE = result(goal=False, claims=[
    {"words": "refunded the full amount", "message_index": 3, "turn": 1, "backed": False, "requires": "a call"},
])  # fmt: skip


def test_the_summary_counts_conversations_in_which_something_was_said_to_be_done_that_was_not():
    honest = result(claims=[])
    assert "Claims 1 of 2 said that something was done that was not" in flat(summary_of(LIE, honest, result()))
    assert "Claims" not in summary_of(honest)


def test_the_words_of_an_untrue_claim_are_marked_where_they_were_said():
    assert "card. ✗ said to be done and was not: “refunded the full amount”" in flat(conversation(LIE))


def test_where_a_conversation_got_stuck_is_told_in_words():
    seen = [{"turn": turn, "answer": "No."} for turn in (1, 2)]
    stuck = flat(conversation(result(observations=seen)))
    assert "dead end turn 1: the agent did nothing and left nothing to go on from" in stuck


def test_the_fault_of_the_simulated_user_has_one_name_everywhere():
    text = summary_of(dead("user_simulator"))
    assert "simulated user failed: it broke" in text
    assert "user_simulator" not in text


def test_square_brackets_are_no_markup():
    assert "[bold]loud[/bold] :smile:" in conversation(result(messages=[user("[bold]loud[/bold] :smile:")]))


@given(st.text())
def test_printable_text_has_no_control_character_and_can_be_encoded(text: str):
    shown = printable(text)
    assert {c for c in shown if unicodedata.category(c) in ("Cc", "Cs")} <= {"\n"}
    shown.encode()
    assert "\n" not in one_line(text)


@given(st.text(alphabet=st.characters(categories=("L", "N", "P", "Zs"))))
def test_plain_text_is_left_alone(text: str):
    assert printable(text) == text


def test_a_verdict_stands_under_the_words_it_rests_on():
    lines = [line.strip() for line in conversation(result(SEEN, criteria_audit=[])).splitlines()]
    said = lines.index("agent  I have refunded the full amount to your card.")
    assert lines[said + 1].startswith("✗ must not happen: behaviour 2: “refunded the full amount”")


def test_tool_calls_and_their_results_are_shown():
    text = flat(conversation(result(HELD)))
    assert "tool find_order(order_id='A1')" in text
    assert 'tool → {"status": "shipped"}' in text


def test_the_scores_of_a_turn_and_the_judges_reason_are_shown():
    assert "judge quality 0.50 so so" in flat(conversation(result()))


def test_a_conversation_says_who_ended_it_and_whose_fault_that_was():
    text = flat(conversation(dead("user_simulator", code="timeout")))
    assert "ended by a timeout, the fault of simulated user after 2 turns: it broke" in text


def test_every_criterion_has_a_verdict_with_its_reason():
    audit = CriterionAudit(id="criteria_3", occurred=False, refused="the quote is not in a message")
    text = flat(conversation(result(HELD, MISSED, SEEN, OPEN, criteria_audit=[audit])))
    assert "✓ held must happen: behaviour 0 judge: “Let me look.” (turn 1)" in text
    assert "✗ broken must happen: behaviour 1 judge: never happened" in text
    assert "✗ broken must not happen: behaviour 2 judge: “refunded the full amount” (turn 1)" in text
    assert "? not audited must not happen: behaviour 3 the quote is not in a message" in text


def test_a_quote_that_nobody_said_is_called_so():
    audit = CriterionAudit(id="criteria_2", occurred=True, source="judge", evidence_verified=False)
    assert "which nobody said" in flat(conversation(result(SEEN, criteria_audit=[audit])))


def test_an_undecided_goal_and_an_overruled_judge_are_told():
    assert "nobody could decide" in conversation(result(goal=False, goal_known=False))
    overruled = flat(conversation(result(goal=False, judge_goal_achieved=True)))
    assert "not achieved (decided by code; the judge says achieved)" in overruled


def test_long_tool_results_are_cut_unless_asked_for():
    talk = [*TALK[:2], TALK[2].model_copy(update={"content": "x" * 1000})]
    cut, full = (flat(conversation(result(messages=talk), full=full)) for full in (False, True))
    assert "characters)" in cut
    assert cut.count("x") < 500 < 1000 <= full.count("x")


def test_a_listing_shows_how_far_unfinished_runs_are():
    runs = [
        ListedRun("nightly", "0" * 32, "2026-11-30T10:00:00Z", "interrupted", None, None, 3, 8, {}, None),
        ListedRun("done", "1" * 32, None, "completed", "simulate", "callback", 8, 8, {"mine": 0.5}, "/store/done.json"),
    ]
    text = flat(render_listing(runs))
    assert "00000000 nightly 11-30 10:00 interrupted 3/8" in text
    assert "callback completed 8" in text
    assert "/store/done.json" not in text
    full = render_listing(runs, full=True)
    assert "/store/done.json" in full
    assert "mine 0.50" in full


@pytest.mark.parametrize("width", [80, 110])
def test_a_run_is_one_line_of_the_listing_whatever_it_is_called(width: int):
    counts = {"passed": 12345, "failed": 23456, "unknown": 0, "errored": 7}
    runs = [
        ListedRun("n" * size, "0" * 32, "2026-11-30T10:00:00Z", "interrupted", None, "t" * (60 - size), 9, 9, {}, None,
                  verdicts=counts)
        for size in (2, 30, 58)
    ]  # fmt: skip
    lines = render_listing(runs, width=width).splitlines()
    assert len(lines) == 1 + len(runs) + 1
    assert all(len(line) <= width and line.endswith("✓12345 ✗23456 !7") for line in lines[1:-1])


def test_repeats_of_a_case_show_which_cases_pass_in_some_samples_only() -> None:
    points = datapoints(3, samples=3)
    held = [(True, True)] * 3 + [(True, True), (False, True), (True, None)] + [(True, None)] * 3
    summary = Summary.of(talk(point, row, state) for row, (point, state) in enumerate(zip(points, held, strict=True)))
    shown = render_summary(summary, About("made"), width=100)
    assert "1 of 2 datapoints pass in some samples only (1 not known)" in shown
    assert "1 of 3: P1" not in shown, "of what was decided"
    assert "1 of 2: P1 · " in shown
    assert "[3] [4]" in shown
    open_ones = Summary.of(talk(point, row, (True, None)) for row, point in enumerate(points))
    assert "not known: no two samples of 3 datapoints were decided" in render_summary(open_ones, About("made"))
    once = Summary.of(talk(point, row) for row, point in enumerate(datapoints(3)))
    assert "Flaky" not in render_summary(once, About("made"))
