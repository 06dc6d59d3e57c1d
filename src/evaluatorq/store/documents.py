"""Finds case files and reads YAML, JSON and JSON Lines into values that know their lines; what they mean is ``cases``'.

JSON is checked by the standard parser and then read again token by token for the lines. A line of JSON Lines that
cannot be read is an error in its place: it is never skipped.
"""

from __future__ import annotations

import glob
import json
import math
import os
import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from pydantic import JsonValue

from evaluatorq.errors import CaseError
from evaluatorq.store.located import Builder, Document

EMPTY = "the file is empty; write at least one case"
_INIT = "; name one that is there ('evaluatorq init DIR' writes a folder of cases)"
SUFFIXES = (".yaml", ".yml", ".json", ".jsonl")


# ---------------------------------------------------------------- which files


def find_files(path: str | os.PathLike[str]) -> list[Path]:
    """The case files that a file, folder or glob stands for, sorted; ``CaseError`` when there is none."""
    given = Path(path)
    if given.is_dir():
        found = [file for file in sorted(given.iterdir()) if _is_case_file(file)]
        if not found:
            raise CaseError(f"no case files in this folder ({', '.join(SUFFIXES)})", file=str(path))
        return found
    if given.is_file():
        if given.suffix.lower() not in SUFFIXES:
            raise CaseError(f"a case file's name ends in one of {', '.join(SUFFIXES)}", file=str(path))
        return [given]
    if glob.has_magic(str(path)):
        matches = glob.glob(str(path), recursive=True)  # noqa: PTH207  a pattern from any folder
        found = [file for file in map(Path, sorted(matches)) if _is_case_file(file)]
        if not found:
            raise CaseError("no case file matches this pattern", file=str(path))
        return found
    raise CaseError(f"no such file or folder{near_file(given) or _INIT}", file=str(path))


def _is_case_file(file: Path) -> bool:
    return file.suffix.lower() in SUFFIXES and not file.name.startswith(".") and file.is_file()


def near_file(missing: Path) -> str:
    """``; did you mean ...?`` with the file of the same folder whose name is nearest, else nothing."""
    try:
        names = [entry.name for entry in missing.parent.iterdir()]
    except OSError:
        return ""
    near = get_close_matches(missing.name, names, n=1)
    return f"; did you mean {missing.with_name(near[0])}?" if near else ""


# ---------------------------------------------------------------- one file


def read_documents(path: Path) -> Iterator[Document | CaseError]:
    """The documents of one file in order, or what keeps them from being read."""
    file = str(path)
    try:
        if path.suffix.lower() == ".jsonl":
            yield from _json_lines(path)
            return
        text = _text(_bytes(path), file)
        if not text.strip():
            raise CaseError(EMPTY, file=file)
        if path.suffix.lower() == ".json":
            yield from _usable(read_json(text, file))
        else:
            from evaluatorq.store.yaml_reader import read_yaml  # noqa: PLC0415  a slow import that JSON never needs

            yield from _usable(read_yaml(text, file))
    except CaseError as error:
        yield error


def _usable(document: Document) -> Iterator[Document | CaseError]:
    """The document, or the faults that leave in doubt what it says."""
    yield from document.faults
    if not document.faults:
        yield document


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CaseError(f"cannot be read: {error.strerror}", file=str(path)) from None


def _text(raw: bytes, file: str, first_line: int = 1) -> str:
    """The text of a file, or of one of its lines."""
    if first_line == 1 and raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise CaseError("this is UTF-16; save the file as UTF-8", file=file, line=1)
    try:
        text = raw.decode("utf-8-sig" if first_line == 1 else "utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + first_line
        raise CaseError("this is not UTF-8; save the file as UTF-8", file=file, line=line) from None
    control = re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", text)
    if control:
        line = text.count("\n", 0, control.start()) + first_line
        raise CaseError(f"holds the control character {control.group()!r}; remove it", file=file, line=line)
    return text


# ---------------------------------------------------------------- JSON

_TOKEN = re.compile(r'(?P<string>"(?:[^"\\]|\\.)*")|(?P<sign>[{}\[\]:])|(?P<word>[^\s"{}\[\]:,]+)|(?P<line>\n)')
_WORDS: dict[str, JsonValue] = {"null": None, "true": True, "false": False}


def _json_lines(path: Path) -> Iterator[Document | CaseError]:
    """One line after the other: a file of many cases is never in memory as a whole."""
    file, empty = str(path), True
    try:
        with path.open("rb") as rows:
            for number, raw in enumerate(rows, 1):
                row = _text(raw, file, number)
                if not row.strip():
                    continue
                empty = False
                try:
                    yield from _usable(read_json(row.rstrip("\n"), file, number))
                except CaseError as error:
                    yield error
    except OSError as error:
        raise CaseError(f"cannot be read: {error.strerror}", file=file) from None
    if empty:
        raise CaseError(EMPTY, file=file)


def read_json(text: str, file: str, first_line: int = 1) -> Document:
    """One JSON value with lines; ``CaseError`` for what is not JSON, a key twice, or a number that is not finite."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        raise CaseError(f"this is not JSON: {error.msg} (column {error.colno})", file=file, line=line) from None
    except ValueError:
        raise CaseError(
            "a number has thousands of digits; quote it if it is text", file=file, line=first_line
        ) from None
    except RecursionError:
        raise CaseError("nested too deeply", file=file, line=first_line) from None
    builder = Builder(file, first_line)
    opening: list[int] = []
    line = first_line
    for token in _TOKEN.finditer(text):
        sign = token.group()
        if sign == "\n":
            line += 1
        elif sign in ("{", "["):
            builder.open({} if sign == "{" else [], line)
            opening.append(line)
        elif sign in ("}", "]"):
            builder.put(builder.close(), opening.pop())
        elif sign != ":":
            value = _scalar(sign, builder, line)
            if builder.awaits_key:
                builder.key(str(value), line)
            else:
                builder.put(value, line)
    return builder.document


def _scalar(token: str, builder: Builder, line: int) -> JsonValue:
    if token in _WORDS:
        return _WORDS[token]
    value: str | int | float = json.loads(token)
    if isinstance(value, float) and not math.isfinite(value):
        builder.fault(f"{token} is not a finite number", line)
    return value
