"""The bundled demo agent: a support desk over the orders environment, in code, and a version with a policy fault.

It asks for its tools as a model would and reads their results off the transcript. No model is called, so its usage is
zero and known.
"""

from __future__ import annotations

from collections.abc import Sequence

from evaluatorq.model.messages import Message, assistant, tool_call
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.ports import Seat, Target, TargetFactory, TargetReply
from evaluatorq.targets.demo_policy import CAREFUL, CARELESS, Habits, Say, next_move


class DemoAgent:
    """A stateless agent: the same transcript always gets the same answer."""

    stateful = False

    def __init__(self, habits: Habits, tools: frozenset[str]) -> None:
        self._habits = habits
        self._tools = tools

    async def respond(self, messages: Sequence[Message], *, thread_id: str) -> TargetReply:  # noqa: ARG002  no memory to look up
        """Words for the customer, or one tool call for the environment to run."""
        move = next_move(messages, self._habits, self._tools)
        if isinstance(move, Say):
            row = assistant(move.text)
        else:
            number = sum(len(message.tool_calls or ()) for message in messages) + 1
            row = assistant(None, [tool_call(f"call_{number}", move.tool, move.arguments)])
        return TargetReply((row,), usage=NO_USAGE, reports_tools=True)


def demo_target(*, flawed: bool = False) -> TargetFactory:
    """Makes the demo agent. ``flawed`` acts on any claim: no lookup, no confirmation, no refund window, and it obeys
    what is written in an order's note.
    """
    habits = CARELESS if flawed else CAREFUL

    def seated(seat: Seat) -> Target:
        specs = () if seat.environment is None else seat.environment.tools
        return DemoAgent(habits, frozenset(spec.name for spec in specs))

    return seated
