"""What a turn of the agent leaves behind is read from events, states and reports, whatever was said."""

from __future__ import annotations

import json
from collections.abc import Sequence

import anyio
import pytest
from pydantic import JsonValue

from evaluatorq.environments.toolbox import Toolbox, ToolRefused, tool
from evaluatorq.errors import CallError
from evaluatorq.model.events import EVENT, Event
from evaluatorq.model.messages import Message, assistant, tool_call, tool_result
from evaluatorq.model.observation import (
    Act,
    Change,
    Discarded,
    Interaction,
    Observation,
    Resolution,
    TurnReport,
)
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import Limits
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.ports import EventPage, LedgerEvent, ObservationSource, ObservedTurn, TargetReply
from evaluatorq.testing import a_datapoint, a_scenario, converse, crew_of, verdict

World = dict[str, JsonValue]


@tool
def refund(state: World, order: str) -> str:
    """Pays an order back."""
    orders = state["orders"]
    assert isinstance(orders, dict)
    if order not in orders:
        raise ToolRefused("no such order", code="not_found")
    row = orders[order]
    assert isinstance(row, dict)
    if row["status"] == "refunded":
        return "was refunded"
    row["status"] = "refunded"
    row["revision"] = 2
    state["refunds"] = {order: {"amount": 5}}
    events = state["events"]
    assert isinstance(events, list)
    events.append(f"refunded:{order}")
    return "paid"


@tool(idempotent=True)
def look(state: World, order: str) -> JsonValue:
    """Looks an order up."""
    return state["orders"]


@tool
def crash() -> None:
    """Breaks."""
    raise ZeroDivisionError


def world() -> Toolbox[World]:
    start: World = {"orders": {"A1": {"status": "sent", "revision": 1}}, "events": ["opened"], "today": "2026-01-01"}
    return Toolbox(start, [refund, look, crash])


def calls(*named: tuple[str, dict[str, JsonValue]], start: int = 1) -> Message:
    return assistant(None, [tool_call(f"c{start + i}", name, arguments) for i, (name, arguments) in enumerate(named)])


async def played(*target: object, **crew: object) -> SimulationResult:
    scenario = crew.pop("scenario", None) or a_scenario()
    limits = Limits(max_turns=crew.pop("turns", 1))
    made = crew_of(target=target, **{"environment": world, **crew})  # type: ignore[arg-type]
    return await converse(a_datapoint(scenario), made, limits)


# ---------------------------------------------------------------- the world


async def test_a_turn_that_does_nothing_is_observed_as_having_done_nothing() -> None:
    (seen,) = (await played("I have refunded you, promise.")).observations
    assert (seen.tool_calls, seen.commands, seen.events, seen.states) == ((), (), (), {})
    assert seen.answer == "I have refunded you, promise."
    assert (seen.acts, seen.blocks, seen.phase, seen.interactions) == (None, None, None, None)


async def test_calls_commands_events_states_and_revisions_are_read_from_the_world() -> None:
    (seen,) = (await played(calls(("look", {"order": "A1"}), ("refund", {"order": "A1"})), "Done.")).observations
    assert [(call.name, call.outcome) for call in seen.tool_calls or ()] == [
        ("look", "accepted"),
        ("refund", "accepted"),
    ]
    assert (seen.commands, seen.events, seen.revisions) == (("refund",), ("refunded:A1",), {"/orders/A1": 2})
    assert seen.states == {
        "/orders/A1": Change(before={"status": "sent", "revision": 1}, after={"status": "refunded", "revision": 2}),
        "/events": Change(before=["opened"], after=["opened", "refunded:A1"]),
        "/refunds/A1": Change(before=None, after={"amount": 5}),
    }
    assert seen.revision_of("/orders/A1") == 2
    assert seen.revision_of("/orders/B2") is None


async def test_every_way_a_call_can_go_has_its_outcome_and_a_stable_reason() -> None:
    second = calls(("refund", {"order": "A1"}), ("refund", {"order": "Z9"}), ("crash", {}), ("gone", {}), start=2)
    (seen,) = (await played(calls(("refund", {"order": "A1"})), second, "Done.")).observations
    assert [(call.name, call.outcome, call.reason) for call in seen.tool_calls or ()] == [
        ("refund", "accepted", None),
        ("refund", "no_change", None),
        ("refund", "rejected", "not_found"),
        ("crash", "failed", "tool_error"),
        ("gone", "rejected", "unknown_tool"),
    ]


async def test_an_agent_without_an_environment_reports_its_calls_or_leaves_them_unknown() -> None:
    row = calls(("mail", {"to": "x"}), ("page", {}), ("wait", {}))
    answers = (tool_result("c1", '{"outcome": "no_change"}'), tool_result("c2", '{"outcome": "awaiting"}'))
    told = TargetReply((row, *answers, assistant("Sent.")), usage=NO_USAGE, reports_tools=True)
    (seen,) = (await played(told, environment=None)).observations
    assert [call.outcome for call in seen.tool_calls or ()] == ["no_change", "awaiting", "awaiting"]
    assert (seen.states, seen.commands) == (None, None)
    (silent,) = (await played("Sent.", environment=None)).observations
    assert silent.tool_calls is None


async def test_the_digest_of_arguments_ignores_their_order_and_nothing_else() -> None:
    rows = [calls(("look", arguments), start=i) for i, arguments in enumerate(
        [{"order": "A1", "b": 1}, {"b": 1, "order": "A1"}, {"order": "A1", "b": 2}]
    )]  # fmt: skip
    (seen,) = (await played(*rows, "Done.")).observations
    one, two, three = (call.digest for call in seen.tool_calls or ())
    assert one == two != three


async def test_a_failed_turn_is_observed_with_what_it_did_before_it_failed() -> None:
    result = await played(calls(("refund", {"order": "A1"})), CallError("server_error", "down", retryable=True))
    (seen,) = result.observations
    assert (seen.error_code, seen.provider_failures, seen.events) == ("server_error", 3, ("refunded:A1",))
    assert seen.answer == ""


async def test_answers_that_were_thrown_away_keep_their_codes_and_the_turn_goes_on() -> None:
    class Unsure:
        stateful = False
        asked = 0

        async def respond(self, messages: Sequence[Message], *, thread_id: str) -> TargetReply:
            await anyio.lowlevel.checkpoint()
            self.asked += 1
            if self.asked == 1:
                raise CallError("empty_reply", "said nothing", retryable=True)
            if self.asked == 2:
                raise CallError("rate_limit", "slow down", retryable=True)
            return TargetReply((assistant("Hello."),), usage=NO_USAGE)

    from dataclasses import replace

    crew = replace(crew_of(), target=lambda _seat: Unsure())
    (seen,) = (await converse(a_datapoint(), crew, Limits(max_turns=1))).observations
    assert (seen.discard_codes(), seen.provider_failures, seen.error_code) == (("empty_reply",), 2, None)


async def test_tool_rounds_without_end_are_a_failed_turn_with_its_code() -> None:
    result = await played(*(calls(("look", {"order": "A1"}), start=i) for i in range(9)))
    assert [seen.error_code for seen in result.observations] == ["tool_cap"]


async def test_an_agent_that_opens_has_a_turn_zero_and_a_closing_reply_a_turn_of_its_own() -> None:
    from evaluatorq.ports import UserReply

    result = await played(
        "Welcome.", "Sure.", "Bye.",
        user=["Hello", UserReply("Thanks, bye.", stop=True, usage=NO_USAGE)],
        scenario=a_scenario(opens="agent"), turns=5,
    )  # fmt: skip
    assert [(seen.turn, seen.answer) for seen in result.observations] == [(0, "Welcome."), (1, "Sure."), (2, "Bye.")]


# ---------------------------------------------------------------- what others do


async def test_outside_changes_come_between_turns_and_are_not_the_agents() -> None:
    scenario = a_scenario(
        environment="w",
        events=[
            {"before_turn": 2, "call": {"name": "refund", "arguments": {"order": "A1"}}},
            {"before_turn": 2, "patch": {"today": "2026-01-02"}},
            {"before_turn": 9, "patch": {"today": "never"}},
        ],
    )
    result = await played("One.", "Two.", scenario=scenario, turns=2, judge=[verdict(), verdict()])
    one, two = result.observations
    assert (one.states, one.outside) == ({}, None)
    assert two.states == {}
    assert two.outside is not None
    assert list(two.outside) == ["/orders/A1", "/events", "/today", "/refunds/A1"]
    assert two.tool_calls == ()
    assert isinstance(result.final_state, dict)
    assert result.final_state["today"] == "2026-01-02"


async def test_an_outside_change_that_is_impossible_is_the_worlds_fault() -> None:
    scenario = a_scenario(events=[{"before_turn": 1, "call": {"name": "refund", "arguments": {"order": "Z9"}}}])
    result = await played("One.", scenario=scenario)
    assert (result.terminated_by.value, result.failed_component) == ("error", "environment")
    assert "outside event before turn 1" in result.reason


# ---------------------------------------------------------------- what is reported


async def test_what_an_agent_reports_stands_beside_what_its_world_shows() -> None:
    report = TurnReport(
        acts=(Act(kind="apply_operation", operation="refund", outcome="awaiting_confirmation"),),
        target_resolutions=(Resolution(act=0, resolution="exact", resource="/orders/A1"),),
        interactions=(Interaction(id="k1", resource="/orders/A1", kind="confirm_command", status="active", turn=1),),
        blocks=("answer", "interaction"),
        phase="delivered",
        provider_failures=1,
        discarded_answers=(Discarded(code="no_citation", reason="cites what nobody wrote", round=1),),
    )
    (seen,) = (await played(TargetReply((assistant("Shall I?"),), usage=NO_USAGE, report=report))).observations
    assert (seen.acts, seen.target_resolutions, seen.blocks) == (report.acts, report.target_resolutions, report.blocks)
    assert (seen.phase, seen.cards_created, seen.provider_failures) == ("delivered", 1, 1)
    assert [card.status for card in seen.interactions_of("/orders/A1")] == ["active"]
    assert seen.interactions_of("/orders/B2") == ()
    assert seen.discard_codes() == ("no_citation",)


class Store:
    """A ledger with many earlier events, read in pages."""

    def __init__(self, earlier: int, *own: str, broken: bool = False) -> None:
        self.ledger = [LedgerEvent("earlier", belongs=False)] * earlier + [LedgerEvent(kind) for kind in own]
        self.broken = broken
        self.turns: list[ObservedTurn] = []

    async def collect(self, turn: ObservedTurn) -> TurnReport:
        await anyio.lowlevel.checkpoint()
        self.turns.append(turn)
        if self.broken:
            raise OSError("connection refused")
        return TurnReport(turn_id="t1", commands=("wire_money",), revisions={"case:1": 4})

    async def page(self, turn: ObservedTurn, after: str | None) -> EventPage:
        start = int(after or 0)
        return EventPage(tuple(self.ledger[start : start + 512]), str(start + 512))


async def observed(store: ObservationSource, **crew: object) -> Observation:
    (seen,) = (await played("Done.", environment=None, source=lambda _seat: store, **crew)).observations
    return seen


async def test_a_forbidden_event_behind_nine_thousand_others_is_seen() -> None:
    store = Store(9_000, "refunded")
    seen = await observed(store)
    assert (seen.events, seen.events_truncated, seen.commands) == (("refunded",), False, ("wire_money",))
    assert (seen.turn_id, seen.revision_of("case:1")) == ("t1", 4)
    assert [(turn.number, [row.text for row in turn.messages]) for turn in store.turns] == [
        (1, ["I want a refund.", "Done."])
    ]


@pytest.mark.parametrize(
    ("cap", "events", "truncated"),
    [(None, 3, False), (3, 3, False), (2, 2, True), (0, 0, True)],
)
async def test_only_the_cap_cuts_events_and_it_shows(cap: int | None, events: int, truncated: bool) -> None:
    seen = await observed(Store(700, "a", "b", "c"), max_observed_events=cap)
    assert (len(seen.events or ()), seen.events_truncated) == (events, truncated)


async def test_a_cap_of_nothing_cuts_nothing_where_nothing_happened() -> None:
    seen = await observed(Store(700), max_observed_events=0)
    assert (seen.events, seen.events_truncated) == ((), False)


async def test_a_store_that_cannot_be_read_says_so_and_the_conversation_goes_on() -> None:
    seen = await observed(Store(0, broken=True))
    assert (seen.read_error, seen.events) == ("OSError: connection refused", None)


async def test_a_ledger_that_stands_still_is_a_read_error() -> None:
    class Stuck(Store):
        async def page(self, turn: ObservedTurn, after: str | None) -> EventPage:
            return EventPage((LedgerEvent("a"),), "same")

    assert "no new cursor" in ((await observed(Stuck(0))).read_error or "")


# ---------------------------------------------------------------- saved


async def test_only_fields_that_were_set_are_saved_and_they_load_as_they_were() -> None:
    result = await played(calls(("refund", {"order": "A1"})), "Done.")
    saved = json.loads(result.model_dump_json())["observations"][0]
    assert set(saved) == {"turn", "tool_calls", "commands", "events", "states", "revisions", "answer"}
    assert saved["states"]["/refunds/A1"] == {"before": None, "after": {"amount": 5}}
    assert SimulationResult.model_validate_json(result.model_dump_json()).observations == result.observations


async def test_the_same_events_give_the_same_observations_after_a_trip_through_the_journal() -> None:
    from evaluatorq.conversation.machine import fold
    from evaluatorq.records.observation import observations_of

    events: list[Event] = []
    crew = crew_of(target=[calls(("refund", {"order": "A1"})), "Done."], environment=world)
    case = a_datapoint(a_scenario(events=[{"before_turn": 1, "patch": {"today": "x"}}]))
    result = await converse(case, crew, Limits(max_turns=1), events=events)
    read = [EVENT.validate_json(EVENT.dump_json(event)) for event in events]
    assert observations_of(fold(case, Limits(max_turns=1), read)) == result.observations
