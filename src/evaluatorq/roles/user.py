"""The simulated user with a model behind it: one object per turn, with words and a flag for being done.

A turn without words, or one that no user would write (``guard``), is never sent on: the simulator is asked once more
and told why, then it has failed, which is no fault of the agent's. Lines that a case fixes never come here.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from evaluatorq.errors import CallError
from evaluatorq.llm.encode import LineCache
from evaluatorq.model.events import CallFailed
from evaluatorq.model.messages import Message
from evaluatorq.ports import ChatModel, ChatPrefix, ChatReply, ChatRequest, Seat, UserFactory, UserReply
from evaluatorq.roles.asking import Asking, ask
from evaluatorq.roles.guard import Line, distinctive_values, find_breach
from evaluatorq.roles.prompts_user import OPENING, USER_MESSAGE, heard_by_user, user_system, user_tail

_PATIENCE = {"empty_reply": 1, "simulator_contract": 1}
"""Re-asks by code; other unusable answers get as many as usual."""


class UserRole:
    """A ``UserSimulator`` for one conversation."""

    def __init__(self, model: ChatModel, seat: Seat) -> None:
        persona, scenario = seat.datapoint.persona, seat.datapoint.scenario
        self._model = model
        self._prefix = ChatPrefix(user_system(persona, scenario), answer=USER_MESSAGE)
        self._opening = () if scenario.opens == "agent" else (OPENING,)
        self._transcript = LineCache(heard_by_user)
        self._scripted = frozenset(line for line in scenario.script or () if line is not None)
        self._may_repeat = scenario.conversation_strategy == "repetitive"
        self._untold = distinctive_values((scenario.ground_truth or "",))
        if self._untold:
            self._untold -= distinctive_values((self._prefix.system,))
        self._asking = Asking()

    def remind(self, failures: Sequence[CallFailed]) -> None:
        """Unusable answers that an earlier process got count among the re-asks."""
        self._asking.remind(failures)

    async def speak(self, messages: Sequence[Message]) -> UserReply:
        """The next turn. Raises ``CallError``: ``empty_reply`` and ``simulator_contract`` are re-asked once."""
        complaint = self._asking.about(len(messages))
        first = all(message.role != "user" for message in messages)
        request = ChatRequest(
            self._prefix,
            (*self._opening, *self._transcript.lines(messages)),
            user_tail(first=first, complaint=complaint),
        )
        reply, answer = await ask(self._model, request, self._asking, _PATIENCE)
        text, stop = self._read(answer, reply)
        if not text and (first or not stop):
            raise self._refusal("empty_reply", "it had no words.", reply)
        breach = find_breach(self._line(text, messages))
        if breach is not None:
            raise self._refusal("simulator_contract", breach.complaint, reply)
        return UserReply(
            text, stop=stop, usage=reply.usage, model=reply.model or self._model.name, reasoning=reply.reasoning
        )

    def _read(self, answer: dict[str, JsonValue], reply: ChatReply) -> tuple[str, bool]:
        text, stop = answer.get("reply"), answer.get("end_conversation", False)
        if text is None and stop is True:
            text = ""
        if isinstance(text, str) and isinstance(stop, bool):
            return text.strip(), stop
        raise self._refusal("malformed_response", "reply must be a text, end_conversation true or false.", reply)

    def _line(self, text: str, messages: Sequence[Message]) -> Line:
        said = [message.text for message in messages if message.role == "user" and message.text not in self._scripted]
        spoken = (message.text for message in messages if message.is_spoken)
        hidden = self._untold - distinctive_values(spoken) if self._untold else self._untold
        return Line(text, said, hidden, self._may_repeat)

    def _refusal(self, code: str, complaint: str, reply: ChatReply) -> CallError:
        error = CallError(
            code,
            f"the simulated user's line cannot be used: {complaint.rstrip('.')}",
            usage=reply.usage,
            raw=reply.raw or reply.text,
            model=reply.model or self._model.name,
        )
        return self._asking.refuse(error, complaint, _PATIENCE.get(code))


def model_user(model: ChatModel) -> UserFactory:
    """Simulated users that ask ``model``, one for each conversation."""
    return lambda seat: UserRole(model, seat)
