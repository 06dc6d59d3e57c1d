"""Asks the store behind an agent what a turn left, and reads its ledger page by page to the end.

Whatever goes wrong while reading becomes the report's ``read_error``: what could not be read is not absent.
"""

from __future__ import annotations

import anyio

from evaluatorq.model.observation import TurnReport
from evaluatorq.ports import ObservationSource, ObservedTurn

LONGEST_READ_S = 60.0


async def observe(source: ObservationSource, turn: ObservedTurn, max_events: int | None) -> TurnReport:
    """The report with the events that belong to the turn; ``max_events`` is the only bound, and reaching it shows."""
    try:
        with anyio.fail_after(LONGEST_READ_S):
            report = await source.collect(turn)
            if report.events is not None:
                return _bounded(report, list(report.events), max_events)
            return _bounded(report, await _read_ledger(source, turn, max_events), max_events)
    except TimeoutError:
        return TurnReport(read_error="the store did not answer in time")
    except Exception as error:  # noqa: BLE001  whatever a store raises is why its facts are not known
        return TurnReport(read_error=f"{type(error).__name__}: {error}".removesuffix(": "))


async def _read_ledger(source: ObservationSource, turn: ObservedTurn, max_events: int | None) -> list[str]:
    """The types of the turn's events in order; one more than ``max_events`` where there are more."""
    kept: list[str] = []
    after: str | None = None
    while True:
        page = await source.page(turn, after)
        kept += [event.type for event in page.events if event.belongs]
        if not page.events or (max_events is not None and len(kept) > max_events):
            return kept
        if page.cursor is None or page.cursor == after:
            raise ValueError("a page with events gave no new cursor, so what follows cannot be read")
        after = page.cursor


def _bounded(report: TurnReport, events: list[str], max_events: int | None) -> TurnReport:
    cut = max_events is not None and len(events) > max_events
    return report.model_copy(
        update={"events": tuple(events[:max_events]), "events_truncated": report.events_truncated or cut}
    )
