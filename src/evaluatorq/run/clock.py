"""Time, injected: wall time for records, monotonic time for durations."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Two clocks: what to write down, and what to measure with."""

    def now(self) -> datetime:
        """The present moment, in UTC."""
        ...

    def seconds(self) -> float:
        """A monotonic reading; only differences mean something."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        """The present moment, in UTC."""
        return datetime.now(UTC)

    def seconds(self) -> float:
        """The monotonic clock."""
        return time.perf_counter()
