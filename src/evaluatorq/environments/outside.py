"""What other people do to an environment while the agent works: use one of its tools, or patch its state."""

from __future__ import annotations

from evaluatorq.conversation.checks import was_rejected
from evaluatorq.environments.patch import merge_patch
from evaluatorq.errors import CallError
from evaluatorq.model.messages import tool_call
from evaluatorq.model.worlds import OutsideEvent
from evaluatorq.ports import Changeable, Environment


async def apply_event(environment: Environment, event: OutsideEvent) -> None:
    """Does it. ``CallError`` of the environment when the tool refuses or the patch does not fit."""
    if isinstance(environment, Changeable):
        await environment.apply(event)
    elif event.call is not None:
        reply = await environment.run([tool_call("outside", event.call.name, event.call.arguments)])
        if was_rejected(reply.messages[0]):
            raise _impossible(event, f"{event.call.name} was refused: {reply.messages[0].text}")
    elif event.patch is not None:
        try:
            environment.restore(merge_patch(environment.snapshot(), event.patch))
        except ValueError as error:
            raise _impossible(event, f"the patch does not fit: {error}") from error


def _impossible(event: OutsideEvent, reason: str) -> CallError:
    message = f"the outside event before turn {event.before_turn} could not be carried out: {reason}"
    return CallError("tool_error", message, component="environment")
