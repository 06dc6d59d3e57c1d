"""Chat-completions JSON, written once per message and read back leniently.

A request body is a join of pieces that were encoded before, so a transcript of n rows costs n encodings, not n per
call. Half a surrogate pair is no character: on both ways it becomes U+FFFD, as UTF-8 has no room for it.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Sequence

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from evaluatorq.model.messages import Message, Role, ToolCall

View = Callable[[Message], bytes | None]
"""How one reader sees a transcript row: one encoded message, or ``None`` where the row is not for that reader."""


def encode_message(
    role: Role,
    content: str | None,
    *,
    tool_calls: Sequence[ToolCall] = (),
    tool_call_id: str | None = None,
    name: str | None = None,
) -> bytes:
    """One chat-completions message as JSON bytes, ``role`` first."""
    if not tool_calls and tool_call_id is None and name is None:
        return encode_json({"role": role, "content": content})
    row = Message(role=role, content=content, tool_calls=list(tool_calls) or None, tool_call_id=tool_call_id, name=name)
    return encode_row(row)


def encode_row(message: Message) -> bytes:
    """A transcript row as it is, tool calls and results included: the view of an agent."""
    return encode_json(message.to_chat_completion())


def encode_json(value: JsonValue) -> bytes:
    """Compact JSON; lone surrogates become U+FFFD."""
    try:
        return to_json(value)
    except ValueError:
        return to_json(mend(value))


def decode_json(data: bytes) -> JsonValue:
    """The value in ``data``; bad UTF-8 and lone surrogates become U+FFFD. Raises ``ValueError`` for anything else."""
    try:
        value: JsonValue = from_json(data)
    except ValueError:
        value = mend(json.loads(data.decode("utf-8", "replace")))
    return value


def mend(value: JsonValue) -> JsonValue:
    """The value with every lone surrogate in its texts replaced by U+FFFD; a pair becomes its character."""
    if isinstance(value, str):
        return _mend_text(value)
    if isinstance(value, list):
        return [mend(item) for item in value]
    if isinstance(value, dict):
        return {_mend_text(key): mend(item) for key, item in value.items()}
    return value


def _mend_text(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class LineCache:
    """The encoded lines of one growing transcript for one reader; keep one instance per conversation and view.

    Rows already seen are not encoded again. A transcript that shrank or begins otherwise is encoded anew.
    """

    __slots__ = ("_lines", "_rows", "_view")

    def __init__(self, view: View = encode_row) -> None:
        self._view = view
        self._rows: list[Message] = []
        self._lines: list[bytes] = []

    def lines(self, messages: Sequence[Message]) -> tuple[bytes, ...]:
        """One line for every row that the view shows, in order."""
        known = len(self._rows)
        if known > len(messages) or not all(map(operator.is_, self._rows, messages)):
            self._rows.clear()
            self._lines.clear()
            known = 0
        for row in messages[known:]:
            self._rows.append(row)
            line = self._view(row)
            if line is not None:
                self._lines.append(line)
        return tuple(self._lines)
