"""Drives one conversation: carries out what the machine asks for and writes each answer down before the next question.

This is the only place that retries, and the only broad ``except`` around a participant's call. Cancellation passes
through everything and leaves the journal as it is: the conversation can be resumed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import anyio
from pydantic import JsonValue

from evaluatorq.conversation.machine import Conversation, Phase, apply, next_request, request_digest
from evaluatorq.conversation.requests import AskJudge, AskTarget, AskUser, ChangeWorld, Request, RunTools, Stop
from evaluatorq.environments.outside import apply_event
from evaluatorq.errors import CallError, Component, StoreError
from evaluatorq.llm.tags import beginning
from evaluatorq.model.events import (
    PAUSED,
    REFUSALS,
    CallFailed,
    Ended,
    Event,
    LineSource,
    Noted,
    Observed,
    TargetReplied,
    ToolsReturned,
    TurnJudged,
    UserSpoke,
    WorldChanged,
)
from evaluatorq.model.messages import Message
from evaluatorq.model.observation import TurnReport
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.ports import Attentive, JudgeReply, ObservedTurn, TargetReply, ToolsReply, UserReply
from evaluatorq.run.answers import check_reply, code_of, fault_of, without_open_calls
from evaluatorq.run.brake import Brake
from evaluatorq.run.clock import Clock
from evaluatorq.run.crew import Crew, Participants, snapshot_of
from evaluatorq.run.notes import note_beliefs, note_claims
from evaluatorq.run.observing import observe
from evaluatorq.run.text import clean_messages, clean_text
from evaluatorq.targets.replies import reply_of

T = TypeVar("T")
Commit = Callable[[Event, Conversation], object]
Attend = Callable[[Conversation], Awaitable[None]]

_WAITS_FOR: dict[Phase, Component] = {
    Phase.USER: "user_simulator",
    Phase.TARGET: "target",
    Phase.TOOLS: "environment",
    Phase.JUDGE: "judge",
}


def waits_for(state: Conversation) -> Component:
    """The component whose answer the conversation waits for."""
    return _WAITS_FOR.get(state.phase, "infrastructure")


@dataclass(frozen=True, slots=True)
class Setting:
    """What surrounds a conversation. ``commit`` puts an event on disk and shows it to whoever watches; it is also given
    the state before the event.

    ``attend`` is waited for after each answer. Once ``brake`` is pulled, the conversation pauses after its turn.
    ``sent_away`` is called when it has to wait because an endpoint wants fewer calls.
    """

    thread_id: str
    commit: Commit
    clock: Clock
    brake: Brake = field(default_factory=Brake)
    attend: Attend | None = None
    sent_away: Callable[[], None] | None = None


class Driver:
    """One conversation's driver."""

    def __init__(self, state: Conversation, participants: Participants, crew: Crew, setting: Setting) -> None:
        self.state = state
        self._participants = participants
        self._crew = crew
        self._thread_id = setting.thread_id
        self._commit_event = setting.commit
        self._attend = setting.attend
        self._sent_away = setting.sent_away
        self._brake = setting.brake
        self._halted = False
        self._clock = setting.clock
        self._component: Component = "infrastructure"
        self._began = 0.0

    async def drive(self, time_limit_s: float | None) -> Conversation:
        """Runs the conversation to its end, to the end of its time, or to where the brake holds it."""
        with anyio.move_on_after(time_limit_s) as scope:
            await self._observe()
            await self._detect()
            while not self._holds() and not isinstance(request := next_request(self.state), Stop):
                self._commit(await self._answer(request))
                await self._observe()
                await self._detect()
                if self._attend is not None:
                    await self._attend(self.state)
            await self._find_claims()
        if self.state.phase is Phase.OVER:
            return self.state
        request = next_request(self.state)
        if isinstance(request, Stop):
            self._end(request)
        elif scope.cancelled_caught:
            self._end(self._out_of_time(time_limit_s or 0.0), lost=waits_for(self.state), time_limit_s=time_limit_s)
        else:
            self._commit(Noted(at=self._clock.now(), what=PAUSED, data=self._brake.reason))
        return self.state

    def _holds(self) -> bool:
        """The run stops, and nothing of this conversation is under way: its turn is over, or could not be."""
        return self._halted or (self._brake.reason is not None and self.state.phase is Phase.USER)

    # ---------------------------------------------------------------- answering

    async def _answer(self, request: Request) -> Event:
        match request:
            case AskUser():
                return await self._ask_user(request)
            case AskTarget():
                return await self._ask_target(request)
            case ChangeWorld():
                return await self._change_world(request)
            case RunTools():
                return await self._run_tools(request)
            case AskJudge():
                return await self._ask_judge(request)
            case Stop():
                raise AssertionError("a stop is not answered")

    async def _ask_user(self, request: AskUser) -> Event:
        if request.scripted is not None:
            source: LineSource = "first_message" if request.is_first_message else "scripted"
            return UserSpoke(at=self._clock.now(), text=clean_text(request.scripted), source=source, usage=NO_USAGE)

        async def ask() -> UserReply:
            reply = await self._participants.user.speak(request.messages)
            if not reply.text.strip() and not reply.stop:
                raise CallError("empty_reply", "the simulated user said nothing", retryable=True, usage=reply.usage)
            return reply

        reply = await self._call("user_simulator", ask)
        if isinstance(reply, CallFailed):
            return reply
        return UserSpoke(
            at=self._clock.now(),
            text=clean_text(reply.text),
            stop=reply.stop,
            reasoning=reply.reasoning,
            model=reply.model,
            usage=reply.usage,
            usage_known=reply.usage is not None,
            latency_ms=self._latency(),
            digest=request_digest(self.state, request),
        )

    async def _ask_target(self, request: AskTarget) -> Event:
        target = self._participants.target
        self._show_transcript()
        limit = None if getattr(target, "manages_own_timeout", False) else self._crew.target_timeout_s

        async def ask() -> tuple[TargetReply, JsonValue]:
            if limit is None:
                reply = await target.respond(request.messages, thread_id=self._thread_id)
            else:
                with anyio.fail_after(limit):
                    reply = await target.respond(request.messages, thread_id=self._thread_id)
            reply = self._with_served_calls(reply, request.messages)
            check_reply(reply, has_environment=self._participants.environment is not None)
            return reply, snapshot_of(self._participants.environment)

        answer = await self._call("target", ask)
        if isinstance(answer, CallFailed):
            return answer
        reply, state = answer
        changed = state != self.state.environment.state
        return TargetReplied(
            at=self._clock.now(),
            messages=clean_messages(
                without_open_calls(reply, has_environment=self._participants.environment is not None)
            ),
            usage=reply.usage,
            usage_known=reply.usage_known,
            model=reply.model,
            response_id=reply.response_id,
            trace_id=reply.trace_id,
            span_id=reply.span_id,
            finish_reason=reply.finish_reason,
            reasoning=reply.reasoning,
            reports_tools=reply.reports_tools,
            report=reply.report,
            assessment=reply.assessment,
            effects=self._effects(),
            state=state if changed else None,
            state_changed=changed,
            latency_ms=self._latency(),
            digest=request_digest(self.state, request),
        )

    async def _change_world(self, request: ChangeWorld) -> Event:
        environment = self._participants.environment
        assert environment is not None, "only an environment is changed"

        async def ask() -> JsonValue:
            await apply_event(environment, request.event)
            return snapshot_of(environment)

        answer = await self._call("environment", ask)
        if isinstance(answer, CallFailed):
            return answer
        return WorldChanged(at=self._clock.now(), number=request.number, state=answer)

    async def _observe(self) -> None:
        """Once a turn of the agent is over, the store behind it is asked what it left."""
        source, facts = self._participants.source, self.state.facts
        if source is None or not facts or not facts[-1].over or facts[-1].stored:
            return
        rows = self.state.messages[facts[-1].start : facts[-1].end]
        response_id = self.state.traces[-1].response_id if self.state.traces else None
        turn = ObservedTurn(self._thread_id, facts[-1].number, rows, response_id)
        report = await observe(source, turn, self._crew.max_observed_events)
        self._commit(Observed(at=self._clock.now(), turn=turn.number, report=report))

    async def _detect(self) -> None:
        """What can be known from each message of the user is noted once, before the agent answers it."""
        detector, messages = self._participants.detector, self.state.messages
        if detector is None or sum(row.role == "user" for row in messages) == len(self.state.beliefs):
            return
        self._commit(await note_beliefs(detector, messages, self._clock))

    async def _find_claims(self) -> None:
        """What the agent says that it did is looked for once, before a conversation that broke nowhere is closed."""
        finder, state = self._participants.finder, self.state
        if finder is None or state.claims is not None or state.phase is Phase.OVER:
            return
        request = next_request(state)
        if isinstance(request, Stop) and request.failed_component is None:
            self._commit(await note_claims(finder, state.messages, self._clock))

    def _show_transcript(self) -> None:
        environment: object = self._participants.environment
        if environment is not None and isinstance(environment, Attentive):  # the first is quicker to see
            environment.attend(self.state.messages)
        if self._participants.served is not None:
            self._participants.served.begin(self.state.messages)

    def _with_served_calls(self, reply: TargetReply, messages: tuple[Message, ...]) -> TargetReply:
        """The reply with the calls that the agent made to tools served to it, which its own words may not tell."""
        rows = self._served_calls()
        return reply_of(reply, messages, recorded=rows, reports_tools=True) if rows else reply

    def _served_calls(self) -> tuple[Message, ...]:
        return () if self._participants.served is None else self._participants.served.drain()

    def _effects(self) -> dict[str, bool] | None:
        recorders = (self._participants.recorder, self._participants.served)
        told = [effects for one in recorders if one is not None and (effects := one.take_effects()) is not None]
        return {call: changed for effects in told for call, changed in effects.items()} if told else None

    async def _run_tools(self, request: RunTools) -> Event:
        environment = self._participants.environment
        assert environment is not None, "calls stay open only where an environment runs them"
        self._show_transcript()

        async def ask() -> tuple[ToolsReply, JsonValue]:
            return await environment.run(request.calls), snapshot_of(environment)

        answer = await self._call("environment", ask)
        if isinstance(answer, CallFailed):
            return answer
        reply, state = answer
        changed = state != self.state.environment.state
        return ToolsReturned(
            at=self._clock.now(),
            messages=clean_messages(reply.messages),
            usage=NO_USAGE,
            effects=None if reply.effects is None else dict(reply.effects),
            state=state if changed else None,
            state_changed=changed,
            latency_ms=self._latency(),
            digest=request_digest(self.state, request),
        )

    async def _ask_judge(self, request: AskJudge) -> Event:
        async def ask() -> JudgeReply:
            return await self._participants.judge.judge(request.messages, request.open_criteria, final=request.final)

        reply = await self._call("judge", ask)
        if isinstance(reply, CallFailed):
            return reply
        return TurnJudged(
            at=self._clock.now(),
            judgment=reply.judgment,
            final=request.final,
            strict=reply.strict,
            goal_known=reply.goal_known,
            refused=reply.refused,
            unknown_scores=reply.unknown_scores,
            model=reply.model,
            usage=reply.usage,
            usage_known=reply.usage is not None,
            latency_ms=self._latency(),
            digest=request_digest(self.state, request),
        )

    # ---------------------------------------------------------------- calling, failing, ending

    async def _call(self, component: Component, ask: Callable[[], Awaitable[T]]) -> T | CallFailed:
        """One call with its retries; a failure that stays is an event, never an exception."""
        self._component = component
        policy = self._crew.target_retry if component == "target" else self._crew.retry
        retrying = policy.retrying(self._participants.random, self._attempt_failed)

        async def once() -> T:
            self._began = self._clock.seconds()
            try:
                return await ask()
            except (CallError, StoreError):
                raise
            except TimeoutError as error:
                raise CallError("timeout", f"the {component} did not answer in time", retryable=True) from error
            except Exception as error:
                raise fault_of(component, error) from error

        try:
            return await retrying(once)
        except CallError as error:
            self._halted = self._brake.stops_for(error, error.component or component)
            return self._failure(error, attempt=retrying.attempts, pause=None)

    def _attempt_failed(self, error: CallError, attempt: int, pause: float) -> None:
        self._commit(self._failure(error, attempt=attempt, pause=pause))
        if error.code == "rate_limit" and self._sent_away is not None:
            self._sent_away()

    def _failure(self, error: CallError, *, attempt: int, pause: float | None) -> CallFailed:
        return CallFailed(
            at=self._clock.now(),
            component=error.component or self._component,
            code=code_of(error),
            message=beginning(clean_text(error.message), 2000),
            final=pause is None and not self._halted,
            attempt=attempt,
            retry_in_s=pause,
            latency_ms=self._latency(),
            usage=error.usage,
            usage_known=error.usage is not None or error.code in REFUSALS or not self._costs(self._component),
            model=error.model,
            raw=beginning(clean_text(error.raw), 4000) if error.raw else None,
            digest=request_digest(self.state),
        )

    def _costs(self, component: Component) -> bool:
        """Calls to this component are paid for: it is metered, or has said before what an answer cost."""
        return component in self._crew.metered or component in self.state.usage_by_role

    def _out_of_time(self, limit_s: float) -> Stop:
        component = waits_for(self.state)
        own = self._crew.conversation_timeout_s
        whose = (
            f"The conversation's time of {limit_s:g} s was up"
            if own is not None and limit_s >= own
            else f"The run's time was up, {limit_s:.1f} s into this conversation,"
        )
        reason = f"{whose} while waiting for the {component.replace('_', ' ')}."
        return Stop("timeout", "timeout", reason, component, "timeout")

    def _end(self, stop: Stop, *, lost: Component | None = None, time_limit_s: float | None = None) -> None:
        if self._participants.source is not None and self.state.facts and not self.state.facts[-1].stored:
            unread = TurnReport(read_error="the conversation ended before the store could be read")
            self._commit(Observed(at=self._clock.now(), turn=self.state.facts[-1].number, report=unread))
        error: str | None = None
        state: JsonValue = None
        try:
            state = snapshot_of(self._participants.environment)
        except CallError as problem:
            error = problem.message
        changed = error is None and state != self.state.environment.state
        ended = Ended(
            at=self._clock.now(),
            terminated_by=stop.terminated_by,
            ended_by=stop.ended_by,
            reason=stop.reason,
            failed_component=stop.failed_component,
            error_type=stop.error_type,
            lost=lost if lost in self._crew.metered else None,
            time_limit_s=time_limit_s,
            state=state if changed else None,
            state_changed=changed,
            state_error=error,
            called=clean_messages(self._served_calls()),
        )
        self._commit(ended)

    def _commit(self, event: Event) -> None:
        """The event goes to disk first: what is remembered is never more than what was written."""
        self._commit_event(event, self.state)
        self.state = apply(self.state, event)

    def _latency(self) -> float:
        return round((self._clock.seconds() - self._began) * 1000, 3)
