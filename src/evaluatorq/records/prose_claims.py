"""What a model found that an agent claims, held against its calls by code: a model says what was said, not what is so.

A claim is backed by an accepted call of the tool that it is about, made before the words, whose arguments are those
that the words name. It is unknown where its words are not in the transcript, where nobody knows the agent's calls, and
where it names an argument that the call does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pydantic import JsonValue, TypeAdapter, ValidationError

from evaluatorq.conversation.quotes import find_quote
from evaluatorq.model.findings import FoundClaim, ProseClaim
from evaluatorq.model.results import SimulationResult

_FOUND = TypeAdapter(tuple[FoundClaim, ...])
Standing = tuple[str, str]


def prose_claims_of(noted: JsonValue, result: SimulationResult) -> list[ProseClaim] | None:
    """Each statement with its standing; ``None`` where nobody looked, or the looking failed."""
    try:
        found = _FOUND.validate_python(noted)
    except ValidationError:
        return None
    calls = _calls(result)
    return [_held(claim, result, calls) for claim in found]


class _Call(NamedTuple):
    row: int
    name: str
    accepted: bool
    arguments: Mapping[str, JsonValue]


def _calls(result: SimulationResult) -> list[_Call] | None:
    """The agent's calls with the rows that they stand in; ``None`` where some turn's are not known."""
    if not result.observations or any(seen.tool_calls is None for seen in result.observations):
        return None
    outcomes = {call.id: call.outcome for seen in result.observations for call in seen.tool_calls or ()}
    return [
        _Call(row, call.function.name, outcomes.get(call.id) == "accepted", call.parsed_arguments() or {})
        for row, message in enumerate(result.messages)
        for call in message.tool_calls or ()
    ]


def _held(claim: FoundClaim, result: SimulationResult, calls: list[_Call] | None) -> ProseClaim:
    standing, why = _standing(claim, result, calls)
    turn = sum(message.role == "user" for message in result.messages[: claim.row])
    return ProseClaim.model_validate({**claim.model_dump(), "turn": turn, "standing": standing, "why": why})


def _standing(claim: FoundClaim, result: SimulationResult, calls: list[_Call] | None) -> Standing:
    rows = result.messages[claim.row : claim.row + 1]
    said = bool(rows) and rows[0].role == "assistant" and find_quote(claim.quote, rows) is not None
    if not said:
        return "unknown", "the agent did not say these words"
    if calls is None:
        return "unknown", "nobody knows which tools it called"
    if claim.tool is None:
        return "unbacked", "no tool of the agent does this"
    made = [call for call in calls if call.name == claim.tool and call.row < claim.row]
    found = [_compared(claim, call) for call in made if call.accepted]
    order = ("backed", "unknown", "unbacked")
    missing = f"no accepted call of {claim.tool} before it" if not made or found else f"{claim.tool} was not accepted"
    return min(found, key=lambda one: order.index(one[0]), default=("unbacked", missing))


def _compared(claim: FoundClaim, call: _Call) -> Standing:
    strange = [name for name in claim.arguments if name not in call.arguments]
    if strange:
        return "unknown", f"{call.name} has no argument {', '.join(strange)}"
    others = list(_differing(claim, call))
    if others:
        return "unbacked", f"{call.name} was called with {', '.join(others)}"
    return "backed", f"{call.name} was called and accepted"


def _differing(claim: FoundClaim, call: _Call) -> Iterator[str]:
    for name, told in claim.arguments.items():
        given = call.arguments[name]
        if _plain(told) != _plain(given):
            yield f"{name}={given!r}"


def _plain(value: JsonValue) -> str:
    """Values compare as texts, whatever their case and white space; ``20``, ``20.0`` and ``"20"`` are one number."""
    text = " ".join(str(value).casefold().split())
    try:
        return str(float(text))
    except ValueError:
        return text
