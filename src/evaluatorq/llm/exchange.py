"""One HTTP request and its whole answer, whichever library carries them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from evaluatorq.llm.reading import ENCODINGS

ALWAYS_SENT = {"user-agent": "evaluatorq", "accept": "*/*", "accept-encoding": ENCODINGS}
"""Headers of every request, unless it has its own."""
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
    """What came back: status, headers (names in lower case), the decompressed body, and whether that is all of it."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    whole: bool = True
