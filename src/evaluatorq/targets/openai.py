"""A model as the agent under test: it is sent the whole transcript and offered the environment's tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evaluatorq.errors import CallError
from evaluatorq.llm.encode import LineCache
from evaluatorq.llm.reply import fresh_call_id
from evaluatorq.model.messages import Message, ToolCall
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.ports import ChatModel, ChatPrefix, ChatReply, ChatRequest, Seat, TargetFactory, TargetReply

START_SIGNAL = "(The conversation begins. Speak first.)"
"""What an agent that opens the conversation is sent, as endpoints want at least one message."""


class OpenAITarget:
    """A ``Target`` without memory of its own. It shows every tool call it makes.

    ``manages_own_timeout`` says that the model limits its answers' time itself.
    """

    stateful = False

    def __init__(self, model: ChatModel, prefix: ChatPrefix, *, manages_own_timeout: bool = False) -> None:
        self.manages_own_timeout = manages_own_timeout
        self._model = model
        self._prefix = prefix
        self._cache = LineCache()

    async def respond(self, messages: Sequence[Message], *, thread_id: str) -> TargetReply:
        """What the model says, or the tools it calls. Raises ``CallError``, also for an answer without either."""
        del thread_id
        check_tool_rows(messages)
        tail = None if messages else START_SIGNAL
        reply = await self._model.complete(ChatRequest(self._prefix, self._cache.lines(messages), tail))
        return TargetReply(
            messages=(_row(reply, messages),),
            usage=reply.usage,
            model=reply.model,
            response_id=reply.response_id,
            finish_reason=reply.finish_reason,
            reasoning=reply.reasoning,
            reports_tools=True,
        )


def openai_target(
    model: ChatModel,
    *,
    system_prompt: str | Callable[[Seat], str] | None = None,
    manages_own_timeout: bool = False,
) -> TargetFactory:
    """Makes one ``OpenAITarget`` per conversation, with the tools of its environment. A prompt may differ by seat."""

    def make(seat: Seat) -> OpenAITarget:
        tools = seat.environment.tools if seat.environment is not None else ()
        system = system_prompt(seat) if callable(system_prompt) else system_prompt or ""
        prefix = ChatPrefix(system=system, tools=tools)
        return OpenAITarget(model, prefix, manages_own_timeout=manages_own_timeout)

    return make


def check_tool_rows(messages: Sequence[Message]) -> None:
    """Every tool result answers an open call of the row before it, once, and no call is left open.

    Endpoints refuse anything else with a 400 that names nothing. Raises ``CallError`` with the place.
    """
    pending: list[str] = []
    for index, message in enumerate(messages):
        if message.role == "tool":
            if message.tool_call_id not in pending:
                raise _misfit(index, f"a tool result for {message.tool_call_id!r}, which answers no open call")
            pending.remove(message.tool_call_id)
            continue
        if pending:
            raise _misfit(index, f"the tool call {pending[0]!r} before it has no result")
        pending = [call.id for call in message.tool_calls or ()]
        if len(set(pending)) < len(pending):
            raise _misfit(index, "two tool calls with one id")
    if pending:
        raise _misfit(len(messages) - 1, f"the tool call {pending[0]!r} has no result")


def _misfit(index: int, what: str) -> CallError:
    return CallError("target_protocol", f"message {index} of the transcript: {what}", usage=NO_USAGE)


def _row(reply: ChatReply, messages: Sequence[Message]) -> Message:
    text = reply.text or reply.refusal or ""
    if reply.tool_calls:
        return Message(role="assistant", content=text or None, tool_calls=_own_ids(reply.tool_calls, messages))
    if text.strip():
        return Message(role="assistant", content=text)
    if reply.finish_reason == "content_filter":
        told = "the agent's answer was withheld by a content filter"
        raise CallError("content_filter", told, usage=reply.usage, model=reply.model)
    told = "the agent's model answered with nothing"
    raise CallError("empty_reply", told, retryable=True, usage=reply.usage, model=reply.model)


def _own_ids(calls: tuple[ToolCall, ...], messages: Sequence[Message]) -> list[ToolCall]:
    """The calls, with new ids where a call before has the same: some endpoints count from 0 in every answer."""
    taken = {call.id for message in messages for call in message.tool_calls or ()}
    return [call.model_copy(update={"id": fresh_call_id()}) if call.id in taken else call for call in calls]
