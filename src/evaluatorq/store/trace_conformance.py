"""Checks that a store of traces keeps its port: ``check_trace_store(open)`` raises ``BrokenTraceStore``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from pydantic import JsonValue

from evaluatorq.errors import StoreError
from evaluatorq.model.trace import TRACE_SCHEMA, Trace
from evaluatorq.ports import TraceQuery, TraceStore

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class BrokenTraceStore(AssertionError):  # noqa: N818  the verdict, not an error of the check
    """A store that does not keep the port."""


def check_trace_store(open_store: Callable[[], TraceStore]) -> None:
    """Writes six traces and asks for them in every way. ``open_store`` opens the same, at first empty, storage."""
    store = open_store()
    _require(store.get("r1:0") is None, "an empty store has a trace")
    _require(list(store.query(TraceQuery())) == [], "an empty store answers a query")
    traces = sample_traces()
    for trace in reversed(traces):
        _require(store.append(trace) is True, "a new trace was not kept as new")
    _require(store.append(traces[0]) is False, "the same trace was kept twice")
    _refuses_another(store, traces[0])
    for place in (store, open_store()):
        for trace in traces:
            found = place.get(trace.thread_id)
            _require(found is not None and found.document() == trace.document(), "a trace came back changed")
        for wanted, ids in EXPECTED:
            answer = [trace.thread_id for trace in place.query(wanted)]
            _require(answer == ids, f"{wanted} gave {answer}, not {ids}")
    second = open_store()
    _require(second.append(traces[1]) is False, "a second handle does not see what the first one wrote")
    _refuses_another(second, traces[1])


def _refuses_another(store: TraceStore, trace: Trace) -> None:
    other = trace.model_copy(update={"row": trace.row + 1})
    try:
        store.append(other)
    except StoreError:
        return
    raise BrokenTraceStore("another trace of the same conversation was accepted")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise BrokenTraceStore(otherwise)


# ---------------------------------------------------------------- what is written and asked


def sample_traces() -> list[Trace]:
    """Six small traces of two runs, by time and then by id."""
    return [
        _trace("r1", 0, 0, {"workflow_completed": True, "errors": 0, "goal_state_reached": True}),
        _trace("r1", 1, 0, {"workflow_completed": True, "errors": 0, "goal_state_reached": False}),
        _trace("r1", 2, 1, {"workflow_completed": False, "errors": 1}),
        _trace("r2", 0, 60, {"workflow_completed": True, "errors": 0}),
        _trace("r2", 1, 61, {"workflow_completed": False, "errors": 10}),
        _trace("r2", 2, 3600, {"workflow_completed": False, "errors": 0}),
    ]


EXPECTED: tuple[tuple[TraceQuery, list[str]], ...] = (
    (TraceQuery(), ["r1:0", "r1:1", "r1:2", "r2:0", "r2:1", "r2:2"]),
    (TraceQuery(run="r2"), ["r2:0", "r2:1", "r2:2"]),
    (TraceQuery(run="r"), []),
    (TraceQuery(labels={"workflow_completed": True}), ["r1:0", "r1:1", "r2:0"]),
    (TraceQuery(labels={"workflow_completed": 1}), []),
    (TraceQuery(labels={"errors": 1}), ["r1:2"]),
    (TraceQuery(labels={"errors": 1.0}), ["r1:2"]),
    (TraceQuery(labels={"errors": True}), []),
    (TraceQuery(labels={"goal_state_reached": False}), ["r1:1"]),
    (TraceQuery(labels={"workflow_completed": True, "goal_state_reached": True}), ["r1:0"]),
    (TraceQuery(labels={"no_such_label": True}), []),
    (TraceQuery(since=NOON + timedelta(seconds=60)), ["r2:0", "r2:1", "r2:2"]),
    (TraceQuery(until=NOON + timedelta(seconds=60)), ["r1:0", "r1:1", "r1:2"]),
    (TraceQuery(since=NOON.astimezone(), until=NOON + timedelta(microseconds=1)), ["r1:0", "r1:1"]),
    (TraceQuery(schema=TRACE_SCHEMA, run="r1", labels={"errors": 0}), ["r1:0", "r1:1"]),
    (TraceQuery(schema="evaluatorq.trace/0"), []),
)


def _trace(run: str, row: int, seconds: int, labels: Mapping[str, JsonValue]) -> Trace:
    at = (NOON + timedelta(seconds=seconds)).isoformat()
    limits: dict[str, JsonValue] = {}
    text = "naïve \u0000 \U0001f600 \\u0000 'quoted' \"twice\""
    return Trace.model_validate(
        {
            "schema": TRACE_SCHEMA,
            "thread_id": f"{run}:{row}",
            "row": row,
            "run": {
                "id": run, "name": text, "created_at": NOON.isoformat(), "mode": "simulate",
                "target": {"kind": "callback"}, "limits": limits, "seed": 0, "offline": True,
                "config_hash": "sha256:" + "0" * 64,
            },
            "datapoint": {"id": "dp", "fingerprint": "0"},
            "started": {"at": at, "attempt": 1, "has_environment": False},
            "input": {"text": text, "none": None},
            "steps": [],
            "outcome": {"labels": {"fallback_taken": False, **labels}},
            "verdicts": {"verdict": "unknown"},
            "totals": {"turns": 0, "calls": {}, "retries": 0, "usage": {}, "trainable_rows": 0, "masked_rows": 0},
        }
    )  # fmt: skip
