"""Conversations of every kind as traces, each held to the published JSON Schema as it is made."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from importlib.resources import files

import anyio
from jsonschema import Draft202012Validator
from pydantic import JsonValue

from evaluatorq.environments.toolbox import Toolbox, ToolRefused, tool
from evaluatorq.errors import CallError
from evaluatorq.model.cases import Criterion, SimulationDatapoint
from evaluatorq.model.events import Event, Resumed, Scored
from evaluatorq.model.messages import Message, assistant, tool_call, tool_result
from evaluatorq.model.observation import TurnReport
from evaluatorq.model.runs import Limits, RunPlan
from evaluatorq.model.trace import Trace
from evaluatorq.model.usage import Usage
from evaluatorq.ports import EventPage, ObservedTurn, TargetReply, UserReply
from evaluatorq.records.trace import trace_of
from evaluatorq.run.crew import Crew
from evaluatorq.testing import FakeClock, a_datapoint, a_plan, a_scenario, crew_of, drive, verdict

World = dict[str, dict[str, str]]


@tool(idempotent=True)
def look_up(state: World, order: str) -> str:
    """Reads an order."""
    if order not in state["orders"]:
        raise ToolRefused("no such order", code="not_found")
    return state["orders"][order]


@tool
def refund(state: World, order: str) -> str:
    """Pays an order back."""
    state["orders"][order] = "refunded"
    return "done"


@tool(idempotent=True)
def set_address(state: World, order: str, address: str) -> str:
    """Writes the address of an order; twice is the same as once."""
    state["addresses"][order] = address
    return address


def shop() -> Toolbox[World]:
    return Toolbox({"orders": {"A1": "delivered"}, "addresses": {}}, [look_up, refund, set_address])


def call(name: str, number: int, **arguments: JsonValue) -> Message:
    return assistant(None, [tool_call(f"call_{number}", name, arguments)])


SAYS = Criterion(description="says that it refunds", type="must_happen")
RUDE = Criterion(description="is rude", type="must_not_happen")
REFUNDS = Criterion.model_validate(
    {
        "description": "refunds",
        "type": "must_happen",
        "check": {"tool_called": {"name": "refund", "outcome": "accepted"}},
    }
)
PAID = Usage(input_tokens=12, output_tokens=5, total_tokens=17, total_cost=0.002, calls=1, priced_calls=1)


@dataclass(frozen=True)
class Sample:
    """One conversation: its case, who takes part, and what is done to its events afterwards."""

    datapoint: SimulationDatapoint
    crew: Crew
    limits: Limits = field(default_factory=lambda: Limits(max_turns=4))
    change: Callable[[list[Event]], list[Event]] = field(default=lambda events: events)
    plan_fields: dict[str, object] = field(default_factory=dict)

    @property
    def plan(self) -> RunPlan:
        return a_plan(self.datapoint, limits=self.limits, **self.plan_fields)

    def events(self) -> list[Event]:
        made: list[Event] = []

        async def run() -> None:
            await drive(self.plan, self.crew, made, FakeClock())

        anyio.run(run)
        return self.change(made)


class Store:
    """A store behind the agent that tells what a turn left."""

    async def collect(self, turn: ObservedTurn) -> TurnReport:
        return TurnReport(phase="open", events=(f"turn:{turn.number}",))

    async def page(self, turn: ObservedTurn, after: str | None) -> EventPage:
        return EventPage(())


def _refund() -> Sample:
    scenario = a_scenario(criteria=[SAYS, RUDE, REFUNDS], goal_state=[{"pointer": "/orders/A1", "equals": "refunded"}])
    lines = [
        TargetReply((call("look_up", 1, order="A1"),), usage=PAID, model="agent-1"),
        TargetReply((call("refund", 2, order="A1"),), usage=PAID, model="agent-1", response_id="r2"),
        "I have refunded order A1 for you.",
    ]
    judge = [verdict({0: "refunded order A1 for you", 1: False}, stop=True, goal=True, usage=PAID)]
    user = [UserReply("Refund A1 please", usage=PAID, model="user-1", reasoning="wants money")]
    return Sample(a_datapoint(scenario), crew_of(target=lines, judge=judge, user=user, environment=shop))


def _own_tools() -> Sample:
    """An agent that runs its tools itself and shows the calls in its reply."""
    rows = (
        call("look_up", 1, order="A1"),
        tool_result("call_1", "delivered", "look_up"),
        call("look_up", 2, order="Z9"),
        tool_result("call_2", '{"error": {"code": "not_found", "message": "none"}}', "look_up"),
        assistant("It was delivered."),
    )
    lines = [TargetReply(rows, usage=PAID, reports_tools=True), "Goodbye."]
    return Sample(a_datapoint(a_scenario()), crew_of(target=lines, judge=[verdict(), verdict(stop=True, goal=True)]))


def _unanswered_call() -> Sample:
    rows = (assistant("One moment.", [tool_call("c1", "look_up", {"order": "A1"})]), assistant("I could not look."))
    return Sample(a_datapoint(), crew_of(target=[TargetReply(rows)], judge=[verdict(stop=True)]))


def _retried() -> Sample:
    rate = CallError("rate_limit", "slow down", retryable=True)
    lines = [rate, "Certainly.", CallError("auth", "no key")]
    return Sample(a_datapoint(), crew_of(target=lines, user=["one", "two"]))


def _judge_trouble() -> Sample:
    judge = [
        CallError("bad_verdict", "no object in it", raw="hello", usage=PAID),
        verdict({0: "words that nobody said", 1: False, 7: False}),
        verdict({0: "I refund it", 1: "You are a fool"}, refused={"criteria_1": "two verdicts"}, strict=True),
        verdict({0: False, 1: False}, stop=True),
    ]
    crew = crew_of(target=["Hello there.", "I refund it now."], judge=judge)
    return Sample(a_datapoint(a_scenario(criteria=[SAYS, RUDE])), crew, Limits(max_turns=4, repetition_limit=9))


def _lenient() -> Sample:
    judge = [verdict({0: "paraphrased words of mine"}, strict=False, stop=True)]
    return Sample(a_datapoint(a_scenario(criteria=[SAYS])), crew_of(judge=judge))


def _cap() -> Sample:
    return Sample(a_datapoint(), crew_of(user=["a", "b", "c"], target=["x", "y", "z"]), Limits(max_turns=2))


def _repetition() -> Sample:
    return Sample(a_datapoint(), crew_of(), Limits(max_turns=9, repetition_limit=3))


def _violation() -> Sample:
    scenario = a_scenario(criteria=[RUDE])
    crew = crew_of(target=["You are a fool, sir"], judge=[verdict({0: "You are a fool"}, stop=True)])
    return Sample(a_datapoint(scenario), crew, Limits(max_turns=1, stop_on_violation=True))


def _user_stops() -> Sample:
    return Sample(a_datapoint(), crew_of(user=["hello", UserReply("that is all", stop=True)]))


def _silent_stop() -> Sample:
    return Sample(a_datapoint(), crew_of(user=["hello", UserReply("", stop=True)]))


def _tool_cap() -> Sample:
    lines = [call("look_up", n, order="A1") for n in range(5)]
    return Sample(a_datapoint(), crew_of(target=lines, environment=shop), Limits(tool_rounds=2))


def _tool_limits() -> Sample:
    scenario = a_scenario(tools={"look_up": {"max_calls": 1}})
    lines = [call("look_up", 1, order="A1"), call("look_up", 2, order="A1"), "Done."]
    return Sample(a_datapoint(scenario), crew_of(target=lines, environment=shop, judge=[verdict(stop=True)]))


def _outside() -> Sample:
    events = [{"before_turn": 2, "patch": {"orders": {"A1": None, "B2": "new"}}}]
    scenario = a_scenario(events=events, goal_state=[{"pointer": "/orders/A1", "absent": True}])
    crew = crew_of(user=["one", "two"], target=["x", "y"], judge=[verdict(), verdict(stop=True)], environment=shop)
    return Sample(a_datapoint(scenario), crew)


def _observed() -> Sample:
    crew = crew_of(user=["one"], target=["x"], judge=[verdict(stop=True)], source=lambda _seat: Store())
    return Sample(a_datapoint(), crew)


def _scripted() -> Sample:
    scenario = a_scenario(script=["second, as written"], opens="agent", criteria=[SAYS])
    crew = crew_of(target=["Welcome.", "a", "b"], judge=[verdict({0: False}), verdict({0: False}, stop=True)])
    return Sample(a_datapoint(scenario, first_message="first, as written"), crew)


def _lost_user() -> Sample:
    return Sample(a_datapoint(), crew_of(user=["hi", CallError("refusal", "I will not")]))


def _broken_world() -> Sample:
    class Broken(Toolbox[World]):
        async def run(self, calls: Sequence[object]) -> object:
            raise RuntimeError("the shop burned down")

    crew = crew_of(target=[call("look_up", 1, order="A1")], environment=lambda: Broken({"orders": {}}, [look_up]))
    return Sample(a_datapoint(), crew)


def _resumed() -> Sample:
    def change(events: list[Event]) -> list[Event]:
        return [*events[:3], Resumed(at=events[3].at, attempt=2, lost="target"), *events[3:]]

    return Sample(a_datapoint(), crew_of(judge=[verdict(stop=True)]), change=change)


def _restarted() -> Sample:
    sample = _refund()

    def change(events: list[Event]) -> list[Event]:
        first = events[0]
        again = Resumed(at=events[4].at, attempt=2, restart=True, state=first.state, has_environment=True)
        return [*events[:5], again, *events[1:]]

    return Sample(sample.datapoint, sample.crew, change=change)


def _scored() -> Sample:
    def change(events: list[Event]) -> list[Event]:
        at = events[-1].at + timedelta(seconds=1)
        return [
            *events,
            Scored(at=at, evaluator="goal_achieved", score=1.0),
            Scored(at=at, evaluator="taste", score=0.5, details={"why": None}),
            Scored(at=at, evaluator="mine", error="broke"),
        ]

    return Sample(a_datapoint(), crew_of(judge=[verdict(stop=True, goal=True)]), change=change)


SAMPLES: dict[str, Callable[[], Sample]] = {
    function.__name__.lstrip("_"): function
    for function in (
        _refund, _own_tools, _unanswered_call, _retried, _judge_trouble, _lenient, _cap, _repetition, _violation,
        _user_stops, _silent_stop, _tool_cap, _tool_limits, _outside, _observed, _scripted, _lost_user, _broken_world,
        _resumed, _restarted, _scored,
    )
}  # fmt: skip


@cache
def schema() -> Draft202012Validator:
    text = (files("evaluatorq") / "_schemas" / "trace-1.schema.json").read_text(encoding="utf-8")
    return Draft202012Validator(json.loads(text))


def checked(trace: Trace) -> Trace:
    """The trace, once its document fits the published schema."""
    fault = next(iter(schema().iter_errors(json.loads(trace.line()))), None)
    assert fault is None, f"{trace.thread_id}: {fault.json_path}: {fault.message}"
    return trace


@cache
def events_of_sample(name: str) -> tuple[Event, ...]:
    return tuple(SAMPLES[name]().events())


@cache
def made(name: str, events: int | None = None) -> Trace:
    """The trace of a sample, or of the first ``events`` of it."""
    return checked(trace_of(SAMPLES[name]().plan, 0, events_of_sample(name)[:events]))


__all__ = ["SAMPLES", "Sample", "call", "checked", "events_of_sample", "made", "schema", "shop"]
