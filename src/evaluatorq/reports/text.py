"""Text of other people made fit for a terminal: shown, never obeyed."""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    """The text with control characters, direction marks and half surrogates written out, as in ``\\x1b``.

    Line breaks stay, tabs become four spaces.
    """
    plain = text.replace("\r\n", "\n").replace("\t", "    ")
    return _UNSAFE.sub(lambda found: _written_out(ord(found[0])), plain)


def one_line(text: str, width: int | None = None) -> str:
    """``printable`` on one line, cut to ``width`` characters with an ellipsis."""
    flat = " ".join(printable(text).split())
    return flat if width is None or len(flat) <= width else flat[: width - 1].rstrip() + "…"


def by_lines(text: str, width: int | None = None) -> str:
    """``printable`` with its line breaks, each line cut to ``width`` characters."""
    return "\n".join(one_line(line, width) for line in text.splitlines())


def plural(count: int, noun: str) -> str:
    """``1 turn``, ``2 turns``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _written_out(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
