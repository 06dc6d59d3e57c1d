"""Replays a trace: does again what is deterministic, asks nobody else, and says precisely where it came out otherwise.

    from evaluatorq.replay import replay

    again = await replay(trace)                        # raises ReplayDrift at the first difference
    again = await replay(trace, live_tools=True)       # also calls the tools that may be repeated

Answers of models and of tools that must not be repeated come from the trace, always. Without ``live_tools`` nothing in
a replay may open a network connection.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import anyio

from evaluatorq import __version__
from evaluatorq.environments.registry import environment_for
from evaluatorq.errors import ConfigError, ReplayDrift, ReplayError
from evaluatorq.model.trace import Replayed, Trace
from evaluatorq.packs import find_pack
from evaluatorq.ports import Environment, EnvironmentFactory, UserFactory
from evaluatorq.records.drift import Drift, DriftKind, Mode, differences
from evaluatorq.records.trace import document_of
from evaluatorq.records.trace_events import datapoint_of
from evaluatorq.records.trace_saved import WITHOUT_JOURNAL
from evaluatorq.roles.scripted import offline_user
from evaluatorq.run.crew import seed_of
from evaluatorq.run.retrace import Retrace


@dataclass(frozen=True, slots=True)
class Replay:
    """What a replay came to: the trace made again, and how it differs from the recorded one.

    ``modes`` says of each step of the recording how it was had: done again, taken from the recording, run live, or
    skipped because it lies before the start. ``hint`` names a likely cause of differences.
    """

    trace: Trace
    drifts: tuple[Drift, ...]
    modes: dict[int, Mode]
    hint: str | None = None

    @property
    def drifted(self) -> bool:
        """Something is not as it was recorded."""
        return bool(self.drifts)

    def raise_for_drift(self) -> None:
        """Raises ``ReplayDrift`` with the first difference in its text and all of them in ``drifts``."""
        if self.drifts:
            more = f" (and {len(self.drifts) - 1} more)" if len(self.drifts) > 1 else ""
            hint = f"; {self.hint}" if self.hint else ""
            of = self.trace.replayed.of if self.trace.replayed else self.trace.thread_id
            raise ReplayDrift(f"{of}: {self.drifts[0]}{more}{hint}", self.drifts)


async def replay(
    trace: Trace,
    *,
    environment: EnvironmentFactory | None = None,
    live_tools: bool = False,
    start_at: int = 0,
    collect: bool = False,
) -> Replay:
    """Replays a trace from step ``start_at`` on.

    ``environment`` makes the world behind the tools (a registered one is found by its name); with ``live_tools`` its
    idempotent tools are called again and compared. With ``collect`` differences are returned instead of raised.

    Raises ``ReplayDrift`` for a difference, ``ReplayError`` for a start that is not possible and for a world that is
    needed and cannot be made.
    """
    if any(caveat.code == WITHOUT_JOURNAL for caveat in trace.caveats or ()):
        raise ReplayError(
            f"{trace.thread_id}: a trace made of a run file does not tell what was asked, so it has no replay"
        )
    datapoint = datapoint_of(trace)
    with _offline(allowed=live_tools):
        seed = seed_of(datapoint, trace.run.seed)
        world = _world(trace, environment, seed, needed=live_tools)
        run = Retrace(trace, world, seed, start_at, user=_user_of(trace))
        await run.run()
    drifts = [*run.drifts, *_document_drifts(trace, run)] if not _out_of_step(run) else run.drifts
    modes: dict[int, Mode] = dict(sorted(run.modes.items()))
    replayed = Replayed(
        of=trace.thread_id,
        modes={str(step): mode for step, mode in modes.items()},
        start_at=start_at or None,
        live_tools=True if live_tools else None,
    )
    again = document_of(run.walk, trace.run, f"{trace.thread_id}#replay", trace.row)
    found = Replay(again.model_copy(update={"replayed": replayed}), tuple(drifts), modes, _hint(trace, again))
    if not collect:
        found.raise_for_drift()
    return found


def replay_sync(
    trace: Trace,
    *,
    environment: EnvironmentFactory | None = None,
    live_tools: bool = False,
    start_at: int = 0,
    collect: bool = False,
) -> Replay:
    """``replay`` for scripts; inside a running event loop await ``replay`` instead."""

    async def run() -> Replay:
        return await replay(trace, environment=environment, live_tools=live_tools, start_at=start_at, collect=collect)

    return anyio.run(run)


# ---------------------------------------------------------------- the document as a whole


def _out_of_step(run: Retrace) -> bool:
    """The replay could not go on to the end, so what it came to says nothing more."""
    return any(
        drift.kind in ("missing_step", "extra_step") or drift.path == "/data/terminated_by" for drift in run.drifts
    )


def _document_drifts(trace: Trace, run: Retrace) -> Iterator[Drift]:
    """Differences in what the conversation came to, beside those in its steps."""
    again = document_of(run.walk, trace.run, trace.thread_id, trace.row).document()
    recorded = trace.document()
    for part in ("datapoint", "outcome", "verdicts", "totals", "snapshots", "states", "caveats"):
        for path, old, new in differences(recorded.get(part), again.get(part), f"/{part}"):
            kind: DriftKind = "terminal_drift" if path.startswith("/outcome/ter") else "result_drift"
            yield Drift(kind, None, path, old, new)


def _hint(recorded: Trace, now: Trace) -> str | None:
    """What may explain differences: another version of this package, another world."""
    causes = []
    version = (recorded.run.versions or {}).get("evaluatorq")
    if version not in (None, __version__):
        causes.append(f"it was recorded by evaluatorq {version}, this is {__version__}")
    old = recorded.environment.hash if recorded.environment else None
    new = now.environment.hash if now.environment else None
    if old != new:
        causes.append("the environment's hash is another one now")
    return " and ".join(causes) or None


# ---------------------------------------------------------------- user, world and network


def _user_of(trace: Trace) -> UserFactory:
    """Who spoke where no model did: a pack's own user, else the one of this package."""
    if trace.run.pack is None or not trace.run.offline or trace.run.own_user:
        return offline_user
    try:
        return find_pack(trace.run.pack).pack.user or offline_user
    except ConfigError as error:
        raise ReplayError(f"the simulated user came from a pack that is not here: {error}") from None


def _world(trace: Trace, factory: EnvironmentFactory | None, seed: int, *, needed: bool) -> Environment | None:
    """The world behind the tools, in its starting state."""
    if not needed or trace.started is None or not trace.started.has_environment:
        return None
    datapoint = datapoint_of(trace)
    if factory is not None:
        return factory(datapoint, seed)
    try:
        world = environment_for(datapoint, seed)
    except ConfigError as error:
        raise ReplayError(f"live tools need the world that the agent had: {error}; give environment=") from None
    if world is None:
        raise ReplayError(
            "live tools need the environment that the agent had, and the case names none; give environment="
        )
    return world


_FORBIDDEN: ContextVar[bool] = ContextVar("evaluatorq_replay_without_network", default=False)
_HOOKED: list[bool] = []


def _refuse_network(event: str, _arguments: tuple[object, ...]) -> None:
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto") and _FORBIDDEN.get():
        raise ReplayError("a replay without live tools tried to use the network")


@contextmanager
def _offline(*, allowed: bool) -> Iterator[None]:
    """Inside, opening a connection raises ``ReplayError``, unless it is allowed. An audit hook cannot be taken out
    again, so one is put in with the first replay and asks whether it is meant.
    """
    if not _HOOKED:
        sys.addaudithook(_refuse_network)
        _HOOKED.append(True)
    token = _FORBIDDEN.set(not allowed)
    try:
        yield
    finally:
        _FORBIDDEN.reset(token)


__all__ = ["Drift", "Replay", "replay", "replay_sync"]
