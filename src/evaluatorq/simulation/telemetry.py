"""Who else watches a run because its options say so: OpenTelemetry, where ``otel`` asks for spans."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from evaluatorq.errors import ConfigError
from evaluatorq.ports import Sink
from evaluatorq.simulation.config import SimulationConfig


def with_telemetry(config: SimulationConfig, sinks: Sequence[Sink]) -> list[Sink]:
    """The sinks of a run and what its options add. ``ConfigError`` when the extra ``otel`` is not installed."""
    if not config.otel:
        return list(sinks)
    if find_spec("opentelemetry") is None:
        raise ConfigError("otel needs OpenTelemetry: pip install 'evaluatorq[otel]'")
    from evaluatorq.otel import OpenTelemetrySink, provider_from_environment  # noqa: PLC0415  an optional library

    return [*sinks, OpenTelemetrySink(provider_from_environment())]
