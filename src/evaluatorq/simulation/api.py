"""What ``simulate()`` and the commands run on: from options to a run, and from a run to results in datapoint order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from evaluatorq.errors import ConfigError, RunNotFound, SimulationDroppedError
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import RunPlan, SimulationRun
from evaluatorq.pacing.budget import Budget
from evaluatorq.ports import Sink
from evaluatorq.records.redaction import Redactor
from evaluatorq.roles.secrecy import check_secrets
from evaluatorq.run.clock import SystemClock
from evaluatorq.run.crew import Crew, try_worlds
from evaluatorq.run.driver import Driver
from evaluatorq.run.engine import RunOptions, resume_plan, run_plan
from evaluatorq.run.outcome import RunOutcome
from evaluatorq.simulation.assemble import TargetFacts, assembled, cases_of, plan_of, redaction_rules
from evaluatorq.simulation.config import INPUTS, TARGETS, SimulationConfig
from evaluatorq.simulation.entry import simulate, simulate_sync
from evaluatorq.simulation.models import model_credentials
from evaluatorq.simulation.privacy import redactor_for
from evaluatorq.simulation.recording import must_be_given_again
from evaluatorq.simulation.report_files import check_outputs, is_file_name, write_outputs
from evaluatorq.simulation.served import served
from evaluatorq.simulation.telemetry import with_telemetry
from evaluatorq.store.journal import JournalReader
from evaluatorq.store.paths import sanitise_run_name
from evaluatorq.store.runs import find_journal, find_run

__all__ = [
    "SimulationResults",
    "check_outcome",
    "concluded",
    "redactor_of",
    "report_file",
    "resume_simulation",
    "resumed_config",
    "run_options",
    "run_simulation",
    "saved_as",
    "simulate",
    "simulate_sync",
]


class SimulationResults(list[SimulationResult]):
    """The results of a run in datapoint order, with the run itself and where it is saved (``None`` when it is not)."""

    def __init__(self, results: Iterable[SimulationResult], run: SimulationRun, path: Path | None) -> None:
        super().__init__(results)
        self.run = run
        self.path = path


def check_outcome(config: SimulationConfig, outcome: RunOutcome) -> SimulationRun:
    """The run; raises ``SimulationDroppedError`` where conversations are missing or broke off."""
    run = outcome.read()
    if outcome.interrupted:
        raise _dropped(f"{outcome.finished} of {outcome.total} conversations finished", outcome, run)
    if outcome.dropped and config.raise_on_execution_failure:
        raise _dropped(_whose_fault(outcome), outcome, run)
    return run


def concluded(config: SimulationConfig, outcome: RunOutcome) -> SimulationResults:
    """The results of a run that was kept in memory; raises where conversations are missing or broke off."""
    run = check_outcome(config, outcome)
    if not config.save:
        outcome.forget_journal()
    return SimulationResults(run.results, run, outcome.path)


async def run_simulation(config: SimulationConfig, *, sinks: Sequence[Sink] = (), keep: bool = False) -> RunOutcome:
    """Runs what ``config`` describes; ``sinks`` watch it. With ``keep`` the outcome holds all results in memory."""
    check_outputs(config)
    cases = cases_of(config)
    check_secrets(cases.datapoints)
    async with assembled(config) as assembly, served(assembly.crew, config) as crew:
        plan = plan_of(config, cases, assembly, now=SystemClock().now())
        await try_worlds(plan, crew)
        options = replace(run_options(config, plan, keep=keep), redactor=redactor_of(config, crew, plan))
        outcome = await run_plan(plan, crew, options, with_telemetry(config, sinks))
    await write_outputs(outcome, config)
    return outcome


async def resume_simulation(
    reference: str,
    *,
    sinks: Sequence[Sink] = (),
    overrides: Mapping[str, object] | None = None,
    keep: bool = False,
    retry_faults: bool = False,
) -> RunOutcome:
    """Goes on with an unfinished run: only what is missing is asked. ``overrides`` replace options of the first start.

    A run whose agent was an object of an earlier process needs ``overrides={"target": ...}``. ``retry_faults`` also
    begins those conversations again that ended by a fault of the simulated user, the judge, the environment or the
    infrastructure; a complete run's file is then replaced.
    """
    folder = find_journal(reference)
    plan = JournalReader(folder).plan
    config = resumed_config(plan, overrides or {})
    check_outputs(config)
    async with assembled(config) as assembly, served(assembly.crew, config) as given:
        from evaluatorq.simulation.made_from import recording_of  # noqa: PLC0415  runs of their own play no recording

        _check_same_agent(plan, assembly.target)
        recording = recording_of(plan)
        crew, conduct = (given, Driver) if recording is None else (recording.crew(given), recording.conduct)
        if recording is None:
            await try_worlds(plan, crew)
        options = replace(
            run_options(config, plan, keep=keep),
            retry_faults=retry_faults,
            replaces=saved_as(plan.run_id),
            redactor=redactor_of(config, crew, plan),
            cases=_given_cases(plan, overrides or {}),
        )
        watchers = with_telemetry(config, sinks)
        outcome = await resume_plan(folder, crew, options, watchers, conduct=conduct)
    await write_outputs(outcome, config)
    return outcome


def _check_same_agent(plan: RunPlan, target: TargetFacts) -> None:
    """One run is one agent: an agent of another name would be credited with what the first one said."""
    played = plan.origin is not None and plan.origin.kind == "rejudge"
    if not played and must_be_given_again(plan.config) != "target" and target.name != plan.target:
        raise ConfigError(
            f"the run's agent is {plan.target}, not {target.name}; test another one in a run of its own (--from-run)"
        )


def redactor_of(config: SimulationConfig, crew: Crew | None, plan: RunPlan) -> Redactor:
    """What keeps out of the run's files what its options, its cases and its agent's credentials say."""
    held: object = () if crew is None else getattr(crew.target, "secrets", ())
    secrets = (*(held if isinstance(held, tuple) else ()), *model_credentials(config))
    scenarios = (datapoint.scenario for datapoint in plan.datapoints)
    return redactor_for(redaction_rules(config), secrets, scenarios)


def _given_cases(plan: RunPlan, overrides: Mapping[str, object]) -> tuple[SimulationDatapoint, ...] | None:
    """The cases that are given again, for a run that did not write them as they are."""
    if not any(name in overrides for name in INPUTS):
        return None
    recorded = {name: value for name, value in plan.config.items() if name not in INPUTS}
    return cases_of(
        SimulationConfig.parse({**recorded, "target": "demo", "openai_model": None, **overrides})
    ).datapoints


def saved_as(run_id: str) -> Path | None:
    """The run file of a run that is complete already."""
    try:
        return find_run(run_id)
    except RunNotFound:
        return None


def resumed_config(plan: RunPlan, overrides: Mapping[str, object]) -> SimulationConfig:
    """The options that a run was started with, its datapoints fixed by the plan."""
    from evaluatorq.simulation.orders import OrderOptions  # noqa: PLC0415  a new run orders no cases

    options = resumed_options(plan, overrides, without={*INPUTS, *OrderOptions.model_fields})
    return SimulationConfig.parse({**options, "datapoints": plan.datapoints}, where=f"run {plan.run_id}")


def resumed_options(
    plan: RunPlan, overrides: Mapping[str, object], *, without: Collection[str] = ()
) -> dict[str, object]:
    """What a run was asked for, and what is asked for now over it. ``ConfigError`` for what has to be given again."""
    displaced = {*without}
    if any(name in overrides for name in TARGETS):
        displaced |= set(TARGETS) - overrides.keys()
    recorded = {name: value for name, value in {**plan.config, **overrides}.items() if name not in displaced}
    lost = must_be_given_again({name: value for name, value in plan.config.items() if name not in overrides})
    if lost is not None and lost in recorded:
        raise ConfigError(
            f"the run's {lost} was {plan.config[lost]!r}, which this process cannot make; give {lost} again (--{lost})"
        )
    if not any(recorded.get(name) for name in (*TARGETS, "pack")):
        recorded["target"] = "demo"
    return recorded


def run_options(config: SimulationConfig, plan: RunPlan, *, keep: bool) -> RunOptions:
    """How the run is carried out."""
    return RunOptions(
        parallelism=config.datapoint_parallelism,
        save=config.save,
        journal=config.journal,
        sync=config.sync,
        keep=keep,
        run_timeout_s=config.run_timeout_s,
        budget=Budget(config.max_total_tokens, config.max_cost),
        report_path=report_file(config.report_path, plan),
    )


def report_file(path: Path | None, plan: RunPlan) -> Path | None:
    """A report's file: the path itself, or a file in it."""
    if path is None or is_file_name(path):
        return path
    return path / f"sim-report-{sanitise_run_name(plan.run_name)}-{plan.created_at:%Y%m%d-%H%M%S}.json"


def _whose_fault(outcome: RunOutcome) -> str:
    first = outcome.dropped[0]
    who = (first.component or "infrastructure").replace("_", " ")
    return (
        f"{len(outcome.dropped)} of {outcome.total} conversations ended in error or timeout; the first, "
        f"#{first.row}, by the {who} ({first.code}): {first.reason}"
    )


def _dropped(message: str, outcome: RunOutcome, run: SimulationRun) -> SimulationDroppedError:
    where = outcome.path or outcome.journal
    place = f"; everything is kept in {where}" if where else ""
    return SimulationDroppedError(f"{message}{place}", partial_results=list(run.results), run=run, path=outcome.path)
