"""Judges recorded conversations again: user, agent and world are the recording's, only the judge is asked.

The transcript stays what it was, so that two judges are compared on the same words: a judge that would have ended the
conversation earlier is not obeyed, and at the recorded end it is asked for its last word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from evaluatorq.conversation.machine import Conversation, Phase, next_request, request_digest
from evaluatorq.conversation.requests import AskJudge, AskUser, Request, Stop
from evaluatorq.errors import CallError
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.events import CallFailed, Ended, Event, Started, TurnJudged, UserSpoke
from evaluatorq.model.messages import Message, ToolCall
from evaluatorq.model.runs import RunPlan
from evaluatorq.ports import Environment, TargetReply, ToolSpec, ToolsReply, UserReply
from evaluatorq.run.crew import Crew, Participants, conversation_seed
from evaluatorq.run.driver import Driver, Setting

Events = Callable[[int], Sequence[Event]]


class Recording:
    """The recorded events of a run's conversations, by row of the plan that judges them again."""

    def __init__(self, plan: RunPlan, events: Events) -> None:
        self.events = events
        self._rows = {conversation_seed(plan, row): row for row in range(len(plan.datapoints))}

    def crew(self, crew: Crew) -> Crew:
        """The crew with everybody but the judge replaced by the recording."""
        return replace(
            crew,
            target=lambda _seat: Nobody(),
            user=lambda _seat: Nobody(),
            environment=self._world,
            source=None,
            serve=None,
            metered=crew.metered & {"judge"},
        )

    def conduct(self, state: Conversation, participants: Participants, crew: Crew, setting: Setting) -> Driver:
        """A driver that plays the recording."""
        row = int(setting.thread_id.rpartition(":")[2])
        return RecordedDriver(state, participants, crew, setting, self.events(row))

    def _world(self, datapoint: SimulationDatapoint, seed: int) -> Environment | None:
        """The world as it was when the recorded conversation began."""
        del datapoint
        first = next((event for event in self.events(self._rows[seed]) if isinstance(event, Started)), None)
        if first is None or not first.has_environment:
            return None
        return RecordedWorld(first.state, tuple(ToolSpec(name, "", {}, again) for name, again in first.tools.items()))


class RecordedDriver(Driver):
    """Plays a conversation from its recording and has the judge asked where it was asked then."""

    def __init__(
        self,
        state: Conversation,
        participants: Participants,
        crew: Crew,
        setting: Setting,
        recorded: Sequence[Event],
    ) -> None:
        super().__init__(state, participants, crew, setting)
        answers = [event for event in recorded if not isinstance(event, Started | TurnJudged | Ended)]
        self._left = [event for event in answers if not (isinstance(event, CallFailed) and event.component == "judge")]
        self._end_of_it = next((event for event in recorded if isinstance(event, Ended)), None)

    async def drive(self, time_limit_s: float | None) -> Conversation:
        """Plays it to its end. There is no limit on its time: the judge's calls have their own."""
        del time_limit_s
        while self.state.phase is not Phase.OVER:
            request = next_request(self.state)
            if isinstance(request, AskJudge):
                await self._judge(request)
            elif isinstance(request, Stop) or not self._left:
                self._close(request)
            else:
                self._commit(self._fitting(self._left.pop(0), request))
        return self.state

    async def _judge(self, request: AskJudge) -> None:
        last = not self._left
        answer = await self._ask_judge(replace(request, final=request.final or last))
        if isinstance(answer, TurnJudged):
            ends = last and not request.final
            judgment = answer.judgment.model_copy(update={"should_terminate": ends})
            answer = answer.model_copy(update={"judgment": judgment, "digest": request_digest(self.state, request)})
        self._commit(answer)
        if last and isinstance(answer, CallFailed) and self.state.phase is not Phase.CLOSED:
            fault = Stop("error", "error", answer.message or answer.code, "judge", answer.code)
            self._commit(self._ended(fault))

    def _close(self, request: Request) -> None:
        """Ends as the machine says, or, where the recording breaks off, as it was broken off."""
        ended = self._end_of_it
        if isinstance(request, Stop):
            self._commit(self._ended(request))
        elif ended is not None:
            self._commit(ended.model_copy(update={"at": self._clock.now()}))
        else:
            raise CallError("internal_error", "the recording has no end", component="infrastructure")

    def _ended(self, stop: Stop) -> Ended:
        """The ending, with the world as it was recorded at the end."""
        update = {
            "at": self._clock.now(),
            "terminated_by": stop.terminated_by,
            "ended_by": stop.ended_by,
            "reason": stop.reason,
            "failed_component": stop.failed_component,
            "error_type": stop.error_type,
        }
        return Ended.model_validate({**(self._end_of_it.model_dump() if self._end_of_it else {}), **update})

    def _fitting(self, event: Event, request: Request) -> Event:
        """A fixed line that a file of another writer tells as a simulated one is called what it is."""
        if isinstance(event, UserSpoke) and isinstance(request, AskUser) and event.text == request.scripted:
            return event.model_copy(update={"source": "first_message" if request.is_first_message else "scripted"})
        return event


class Nobody:
    """Whoever has spoken already and is not asked again. A conversation that was stopped begins anew."""

    stateful = True

    async def respond(self, messages: Sequence[Message], *, thread_id: str) -> TargetReply:
        """Is not asked."""
        raise CallError("internal_error", f"{thread_id}: a recorded agent is not asked after {len(messages)} messages")

    async def speak(self, messages: Sequence[Message]) -> UserReply:
        """Is not asked."""
        raise CallError("internal_error", f"a recorded user is not asked after {len(messages)} messages")


@dataclass(slots=True)
class RecordedWorld:
    """A world that shows how it began, and in which nothing is done."""

    state: JsonValue
    tools: tuple[ToolSpec, ...] = ()

    async def run(self, calls: Sequence[ToolCall]) -> ToolsReply:
        """Is not asked."""
        raise CallError("internal_error", f"a recorded world runs no {calls[0].function.name}")

    def snapshot(self) -> JsonValue:
        """How it began."""
        return self.state

    def restore(self, state: JsonValue) -> None:
        """Puts a state back."""
        self.state = state
