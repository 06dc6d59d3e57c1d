"""Claims over observations: each kind holds and fails where it should, all failures are told, unread facts prove
nothing, and a saved file gives the same answer.
"""

from __future__ import annotations

import json

import pytest
from pydantic import JsonValue, ValidationError

from evaluatorq.model.expectations import Claims, Expectations
from evaluatorq.model.messages import Message, assistant, tool_call, tool_result, user
from evaluatorq.model.observation import (
    Act,
    CallOutcome,
    Change,
    Interaction,
    Observation,
    ObservedCall,
    Resolution,
    digest_of,
)
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.records.expectations import check_expectations, expectation_failures

FINAL: JsonValue = {
    "orders": {"A1": {"status": "refunded"}, "B2": {"status": "Sent"}},
    "refunds": {"A1": {"amount": 5}},
    "log": ["a", "b"],
    "empty": {},
}


def a_call(number: int, name: str, outcome: CallOutcome = "accepted", **arguments: JsonValue) -> ObservedCall:
    return ObservedCall(id=f"c{number}", name=name, digest=digest_of(arguments), outcome=outcome)


ONE = Observation(
    turn=1,
    tool_calls=(a_call(1, "find", order="A1"), a_call(2, "refund", "rejected", order="B2")),
    commands=(),
    events=(),
    states={},
    outside={"/orders/B2": Change(before={"status": "new"}, after={"status": "Sent"})},
    acts=(Act(kind="apply_operation", operation="refund", outcome="needs_clarification"), Act(kind="greet")),
    target_resolutions=(Resolution(act=0, resolution="ambiguous"),),
    interactions=(Interaction(id="k1", resource="case:1", kind="select_target", status="active", turn=1),),
    blocks=("answer", "interaction"),
    phase="delivered",
    answer="Which one?",
)
TWO = Observation(
    turn=2,
    tool_calls=(a_call(3, "refund", order="A1"),),
    commands=("refund",),
    events=("refunded:A1", "mailed"),
    states={
        "/orders/A1": Change(before={"status": "sent"}, after={"status": "refunded"}),
        "/refunds/A1": Change(before=None, after={"amount": 5}),
        "case:1": Change(before=None, after={"paid": True}),
    },
    revisions={"case:1": 3},
    acts=(Act(kind="apply_operation", operation="refund"),),
    target_resolutions=(Resolution(act=0, resolution="exact", resource="case:1"),),
    interactions=(Interaction(id="k1", resource="case:1", kind="select_target", status="resolved", turn=1),),
    blocks=("answer", "receipt"),
    phase="delivered",
    answer="Refunded.",
)
MESSAGES: list[Message] = [
    user("Refund"),
    assistant(None, [tool_call("c1", "find", {"order": "A1"}), tool_call("c2", "refund", {"order": "B2"})]),
    tool_result("c1", "{}"), tool_result("c2", '{"error": {"code": "late"}}'), assistant("Which one?"),
    user("A1"), assistant(None, [tool_call("c3", "refund", {"order": "A1", "why": "broken"})]),
    tool_result("c3", "{}"), assistant("Refunded."),
]  # fmt: skip


def a_result(*turns: Observation, final: JsonValue = FINAL, **fields: object) -> SimulationResult:
    values: dict[str, object] = {
        "messages": MESSAGES, "terminated_by": "judge", "reason": "r", "goal_achieved": True, "turn_count": 2,
        "goal_completion_score": 1.0, "rules_broken": [], "token_usage": NO_USAGE, "turn_metrics": [],
        "observations": turns or (ONE, TWO), "final_state": final,
    }  # fmt: skip
    return SimulationResult.model_validate({**values, **fields})


def failures(expect: dict[str, object], result: SimulationResult | None = None) -> list[str]:
    report = check_expectations(Expectations.model_validate(expect), result or a_result())
    return [failure.text for failure in report.failures]


HOLDS: list[dict[str, object]] = [
    {},
    {"outcome": "succeeds"},
    {"tools": ["find", "refund", "refund"]},
    {"tools": ["find", {"name": "refund", "outcome": "rejected"}, {"name": "refund", "arguments": {"order": "A1"}}]},
    {"tools": {"in_order": ["find", {"name": "refund", "outcome": "accepted"}]}},
    {"tools": {"subset": [{"name": "refund", "outcome": "accepted"}, "refund"]}},
    {"tools": {"any_of": [[], ["find", "refund", "refund"]]}},
    {"calls": {"find": 1, "refund": {"at_least": 1, "at_most": 2}, "mail": 0}},
    {"forbid": {"tools": ["mail", {"name": "refund", "arguments": {"order": "B2"}, "outcome": "accepted"}]}},
    {"forbid": {"commands": ["mail"], "events": ["refunded_late", "refunded:B2"]}},
    {"commands": ["refund"]},
    {"events": ["refunded", "mailed"]},
    {"events": ["refunded:A1", "mailed"]},
    {"state": [{"pointer": "/orders/A1/status", "equals": "refunded"}]},
    {"state": [{"pointer": "/orders/B2/status", "equals": "SENT", "ignore_case": True}]},
    {"state": [{"pointer": "/orders/B2/status", "one_of": ["x", "sent"], "ignore_case": True}]},
    {"state": [{"pointer": "/orders/C3", "absent": True}, {"pointer": "/log", "unchanged": True}]},
    {"state": [{"pointer": "", "equals": FINAL}]},
    {"counts": {"/refunds": 1, "/orders": {"at_least": 2}, "/log": 2, "/empty": 0, "/nothing": 0}},
    {"revisions": {"case:1": 3}},
    {"interactions": {"case:1": ["resolved"], "case:2": []}},
    {"blocks": ["answer", "interaction", "answer", "receipt"]},
    {"phase": "delivered"},
    {"acts": ["apply_operation", "greet", {"kind": "apply_operation", "operation": "refund"}]},
    {"acts": {"any_of": [[], ["apply_operation", "greet", "apply_operation"]]}},
    {"turns": [{"turn": 1, "tools": ["find", "refund"], "commands": [], "events": [], "counts": {"/refunds": 0}}]},
    {"turns": [{"turn": 1, "state": [{"pointer": "/orders/A1", "unchanged": True}]}]},
    {"turns": [{"turn": 1, "state": [{"pointer": "/orders/B2", "unchanged": True}]}]},
    {"turns": [{"turn": 1, "state": [{"pointer": "/orders/A1/status", "equals": "sent"}]}]},
    {"turns": [{"turn": 1, "resolutions": [{"act": 0, "resolution": "ambiguous"}]}]},
    {"turns": [{"turn": 1, "interactions": {"case:1": ["active"]}}]},
    {"turns": [{"turn": "last", "resolutions": [{"act": 0, "resolution": "exact", "resource": "case:1"}]}]},
]  # fmt: skip

FAILS: list[tuple[dict[str, object], str]] = [
    ({"outcome": "fails"}, "outcome: expected fails, got succeeded"),
    ({"outcome": {"fails_with": "timeout"}}, "outcome: expected fails with timeout, got succeeded"),
    ({"tools": []}, "tools: expected exactly [], got [find, refund rejected, refund]"),
    (
        {"tools": ["find", "refund", {"name": "refund", "arguments": {"order": "B2"}}]},
        "tools: expected exactly [find, refund, refund(order='B2')], got [find, refund rejected, refund]",
    ),
    ({"tools": {"in_order": ["refund", "find"]}},
     "tools: expected in this order [refund, find], got [find, refund rejected, refund]"),
    ({"tools": {"subset": ["mail", "find"]}}, "tools [mail]: expected [mail], got [find, refund rejected, refund]"),
    ({"tools": {"subset": ["find", "find"]}}, "tools [find]: expected [find], got [find, refund rejected, refund]"),
    ({"tools": {"any_of": [[], ["find"]]}},
     "tools: expected exactly [] or [find], got [find, refund rejected, refund]"),
    ({"calls": {"find": 2}}, "calls [find]: expected 2, got 1"),
    ({"calls": {"refund": {"at_most": 1}}}, "calls [refund]: expected at most 1, got 2"),
    ({"forbid": {"tools": ["refund"]}}, "forbidden_tool [refund]: expected no [refund], got [refund rejected, refund]"),
    ({"forbid": {"commands": ["refund"]}}, "forbidden_command [refund]: expected no refund, got refund"),
    ({"forbid": {"events": ["refunded"]}}, "forbidden_event [refunded]: expected no refunded, got refunded:A1"),
    ({"commands": []}, "commands: expected [], got [refund]"),
    ({"events": ["mailed", "refunded"]}, "events: expected [mailed, refunded], got [refunded:A1, mailed]"),
    ({"state": [{"pointer": "/orders/A1/status", "equals": "sent"}]},
     'state [/orders/A1/status]: expected "sent", got "refunded"'),
    ({"state": [{"pointer": "/orders/B2/status", "equals": "sent"}]},
     'state [/orders/B2/status]: expected "sent", got "Sent"'),
    ({"state": [{"pointer": "/log", "one_of": [[], ["a"]]}]}, 'state [/log]: expected [] or ["a"], got ["a", "b"]'),
    ({"state": [{"pointer": "/refunds/A1", "absent": True}]},
     'state [/refunds/A1]: expected absent, got {"amount": 5}'),
    ({"state": [{"pointer": "/refunds/A1", "unchanged": True}]},
     'state [/refunds/A1]: expected unchanged absent, got {"amount": 5}'),
    ({"state": [{"pointer": "/orders/B2", "unchanged": True}]},
     'state [/orders/B2]: expected unchanged {"status": "new"}, got {"status": "Sent"}'),
    ({"counts": {"/refunds": 0}}, "counts [/refunds]: expected 0, got 1"),
    ({"counts": {"/orders/A1/status": 1}},
     'counts [/orders/A1/status]: expected 1, got "refunded", which has no members'),
    ({"revisions": {"case:1": 4}}, "revision [case:1]: expected 4, got 3"),
    ({"revisions": {"case:9": 1}}, "revision [case:9]: expected 1, got not observed"),
    ({"interactions": {"case:1": ["active"]}}, "interactions [case:1]: expected [active], got [resolved]"),
    ({"interactions": {"case:1": []}}, "interactions [case:1]: expected [], got [resolved]"),
    ({"blocks": ["answer"]}, "blocks: expected [answer], got [answer, interaction, answer, receipt]"),
    ({"phase": "queued"}, "phase: expected queued, got delivered"),
    ({"acts": []},
     "acts: expected [], got [apply_operation refund needs_clarification, greet, apply_operation refund]"),
    ({"turns": [{"turn": 1, "tools": []}]}, "turn 1: tools: expected exactly [], got [find, refund rejected]"),
    ({"turns": [{"turn": 2, "state": [{"pointer": "/orders/A1", "unchanged": True}]}]},
     'turn 2: state [/orders/A1]: expected unchanged {"status": "sent"}, got {"status": "refunded"}'),
    ({"turns": [{"turn": 1, "resolutions": [{"act": 0, "resolution": "exact"}]}]},
     "turn 1: resolution [act 0]: expected exact, got ambiguous"),
    ({"turns": [{"turn": 2, "resolutions": [{"act": 0, "resolution": "exact", "resource": "case:2"}]}]},
     "turn 2: resolution [act 0]: expected exact case:2, got exact case:1"),
    ({"turns": [{"turn": 2, "resolutions": [{"act": 1, "resolution": "missing"}]}]},
     "turn 2: resolution [act 1]: expected missing, got none recorded"),
    ({"turns": [{"turn": 3}]}, "turn: expected turn 3 to take place, got 2 turns of the agent"),
    ({"calls": {"find": {"at_least": 2}}}, "calls [find]: expected at least 2, got 1"),
    ({"counts": {"/orders": {"at_least": 3, "at_most": 4}}},
     "counts [/orders]: expected at least 3 and at most 4, got 2"),
    ({"state": [{"pointer": "/orders/B2/status", "equals": "SEEN", "ignore_case": True}]},
     'state [/orders/B2/status]: expected "SEEN", got "Sent"'),
    ({"acts": {"any_of": [[], ["greet"]]}},
     "acts: expected [] or [greet], got [apply_operation refund needs_clarification, greet, apply_operation refund]"),
    ({"turns": [{"turn": 2, "commands": []}]}, "turn 2: commands: expected [], got [refund]"),
    ({"turns": [{"turn": "last", "events": []}]}, "turn 2: events: expected [], got [refunded:A1, mailed]"),
    ({"turns": [{"turn": 1, "counts": {"/refunds": 1}}]}, "turn 1: counts [/refunds]: expected 1, got 0"),
    ({"turns": [{"turn": 1, "interactions": {"case:1": []}}]},
     "turn 1: interactions [case:1]: expected [], got [active]"),
]  # fmt: skip


def test_every_kind_of_claim_is_in_both_tables() -> None:
    def named(expect: dict[str, object]) -> set[str]:
        turns = [turn for turn in expect.get("turns", []) if isinstance(turn, dict)]
        return set(expect).union(*map(set, turns))

    for table in (HOLDS, [expect for expect, _ in FAILS]):
        assert set(Claims.model_fields) - set[str]().union(*map(named, table)) == set()


@pytest.mark.parametrize(
    ("expect", "text"),
    [
        ({}, None),
        ({"outcome": "fails"}, None),
        ({"outcome": {"fails_with": "timeout"}}, None),
        ({"turns": [{"turn": 1, "outcome": "succeeds"}, {"turn": "last", "outcome": "fails"}]}, None),
        ({"outcome": "succeeds"}, "outcome: expected succeeds, got failed with timeout"),
        ({"outcome": {"fails_with": "auth"}}, "outcome: expected fails with auth, got failed with timeout"),
        ({"turns": [{"turn": 1, "outcome": "fails"}]}, "turn 1: outcome: expected fails, got succeeded"),
    ],
)
def test_a_conversation_that_fails_is_held_to_how_it_failed(expect: dict[str, object], text: str | None) -> None:
    broken = a_result(ONE, TWO.model_copy(update={"error_code": "timeout"}))
    assert failures(expect, broken) == ([] if text is None else [text])


@pytest.mark.parametrize("expect", HOLDS, ids=json.dumps)
def test_a_claim_that_is_true_holds(expect: dict[str, object]) -> None:
    assert failures(expect) == []


@pytest.mark.parametrize(
    ("expect", "text"), FAILS, ids=lambda value: json.dumps(value) if isinstance(value, dict) else ""
)
def test_a_claim_that_is_false_fails_and_says_what_was_found(expect: dict[str, object], text: str) -> None:
    assert failures(expect) == [text]


def test_every_failure_is_told_and_each_has_a_category() -> None:
    expect = {"tools": [], "phase": "x", "acts": [], "interactions": {"case:1": []}, "turns": [{"turn": 9}]}
    report = check_expectations(Expectations.model_validate(expect), a_result())
    assert report.met is False
    assert [failure.category for failure in report.failures] == [
        "side effects", "operational claims", "clarification", "understanding", "missing facts",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "expect",
    [
        {"tools": []},
        {"calls": {"find": 0}},
        {"forbid": {"tools": ["refund"]}},
        {"forbid": {"events": ["refunded"]}},
        {"forbid": {"commands": ["refund"]}},
        {"commands": []},
        {"events": []},
        {"blocks": []},
        {"phase": "x"},
        {"acts": []},
        {"interactions": {"case:1": []}},
    ],
    ids=json.dumps,
)
def test_what_nobody_reported_proves_nothing_not_even_an_absence(expect: dict[str, object]) -> None:
    (failure,) = failures(expect, a_result(Observation(turn=1, answer="Hi"), final=None))
    assert failure.startswith("unreported_facts [")


@pytest.mark.parametrize("expect", [{"state": [{"pointer": "/a", "absent": True}]}, {"counts": {"/a": 0}}])
def test_a_state_that_nobody_observed_is_not_an_empty_one(expect: dict[str, object]) -> None:
    (failure,) = failures(expect, a_result(Observation(turn=1), final=None))
    assert failure.endswith("got not observed")


@pytest.mark.parametrize("expect", [{"events": ["a"]}, {"forbid": {"events": ["z"]}}])
def test_a_claim_over_events_that_were_cut_fails_as_such(expect: dict[str, object]) -> None:
    cut = Observation(turn=1, events=("a",), events_truncated=True)
    assert failures(expect, a_result(cut)) == [
        "truncated_ledger: expected the whole list of events, got a list that was cut"
    ]
    assert failures({"commands": []}, a_result(cut.model_copy(update={"commands": ()}))) == []


@pytest.mark.parametrize(
    "expect",
    [{"events": []}, {"forbid": {"events": ["z"]}}, {"commands": []}, {"state": [{"pointer": "", "unchanged": True}]},
     {"counts": {"/log": 2}}, {"forbid": {"commands": ["z"]}}],
)  # fmt: skip
def test_a_claim_over_facts_that_could_not_be_read_fails_as_such(expect: dict[str, object]) -> None:
    broken = Observation(turn=1, read_error="OSError: gone", tool_calls=())
    assert "unreadable_facts: expected facts that can be read, got OSError: gone" in failures(expect, a_result(broken))
    assert failures({"tools": []}, a_result(broken)) == []


def test_states_of_a_store_are_found_by_its_own_keys() -> None:
    claims = {"state": [{"pointer": "/orders/A1/paid", "equals": True}], "counts": {"/orders/A1/rows": 2}}
    states = {"/orders/A1": Change(before=None, after={"paid": True, "rows": [1, 2]})}
    assert failures(claims, a_result(Observation(turn=1, states=states), final=None)) == []


# ---------------------------------------------------------------- broken off


def test_a_conversation_that_others_broke_is_not_measured_unless_the_forbidden_happened() -> None:
    cut = a_result(terminated_by="error", failed_component="infrastructure")
    report = check_expectations(Expectations.model_validate({"tools": [], "phase": "x"}), cut)
    assert (report.met, report.failures) == (None, [])
    forbidden = Expectations.model_validate({"tools": [], "forbid": {"events": ["refunded"]}})
    report = check_expectations(forbidden, cut)
    assert (report.met, [failure.name for failure in report.failures]) == (False, ["forbidden_event"])


@pytest.mark.parametrize("component", ["target", "judge"])
def test_a_conversation_that_the_agent_broke_or_only_the_judge_is_measured(component: str) -> None:
    report = check_expectations(
        Expectations.model_validate({"tools": []}), a_result(terminated_by="error", failed_component=component)
    )
    assert report.met is False


# ---------------------------------------------------------------- saved, and what is refused


def test_a_saved_conversation_gives_the_same_failures() -> None:
    expect = Expectations.model_validate(
        {k: v for claims, _ in FAILS if "forbid" not in claims for k, v in claims.items()}
    )
    result = a_result()
    result.expectations = check_expectations(expect, result)
    read = SimulationResult.model_validate_json(result.model_dump_json())
    assert check_expectations(expect, read) == result.expectations == read.expectations
    assert expectation_failures(read) == result.expectations.failures != []
    assert expectation_failures(a_result()) == []
    assert Expectations.model_validate_json(expect.model_dump_json()) == expect


@pytest.mark.parametrize(
    "expect",
    [
        {"tool": []},
        {"tools": {}},
        {"tools": {"first": ["a"]}},
        {"tools": [{"name": "a", "result": 1}]},
        {"tools": ["a"], "forbid": {"tools": ["a"]}},
        {"events": ["a"], "forbid": {"events": ["a"]}},
        {"state": [{"pointer": "/a"}]},
        {"state": [{"pointer": "/a", "equals": 1, "absent": True}]},
        {"state": [{"pointer": "a", "equals": 1}]},
        {"state": [{"pointer": "/a", "absent": True, "ignore_case": True}]},
        {"counts": {"/a": -1}},
        {"counts": {"/a": {}}},
        {"acts": {"exact": [], "any_of": [[]]}},
        {"outcome": "works"},
        {"turns": [{"tools": []}]},
        {"turns": [{"turn": 1}, {"turn": 1}]},
        {"turns": [{"turn": 1, "resolutions": [{"act": 0, "resolution": "missing", "resource": "a"}]}]},
    ],
    ids=json.dumps,
)
def test_what_says_nothing_or_contradicts_itself_is_refused(expect: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Expectations.model_validate(expect)


# ---------------------------------------------------------------- understanding


REFUND: dict[str, JsonValue] = {"operation": "refund", "record": "A1"}
READING: JsonValue = {
    "units": [
        {"kind": "wish", "words": "refund A1.", "acts": [{**REFUND, "arguments": {"n": 1}}]},
        {"kind": "question", "words": "Is B2 there?", "acts": [{"operation": "status", "record": "new"}]},
    ]
}  # fmt: skip


WISH = {"kind": "wish", "operation": "refund"}
QUESTION = {"kind": "question"}


@pytest.mark.parametrize(
    ("units", "scores"),
    [
        ([{"kind": "wish", "words": "Refund A1"}, {"kind": "question"}], (True, None, None, None)),
        ([{"kind": "wish"}], (False, None, None, None)),
        ([{**WISH, "record": "A1", "arguments": {"n": 1}}, {"kind": "question"}], (True,) * 4),
        ([WISH, {"kind": "question", "record": "B2"}], (True, True, False, None)),
        ([{"kind": "x", "words": "is b2 there", "operation": "status"}], (False, True, None, None)),
        ([{"kind": "wish", "arguments": {"m": {"not_given": True}, "n": 2}}, QUESTION], (True, None, None, False)),
    ],
)  # fmt: skip
def test_understanding_is_scored_by_task_and_never_fails(units: list[object], scores: tuple[bool | None, ...]) -> None:
    expect = Expectations.model_validate({"turns": [{"turn": 1, "understanding": units}]})
    report = check_expectations(expect, a_result(Observation(turn=1, understanding=READING)))
    (task,) = report.tasks
    assert (report.met, (task.segment, task.route, task.locate, task.extract)) == (True, scores)


def test_where_nothing_was_understood_stated_tasks_are_false_and_others_are_not_stated() -> None:
    expect = Expectations.model_validate(
        {"turns": [{"turn": "last", "understanding": [{"kind": "a", "operation": "b"}]}]}
    )
    (task,) = check_expectations(expect, a_result(Observation(turn=1))).tasks
    assert (task.segment, task.route, task.locate, task.extract) == (False, False, None, None)
