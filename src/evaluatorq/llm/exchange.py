"""One HTTP request and its whole answer, whichever library carries them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

USER_AGENT = {"user-agent": "evaluatorq"}
KEEPALIVE_S = 30.0
"""How long a connection waits for the next request."""


@dataclass(slots=True, eq=False)
class Call:
    """A request. ``where`` names the other side in error messages, so it holds no credentials and no query."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None
    where: str
    method: str = "POST"


class Answer(NamedTuple):
    """What came back, read to its end: status, headers (found in any case) and the decompressed body."""

    status: int
    headers: Mapping[str, str]
    body: bytes
