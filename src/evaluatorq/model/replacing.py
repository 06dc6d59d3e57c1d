"""``replace`` for frozen dataclasses: what ``dataclasses.replace`` does, in a tenth of its time.

A conversation is replaced about ten times a turn, and the standard function sets each of its fields one by one. The
records must have a ``__dict__`` (no slots) and no ``__post_init__``; a misspelt field is for the type checker to find.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

__all__ = ["replace"]

if TYPE_CHECKING:
    from dataclasses import replace
else:
    Record = TypeVar("Record")

    def replace(record: Record, **changes: object) -> Record:
        """A copy of a frozen record with some fields changed."""
        changed = object.__new__(type(record))
        object.__setattr__(changed, "__dict__", record.__dict__ | changes)
        return changed
