"""A store of one's own as an option: an object, a class, a name; and what is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluatorq.errors import ConfigError
from evaluatorq.model.observation import TurnReport
from evaluatorq.ports import EventPage, LedgerEvent, ObservedTurn, Seat
from evaluatorq.simulation.api import simulate
from evaluatorq.simulation.sources import source_of
from evaluatorq.testing import a_persona, a_scenario


class Store:
    def __init__(self, seat: Seat | None = None) -> None:
        self.seat = seat

    async def collect(self, turn: ObservedTurn) -> TurnReport:
        return TurnReport(turn_id=None if self.seat is None else self.seat.thread_id)

    async def page(self, turn: ObservedTurn, after: str | None) -> EventPage:
        return EventPage(tuple(LedgerEvent(kind) for kind in "abc") if after is None else (), "1")


def hello(messages: object) -> str:
    return "Hello, how can I help?"


async def run(source: object, **options: object) -> list[object]:
    results = await simulate(
        target=hello, personas=[a_persona(background="x")], scenarios=[a_scenario()], offline=True, max_turns=1,
        observation_source=source, **options,  # type: ignore[arg-type]
    )  # fmt: skip
    return list(results[0].observations)


@pytest.mark.parametrize("source", [Store(), Store])
async def test_a_store_is_an_object_or_made_for_each_conversation(source: object) -> None:
    (seen,) = await run(source)
    assert seen.events == ("a", "b", "c")  # type: ignore[attr-defined]
    assert (seen.turn_id is None) == isinstance(source, Store)  # type: ignore[attr-defined]


async def test_what_makes_a_store_need_not_take_a_seat() -> None:
    class Plain(Store):
        def __init__(self) -> None:
            super().__init__()

    for source in (Plain, lambda: Plain()):  # noqa: PLW0108  a function is meant
        (seen,) = await run(source)
        assert seen.events == ("a", "b", "c")  # type: ignore[attr-defined]


async def test_a_store_can_be_named_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    (seen,) = await run("test_sources:Store", max_observed_events=2)
    assert (seen.events, seen.events_truncated) == (("a", "b"), True)  # type: ignore[attr-defined]


def test_what_is_no_store_is_refused() -> None:
    with pytest.raises(ConfigError, match="is no store; give an object with collect"):
        source_of(7)
    assert source_of(None) is None
