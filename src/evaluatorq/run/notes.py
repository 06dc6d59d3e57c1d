"""Asks what a message of the user tells, or what the agent claims, and makes the note of it; a failed question too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio
from pydantic import JsonValue

from evaluatorq.errors import CallError
from evaluatorq.llm.tags import beginning
from evaluatorq.model.belief import BeliefUpdate
from evaluatorq.model.events import BELIEFS, CLAIMS, REFUSALS, Noted
from evaluatorq.model.findings import FoundClaim
from evaluatorq.model.messages import Message
from evaluatorq.ports import BeliefDetector, BeliefReply, ClaimFinder, ClaimReply
from evaluatorq.run.clock import Clock

LONGEST_S = 60.0


async def note_beliefs(detector: BeliefDetector, messages: Sequence[Message], clock: Clock) -> Noted:
    """The note of what the last message of the user tells, with what it cost."""

    async def ask() -> tuple[BeliefReply, Sequence[BeliefUpdate]]:
        reply = await detector.detect(messages)
        return reply, reply.updates

    return await _noted(BELIEFS, ask, clock)


async def note_claims(finder: ClaimFinder, messages: Sequence[Message], clock: Clock) -> Noted:
    """The note of what the agent says that it did, with what it cost."""

    async def ask() -> tuple[ClaimReply, Sequence[FoundClaim]]:
        reply = await finder.find(messages)
        return reply, reply.claims

    return await _noted(CLAIMS, ask, clock)


async def _noted(
    what: str,
    ask: Callable[[], Awaitable[tuple[BeliefReply | ClaimReply, Sequence[BeliefUpdate | FoundClaim]]]],
    clock: Clock,
) -> Noted:
    """Nothing that goes wrong here ends a conversation."""
    try:
        with anyio.fail_after(LONGEST_S):
            reply, found = await ask()
    except CallError as error:
        known = error.usage is not None or error.code in REFUSALS
        data = _failed(error.code, error.message)
        cost, model = error.usage, error.model
        return Noted(at=clock.now(), what=what, data=data, usage=cost, usage_known=known, model=model)
    except TimeoutError:
        return Noted(at=clock.now(), what=what, data=_failed("timeout", "no answer in time"), usage_known=False)
    except Exception as error:  # noqa: BLE001  whatever they raise is why nothing is known
        failed = _failed("internal_error", f"{type(error).__name__}: {error}")
        return Noted(at=clock.now(), what=what, data=failed, usage_known=False)
    return Noted(
        at=clock.now(),
        what=what,
        data=[one.model_dump(mode="json", exclude_none=True) for one in found],
        usage=reply.usage,
        usage_known=reply.usage is not None,
        model=reply.model,
    )


def _failed(code: str, message: str) -> JsonValue:
    return {"error": code, "message": beginning(message, 500)}
