"""Runs a plan: workers pull conversations, every event goes to the journal first, the run file is written last.

Finished conversations leave memory for a spool; what stays is what is in flight and a few numbers a row. Whatever ends
the run early (Ctrl-C, a kill, a full disk, the run's own time limit) leaves a journal that ``resume`` goes on from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock

import anyio
import anyio.to_thread
from pydantic import JsonValue

from evaluatorq.conversation.machine import Conversation, Phase, apply, begin
from evaluatorq.errors import CallError, ConfigError, StoreError
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.events import MODELS, Ended, Event, Noted, Resumed, Scored, Started
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import NO_ANALYSIS, NOTHING_LEARNED, Analysis, RunPlan
from evaluatorq.pacing.budget import NO_LIMIT, Budget
from evaluatorq.ports import Attendant, Briefed, Sink
from evaluatorq.records.redaction import NOTHING_KNOWN, Redactor
from evaluatorq.records.result import result_of, with_scores
from evaluatorq.records.run import as_saved, run_header
from evaluatorq.run.brake import Brake
from evaluatorq.run.clock import Clock, SystemClock
from evaluatorq.run.collector import patient_collector
from evaluatorq.run.crew import (
    Crew,
    Participants,
    conversation_seed,
    seat_participants,
    snapshot_of,
    tools_of,
    world_of,
)
from evaluatorq.run.driver import Driver, Setting, waits_for
from evaluatorq.run.outcome import NOT_THE_AGENTS, Dropped, RunOutcome
from evaluatorq.run.recover import Recovered, Recovery, recover
from evaluatorq.run.score import expects_scores, score
from evaluatorq.run.scribe import Scribe
from evaluatorq.run.spool import Spool
from evaluatorq.run.status import RunStatus
from evaluatorq.run.workers import Workers
from evaluatorq.store.journal import Journal, JournalReader
from evaluatorq.store.paths import get_sim_runs_dir, journals_dir
from evaluatorq.store.runs import save_run

Conduct = Callable[[Conversation, Participants, Crew, Setting], Driver]
"""Makes the driver of one conversation."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run is carried out; nothing here changes what it finds.

    ``journal=False`` is the only way to run without one: then nothing can be resumed. ``keep`` holds all results in
    memory for the caller. ``sync`` puts every journal line on the medium before going on. ``retry_faults`` runs
    conversations again that ended by a fault of anybody but the agent; ``replaces`` is the run file to put anew.
    ``redactor`` keeps out of files what must not be written; what participants are asked and told it leaves as it is.
    ``cases`` are the datapoints of a run that is resumed and whose plan was redacted.
    """

    parallelism: int = 10
    save: bool = True
    journal: bool = True
    keep: bool = False
    sync: bool = False
    run_timeout_s: float | None = None
    budget: Budget = NO_LIMIT
    retry_faults: bool = False
    report_path: Path | None = None
    replaces: Path | None = None
    redactor: Redactor = NOTHING_KNOWN
    cases: tuple[SimulationDatapoint, ...] | None = None
    runs_dir: Path | None = None


async def run_plan(
    plan: RunPlan,
    crew: Crew,
    options: RunOptions,
    sinks: Sequence[Sink] = (),
    clock: Clock | None = None,
    conduct: Conduct = Driver,
) -> RunOutcome:
    """Runs every conversation of a new plan. Raises ``StoreError`` when its files cannot be written."""
    engine = Engine(plan, crew, options, sinks, clock or SystemClock(), conduct)
    await brief(sinks, engine.scribe.plan)
    journal = Journal.create(engine.folder, engine.scribe.plan, sync=options.sync) if options.journal else None
    return await engine.execute(journal, Recovery())


async def resume_plan(
    folder: Path,
    crew: Crew,
    options: RunOptions,
    sinks: Sequence[Sink] = (),
    clock: Clock | None = None,
    conduct: Conduct = Driver,
) -> RunOutcome:
    """Goes on with the run whose journal is in ``folder``: finished conversations are kept, only the rest is asked.

    ``ConfigError`` where the cases were redacted and ``options.cases`` does not give them again.
    """
    reader = JournalReader(folder)
    plan = reader.plan
    engine = Engine(_with_cases(plan, options), crew, options, sinks, clock or SystemClock(), conduct)
    if engine.scribe.plan.datapoints != plan.datapoints:
        raise ConfigError(f"these are not the cases of run {plan.run_id}, or the key of its pseudonyms is another")
    journal = Journal.reopen(folder, sync=options.sync)
    try:
        await brief(sinks, plan)
        recovery = recover(reader, plan, engine.is_complete, engine.restore)
    except BaseException:
        journal.close()
        raise
    return await engine.execute(journal, recovery)


def _with_cases(plan: RunPlan, options: RunOptions) -> RunPlan:
    if options.cases is not None:
        return plan.model_copy(update={"datapoints": options.cases, "redacted": False})
    if plan.redacted:
        raise ConfigError(
            f"the cases of run {plan.run_id} were redacted before they were written; give them again to go on "
            "(--input, or --personas with --scenarios)"
        )
    return plan


async def brief(sinks: Sequence[Sink], plan: RunPlan) -> None:
    """Shows watchers the plan before anything is asked; what one of them raises calls the run off."""
    for sink in sinks:
        if isinstance(sink, Briefed):
            sink.begun(plan)
        if isinstance(sink, Attendant):
            await sink.opened(plan)


def first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one exception to speak of where several tasks failed: that the disk is full goes before what follows."""
    faults = list(_leaves(group))
    return next((fault for fault in faults if isinstance(fault, StoreError)), faults[0])


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


class Engine:
    """One run of one plan in this process."""

    def __init__(
        self,
        plan: RunPlan,
        crew: Crew,
        options: RunOptions,
        sinks: Sequence[Sink],
        clock: Clock,
        conduct: Conduct = Driver,
    ) -> None:
        self.plan = plan
        self._conduct = conduct
        self.crew = crew
        self.options = options
        self.clock = clock
        self.runs_dir = options.runs_dir or get_sim_runs_dir()
        self.folder = journals_dir(self.runs_dir) / plan.run_id
        self._sinks = tuple(sinks)
        self._attendants = tuple(sink for sink in sinks if isinstance(sink, Attendant))
        self._spool = Spool(self.folder)
        self._kept: dict[int, SimulationResult] = {}
        self._dropped: dict[int, Dropped] = {}
        self._recovery = Recovery()
        self._learned = NOTHING_LEARNED
        self._writing = Lock()
        self._deadline: float | None = None
        self._workers: Workers | None = None
        self._brake = Brake(options.budget)
        self.scribe = Scribe(plan, sinks, options.redactor, self._brake)

    # ---------------------------------------------------------------- the run

    async def execute(self, journal: Journal | None, recovery: Recovery) -> RunOutcome:
        """Runs what is missing, then writes the run file; on a clean end the manifest says completed."""
        self.scribe.journal, self._recovery, self._learned = journal, recovery, recovery.learned
        self._brake.spend(self.plan.spent.total)
        for row, unfinished in recovery.unfinished.items():
            self._book(row, unfinished)
            self._take_back(row)
            self.scribe.numbers[row] = max(unfinished.lines, self.scribe.numbers[row])
        started = self.clock.seconds()
        if self.options.run_timeout_s is not None:
            self._deadline = started + self.options.run_timeout_s
        saved_to = self.runs_dir if self.options.save else None
        status = RunStatus(self.plan, saved_to, self.options.parallelism, self.clock, lambda: len(self._spool))
        outcome = RunOutcome(self.plan.run_id, self.plan.run_name, len(self.plan.datapoints))
        outcome.journal = self.folder if journal is not None else None
        outcome.damage = recovery.damage
        try:
            status.begin()
            with patient_collector():
                await self._run_workers(status)
            duration_s = recovery.active_s + self.clock.seconds() - started
            analysis = await self._analysis()
            await anyio.to_thread.run_sync(self._write, outcome, duration_s, analysis)
        except BaseExceptionGroup as group:
            error = first_of(group)
            status.failed(error)
            raise error from None
        except BaseException as error:
            with self._writing:  # a thread that puts the run file in place is not stopped by Ctrl-C
                if outcome.path is None:
                    status.failed(error)
                else:
                    status.completed(outcome)
            raise
        finally:
            if journal is not None:
                journal.close()
            with self._writing:
                self._spool.close()
        if outcome.interrupted:
            status.stopped(outcome.stopped_by)
        else:
            status.completed(outcome)
        return outcome

    async def _run_workers(self, status: RunStatus) -> None:
        begun = self._recovery.unfinished
        rows = [row for row in range(len(self.plan.datapoints)) if row in begun or row not in self._spool]
        async with anyio.create_task_group() as outer:
            outer.start_soon(status.beat)
            at_once = min(self.options.parallelism, len(self.plan.datapoints))
            self._workers = Workers(rows, at_once, self._converse, self._begins_no_more)
            await self._workers.work()
            outer.cancel_scope.cancel()

    def _begins_no_more(self) -> bool:
        is_late = self._deadline is not None and self.clock.seconds() >= self._deadline
        return self._brake.reason is not None or is_late

    async def _analysis(self) -> Analysis:
        """What the analyst makes of a complete run."""
        if self.crew.analyst is None or len(self._spool) < len(self.plan.datapoints):
            return NO_ANALYSIS
        analysis = await self.crew.analyst.conclude(range(len(self.plan.datapoints)), self._spool.read)
        return self.options.redactor.analysis(analysis)

    def _write(self, outcome: RunOutcome, duration_s: float, analysis: Analysis) -> None:
        with self._writing:
            self._finish(outcome, duration_s, analysis)

    def _finish(self, outcome: RunOutcome, duration_s: float, analysis: Analysis) -> None:
        outcome.finished = len(self._spool)
        outcome.verdicts = self._spool.verdicts()
        outcome.dropped = [self._dropped[row] for row in sorted(self._dropped)]
        outcome.interrupted = outcome.finished < outcome.total
        outcome.header = run_header(
            self.scribe.plan,
            self._spool.summaries(),
            duration_s=round(duration_s, 3),
            analysis=analysis,
            learned=self._learned | self.crew.learned(),
        )
        outcome.results = [self._kept[row] for row in sorted(self._kept)]
        if outcome.interrupted:
            outcome.stopped_by = self._brake.reason or "the run's time limit"
            return
        if self.options.save:
            stamp = self.clock.now()
            outcome.path = save_run(
                outcome.header, self._spool.documents(), self.runs_dir, stamp, self.options.replaces
            ).resolve()
        if self.options.report_path is not None:
            report = save_run(
                outcome.header, self._spool.documents(), self.runs_dir, self.clock.now(), self.options.report_path
            )
            outcome.path = outcome.path or report.resolve()

    # ---------------------------------------------------------------- one conversation

    async def _converse(self, row: int) -> None:
        datapoint = self.plan.datapoints[row]
        recovered = self._recovery.unfinished.pop(row, None) or Recovered(begin(datapoint, self.plan.limits))
        recovered.state = replace(recovered.state, datapoint=datapoint)
        if not recovered.is_over or self._retries(recovered.state):
            recovered.state = await self._drive(row, recovered)
            recovered.scores.clear()
            if recovered.state.phase is not Phase.OVER:
                return
            self._note_models(row, recovered.state)
            result = result_of(recovered.state, thread_id=self.plan.thread_id(row), row=row)
            kept = self.scribe.record(row, result, self.clock.now())
        else:
            result = kept = self._record_of(row, recovered)
        missing = [evaluator for evaluator in self.crew.evaluators if evaluator.name not in recovered.scores]
        for scored in await score(missing, with_scores(result.model_copy(), recovered.scores.values()), self.clock):
            written = self.scribe.write(row, scored, recovered.state)
            assert isinstance(written, Scored), "a score is written as a score"
            recovered.scores[scored.evaluator] = written
        self._put_away(row, kept, recovered.scores.values())
        for attendant in self._attendants:
            await attendant.closed(kept)

    def _record_of(self, row: int, recovered: Recovered) -> SimulationResult:
        """The record of a conversation that an earlier process drove to its end."""
        return recovered.record or result_of(recovered.state, thread_id=self.plan.thread_id(row), row=row)

    def _note_models(self, row: int, state: Conversation) -> None:
        """Writes down what the models turned out to take, where this conversation may have taught more of it."""
        learned = self._learned | self.crew.learned()
        if learned != self._learned:
            self._learned = learned
            self.scribe.write(row, Noted(at=self.clock.now(), what=MODELS, data=learned.model_dump(mode="json")), state)

    async def _drive(self, row: int, recovered: Recovered) -> Conversation:
        """Drives a conversation to its end; a fault of ours ends it with a name instead of ending the run."""
        state = recovered.state
        try:
            participants, event = await self._seat(row, recovered)
        except CallError as error:
            return self._fail(row, state, error)
        setting = Setting(
            self.plan.thread_id(row),
            partial(self.scribe.write, row),
            self.clock,
            self._brake,
            partial(self._attend, row) if self._attendants else None,
            self._workers.one_waits if self._workers is not None else None,
        )
        driver = self._conduct(state, participants, self.crew, setting)
        try:
            self.scribe.write(row, event, state)
            driver.state = apply(state, event)
            await self._attend(row, driver.state)
            return await driver.drive(self._time_left())
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  a fault of ours ends one conversation, not the run
            fault = CallError("internal_error", f"{type(error).__name__}: {error}", component="infrastructure")
            return self._fail(row, driver.state, fault)
        finally:
            await participants.aclose()

    async def _seat(self, row: int, recovered: Recovered) -> tuple[Participants, Event]:
        """The participants, and the event that says how they begin."""
        state = recovered.state
        participants = await self._seated(row, state.environment.state if recovered.started else None)
        restart = recovered.started and (
            participants.target.stateful or recovered.broken or recovered.redacted or state.phase is Phase.OVER
        )
        if restart:
            await participants.aclose()
            participants = await self._seated(row, None)
        else:
            participants.remind(recovered.unusable)
        try:
            return participants, self._beginning(participants, recovered, restart=restart)
        except CallError:
            await participants.aclose()
            raise

    async def _seated(self, row: int, world: JsonValue) -> Participants:
        datapoint, seed = self.plan.datapoints[row], conversation_seed(self.plan, row)
        return await seat_participants(self.crew, self.plan, row, lambda: world_of(self.crew, datapoint, seed, world))

    def _beginning(self, participants: Participants, recovered: Recovered, *, restart: bool) -> Event:
        world, now = participants.environment, self.clock.now()
        if not recovered.started:
            return Started(at=now, state=snapshot_of(world), has_environment=world is not None, tools=tools_of(world))
        lost = None if recovered.paused else waits_for(recovered.state)
        return Resumed(
            at=now,
            attempt=recovered.state.attempts + 1,
            restart=restart,
            lost=lost if lost in self.crew.metered else None,
            state=snapshot_of(world) if restart else None,
            has_environment=world is not None,
        )

    def _fail(self, row: int, state: Conversation, error: CallError) -> Conversation:
        ended = Ended(
            at=self.clock.now(),
            terminated_by="error",
            ended_by="error",
            reason=error.message,
            failed_component=error.component or "infrastructure",
            error_type=error.code,
        )
        self.scribe.write(row, ended, state)
        return apply(state, ended)

    def _time_left(self) -> float | None:
        limits = [] if self.crew.conversation_timeout_s is None else [self.crew.conversation_timeout_s]
        if self._deadline is not None:
            limits.append(max(0.0, self._deadline - self.clock.seconds()))
        return min(limits, default=None)

    async def _attend(self, row: int, state: Conversation) -> None:
        for attendant in self._attendants:
            await attendant.followed(self.plan.thread_id(row), state)

    # ---------------------------------------------------------------- finished conversations

    def is_complete(self, recovered: Recovered) -> bool:
        """Nothing of this conversation can be missing: it ended, and every score that it gets is there."""
        if self._retries(recovered.state):
            return False
        names = {evaluator.name for evaluator in self.crew.evaluators}
        return not expects_scores(recovered.state) or names <= recovered.scores.keys()

    def restore(self, row: int, recovered: Recovered) -> None:
        """Puts away a conversation that an earlier process finished."""
        self._book(row, recovered)
        self._put_away(row, self._record_of(row, recovered), recovered.scores.values())

    def _book(self, row: int, recovered: Recovered) -> None:
        """Counts what an earlier process spent on a conversation; what an attempt that ended cost was counted then."""
        spent = recovered.state.usage
        self._brake.spend(spent - self._spool.read(row).token_usage if row in self._spool else spent)

    def _take_back(self, row: int) -> None:
        """What an earlier attempt came to no longer counts once the conversation was begun again."""
        self._spool.discard(row)
        self._kept.pop(row, None)
        self._dropped.pop(row, None)

    def _retries(self, state: Conversation) -> bool:
        """The conversation ended by a fault that was not the agent's, and such are to be run again."""
        ended = state.ended
        return self.options.retry_faults and ended is not None and ended.failed_component in NOT_THE_AGENTS

    def _put_away(self, row: int, result: SimulationResult, scores: Iterable[Scored]) -> None:
        as_saved(self.plan, row, result, scores)
        self._spool.add(row, result)
        if self.options.keep:
            self._kept[row] = result
        self._dropped.pop(row, None)
        if result.errored:
            code = str(result.metadata.get("error_type") or "internal_error")
            self._dropped[row] = Dropped(row, result.failed_component, code, result.reason)
        for sink in self._sinks:
            sink.finished(result)
