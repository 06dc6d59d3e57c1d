"""W3C trace context for requests to an agent: that of the span which the conversation's turn is in."""

from __future__ import annotations

import sys


def trace_context() -> dict[str, str]:
    """The headers ``traceparent`` and so on; none unless OpenTelemetry is in use in this process and a span is open."""
    if "opentelemetry.trace" not in sys.modules:
        return {}
    from opentelemetry.propagate import inject  # noqa: PLC0415  only where it is in use already

    headers: dict[str, str] = {}
    inject(headers)
    return headers
