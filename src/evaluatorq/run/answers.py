"""What counts as an answer of the agent, and what is to be made of anything else that a participant raised."""

from __future__ import annotations

import errno

from evaluatorq.errors import CallError, Component
from evaluatorq.model.events import FAULT_CODES, FaultCode
from evaluatorq.model.messages import Message, open_calls
from evaluatorq.ports import TargetReply


def code_of(error: CallError) -> FaultCode:
    """The error's code where it is one of the list; any other is a fault of the harness."""
    return error.code if error.code in FAULT_CODES else "internal_error"  # type: ignore[return-value]  # tested against the list


def fault_of(component: Component, error: Exception) -> CallError:
    """What a participant raised that is no ``CallError``: a fault of that participant, named by type."""
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return CallError("file_handles", "the process is out of file handles", component="infrastructure")
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if component == "target":
        return CallError("target_error", text, retryable=True)
    return CallError("internal_error", text)


def check_reply(reply: TargetReply, *, has_environment: bool) -> None:
    """Refuses an answer that is none: nobody's words are invented for an agent that said nothing."""
    waiting = open_calls(reply.messages)
    if waiting and has_environment:
        return
    if not reply.messages or reply.messages[-1].role != "assistant" or not reply.messages[-1].text.strip():
        if waiting:
            names = ", ".join(call.function.name for call in waiting)
            message = f"the agent called {names} and said nothing, and there is no environment to run the call"
            raise CallError("target_protocol", message, usage=reply.usage)
        raise CallError("empty_reply", "the agent said nothing", retryable=True, usage=reply.usage)


def without_open_calls(reply: TargetReply, *, has_environment: bool) -> tuple[Message, ...]:
    """Marks calls that nobody will answer as incomplete."""
    waiting = {call.id for call in open_calls(reply.messages)}
    if has_environment or not waiting:
        return reply.messages
    return tuple(
        row.model_copy(
            update={
                "tool_calls": [
                    call.model_copy(update={"incomplete": True}) if call.id in waiting else call
                    for call in row.tool_calls
                ]
            }
        )
        if row.tool_calls
        else row
        for row in reply.messages
    )
