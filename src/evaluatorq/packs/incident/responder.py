"""An engineer on call without a model: looks at errors and users first, and believes what people shout."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import JsonValue

from evaluatorq.conversation.checks import was_rejected
from evaluatorq.model.messages import Message, assistant, tool_call
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.ports import Seat, Target, TargetReply
from evaluatorq.records.steps import steps_of

METRICS = ("error_rate", "users_hit")
_SERVICES = {"checkout": r"pay|checkout", "search": r"search", "login": r"log in", "reports": r"report",
             "mail": r"mail", "website": r"logo|page"}  # fmt: skip


class Responder:
    """A stateless agent: the same transcript always gets the same answer."""

    stateful = False

    async def respond(self, messages: Sequence[Message], *, thread_id: str) -> TargetReply:  # noqa: ARG002  no memory to look up
        """One small step: a metric, an entry, words with a first view, or the declaration."""
        steps = list(steps_of(messages))
        readings = {
            str(step.arguments.get("metric")): _reading(step.answer) for step in steps if step.tool == "query_metric"
        }
        told = " ".join(row.text for row in messages if row.role == "user").casefold()
        severity, sure = _view(readings, told)
        calls = sum(step.call is not None for step in steps)
        turns = sum(row.role == "user" for row in messages)
        if missing := [name for name in METRICS if name not in readings]:
            return _called(calls, "query_metric", {"metric": missing[0]})
        if turns < 2:
            return TargetReply((assistant(f"This looks {severity} to me. What else do you see?"),), usage=NO_USAGE)
        services: list[JsonValue] = [name for name, pattern in _SERVICES.items() if re.search(pattern, told)]
        if services and not any(step.tool == "name_affected" for step in steps):
            return _called(calls, "name_affected", {"services": services, "severity": severity, "sure": sure})
        because = f"error rate {readings['error_rate']}, {readings['users_hit']:.0f} users"
        return _called(calls, "declare", {"severity": severity, "sure": sure, "because": because})


def _view(readings: dict[str, float], told: str) -> tuple[str, float]:
    if readings.get("error_rate", 0) > 0.3 or "disaster" in told:
        return "critical", 0.8
    if readings.get("users_hit", 0) > 2000:
        return "major", 0.7
    return "minor", 0.6


def _reading(answer: Message | None) -> float:
    found = None if answer is None or was_rejected(answer) else re.search(r'"reading":\s*([\d.]+)', answer.text)
    return float(found.group(1)) if found else 0.0


def _called(calls: int, name: str, arguments: dict[str, JsonValue]) -> TargetReply:
    return TargetReply(
        (assistant(None, [tool_call(f"call_{calls + 1}", name, arguments)]),), usage=NO_USAGE, reports_tools=True
    )


def incident_responder(seat: Seat) -> Target:
    """Makes an engineer."""
    del seat
    return Responder()


def responder_instructions(seat: Seat) -> str:
    """What a model is told that is to be the engineer."""
    del seat
    return (
        "You are the engineer on call. Somebody reports a problem. Look at metrics, name the affected services, and "
        "when you are sure enough declare the incident as minor, major or critical. Ask short questions."
    )
