"""All models of one run: one transport, what each endpoint refused, and one limiter per endpoint."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from evaluatorq.llm.endpoint import Endpoint, Sampling
from evaluatorq.pacing.limits import LimiterOptions
from evaluatorq.ports import ChatModel


class ModelPool:
    """Hands out models that share connections, limits and what was learned about their endpoints."""

    def model(self, name: str, endpoint: Endpoint | None = None, sampling: Sampling | None = None) -> ChatModel:
        """The model ``name`` at ``endpoint`` (default: the environment's). Raises ``MissingLLMCredentialsError``."""
        raise NotImplementedError

    def dropped(self) -> dict[str, list[str]]:
        """What endpoints refused and the calls went on without, by ``model @ base URL``: for the run file."""
        raise NotImplementedError


@asynccontextmanager
async def open_models(
    max_connections: int, timeout_s: float = 120.0, *, limits: LimiterOptions | None = None, plain: bool = False
) -> AsyncIterator[ModelPool]:
    """The models of one run, closed at the end. ``timeout_s`` holds for each request, waiting for a slot excluded.

    ``plain`` keeps to httpx's own transport, which is slower with many requests in flight.
    """
    del max_connections, timeout_s, limits, plain
    yield ModelPool()
