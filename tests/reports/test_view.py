"""What counts as passed, failed, unknown and errored, and what a rate says of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sample_results import HELD, MISSED, OPEN, SEEN, TALK, criterion, dead, result

from evaluatorq.model.judgments import CriterionAudit
from evaluatorq.model.messages import assistant, user
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.usage import Usage
from evaluatorq.records.verdicts import Rate, criteria_of, turn_of, verdict_of
from evaluatorq.reports.view import Summary

RULES = [
    ("everything was decided and held", result(HELD), "passed"),
    ("there are no criteria and the goal is reached", result(), "passed"),
    ("a must_happen did not happen", result(HELD, MISSED), "failed"),
    ("something prohibited was seen", result(SEEN), "failed"),
    ("the goal is missed", result(HELD, goal=False), "failed"),
    ("a criterion was not audited", result(HELD, OPEN), "unknown"),
    ("a failure outweighs an unaudited criterion", result(OPEN, MISSED), "failed"),
    ("nobody could decide the goal", result(HELD, goal=False, goal_known=False), "unknown"),
    ("no audit arrived at all", result(HELD, criteria_verified=False), "unknown"),
    ("the agent died", dead("target"), "errored"),
    ("the judge timed out", dead("judge", code="timeout"), "errored"),
    ("an old file without criteria_meta", result(metadata={}, criteria_results={"a": True, "b": False}), "failed"),
    (
        "an old file, not verified",
        result(metadata={}, criteria_results={"a": True}, criteria_verified=False),
        "unknown",
    ),
    ("a broken criteria record", result({**HELD, "passed": "yes"}), "unknown"),
]


@pytest.mark.parametrize(("case", "verdict"), [(r, v) for _, r, v in RULES], ids=[name for name, _, _ in RULES])
def test_a_conversation_is(case: SimulationResult, verdict: str):
    assert verdict_of(case) == verdict


def test_a_rate_shows_its_denominator_and_what_the_undecided_could_do_to_it():
    rate = Rate(yes=3, no=1, unknown=4)
    assert (rate.decided, rate.total) == (4, 8)
    assert (rate.share, rate.worst, rate.best) == (0.75, 0.375, 0.875)
    nothing = Rate(unknown=2)
    assert (nothing.share, nothing.worst, nothing.best) == (None, 0.0, 1.0)
    assert Rate().worst is None


def test_only_the_agents_own_faults_count_against_it():
    summary = Summary.of([result(), dead("target"), dead("judge"), dead("user_simulator"), dead(None)])
    assert summary.agent == Rate(yes=1, no=1, unknown=3)
    assert summary.faults == {"target": 1, "judge": 1, "user_simulator": 1, "not recorded": 1}
    assert summary.verdicts == {"passed": 1, "errored": 4}


def test_an_unaudited_criterion_is_counted_as_unknown_and_never_as_held():
    summary = Summary.of([result(HELD, OPEN), result(HELD, SEEN)])
    assert summary.audits == Rate(yes=2, no=1, unknown=1)


def test_the_worst_is_shown_first_and_equal_stories_once():
    summary = Summary.of(
        [result(MISSED), result(SEEN), result(SEEN, persona="Bob"), dead("judge"), result(goal=False), result()]
    )
    findings = summary.findings()
    assert [finding.line.index for finding in findings] == [1, 0, 4, 3]
    assert findings[0].like == (2,)
    assert findings[0].line.quote == "refunded the full amount"


def test_what_was_said_to_be_done_and_was_not_is_looked_at_before_what_is_missing():
    claim = {"words": "have refunded", "message_index": 3, "turn": 1, "requires": "a call of refund_order()"}
    lied = result(HELD, claims=[{**claim, "backed": True}, {**claim, "backed": False}])
    first, second = Summary.of([result(MISSED), lied]).findings()
    assert first.line.why == "said to be done and was not: without a call of refund_order()"
    assert (first.line.quote, first.line.quote_turn) == ("have refunded", 1)
    assert second.line.index == 0
    assert Summary.of([result(HELD, claims=[{**claim, "backed": True}])]).findings() == []


def test_criteria_that_nobody_audited_are_no_finding():
    assert Summary.of([result(HELD, OPEN)]).findings() == []


def test_rows_keep_their_number_whatever_ended_first():
    summary = Summary.of([result(row=2), result(row=0)])
    assert [line.index for line in summary.lines] == [2, 0]


def test_unknown_tokens_are_not_zero():
    summary = Summary.of([result(), result(token_usage_known=False)])
    assert summary.usage_unknown == 1
    assert [line.tokens for line in summary.lines] == [30, None]


def test_tokens_add_up_by_role():
    one = result(usage_by_role={"target": Usage(total_tokens=10), "judge": Usage(total_tokens=20)})
    summary = Summary.of([one, one])
    assert {role: usage.total_tokens for role, usage in summary.usage_by_role.items()} == {"target": 20, "judge": 40}
    assert summary.usage.total_tokens == 60


def test_scores_say_how_many_they_are_the_mean_of():
    scored = [result() for _ in range(3)]
    for one, value in zip(scored, (1, 0.5, True), strict=True):
        one.metadata["evaluator_scores"] = {"mine": value}
    mean = Summary.of(scored).scores["mine"]
    assert (mean.value, mean.count) == (0.75, 2)


def test_a_quote_is_placed_where_it_was_said_even_in_files_that_keep_no_place():
    (view,) = criteria_of(result(SEEN, criteria_audit=[]))
    assert (view.message_index, view.turn) == (3, 1)


def test_a_recorded_place_wins_over_looking_the_quote_up():
    audit = CriterionAudit(id="criteria_2", occurred=True, source="check", message_index=5, evidence_verified=True)
    (view,) = criteria_of(result(SEEN, criteria_audit=[audit]))
    assert (view.message_index, view.turn, view.by_check) == (5, 2, True)


def test_what_an_agent_says_before_the_user_belongs_to_no_turn():
    talk = [assistant("Welcome!"), user("hi"), assistant("hello")]
    assert [turn_of(talk, index) for index in range(3)] == [0, 1, 1]


def test_two_criteria_with_equal_words_are_counted_apart():
    twins = [{**criterion(i, "must_happen", passed=i == 0), "description": "greets"} for i in range(2)]
    assert len(Summary.of([result(*twins)]).criteria) == 2


def test_saved_runs_of_the_published_package_are_readable():
    result_of_old = {
        "messages": [message.model_dump(mode="json") for message in TALK], "terminated_by": "error",
        "reason": "[ERROR: boom]", "goal_achieved": False, "goal_completion_score": 0.0, "rules_broken": [],
        "turn_count": 2, "token_usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
        "turn_metrics": [], "metadata": {"persona": "Ann", "scenario": "S", "criteria_meta": None},
    }  # fmt: skip
    summary = Summary.of([SimulationResult.model_validate_json(json.dumps(result_of_old))])
    assert summary.verdicts == {"errored": 1}
    assert summary.goal == Rate(unknown=1)


def test_a_summary_of_nothing_is_a_summary():
    summary = Summary()
    assert (summary.total, summary.findings(), summary.agent.share) == (0, [], None)


def test_reports_touch_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Summary.of([result(SEEN)])
    assert list(tmp_path.iterdir()) == []
