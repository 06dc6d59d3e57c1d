"""Fakes at the ports, for tests of this package and of yours: participants that follow a script, and sample cases.

crew = crew_of(target=["Hello, what is your order number?", "Refunded."], judge=[verdict(), verdict(stop=True)])
result = await converse(a_datapoint(), crew)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Generic, TypeVar

from anyio.lowlevel import checkpoint

from evaluatorq.conversation.machine import Conversation, apply, begin
from evaluatorq.errors import CallError
from evaluatorq.model.cases import CommunicationStyle, Criterion, Persona, Scenario, SimulationDatapoint
from evaluatorq.model.events import Event, Started
from evaluatorq.model.judgments import CriterionVerdict, Judgment
from evaluatorq.model.messages import Message, assistant
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import Limits, RunPlan
from evaluatorq.model.usage import NO_USAGE, Usage
from evaluatorq.pacing.retry import RetryPolicy
from evaluatorq.ports import (
    Environment,
    EnvironmentFactory,
    Evaluator,
    JudgeReply,
    TargetReply,
    UserReply,
)
from evaluatorq.records.result import result_of
from evaluatorq.run.clock import Clock
from evaluatorq.run.crew import Crew, seat_participants, snapshot_of, tools_of
from evaluatorq.run.driver import Driver, Setting
from evaluatorq.store import trace_conformance

T = TypeVar("T")
QUICK = RetryPolicy(attempts=3, base_s=0.0, cap_s=0.0)
"""Retries without waiting."""
check_trace_store = trace_conformance.check_trace_store

UserLine = str | UserReply | CallError
TargetLine = str | TargetReply | Message | Exception
JudgeLine = JudgeReply | CallError


# ---------------------------------------------------------------- sample cases


def a_persona(name: str = "Pat", **fields: object) -> Persona:
    """A persona with middling traits."""
    traits = dict.fromkeys(("patience", "assertiveness", "politeness", "technical_level"), 0.5)
    style = CommunicationStyle.CASUAL
    return Persona.model_validate({"name": name, "communication_style": style, "background": "", **traits, **fields})


def a_scenario(name: str = "Refund", *, criteria: Sequence[Criterion] | None = None, **fields: object) -> Scenario:
    """A scenario that wants a refund."""
    listed = None if criteria is None else list(criteria)
    return Scenario.model_validate({"name": name, "goal": "Get a refund", "criteria": listed, **fields})


def a_datapoint(
    scenario: Scenario | None = None,
    *,
    persona: Persona | None = None,
    first_message: str = "",
    id: str = "dp_1",  # noqa: A002  the field's name
) -> SimulationDatapoint:
    """A persona paired with a scenario."""
    return SimulationDatapoint(
        id=id, persona=persona or a_persona(), scenario=scenario or a_scenario(), first_message=first_message
    )


def a_plan(*datapoints: SimulationDatapoint, limits: Limits | None = None, **fields: object) -> RunPlan:
    """A plan over the datapoints, with a fixed run id and time."""
    values: dict[str, object] = {
        "run_id": "0123456789abcdef0123456789abcdef",
        "run_name": "test",
        "created_at": datetime(2026, 1, 1, tzinfo=UTC),
        "limits": limits or Limits(),
        "datapoints": datapoints or (a_datapoint(),),
    }
    return RunPlan.model_validate({**values, **fields})


def verdict(
    occurred: Mapping[int, str | bool] | None = None,
    *,
    stop: bool = False,
    goal: bool = False,
    usage: Usage | None = NO_USAGE,
    refused: Mapping[str, str] | None = None,
    strict: bool = True,
) -> JudgeReply:
    """A judge's answer. ``occurred`` maps a criterion's position to its quote, or to ``False`` for not seen."""
    verdicts = [
        CriterionVerdict(
            criterion_id=f"criteria_{index}",
            occurred=seen is not False,
            evidence=seen if isinstance(seen, str) else "",
        )
        for index, seen in (occurred or {}).items()
    ]
    judgment = Judgment(
        should_terminate=stop,
        reason="finished" if stop else "go on",
        goal_achieved=goal,
        goal_completion_score=1.0 if goal else 0.0,
        criteria_verdicts=None if occurred is None else verdicts,
    )
    return JudgeReply(judgment, usage=usage, refused=dict(refused or {}), strict=strict)


# ---------------------------------------------------------------- participants that follow a script


class Script(Generic[T]):
    """Lines in order; the last one again when they run out.

    A conversation that goes on in another process takes the script up where its transcript is: the place is how often
    it was asked, or how much the transcript already holds, whichever is more.
    """

    def __init__(self, lines: Sequence[T]) -> None:
        self._lines = tuple(lines)
        self._asked = 0

    def next(self, already: int) -> T:
        """The next line, given how many the transcript already holds; a line that is an exception is raised."""
        place = max(self._asked, already)
        self._asked = place + 1
        line = self._lines[min(place, len(self._lines) - 1)]
        if isinstance(line, Exception):
            raise line
        return line


class ScriptedUser:
    """Says the lines in order."""

    def __init__(self, lines: Sequence[UserLine]) -> None:
        self._script = Script(lines)

    async def speak(self, messages: Sequence[Message]) -> UserReply:
        """The next line."""
        await checkpoint()
        line = self._script.next(sum(message.role == "user" for message in messages))
        assert not isinstance(line, CallError)
        return UserReply(line, usage=NO_USAGE) if isinstance(line, str) else line


class ScriptedTarget:
    """Answers with the lines in order. ``asked`` holds the transcripts it was given."""

    def __init__(self, lines: Sequence[TargetLine], *, stateful: bool = False) -> None:
        self._script = Script(lines)
        self.stateful = stateful
        self.asked: list[tuple[Message, ...]] = []

    async def respond(self, messages: Sequence[Message], *, thread_id: str) -> TargetReply:
        """The next answer."""
        del thread_id
        await checkpoint()
        self.asked.append(tuple(messages))
        line = self._script.next(sum(message.role == "assistant" for message in messages))
        assert not isinstance(line, Exception)
        if isinstance(line, TargetReply):
            return line
        return TargetReply((assistant(line) if isinstance(line, str) else line,), usage=NO_USAGE)


class ScriptedJudge:
    """Gives the verdicts in order. ``asked`` holds the open criteria and ``final`` of each call."""

    def __init__(self, lines: Sequence[JudgeLine]) -> None:
        self._script = Script(lines)
        self.asked: list[tuple[tuple[str, ...], bool]] = []

    async def judge(self, messages: Sequence[Message], open_criteria: Sequence[str], *, final: bool) -> JudgeReply:
        """The next verdict."""
        await checkpoint()
        self.asked.append((tuple(open_criteria), final))
        line = self._script.next(sum(message.role == "user" for message in messages) - 1)
        assert not isinstance(line, CallError)
        return line


class FakeClock:
    """A clock that advances one millisecond each time somebody looks, so that records are the same every time."""

    def __init__(self) -> None:
        self._ticks = count(1)

    def now(self) -> datetime:
        """A moment of 1 January 2026."""
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(milliseconds=next(self._ticks))

    def seconds(self) -> float:
        """Seconds, one millisecond a look."""
        return next(self._ticks) / 1000


def crew_of(
    *,
    target: Sequence[TargetLine] = ("Certainly.",),
    user: Sequence[UserLine] = ("I want a refund.",),
    judge: Sequence[JudgeLine] = (),
    environment: Callable[[], Environment] | None = None,
    evaluators: Sequence[Evaluator] = (),
    **fields: object,
) -> Crew:
    """A crew whose participants follow the scripts, each conversation from the start."""
    verdicts = tuple(judge) or (verdict(),)
    world: EnvironmentFactory = lambda _datapoint, _seed: environment() if environment else None  # noqa: E731  a factory
    values: dict[str, object] = {"retry": QUICK, "target_retry": QUICK, **fields}
    return Crew(
        target=lambda _seat: ScriptedTarget(target),
        user=lambda _seat: ScriptedUser(user),
        judge=lambda _seat: ScriptedJudge(verdicts),
        environment=world,
        evaluators=tuple(evaluators),
        **values,  # type: ignore[arg-type]  # the dataclass names them
    )


async def converse(
    datapoint: SimulationDatapoint,
    crew: Crew,
    limits: Limits | None = None,
    *,
    events: list[Event] | None = None,
    clock: Clock | None = None,
) -> SimulationResult:
    """Drives one conversation in memory; ``events`` receives what happened."""
    plan = a_plan(datapoint, limits=limits)
    seen: list[Event] = [] if events is None else events
    state = await drive(plan, crew, seen, clock or FakeClock())
    return result_of(state, thread_id=plan.thread_id(0), row=0)


async def drive(plan: RunPlan, crew: Crew, events: list[Event], clock: Clock) -> Conversation:
    """Drives the plan's first conversation in memory and returns its last state."""
    datapoint = plan.datapoints[0]
    participants = await seat_participants(crew, plan, 0, lambda: crew.environment(datapoint, plan.seed))
    started = Started(
        at=clock.now(),
        state=snapshot_of(participants.environment),
        has_environment=participants.environment is not None,
        tools=tools_of(participants.environment),
    )
    events.append(started)
    state = apply(begin(datapoint, plan.limits), started)
    driver = Driver(
        state, participants, crew, Setting(plan.thread_id(0), lambda event, _state: events.append(event), clock)
    )
    try:
        return await driver.drive(crew.conversation_timeout_s)
    finally:
        await participants.aclose()
