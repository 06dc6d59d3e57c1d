"""Serves the tools of a run's worlds over MCP while the run goes on, where the options ask for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from evaluatorq.errors import ConfigError
from evaluatorq.run.crew import Crew
from evaluatorq.simulation.config import SimulationConfig


@asynccontextmanager
async def served(crew: Crew, config: SimulationConfig) -> AsyncIterator[Crew]:
    """The crew, each of whose targets is told where its conversation's tools are served."""
    if not config.serve_tools:
        yield crew
        return
    try:
        from evaluatorq.environments.serving import tools_over_http  # noqa: PLC0415  needs an extra
    except ImportError as error:
        raise ConfigError(f"serve_tools needs the extra: pip install 'evaluatorq[mcp]' ({error.name})") from None
    async with tools_over_http() as urls:
        yield replace(crew, serve=urls.url_for)
