"""Every conversation, finished or not, has one trace document that fits its schema and from which nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import JsonValue
from trace_samples import SAMPLES, checked, events_of_sample, made

from evaluatorq.model.events import CallFailed, TargetReplied
from evaluatorq.model.trace import RuleStep, TargetStep, ToolStep, Trace
from evaluatorq.records.trace import trace_of
from evaluatorq.records.trace_case import case_document, content_hash
from evaluatorq.records.trace_events import datapoint_of, events_of
from evaluatorq.records.trace_schema import trace_schema

EVERY = pytest.mark.parametrize("name", SAMPLES)
GOLDEN = Path(__file__).parents[1] / "golden" / "trace-1"


@EVERY
def test_every_prefix_of_every_conversation_has_a_trace_that_gives_its_events_back(name: str) -> None:
    for length in range(1, len(events_of_sample(name)) + 1):
        trace = made(name, length)
        again = Trace.model_validate_json(trace.line())
        events = list(events_of_sample(name)[:length])
        if name != "restarted":  # its abandoned rows are masked, whatever they were
            assert list(events_of(again)) == events
        assert trace_of(SAMPLES[name]().plan, 0, events_of(again)).document() == trace.document()


@EVERY
def test_nothing_that_is_absent_is_written_as_null(name: str) -> None:
    def nulls(node: JsonValue, path: str) -> Iterator[str]:
        if node is None:
            yield path
        elif isinstance(node, dict):
            for key, value in node.items():
                if key not in ("states", "input", "data", "value", "before"):
                    yield from nulls(value, f"{path}/{key}")
        elif isinstance(node, list):
            for item in node:
                yield from nulls(item, path)

    assert list(nulls(made(name).document(), "")) == []


@EVERY
def test_only_the_agents_own_words_are_trainable(name: str) -> None:
    for step in made(name).steps:
        trainable = isinstance(step, TargetStep) and step.accepted and not step.abandoned
        assert step.loss_mask is not trainable


@EVERY
def test_the_snapshots_name_states_by_their_content(name: str) -> None:
    trace = made(name)
    for reference in (trace.snapshots or {}).values():
        assert content_hash((trace.states or {})[reference]) == reference


@EVERY
def test_a_trace_keeps_keys_that_this_version_does_not_know(name: str) -> None:
    document = made(name).document()
    later = {**document, "added_later": {"x": None}, "outcome": {**document["outcome"], "more": 1}}
    assert Trace.model_validate(later).document() == later


@EVERY
def test_golden_traces_still_read_and_mean_the_same(name: str) -> None:
    golden = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    trace = checked(Trace.model_validate(golden))
    assert trace.document() == golden
    again = trace_of(SAMPLES[name]().plan, 0, events_of(trace))
    for part in ("outcome", "verdicts", "totals", "steps"):
        assert again.document()[part] == golden[part]


def test_the_published_schema_is_the_models() -> None:
    published = Path(str(GOLDEN.parents[2] / "src/evaluatorq/_schemas/trace-1.schema.json")).read_text(encoding="utf-8")
    assert without_prose(json.loads(published)) == without_prose(trace_schema())


def without_prose(node: JsonValue) -> JsonValue:
    if isinstance(node, dict):
        return {k: without_prose(v) for k, v in node.items() if not (k == "description" and isinstance(v, str))}
    return [without_prose(item) for item in node] if isinstance(node, list) else node


def test_failed_calls_and_retries_are_steps_of_who_failed() -> None:
    trace = made("retried")
    failed = [step for step in trace.steps if isinstance(step, TargetStep) and step.error]
    assert [(step.error.code, step.error.final) for step in failed if step.error] == [
        ("rate_limit", False),
        ("auth", True),
    ]
    assert (trace.outcome.terminal, trace.outcome.failed_component) == ("error", "target")
    assert (trace.outcome.labels.errors, trace.outcome.labels.fallback_taken) == (2, True)
    assert sum(isinstance(event, CallFailed) for event in events_of(trace)) == 2


def test_an_agent_that_runs_its_own_tools_is_told_apart_row_by_row() -> None:
    trace = made("own_tools")
    kinds = [(step.kind, step.loss_mask) for step in trace.steps if step.event == 2 and step.kind != "rule"]
    assert kinds == [("target", False), ("tool", True), ("target", False), ("tool", True), ("target", False)]
    tools = [step for step in trace.steps if isinstance(step, ToolStep)]
    assert [(step.outcome, step.reason, step.accepted) for step in tools] == [
        ("accepted", None, True),
        ("rejected", "not_found", False),
    ]
    reply = next(event for event in events_of(trace) if isinstance(event, TargetReplied))
    assert [row.role for row in reply.messages] == ["assistant", "tool", "assistant", "tool", "assistant"]


def test_an_action_tells_its_arguments_preconditions_and_effects() -> None:
    look, refund = [step for step in made("refund").steps if isinstance(step, ToolStep)]
    assert (look.idempotent, look.read_only, look.effects) == (True, True, None)
    assert (refund.idempotent, refund.changed, refund.arguments) == (False, True, {"order": "A1"})
    assert [(fact.about, fact.before, fact.value) for fact in refund.effects or ()] == [
        ("/orders/A1", "delivered", "refunded")
    ]
    assert [fact.provenance.calls for fact in refund.effects or ()] == [("call_2",)]


def test_labels_are_computed_by_code_and_verdicts_stand_apart() -> None:
    trace = made("refund")
    labels = trace.outcome.labels
    assert (labels.workflow_completed, labels.goal_state_reached, labels.fallback_taken, labels.errors) == (
        True,
        True,
        False,
        0,
    )
    assert labels.checks_held is True
    assert trace.outcome.decision is not None
    assert (trace.outcome.decision.by, trace.outcome.goal_reached) == ("state", True)
    assert [criterion.state for criterion in trace.verdicts.criteria or ()] == ["pass", "pass", "pass"]
    assert [criterion.decided_by for criterion in trace.verdicts.criteria or ()] == ["judge", "judge", "check"]
    assert trace.caveats is None
    assert trace.totals.cost_usd == pytest.approx(0.008)


def test_a_goal_that_was_never_tested_is_absent() -> None:
    interrupted = made("refund", 4)
    assert "goal_reached" not in interrupted.document()["outcome"]
    assert "terminal" not in interrupted.document()["outcome"]
    assert {caveat.code for caveat in interrupted.caveats or ()} >= {"interrupted", "unaudited"}
    assert interrupted.outcome.labels.goal_state_reached is None


def rules(name: str, rule: str) -> list[RuleStep]:
    return [step for step in made(name).steps if isinstance(step, RuleStep) and step.rule == rule]


@pytest.mark.parametrize(
    ("name", "ending", "numbers", "losers"),
    [
        ("cap", "max_turns", (2, 2), []),
        ("repetition", "repetition", (3, 3), []),
        ("violation", "judge", (None, None), ["violation", "max_turns"]),
        ("tool_cap", "tool_cap", (3, 2), []),
        ("user_stops", "user", (None, None), []),
        ("retried", "error", (None, None), []),
    ],
)
def test_the_rule_that_ends_a_conversation_is_named_with_those_it_beat(
    name: str, ending: str, numbers: tuple[float | None, float | None], losers: list[str]
) -> None:
    step = rules(name, "stop_rule")[0]
    assert [fact.value for fact in step.derived] == [ending]
    assert (step.observed, step.threshold) == numbers
    assert [loser.rule for loser in step.suppressed or ()] == losers


def test_a_verdict_without_a_true_quote_is_refused_by_rule() -> None:
    refused = [
        {fact.about: fact.provenance.evidence for fact in step.derived}
        for step in rules("judge_trouble", "accept_policy")
    ]
    assert refused[0] == {"criteria_0": "the quote is not in a message of the party the criterion is about"}
    assert refused[1]["criteria_1"] == "two verdicts" or "criteria_1" in refused[1]


def test_what_was_seen_stays_seen_and_the_later_verdict_is_the_loser() -> None:
    losers = [loser for step in rules("judge_trouble", "criteria_fold") for loser in step.suppressed or ()]
    assert ("criteria_0 did not occur", "it was seen before, and that stays") in [(x.conclusion, x.why) for x in losers]
    assert ("criteria_7 did not occur", "the scenario has no such criterion") in [(x.conclusion, x.why) for x in losers]


def test_items_that_a_call_puts_forward_are_accepted_or_refused_by_rule() -> None:
    from trace_samples import Sample, call, shop

    from evaluatorq.testing import a_datapoint, a_scenario, crew_of, verdict

    lists = {"orders": {"tool": "look_up", "argument": "order", "policy": {"cap": 1, "per": "run"}}}
    lines = [call("look_up", 1, order="A1"), call("look_up", 2, order="a1 "), call("look_up", 3, order="Z9"), "Done."]
    crew = crew_of(target=lines, environment=shop, judge=[verdict(stop=True)])
    sample = Sample(a_datapoint(a_scenario(cognition={"lists": lists})), crew)
    trace = checked(trace_of(sample.plan, 0, sample.events()))
    fired = [step for step in trace.steps if isinstance(step, RuleStep) and step.rule == "accept_policy"]
    assert [[fact.value for fact in step.derived] for step in fired] == [["A1"]]
    assert [fact.about for fact in fired[0].derived] == ["list orders"]


def test_a_call_over_a_tools_limit_fires_a_rule() -> None:
    (step,) = rules("tool_limits", "tool_limits")
    assert step.why == "look_up may be called at most 1 times"


def test_a_fact_about_the_goal_goes_before_a_judges_opinion() -> None:
    (goal,) = rules("outside", "goal")
    assert [fact.value for fact in goal.derived] == [True]
    assert [loser.conclusion for loser in goal.suppressed or ()] == ["goal not reached"]


def test_what_came_before_a_restart_is_kept_and_is_not_trained_on() -> None:
    steps = made("restarted").steps
    abandoned = [step for step in steps if step.abandoned]
    assert abandoned
    assert all(step.loss_mask for step in abandoned)
    assert {caveat.code for caveat in made("restarted").caveats or ()} >= {"restarted"}


def test_an_event_that_does_not_fit_is_left_out_and_told() -> None:
    events = events_of_sample("cap")
    trace = checked(trace_of(SAMPLES["cap"]().plan, 0, [events[0], *events[2:]]))
    assert "journal_damaged" in {caveat.code for caveat in trace.caveats or ()}


def test_a_case_keeps_the_nulls_that_it_means() -> None:
    from evaluatorq.testing import a_datapoint, a_scenario

    scenario = a_scenario(
        goal_state=[{"pointer": "/x", "equals": None}],
        setup={"gone": None},
        script=[None, "b"],
        tools={"look": {"mocks": [{"returns": None}]}},
    )
    document = case_document(a_datapoint(scenario))
    assert document["scenario"]["goal_state"] == [{"pointer": "/x", "equals": None}]
    assert document["scenario"]["setup"] == {"gone": None}
    trace = made("refund").model_copy(update={"input": document})
    assert datapoint_of(trace) == a_datapoint(scenario)
