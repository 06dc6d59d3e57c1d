"""Values known to be credentials, found in any text: as they are, and escaped however deep for JSON, a URL or HTML.

Letters, digits and ``. _ -`` are never escaped, so the longest run of them tells quickly that a value is not there.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_RUN = re.compile(r"[A-Za-z0-9._-]+")
_PARTS = re.compile(r"\\+|[A-Za-z0-9._-]+|.", re.DOTALL)
_NAMES = {'"': ("quot",), "&": ("amp",), "'": ("apos",), "<": ("lt",), ">": ("gt",)}
_LETTERS = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}


class KnownSecrets:
    """Finds ``secrets`` in texts and in encoded records; none is found where there are none."""

    def __init__(self, secrets: Collection[str] = ()) -> None:
        longest_first = sorted({secret for secret in secrets if secret}, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(_spellings, longest_first))) if longest_first else None
        runs = {max(_RUN.findall(secret), key=len, default="") for secret in longest_first}
        self._always = "" in runs
        self._needles = tuple(run.encode() for run in runs if run)

    def may_be_in(self, encoded: bytes) -> bool:
        """Whether a record, encoded as JSON, is worth a closer look; never wrong when it says no."""
        return self._always or any(needle in encoded for needle in self._needles)

    def hidden(self, text: str, instead: str) -> str:
        """The text with ``instead`` wherever one of the values stands."""
        return text if self._pattern is None else self._pattern.sub(instead, text)


def _spellings(secret: str) -> str:
    """A pattern for all spellings; possessive, so that a long row of backslashes costs no more than its length."""
    pattern, slashed = "", False
    for part in _PARTS.findall(secret):
        pattern += _slashes(len(part)) if part[0] == "\\" else _spelling(part, slashed=slashed)
        slashed = part[0] == "\\"
    return pattern if _RUN.match(secret) else rf"(?<!\\){pattern}"


def _slashes(count: int) -> str:
    return rf"(?:\\{{{count},}}+|(?:{_coded(chr(92))}){{{count}}})"


def _spelling(part: str, *, slashed: bool) -> str:
    """``slashed``: the backslashes before it were taken already."""
    if _RUN.fullmatch(part):
        return re.escape(part)
    maybe, some = ("", "") if slashed else (r"\\*+", r"\\++")
    code = part.encode("utf-16-be", "surrogatepass").hex()
    units = r"\\++".join(f"u(?i:{code[at : at + 4]})" for at in range(0, len(code), 4))
    short = f"|{some}{_LETTERS[part]}" if part in _LETTERS else ""
    return f"(?:{_coded(part)}|{maybe}{re.escape(part)}|{some}{units}{short})"


def _coded(char: str) -> str:
    """A pattern for a character as URLs and HTML write it, also where what was written so was written so again."""
    octets = "".join(f"%(?:25)*{octet:02x}" for octet in char.encode("utf-8", "surrogatepass"))
    names = "|".join((f"#0*{ord(char)}", f"#x0*{ord(char):x}", *_NAMES.get(char, ())))
    plus = rf"|\+|{_coded('+')}" if char == " " else ""
    return f"(?i:{octets}|&(?:amp;)*(?:{names});){plus}"
