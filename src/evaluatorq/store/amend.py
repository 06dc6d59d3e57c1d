"""Changes one small field of a saved run: atomically, and without making the run the newest.

A run file is as long as its conversations, so it is copied line by line, what is no UTF-8 too; only a file of another
layout is read whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pydantic import JsonValue

from evaluatorq.errors import ReplayError
from evaluatorq.store.atomic import replace_file

_FIELD = "applied_suggestions"
_LINE = f'  "{_FIELD}": ['


def mark_applied(path: Path, suggestions: Sequence[str]) -> None:
    """Adds suggestions to ``applied_suggestions`` of the run at ``path``; those there already are not repeated.

    The file keeps its permissions and its time. Raises ``ReplayError`` when it is no run and ``StoreError`` when it
    cannot be written.
    """
    path = path.resolve()
    before = path.stat()
    with path.open(encoding="utf-8", errors="surrogateescape") as lines:
        by_line = any(line.startswith(_LINE) for line in lines)
    if not by_line:
        replace_file(path, [_whole(path, suggestions)], mode=before.st_mode, mtime_ns=before.st_mtime_ns)
        return
    with path.open(encoding="utf-8", errors="surrogateescape") as lines:
        replace_file(path, _copied(lines, suggestions), mode=before.st_mode, mtime_ns=before.st_mtime_ns)


def _copied(lines: Iterable[str], suggestions: Sequence[str]) -> Iterator[bytes]:
    waiting = iter(lines)
    for line in waiting:
        if not line.startswith(_LINE):
            yield line.encode(errors="surrogateescape")
            continue
        block = line
        while not block.rstrip().endswith(("]", "],")):
            block += next(waiting)
        known = json.loads(f"{{{block.rstrip().removesuffix(',')}}}")[_FIELD]
        comma = "," if block.rstrip().endswith(",") else ""
        yield _encoded(f'  "{_FIELD}": {_json(_both(known, suggestions), "  ")}{comma}\n')


def _whole(path: Path, suggestions: Sequence[str]) -> bytes:
    try:
        run = json.loads(path.read_bytes())
    except ValueError as error:
        raise ReplayError(f"{path} is not JSON") from error
    if not isinstance(run, dict) or "mode" not in run or "results" not in run:
        raise ReplayError(f"{path} is not a simulation run")
    return _encoded(_json({**run, _FIELD: _both(run.get(_FIELD), suggestions)}, "") + "\n")


def _both(known: JsonValue, suggestions: Sequence[str]) -> list[JsonValue]:
    old = [text for text in known if isinstance(text, str)] if isinstance(known, list) else []
    return [*dict.fromkeys([*old, *suggestions])]


def _json(value: JsonValue, indent: str) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False).replace("\n", f"\n{indent}")


def _encoded(text: str) -> bytes:
    """UTF-8; half a surrogate pair is written as the escape that JSON has for it."""
    return text.encode("utf-8", "backslashreplace")
