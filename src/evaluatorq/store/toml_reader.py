"""Reads TOML with the line of each key, as the readers of YAML and JSON do; the parser itself tells no lines."""

from __future__ import annotations

import re
import tomllib

from pydantic import JsonValue

from evaluatorq.store.located import Document

_NAME = r"""(?:[\w-]+|"[^"\\]*"|'[^']*')"""
_PATH = rf"({_NAME}(?:\s*\.\s*{_NAME})*)"
_TABLE = re.compile(rf"\s*\[\s*{_PATH}\s*\]")
_KEY = re.compile(rf"\s*{_PATH}\s*=")
_QUOTES = re.compile('"""|' + "'''")


def read_toml(text: str, file: str) -> Document:
    """The document; keys within an inline table have the table's line. ``TOMLDecodeError`` for what is no TOML."""
    value: dict[str, JsonValue] = tomllib.loads(text)
    document = Document(file, value)
    table: list[str] = []
    in_text = False
    for number, line in enumerate(text.splitlines(), 1):
        if not in_text and (found := _TABLE.match(line)):
            table = _names(found[1])
            _note(document, table, number)
        elif not in_text and (found := _KEY.match(line)):
            _note(document, [*table, *_names(found[1])], number)
        in_text ^= len(_QUOTES.findall(line)) % 2 == 1
    return document


def _names(path: str) -> list[str]:
    return [name.strip("\"'") for name in re.findall(_NAME, path)]


def _note(document: Document, path: list[str], line: int) -> None:
    """Keeps the line of each part of a path that is there; the first line of a key is its own."""
    value = document.value
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return
        document.lines.setdefault(id(value), {}).setdefault(name, line)
        value = value[name]
