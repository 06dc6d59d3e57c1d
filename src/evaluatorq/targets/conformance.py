"""Checks that a target keeps its port: ``await check_target(factory)`` raises ``BrokenTarget`` with what is wrong.

Two conversations of two exchanges run side by side. What an agent says is not judged; how it says it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import anyio

from evaluatorq.errors import CallError
from evaluatorq.model.cases import CommunicationStyle, Persona, Scenario, SimulationDatapoint
from evaluatorq.model.events import FaultCode
from evaluatorq.model.messages import Message, open_calls, user
from evaluatorq.ports import Closeable, Environment, Seat, Target, TargetFactory, TargetReply

LINES = ("Hello, I need help with my order.", "Thank you. Is there anything else you need from me?")
_CODES = frozenset(get_args(FaultCode))


class BrokenTarget(AssertionError):  # noqa: N818  the verdict, not an error of the check
    """A target that does not keep the port."""


async def check_target(factory: TargetFactory, *, environment: Environment | None = None) -> list[TargetReply]:
    """Talks to targets of ``factory`` and returns the replies of the first conversation.

    Raises ``BrokenTarget``. A ``CallError`` with a known code is a target's right; it passes through.
    """
    seats = [_seat(f"check:{row}", environment) for row in range(2)]
    targets = [factory(seat) for seat in seats]
    _require(targets[0] is not targets[1], "the factory gave the same object to two conversations")
    replies: list[list[TargetReply]] = [[], []]
    try:
        for target in targets:
            _require(isinstance(getattr(target, "stateful", None), bool), "stateful is not True or False")
        async with anyio.create_task_group() as group:
            for target, seat, said in zip(targets, seats, replies, strict=True):
                group.start_soon(_converse, target, seat, said)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    finally:
        for target in targets:
            await _close(target)
    return replies[0]


def _seat(thread_id: str, environment: Environment | None) -> Seat:
    persona = Persona(
        name="checker",
        patience=0.5,
        assertiveness=0.5,
        politeness=0.5,
        technical_level=0.5,
        communication_style=CommunicationStyle.FORMAL,
        background="Checks targets.",
    )
    datapoint = SimulationDatapoint(id=thread_id, persona=persona, scenario=Scenario(name="check", goal="an answer"))
    return Seat(datapoint, thread_id, seed=0, max_turns=len(LINES), environment=environment)


async def _converse(target: Target, seat: Seat, replies: list[TargetReply]) -> None:
    messages: tuple[Message, ...] = ()
    for line in LINES:
        messages = (*messages, user(line))
        given = list(messages)
        try:
            reply = await target.respond(given, thread_id=seat.thread_id)
        except CallError as error:
            _require(error.code in _CODES, f"it failed with the unknown code {error.code!r}")
            raise
        except Exception as error:
            raise BrokenTarget(f"respond raised {type(error).__name__}; a target fails with CallError") from error
        _require(given == list(messages), "respond changed the messages that it was given")
        check_reply(reply, messages)
        replies.append(reply)
        messages = (*messages, *reply.messages)
        if open_calls(reply.messages):
            return


def check_reply(reply: object, messages: Sequence[Message]) -> None:
    """Raises ``BrokenTarget`` when ``reply`` does not fit behind ``messages``."""
    if not isinstance(reply, TargetReply):
        raise BrokenTarget(f"respond returned {type(reply).__name__}, not a TargetReply")
    _require(bool(reply.messages), "a reply has at least one row")
    known = {call.id for message in messages for call in message.tool_calls or ()}
    made: set[str] = set()
    for index, row in enumerate(reply.messages):
        _require(row.role in ("assistant", "tool"), f"row {index} has the role {row.role}")
        for call in row.tool_calls or ():
            _require(bool(call.id), f"row {index} has a tool call without an id")
            _require(call.id not in known | made, f"row {index} uses the tool call id {call.id!r} again")
            made.add(call.id)
        if row.role == "tool":
            _require(row.tool_call_id in made, f"row {index} is a result for an unknown call {row.tool_call_id!r}")
    last = reply.messages[-1]
    spoken = last.role == "assistant" and last.is_spoken
    _require(spoken or bool(open_calls(reply.messages)), "a reply ends in words, or in calls that wait for a result")


async def _close(target: Target) -> None:
    if isinstance(target, Closeable):
        await target.aclose()
        await target.aclose()


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise BrokenTarget(otherwise)
