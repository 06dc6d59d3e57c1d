"""A trace with what happened outside of it, ``evaluatorq.integration-trace/1``: an envelope around an unchanged trace.

A decision that was produced and an effect that was committed are different facts, so each effect goes through states
of its own. The envelope has its own version and never changes what the trace in it means.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from pydantic import Field, JsonValue

from evaluatorq.model.trace import Hash, Only, Part

INTEGRATION_SCHEMA: Final = "evaluatorq.integration-trace/1"
EffectState = Literal["proposed", "attempted", "accepted", "conflicted", "failed"]


class Receipt(Part):
    """What the other side gave back: its own id and version where it has them, and the hash of what it said."""

    id: str | None = None
    at: datetime | None = None
    version: str | None = None
    content_hash: Hash | None = None


class Effect(Part):
    """One external effect. ``states`` are those it went through in order; one that ends with ``proposed`` was never
    tried, one that ends with ``attempted`` has no answer.
    """

    call_id: str
    tool: str
    step: int
    arguments_hash: Hash
    states: tuple[EffectState, ...]
    reason: str | None = None
    receipt: Receipt | None = None

    @property
    def state(self) -> EffectState:
        """Where the effect stands."""
        return self.states[-1]


class Closure(Part):
    """Every state that the trace refers to, and the ones among them that it does not hold."""

    states: tuple[Hash, ...]
    missing: tuple[Hash, ...] | None = None


class ResourceVersions(Part):
    """The versions of resources before and after the conversation, as far as they were observed."""

    before: dict[str, int]
    after: dict[str, int]


class IntegrationTrace(Part):
    """The envelope. ``trace`` is the document as it was stored, and ``trace_hash`` its content's."""

    schema_tag: Literal["evaluatorq.integration-trace/1"] = Field(INTEGRATION_SCHEMA, alias="schema")
    trace: dict[str, JsonValue]
    trace_hash: Hash
    closure: Closure
    resources: ResourceVersions
    identities: dict[str, str]
    decision_produced: Only | None = None
    effects: tuple[Effect, ...]

    def document(self) -> dict[str, JsonValue]:
        """The envelope as JSON; what is absent is left out, and the trace is untouched."""
        dumped: dict[str, JsonValue] = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        return {**dumped, "trace": self.trace}
