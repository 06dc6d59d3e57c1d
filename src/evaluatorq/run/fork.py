"""Forks recorded conversations: kept up to the user's words of one turn, had anew from the agent's answer on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from evaluatorq.conversation.machine import apply, begin
from evaluatorq.errors import ConfigError
from evaluatorq.model.events import PAUSED, Event, Noted
from evaluatorq.model.runs import RunPlan
from evaluatorq.ports import Sink
from evaluatorq.run.clock import Clock, SystemClock
from evaluatorq.run.crew import Crew, seat_participants, world_of
from evaluatorq.run.engine import Engine, RunOptions, brief
from evaluatorq.run.outcome import RunOutcome
from evaluatorq.run.recover import Recovered, Recovery
from evaluatorq.store.journal import Journal


async def fork_plan(
    plan: RunPlan,
    prefixes: Mapping[int, Sequence[Event]],
    crew: Crew,
    options: RunOptions,
    sinks: Sequence[Sink] = (),
    clock: Clock | None = None,
) -> RunOutcome:
    """Runs a plan whose conversations begin with recorded events. The new journal holds them, so it stands alone.

    ``ConfigError`` for an agent that keeps a memory of its own: it was not there when the first turns were had.
    """
    await _check_memory(plan, crew)
    engine = Engine(plan, crew, options, sinks, clock or SystemClock())
    await brief(sinks, engine.scribe.plan)
    journal = Journal.create(engine.folder, engine.scribe.plan, sync=options.sync) if options.journal else None
    engine.scribe.journal = journal
    recovery = Recovery({row: _begun(engine, row, events) for row, events in prefixes.items()})
    return await engine.execute(journal, recovery)


def _begun(engine: Engine, row: int, events: Sequence[Event]) -> Recovered:
    """Writes the recorded beginning of a conversation into the new journal and stands at its end."""
    state = begin(engine.plan.datapoints[row], engine.plan.limits)
    origin = engine.plan.origin_of(row)
    put_aside = Noted(at=engine.clock.now(), what=PAUSED, data=origin.model_dump(mode="json") if origin else None)
    for event in (*events, put_aside):
        engine.scribe.write(row, event, state)
        state = apply(state, event)
    # The engine counts taking a conversation up as an attempt; this is the first one.
    return Recovered(replace(state, attempts=0), started=True, paused=True)


async def _check_memory(plan: RunPlan, crew: Crew) -> None:
    participants = await seat_participants(crew, plan, 0, lambda: world_of(crew, plan.datapoints[0], plan.seed, None))
    stateful = participants.target.stateful
    await participants.aclose()
    if stateful:
        raise ConfigError(
            f"{plan.target} keeps a memory of its own, so it cannot be put into the middle of a conversation; "
            "replay the cases from their beginning (sim simulate --from-run)"
        )
