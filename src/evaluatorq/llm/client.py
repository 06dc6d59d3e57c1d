"""All models of one run: one HTTP client, one limiter per endpoint, and what each model turned out not to accept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

from evaluatorq.llm.abilities import Abilities
from evaluatorq.llm.chat import OpenAIChat
from evaluatorq.llm.endpoint import Endpoint, Sampling, endpoint_from_environment
from evaluatorq.llm.handles import fitting
from evaluatorq.pacing.limits import EndpointLimiter, LimiterOptions

if TYPE_CHECKING:
    from evaluatorq.llm.transport import Wire


class ModelPool:
    """Hands out models that share connections, limits and lessons."""

    def __init__(self, wire: Wire, max_connections: int, limits: LimiterOptions | None = None) -> None:
        self.wire = wire
        self._wanted = max_connections
        self._limits = limits
        self._limiters: dict[str, EndpointLimiter] = {}
        self._abilities: dict[tuple[str, str], Abilities] = {}

    def model(
        self,
        name: str,
        endpoint: Endpoint | None = None,
        sampling: Sampling | None = None,
        *,
        timeout_s: float | None = None,
    ) -> OpenAIChat:
        """The model ``name`` at ``endpoint``, by default the one that the environment names now.

        ``timeout_s`` is for each request, by default the pool's. Raises ``MissingLLMCredentialsError`` when the
        endpoint needs a key and none is set.
        """
        endpoint = endpoint or endpoint_from_environment()
        return OpenAIChat(
            name,
            endpoint,
            sender=self.wire,
            limiter=self.limiter(endpoint.base_url),
            abilities=self._abilities.setdefault((endpoint.base_url, name), Abilities()),
            sampling=sampling,
            timeout_s=timeout_s,
        )

    def limiter(self, base_url: str) -> EndpointLimiter:
        """The limiter that all calls to ``base_url`` share."""
        if base_url not in self._limiters:
            self._limiters[base_url] = EndpointLimiter(self._wanted, self._limits)
            self._share_file_handles()
        return self._limiters[base_url]

    def dropped(self) -> dict[str, list[str]]:
        """What was refused and the calls went on without, by model and endpoint: for the run file."""
        return {_label(*key): known.dropped for key, known in self._abilities.items() if known.dropped}

    def answer_forms(self) -> dict[str, str]:
        """How structured answers are asked for where it is known to work, by model and endpoint: for the run file."""
        return {_label(*key): a.form.name.lower() for key, a in self._abilities.items() if a.form_works}

    def _share_file_handles(self) -> None:
        """Each endpoint keeps connections of its own open, so they share what the process may hold."""
        endpoints = len(self._limiters)
        room = fitting(self._wanted * endpoints)
        for limiter in self._limiters.values():
            limiter.lower_cap(room // endpoints)


@lru_cache(maxsize=256)
def _label(base_url: str, name: str) -> str:
    """How a run file names the model; asked for after each conversation."""
    return f"{name} @ {Endpoint(base_url).shown}"


@asynccontextmanager
async def open_models(
    max_connections: int, timeout_s: float = 120.0, *, limits: LimiterOptions | None = None, plain: bool = False
) -> AsyncIterator[ModelPool]:
    """The models of one run, closed at the end. ``timeout_s`` is for each request, waiting for a slot not counted.

    At most ``max_connections`` requests are under way at one endpoint. ``plain`` keeps to httpx's own transport, which
    costs more with many requests in flight (see ``evaluatorq.llm.transport``).
    """
    from evaluatorq.llm.transport import open_wire  # noqa: PLC0415  loads httpx, which naming models does not need

    async with open_wire(max_connections, timeout_s, plain=plain) as wire:
        yield ModelPool(wire, max_connections, limits)
