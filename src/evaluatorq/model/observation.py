"""What one turn of the agent left behind, read from the world it acted on and never from its prose.

A field that is ``None`` was not reported by anybody; an empty one is the fact that there was nothing. Only fields that
were set are saved. A resource is named by a JSON pointer into the environment's state (``/orders/A1``), or by whatever
key a store of one's own uses.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable
from functools import cache
from typing import Literal

from pydantic import Field, JsonValue, SerializerFunctionWrapHandler, model_serializer

from evaluatorq.model.base import Record

CallOutcome = Literal["accepted", "rejected", "no_change", "failed", "awaiting"]
ResolutionName = Literal["exact", "ambiguous", "missing", "unauthorized", "stale", "other"]
Detail = Literal["arguments", "states"]
"""What a signature may hold besides what happened: the values of tool arguments, the values that states took."""


class _Sparse(Record):
    """A record that is written without the fields at their defaults."""

    @model_serializer(mode="wrap")
    def _omit_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        dumped: dict[str, JsonValue] = handler(self)
        defaults = _defaults(type(self))
        return {key: value for key, value in dumped.items() if not _is_default(value, defaults.get(key))}


@cache
def _defaults(kind: type[_Sparse]) -> dict[str, object]:
    return {name: field.default for name, field in kind.model_fields.items()}


def _is_default(value: JsonValue, default: object) -> bool:
    return value == default or (value == [] and default == ())


class Act(_Sparse):
    """Something that the message was understood to ask for; ``outcome`` is the verdict of whoever decided on it."""

    kind: str
    operation: str | None = None
    outcome: str | None = None


class Resolution(_Sparse):
    """How the target of act number ``act`` (from 0) was found."""

    act: int
    resolution: ResolutionName
    resource: str | None = None


class Interaction(_Sparse):
    """A card shown to the user, and where it stands. ``turn`` is the turn that created it."""

    id: str
    resource: str | None = None
    kind: str
    status: str
    blocking: bool = False
    turn: int | None = None


class Discarded(_Sparse):
    """An answer of a model that was thrown away whole. ``code`` is stable; ``reason`` is for a reader."""

    code: str
    reason: str | None = None
    purpose: str | None = None
    round: int | None = None


class ObservedCall(_Sparse):
    """One tool call: a digest of its arguments, how it went, and the stable code of a refusal."""

    id: str
    name: str
    digest: str
    outcome: CallOutcome
    reason: str | None = None


class Change(Record):
    """A resource before and after; ``None`` where it was not there."""

    before: JsonValue = None
    after: JsonValue = None


class TurnReport(_Sparse):
    """What a target, or the store behind it, reports of a turn. Nothing is required.

    ``offers`` are the operations that a reply offered, ``asks`` what it asked for. ``read_error`` says that facts could
    not be read, ``events_truncated`` that the list of events was cut: claims about either then fail.
    """

    turn_id: str | None = None
    acts: tuple[Act, ...] | None = None
    target_resolutions: tuple[Resolution, ...] | None = None
    understanding: JsonValue = None
    commands: tuple[str, ...] | None = None
    events: tuple[str, ...] | None = None
    events_truncated: bool = False
    read_error: str | None = None
    revisions: dict[str, int] | None = None
    states: dict[str, Change] | None = None
    interactions: tuple[Interaction, ...] | None = None
    blocks: tuple[str, ...] | None = None
    phase: str | None = None
    provider_failures: int = Field(0, ge=0)
    discarded_answers: tuple[Discarded, ...] = ()
    offers: tuple[str, ...] | None = None
    asks: tuple[str, ...] | None = None


class Observation(TurnReport):
    """One turn of the agent as its world shows it; also of a turn that failed and of one that did nothing.

    ``turn`` counts exchanges from 1; 0 is what an agent says before the user. ``states`` holds the resources that the
    turn changed; ``outside`` those that somebody else changed just before it. ``answer`` is what the agent said.
    """

    turn: int
    error_code: str | None = None
    tool_calls: tuple[ObservedCall, ...] | None = None
    outside: dict[str, Change] | None = None
    cards_created: int = 0
    answer: str = ""

    def revision_of(self, resource: str) -> int | None:
        """The revision that a resource ended the turn at, ``None`` when it was not observed."""
        return (self.revisions or {}).get(resource)

    def interactions_of(self, resource: str) -> tuple[Interaction, ...]:
        """The cards of one resource, oldest first."""
        return tuple(card for card in self.interactions or () if card.resource == resource)

    def discard_codes(self) -> tuple[str, ...]:
        """The codes of the answers that this turn lost, in order and with repeats."""
        return tuple(discarded.code for discarded in self.discarded_answers)

    def signature(self, include: Collection[Detail] = ()) -> str:
        """The facts of the turn as canonical text: equal for turns that behaved in the same way.

        Wording, ids, times, usage and discarded answers are left out; the values of arguments and states are too,
        unless ``include`` names them.
        """
        return "".join(f"{line}\n" for line in _signed(self, include))

    def signature_hash(self, include: Collection[Detail] = ()) -> str:
        """A digest of the signature, 32 hex digits."""
        return hash_of(self.signature(include))


# ---------------------------------------------------------------- signatures


def hash_of(text: str) -> str:
    """A digest of a signature, 32 hex digits."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def digest_of(value: JsonValue) -> str:
    """A digest of a JSON value that does not depend on the order of keys, 16 hex digits."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(canonical.encode(), digest_size=8).hexdigest()


def _signed(seen: Observation, include: Collection[Detail]) -> Iterable[str]:
    if seen.error_code is not None:
        yield f"error={_word(seen.error_code)}"
    for act in seen.acts or ():
        yield f"act={_word(act.kind)} op={_word(act.operation)} outcome={_word(act.outcome)}"
    for found in seen.target_resolutions or ():
        yield f"target[{found.act}]={found.resolution} resource={_word(found.resource)}"
    for call in seen.tool_calls or ():
        yield f"call={_word(call.name)} outcome={call.outcome} reason={_word(call.reason)}" + (
            f" arguments={call.digest}" if "arguments" in include else ""
        )
    lists = {"acts": seen.acts, "calls": seen.tool_calls}
    yield from (f"{name}=none" for name, values in lists.items() if values == ())
    for name, words in (("commands", seen.commands), ("events", seen.events), ("blocks", seen.blocks)):
        if words is not None:
            yield f"{name}={','.join(map(_word, words))}"
    if seen.events_truncated:
        yield "events_truncated=true"
    if seen.read_error is not None:
        yield "read_error=true"
    for resource, revision in sorted((seen.revisions or {}).items()):
        yield f"rev {_word(resource)}={revision}"
    yield from _signed_states("state", seen.states, include)
    yield from _signed_states("outside", seen.outside, include)
    for card in seen.interactions or ():
        yield f"card {_word(card.resource)} {_word(card.kind)} {_word(card.status)}"
    if seen.phase is not None:
        yield f"phase={_word(seen.phase)}"


def _signed_states(name: str, states: dict[str, Change] | None, include: Collection[Detail]) -> Iterable[str]:
    for resource, change in sorted((states or {}).items()):
        how = "created" if change.before is None else "removed" if change.after is None else "changed"
        value = f" {digest_of(change.after)}" if "states" in include else ""
        yield f"{name} {_word(resource)} {how}{value}"


def _word(text: str | None) -> str:
    """A name as it is, or as JSON where it could be taken for something else."""
    if text is None:
        return "-"
    return text if re.fullmatch(r"[\w./~:][\w./~:-]*", text, re.ASCII) else json.dumps(text)


__all__ = [
    "Act", "CallOutcome", "Change", "Detail", "Discarded", "Interaction", "Observation", "ObservedCall", "Resolution",
    "ResolutionName", "TurnReport", "digest_of", "hash_of",
]  # fmt: skip
