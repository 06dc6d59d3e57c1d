"""What calls for suggestions, which conversation is worst, and the part of it that is shown."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evaluatorq.model.judgments import CriteriaMeta, CriterionAudit
from evaluatorq.model.messages import Message, assistant, tool_call, tool_result, user
from evaluatorq.model.results import SimulationResult, TerminatedBy, TurnMetrics
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.records.triggers import SimulationRecommendationConfig, Trigger, excerpt, find_triggers, severity

ASKS = CriteriaMeta(id="criteria_0", description="The agent asks for the number", type="must_happen", passed=True)
PAYS = CriteriaMeta(id="criteria_1", description="The agent promises money", type="must_not_happen", passed=True)
MISSED = ASKS.model_copy(update={"passed": False, "audited": True, "evidence": ""})
PAID = PAYS.model_copy(update={"passed": False, "audited": True, "evidence": "you get your money"})
LONG = tuple(row for i in range(30) for row in (user(f"question {i}"), assistant(f"answer {i}")))


def conversation(
    *metas: CriteriaMeta,
    messages: Sequence[Message] = LONG,
    scores: Sequence[tuple[float | None, float | None, float | None]] = (),
    **more: object,
) -> SimulationResult:
    """A result; ``scores`` are factual accuracy, hallucination risk and tone by turn."""
    turns = [
        TurnMetrics(
            turn_number=i,
            token_usage=NO_USAGE,
            factual_accuracy=fact,
            hallucination_risk=risk,
            tone_appropriateness=tone,
        )
        for i, (fact, risk, tone) in enumerate(scores, 1)
    ]
    fields: dict[str, object] = {
        "messages": list(messages), "terminated_by": TerminatedBy.JUDGE, "reason": "read", "goal_achieved": True,
        "goal_completion_score": 1.0, "rules_broken": [], "turn_count": len(turns), "token_usage": NO_USAGE,
        "turn_metrics": turns, "criteria_verified": True,
        "metadata": {"criteria_meta": [meta.model_dump() for meta in metas]}, **more,
    }  # fmt: skip
    return SimulationResult.model_validate(fields)


def at(place: int) -> dict[str, object]:
    return {"criteria_audit": [CriterionAudit(id="criteria_1", occurred=True, source="judge", message_index=place)]}


def test_prohibited_acts_come_before_missing_ones_and_both_are_described_never_numbered():
    found = find_triggers(conversation(MISSED, PAID, **at(5), rules_broken=["criteria_0", "criteria_1", "It was rude"]))
    assert found == [
        ("rule_broken", 'The agent promises money ("you get your money", turn 3)'),
        ("rule_broken", "It was rude"),
        ("criterion_failed", "The agent asks for the number"),
    ]
    assert str(found[2]) == "criterion_failed: The agent asks for the number"
    assert all("criteria_" not in evidence for _, evidence in found)


def test_quality_counts_by_its_average_over_the_conversation():
    scores = [(0.2, 0.9, None), (0.4, 0.5, 0.9), (None, None, 0.8)]
    assert find_triggers(conversation(scores=scores)) == [
        ("low_factual_accuracy", "average 0.30"), ("high_hallucination_risk", "average 0.70"),
    ]  # fmt: skip
    strict = SimulationRecommendationConfig(tone_appropriateness_below=0.9, hallucination_risk_above=0.8)
    assert [kind for kind, _ in find_triggers(conversation(scores=scores), strict)] == [
        "low_factual_accuracy", "poor_tone",
    ]  # fmt: skip


def test_what_holds_is_unknown_or_broke_off_gives_no_reason():
    unaudited = PAYS.model_copy(update={"audited": False})
    for result in (
        conversation(ASKS, unaudited, scores=[(0.5, 0.5, 0.5)]),
        conversation(PAID, terminated_by="error", scores=[(0.0, 1.0, 0.0)]),
        conversation(PAID, metadata={"criteria_meta": [PAID.model_dump()], "criteria_errors": ["bad"]}),
    ):
        assert find_triggers(result) == []
        assert severity(result) is None


def test_severity_orders_acts_then_omissions_then_the_goal_then_scores():
    worst_first = [
        conversation(MISSED, PAID),
        conversation(PAID, goal_achieved=False),
        conversation(PAID),
        conversation(MISSED, scores=[(0.1, None, None)]),
        conversation(MISSED),
        conversation(scores=[(0.4, None, None)], goal_achieved=False),
        conversation(scores=[(0.1, None, None)]),
        conversation(scores=[(0.4, None, None)]),
    ]
    severities = [severity(result) for result in worst_first]
    assert severities == sorted(severities, reverse=True)
    assert len(set(severities)) == len(severities)


def test_the_excerpt_is_around_the_quote_and_not_the_beginning():
    options = SimulationRecommendationConfig(max_transcript_chars=200)
    shown = excerpt(conversation(PAID, **at(41)), options)
    assert "[41] agent: answer 20" in shown
    assert "question 0" not in shown
    assert shown.startswith("[… ")
    assert shown.endswith("rows left out …]")


def test_the_excerpt_is_the_end_for_what_never_happened_and_the_worst_turn_for_scores():
    options = SimulationRecommendationConfig(max_transcript_chars=120)
    assert "[59] agent: answer 29" in excerpt(conversation(MISSED), options)
    scores = [(0.5, None, None)] * 10 + [(0.0, None, None)] + [(0.4, None, None)] * 5
    assert "[21] agent: answer 10" in excerpt(conversation(scores=scores), options)


def test_tool_rows_are_shown_and_long_rows_are_cut():
    rows = (
        user("x " * 400),
        assistant(None, [tool_call("t1", "refund", {"order": "A1"})]),
        tool_result("t1", "done"),
        assistant("Paid."),
    )
    lines = excerpt(conversation(MISSED, messages=rows)).splitlines()
    assert [line.split(":")[0] for line in lines] == ["[0] user", "[1] agent", "[2] tool", "[3] agent"]
    assert lines[0].endswith("…")
    assert len(lines[0]) < 420
    assert lines[1] == '[1] agent: calls refund({"order": "A1"})'


@given(st.integers(0, 59), st.integers(100, 3000), st.lists(st.text(max_size=80), min_size=1, max_size=40))
def test_an_excerpt_keeps_its_length_and_order(place: int, most: int, words: list[str]):
    messages = [user(text) if i % 2 == 0 else assistant(text) for i, text in enumerate(words)]
    result = conversation(PAID, messages=messages, **at(place))
    options = SimulationRecommendationConfig(max_transcript_chars=most)
    lines = excerpt(result, options).splitlines()
    rows = [line for line in lines if not line.startswith("[…")]
    assert sum(len(row) + 1 for row in rows) <= most + 1
    numbers = [int(row[1 : row.index("]")]) for row in rows]
    assert numbers == sorted(numbers)
    assert numbers


def test_a_conversation_without_a_word_has_an_empty_excerpt():
    assert excerpt(conversation(MISSED, messages=())) == ""


def test_the_options_are_the_published_ones_and_refuse_others():
    assert SimulationRecommendationConfig().model_dump() == {
        "max_suggestions": 3, "max_tokens": 800, "factual_accuracy_below": 0.5, "hallucination_risk_above": 0.5,
        "tone_appropriateness_below": 0.5, "max_results": 10, "max_transcript_chars": 3000, "max_message_chars": 400,
        "max_verdict_chars": 300,
    }  # fmt: skip
    for wrong in ({"max_result": 1}, {"max_results": 0}, {"factual_accuracy_below": 2}):
        with pytest.raises(ValidationError):
            SimulationRecommendationConfig.model_validate(wrong)
    assert tuple(Trigger("poor_tone", "x")) == ("poor_tone", "x")
