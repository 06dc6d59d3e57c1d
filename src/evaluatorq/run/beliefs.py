"""Asks a detector what a message of the user tells, and makes the note of it; a question that fails is noted too."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
from pydantic import JsonValue

from evaluatorq.errors import CallError
from evaluatorq.model.events import BELIEFS, REFUSALS, Noted
from evaluatorq.model.messages import Message
from evaluatorq.ports import BeliefDetector
from evaluatorq.run.clock import Clock

LONGEST_S = 60.0


async def note_beliefs(detector: BeliefDetector, messages: Sequence[Message], clock: Clock) -> Noted:
    """The note, with what it cost. Nothing that goes wrong here ends a conversation."""
    try:
        with anyio.fail_after(LONGEST_S):
            reply = await detector.detect(messages)
    except CallError as error:
        known = error.usage is not None or error.code in REFUSALS
        return Noted(
            at=clock.now(), what=BELIEFS, data=_failed(error.code, error.message), usage=error.usage, usage_known=known
        )
    except TimeoutError:
        return Noted(at=clock.now(), what=BELIEFS, data=_failed("timeout", "no answer in time"), usage_known=False)
    except Exception as error:  # noqa: BLE001  whatever a detector raises is why nothing is known
        failed = _failed("internal_error", f"{type(error).__name__}: {error}")
        return Noted(at=clock.now(), what=BELIEFS, data=failed, usage_known=False)
    return Noted(
        at=clock.now(),
        what=BELIEFS,
        data=[update.model_dump(mode="json", exclude_none=True) for update in reply.updates],
        usage=reply.usage,
        usage_known=reply.usage is not None,
        model=reply.model,
    )


def _failed(code: str, message: str) -> JsonValue:
    return {"error": code, "message": message[:500]}
