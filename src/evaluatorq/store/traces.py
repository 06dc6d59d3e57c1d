"""Where traces are kept: a file of JSON Lines, or a database by its URL; and what the two have in common."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Mapping
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from evaluatorq.conversation.checks import same_json
from evaluatorq.errors import ConfigError, StoreError
from evaluatorq.model.trace import Trace
from evaluatorq.ports import TraceQuery, TraceStore
from evaluatorq.records.trace_case import canonical

if TYPE_CHECKING:
    from evaluatorq.store.traces_sql import SqlTraceStore


def open_trace_store(where: str | PathLike[str], *, existing: bool = False) -> TraceStore:
    """The store at a path (JSON Lines) or at a database URL such as ``sqlite:///traces.db`` or ``postgresql://…``.

    With ``existing`` one that is not there is refused and not made. Raises ``ConfigError`` for that and when the extra
    ``sql`` is not installed, ``StoreError`` when the database cannot be reached.
    """
    if isinstance(where, str) and "://" in where:
        return _sql_store(where, existing=existing)
    from evaluatorq.store.traces_jsonl import JsonlTraceStore  # noqa: PLC0415  it imports this module

    if existing and not Path(where).is_file():
        raise ConfigError(f"no such file: {where}")
    return JsonlTraceStore(where)


def _sql_store(url: str, *, existing: bool) -> SqlTraceStore:
    try:
        importlib.import_module("sqlalchemy")
    except ImportError:
        raise ConfigError("a database of traces needs SQLAlchemy: pip install 'evaluatorq[sql]'") from None
    from evaluatorq.store.traces_sql import SqlTraceStore  # noqa: PLC0415  an optional library

    return SqlTraceStore(url, existing=existing)


def digest_of_trace(document: Mapping[str, JsonValue]) -> str:
    """What two equal traces share."""
    return hashlib.sha256(canonical(dict(document))).hexdigest()


def another_has_its_id(trace: Trace) -> StoreError:
    """The refusal of a second, different trace of a conversation."""
    return StoreError(
        f"the store holds another trace of conversation {trace.thread_id}; a trace is written once, when its "
        "conversation is over"
    )


def labels_of(trace: Trace) -> dict[str, JsonValue]:
    """The labels that a query may name."""
    return trace.outcome.labels.model_dump(mode="json", exclude_none=True)


def fits(trace: Trace, tag: str, wanted: TraceQuery) -> bool:
    """Whether a trace, stored under ``tag``, is one that a query wants."""
    labels = labels_of(trace)
    return (
        wanted.run in (None, trace.run.id)
        and wanted.schema in (None, tag)
        and (wanted.since is None or trace.at >= in_utc(wanted.since))
        and (wanted.until is None or trace.at < in_utc(wanted.until))
        and all(name in labels and same_json(labels[name], value) for name, value in wanted.labels.items())
    )


def in_utc(moment: datetime) -> datetime:
    """A time without a zone means UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


__all__ = ["another_has_its_id", "digest_of_trace", "fits", "in_utc", "labels_of", "open_trace_store"]
