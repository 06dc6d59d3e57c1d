"""How many calls one endpoint gets at a time, and how fast (interface; the adaptive part follows)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LimiterOptions:
    """What one endpoint may be asked for. ``None`` sets no limit.

    Requests are spaced evenly; tokens are booked when an answer arrives, so calls in flight may overshoot once.
    """

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
