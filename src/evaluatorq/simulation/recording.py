"""A run's options as they are kept with it: enough to go on in another process, and nothing secret.

An object that another process cannot import is written as ``<what it was>``, a hidden credential as ``[hidden]``; a run
with either is resumed only when the option is given again. ``${VARIABLES}`` of the environment are names, not secrets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pydantic import BaseModel, JsonValue

HIDDEN = "[hidden]"
_SECRET = re.compile(r"auth|key|token|secret|passw|cookie|signature|^sig$", re.IGNORECASE)


def recorded_value(value: object) -> JsonValue:  # noqa: PLR0911  one kind of value per case
    """An option's value as JSON."""
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return _text(value)
        case BaseModel():
            return recorded_value(value.model_dump(exclude_unset=True))
        case Path():
            return str(value)
        case Mapping():
            return {str(key): _member(str(key), item) for key, item in value.items()}
        case list() | tuple():
            return [recorded_value(item) for item in value]
    return _reference(value)


def must_be_given_again(options: Mapping[str, JsonValue]) -> str | None:
    """The first option whose recorded value is no value: an object of the earlier process, or hidden."""
    return next((name for name, value in options.items() if _is_lost(value)), None)


def _is_lost(value: JsonValue) -> bool:
    match value:
        case str():
            return HIDDEN in value or (value.startswith("<") and value.endswith(">"))
        case dict():
            return any(_is_lost(item) for item in value.values())
        case list():
            return any(_is_lost(item) for item in value)
    return False


def _member(key: str, value: object) -> JsonValue:
    if isinstance(value, str) and _SECRET.search(key) and "${" not in value:
        return HIDDEN
    return recorded_value(value)


def _text(text: str) -> str:
    """The text; in a URL a password and what looks like one in the query is hidden."""
    if not re.match(r"https?://", text):
        return text
    parts = urlsplit(text)
    account, at, host = parts.netloc.rpartition("@")
    if at and "${" not in account:
        parts = parts._replace(netloc=f"{HIDDEN}@{host}")
    query = parse_qsl(parts.query, keep_blank_values=True)
    if any(_SECRET.search(name) and "${" not in value for name, value in query):
        hidden = [(name, HIDDEN if _SECRET.search(name) and "${" not in value else value) for name, value in query]
        parts = parts._replace(query=urlencode(hidden, safe="[]${}"))
    return urlunsplit(parts)


def _reference(value: object) -> str:
    """``module:name`` where that can be imported elsewhere, else what the object is."""
    named = value if hasattr(value, "__qualname__") else type(value)
    name = f"{named.__module__}:{named.__qualname__}"
    importable = named is value and named.__module__ != "__main__" and "<" not in name
    return name if importable else f"<{name}>"
