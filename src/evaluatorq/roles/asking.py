"""Asking a model for an object, and how often an unusable answer is asked for again.

The driver asks again whenever an error says ``reask``; who asked decides when to stop. The count belongs to one
question, so a new turn starts from zero, and what was wrong goes into the next attempt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pydantic import JsonValue

from evaluatorq.errors import CallError
from evaluatorq.llm.tags import beginning
from evaluatorq.model.events import CallFailed
from evaluatorq.ports import ChatModel, ChatReply, ChatRequest

REASKS = 3
"""How often one question is asked again because its answer could not be used."""

_COMPLAINTS = {
    "truncated_response": "it was cut off before its end; be brief.",
    "empty_reply": "it was empty.",
    "refusal": "it was a refusal; nobody asks you to approve of anything that was said.",
}
_UNREADABLE = "it was not the object asked for."


class Asking:
    """The memory of one role: how often its present question was answered badly, and how."""

    def __init__(self) -> None:
        self._question: object = None
        self._codes: Counter[str] = Counter()
        self._complaint: str | None = None
        self._earlier: Sequence[CallFailed] = ()

    def remind(self, failures: Sequence[CallFailed]) -> None:
        """Counts unusable answers that an earlier process got to the question that is asked first."""
        self._earlier = failures

    def about(self, question: object) -> str | None:
        """Says what is asked now; returns what was wrong with the last answer to this very question."""
        if question != self._question:
            self._question = question
            self._codes = Counter(failure.code for failure in self._earlier)
            self._complaint = self._earlier[-1].message if self._earlier else None
            self._earlier = ()
        return self._complaint

    @property
    def is_last(self) -> bool:
        """The answer that comes now is the last one there will be."""
        return self._codes.total() >= REASKS

    def refuse(self, error: CallError, complaint: str, most: int | None = None) -> CallError:
        """The error to raise for an unusable answer; final after ``most`` re-asks for its code or three in all."""
        self._complaint = complaint
        self._codes[error.code] += 1
        reask = self._codes[error.code] <= (REASKS if most is None else most) and self._codes.total() <= REASKS
        return CallError(
            error.code,
            error.message,
            reask=reask,
            usage=error.usage,
            component=error.component,
            raw=error.raw,
            model=error.model,
        )


async def ask(
    model: ChatModel, request: ChatRequest, asking: Asking, patience: dict[str, int]
) -> tuple[ChatReply, dict[str, JsonValue]]:
    """The model's reply and the object in it. ``patience`` maps codes to fewer re-asks than usual.

    Raises ``CallError``: bad luck on the way as the model raised it, unusable answers as ``asking`` decides.
    """
    try:
        reply = await model.complete(request)
    except CallError as error:
        error.model = error.model or model.name
        if not error.reask:
            raise
        complaint = _COMPLAINTS.get(error.code, _UNREADABLE)
        raise asking.refuse(error, complaint, patience.get(error.code)) from error
    if reply.answer is not None:
        return reply, reply.answer
    code = "refusal" if reply.refusal else "malformed_response"
    said = reply.refusal or reply.text
    unusable = CallError(
        code,
        f"no object in the answer: {beginning(said, 200)!r}",
        usage=reply.usage,
        raw=reply.raw or said,
        model=reply.model or model.name,
    )
    raise asking.refuse(unusable, _COMPLAINTS.get(code, _UNREADABLE))
