"""Starts the mock endpoint in a process of its own and reads its statistics."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

Stats = dict[str, dict[str, dict[str, int]]]


class MockEndpoint:
    """A running mock. ``url`` is what ``OPENAI_BASE_URL`` wants."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.agent_url = url.removesuffix("/v1") + "/agent"

    def stats(self) -> dict[str, object]:
        """Everything it counted since the last reset."""
        return self._ask("/stats")

    def tokens(self) -> dict[str, int]:
        """Tokens charged, by role."""
        roles = self.stats()["roles"]
        assert isinstance(roles, dict)
        return {role: counted.get("charged", 0) for role, counted in roles.items()}

    def spoiled(self) -> dict[str, int]:
        """Tokens charged for answers that nobody could read, by role."""
        roles = self.stats()["roles"]
        assert isinstance(roles, dict)
        return {role: counted["spoiled"] for role, counted in roles.items() if counted.get("spoiled")}

    def set(self, **knobs: object) -> None:
        """Changes how it answers."""
        self._ask("/knobs", knobs)

    def reset(self) -> None:
        """Forgets what it counted."""
        self._ask("/reset", {})

    def _ask(self, path: str, body: object = None) -> dict[str, object]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url.removesuffix("/v1") + path, data=data)
        with urllib.request.urlopen(request, timeout=30) as answer:
            found: dict[str, object] = json.load(answer)
            return found


@contextmanager
def serving(**knobs: object) -> Iterator[MockEndpoint]:
    """A mock endpoint for as long as the block runs."""
    words = [sys.executable, str(Path(__file__).with_name("serve.py")), "--knobs", json.dumps(knobs)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield MockEndpoint(process.stdout.readline().strip())
        finally:
            process.kill()
