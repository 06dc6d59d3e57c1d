"""Who else watches a run because its options say so: OpenTelemetry, where ``otel`` asks for spans."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib.util import find_spec

from evaluatorq.errors import ConfigError
from evaluatorq.ports import Sink
from evaluatorq.simulation.config import SimulationConfig


def with_telemetry(config: SimulationConfig, sinks: Sequence[Sink]) -> list[Sink]:
    """The sinks of a run and what its options add. ``ConfigError`` when the extra ``otel`` is not installed; a warning
    where spans would go nowhere.
    """
    if not config.otel:
        return list(sinks)
    if find_spec("opentelemetry") is None:
        raise ConfigError("otel needs OpenTelemetry: pip install 'evaluatorq[otel]'")
    from evaluatorq import otel  # noqa: PLC0415  an optional library

    provider = otel.provider_from_environment()
    if provider is None and not otel.has_provider():
        text = f"otel has no effect: this process has no OpenTelemetry provider, and {otel.ENDPOINTS[0]} is not set"
        warnings.warn(text, UserWarning, stacklevel=3)
    return [*sinks, otel.OpenTelemetrySink(provider)]
