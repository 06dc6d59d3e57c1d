"""Plain values that know on which line of a file each key and item stands, built part by part.

A builder refuses a key that stands twice, and depth and size beyond reason (with aliases expanded), so whatever comes
out can be walked and validated without care.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pydantic import JsonValue

from evaluatorq.errors import CaseError

Keys = tuple[str | int, ...]
"""Where a value stands in a document: mapping keys and list positions from the top."""

Container = dict[str, JsonValue] | list[JsonValue]

MAX_DEPTH = 64
MAX_VALUES = 1_000_000
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass
class Document:
    """One value read from a file: a whole YAML or JSON file, or one line of a JSON Lines file."""

    file: str
    value: JsonValue = None
    first_line: int = 1
    faults: list[CaseError] = field(default_factory=list)
    lines: dict[int, dict[str | int, int]] = field(default_factory=dict, repr=False)

    def line(self, keys: Keys = ()) -> int:
        """The line of the value at ``keys``, or of the nearest thing around it that is there."""
        value, line = self.value, self.first_line
        for key in keys:
            known = self.lines.get(id(value), {})
            if key not in known:
                break
            line = known[key]
            value = value[key]  # type: ignore[index]  # a container whose lines were kept has the key
        return line


@dataclass(slots=True)
class _Open:
    """A mapping or list that is being filled."""

    value: Container
    key: str | None = None
    size: int = 1
    depth: int = 1
    merging: bool = False
    merged: list[JsonValue] = field(default_factory=list)


class Builder:
    """Puts the parts of a document together in the order in which they are read."""

    def __init__(self, file: str, first_line: int = 1) -> None:
        self.document = Document(file, first_line=first_line)
        self._open: list[_Open] = []
        self._measures: dict[int, tuple[int, int]] = {}

    @property
    def awaits_key(self) -> bool:
        """The next scalar names an entry of a mapping."""
        return bool(self._open) and isinstance(self._open[-1].value, dict) and self._open[-1].key is None

    def open(self, value: Container, line: int) -> None:
        """A mapping or list begins."""
        if not self._open:
            self.document.first_line = line
        if len(self._open) >= MAX_DEPTH:
            raise self.error(f"nested more than {MAX_DEPTH} levels deep", line)
        self.document.lines[id(value)] = {}
        self._open.append(_Open(value))

    def key(self, name: str, line: int, *, merge: bool = False) -> None:
        """A key of the open mapping; with ``merge`` its value fills that mapping up."""
        self._refuse_surrogate(name, line)
        top = self._open[-1]
        lines = self.document.lines[id(top.value)]
        if name in lines:
            self.fault(f"{name!r} stands twice in one mapping, first on line {lines[name]}; keep one", line)
        lines[name] = line
        top.key = name
        top.merging = merge

    def put(self, value: JsonValue, line: int) -> None:
        """A value: the next entry of what is open, or the document itself."""
        if isinstance(value, str):
            self._refuse_surrogate(value, line)
        if not self._open:
            self.document.value = value
            return
        top = self._open[-1]
        size, depth = self._measures[id(value)] if isinstance(value, dict | list) else (1, 0)
        top.size += size
        top.depth = max(top.depth, depth + 1)
        if top.size > MAX_VALUES or top.depth > MAX_DEPTH:
            raise self.error(f"more than {MAX_VALUES:,} values or {MAX_DEPTH} levels, aliases expanded", line)
        if isinstance(top.value, list):
            self.document.lines[id(top.value)][len(top.value)] = line
            top.value.append(value)
        elif top.key is not None:
            if top.merging:
                top.merged += value if isinstance(value, list) else [value]
            else:
                top.value[top.key] = value
            top.key = None

    def close(self) -> Container:
        """The open mapping or list ends; it has yet to be ``put``."""
        top = self._open.pop()
        if isinstance(top.value, dict) and top.merged:
            self._merge(top.merged, top.value)
        self._measures[id(top.value)] = (top.size, top.depth)
        return top.value

    def error(self, reason: str, line: int) -> CaseError:
        """What ends the reading at a line of this document."""
        return CaseError(reason, file=self.document.file, line=line)

    def fault(self, reason: str, line: int) -> None:
        """Something that leaves the document in doubt; reading goes on, to find the others."""
        self.document.faults.append(self.error(reason, line))

    def _refuse_surrogate(self, text: str, line: int) -> None:
        if not text.isascii() and _SURROGATE.search(text):
            self.fault("half of a surrogate pair; write the whole character", line)

    def _merge(self, others: list[JsonValue], into: dict[str, JsonValue]) -> None:
        lines = self.document.lines[id(into)]
        line = lines.pop("<<")
        for other in others:
            if not isinstance(other, dict):
                self.fault("'<<' takes a mapping, or a list of them", line)
                continue
            for key, value in other.items():
                if key not in into:
                    into[key] = value
                    lines[key] = self.document.lines[id(other)][key]
