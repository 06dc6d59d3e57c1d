"""Where traces are kept, and how they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from pydantic import JsonValue

if TYPE_CHECKING:
    from evaluatorq.model.trace import Trace  # not needed to run conversations


@dataclass(frozen=True, slots=True)
class TraceQuery:
    """Which traces are wanted: all that fit everything that is given.

    ``labels`` must be there and equal (``True`` is not ``1``). A trace's time is when its conversation began; ``since``
    counts, ``until`` does not. ``schema`` is the tag under which a trace was stored.
    """

    run: str | None = None
    labels: Mapping[str, JsonValue] = field(default_factory=dict)
    since: datetime | None = None
    until: datetime | None = None
    schema: str | None = None


class TraceStore(Protocol):
    """Traces by the id of their conversation. Hold yours to ``evaluatorq.testing.check_trace_store``."""

    def append(self, trace: Trace) -> bool:
        """Keeps a trace: ``False`` where the same is there already, ``StoreError`` where another one has its id."""
        ...

    def get(self, thread_id: str) -> Trace | None:
        """The trace of a conversation."""
        ...

    def query(self, wanted: TraceQuery) -> Iterator[Trace]:
        """The traces that fit, by time and then by id. ``SchemaError`` for one that a newer version wrote."""
        ...
