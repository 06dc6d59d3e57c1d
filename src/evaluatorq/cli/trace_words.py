"""What the trace commands have in common: labels, times and scores as they are typed, and where traces come from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import JsonValue

from evaluatorq.cli.console import say
from evaluatorq.errors import ConfigError
from evaluatorq.ports import TraceQuery, TraceStore

if TYPE_CHECKING:
    from evaluatorq.model.trace import Trace

SOURCE = "a run ('latest', id, name, file), a file of traces (.jsonl) or a database URL"


def traces_from(source: str) -> Iterator[Trace]:
    """The traces of a run, or all that a file or database holds."""
    from evaluatorq.store.run_traces import traces_of_run  # noqa: PLC0415  the words alone need no traces
    from evaluatorq.store.traces import open_trace_store  # noqa: PLC0415

    return _all_in(open_trace_store(source, existing=True)) if is_store(source) else traces_of_run(source)


def _all_in(store: TraceStore) -> Iterator[Trace]:
    yield from store.query(TraceQuery())
    tell_damage(store)


def tell_damage(store: TraceStore) -> bool:
    """Says which lines of a file were no traces, and whether there were any."""
    damage = store.damage if hasattr(store, "damage") and isinstance(store.damage, list) else []
    for line in damage[:5]:
        say(f"not read: {line}")
    if len(damage) > 5:
        say(f"not read: {len(damage) - 5} more lines")
    return bool(damage)


def is_store(source: str) -> bool:
    """The word names a file or database of traces and not a run."""
    return "://" in source or source.endswith(".jsonl")


def labels_in(words: Iterable[str], option: str = "--label") -> dict[str, JsonValue]:
    """``name=value`` words as labels: ``true``, ``false`` and numbers are what they look like."""
    return {name: _value(text) for name, text in (_pair(word, option) for word in words)}


def scores_in(words: Iterable[str], option: str) -> dict[str, float]:
    """``name=number`` words."""
    found = {}
    for name, text in (_pair(word, option) for word in words):
        try:
            found[name] = float(text)
        except ValueError:
            raise ConfigError(f"{option} {name}={text}: {text!r} is not a number") from None
    return found


def _pair(word: str, option: str) -> tuple[str, str]:
    name, equals, text = word.partition("=")
    if not equals or not name:
        raise ConfigError(f"{option} takes name=value, not {word!r}")
    return name, text


def _value(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return text
    return value


def time_in(text: str | None, option: str) -> datetime | None:
    """A date or a time (ISO 8601); without a zone it means UTC."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"{option} takes a date or time such as 2026-01-31 or 2026-01-31T09:00, not {text!r}"
        ) from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def count_in(text: str | None, option: str) -> int | None:
    """A number that counts something."""
    if text is None:
        return None
    if not text.isdecimal():
        raise ConfigError(f"{option} takes a number from 0 on, not {text!r}")
    return int(text)
