"""Saved runs again, from Python: compared, gated, proved, forked, judged and scored anew.

    from evaluatorq.simulation.again import compare
    print(compare("before", "after").headline)

A run is named as everywhere: ``latest``, a run id (8 or more characters), a name or a file.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from evaluatorq.errors import ConfigError, ReplayError
from evaluatorq.evaluators.registry import resolve_evaluators
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.results import Origin
from evaluatorq.model.runs import RunPlan, SimulationRun
from evaluatorq.ports import Sink
from evaluatorq.records.compare import Comparison, compare_facts
from evaluatorq.records.facts import RunFacts, run_facts
from evaluatorq.records.gate import gate as decide
from evaluatorq.records.gate_rules import GateReport, GateRules
from evaluatorq.records.recorded import up_to_turn
from evaluatorq.run.clock import SystemClock
from evaluatorq.run.crew import try_worlds
from evaluatorq.run.engine import run_plan
from evaluatorq.run.fork import fork_plan
from evaluatorq.run.outcome import RunOutcome
from evaluatorq.run.past import Past
from evaluatorq.run.rebuild import rebuild as rebuild_file
from evaluatorq.run.rescore import rescore as rescore_file
from evaluatorq.run.verify import Verification, verify_run
from evaluatorq.simulation.api import SimulationResults, redactor_of, resumed_config, run_options
from evaluatorq.simulation.assemble import Assembly, Cases, assembled, plan_of
from evaluatorq.simulation.config import SimulationConfig
from evaluatorq.simulation.made_from import recording_for
from evaluatorq.simulation.report_files import write_outputs
from evaluatorq.simulation.served import served
from evaluatorq.simulation.telemetry import with_telemetry
from evaluatorq.store.run_facts import find_facts
from evaluatorq.store.runs import find_run

Run = str | PathLike[str] | SimulationRun | SimulationResults
"""A run by its name, or in hand."""


# ---------------------------------------------------------------- looking at saved runs


def compare(a: Run, b: Run, *, control: Run | None = None) -> Comparison:
    """B compared with A, case by case. ``control`` is a second run of A's agent: what differs there is noise."""
    return compare_facts(facts_of(a), facts_of(b), None if control is None else facts_of(control))


def gate(run: Run, rules: Mapping[str, object] | None = None, *, baseline: Run | None = None) -> GateReport:
    """Whether a run is good enough, by ``rules`` (the fields of ``GateRules``) or as the output reference's snippet."""
    asked = GateRules.parse(rules or {})
    before = baseline if baseline is not None else asked.baseline
    facts = facts_of(run)
    return decide(facts, asked, None if before is None else compare_facts(facts_of(before), facts))


def facts_of(run: Run) -> RunFacts:
    """The facts of a run."""
    match run:
        case SimulationRun():
            return run_facts(run, run.datapoints or (), run.results)
        case SimulationResults():
            return run_facts(run.run, run.run.datapoints or (), run)
    return find_facts(str(run))


def verify(reference: str) -> Verification:
    """Proves that a run's saved results are what its recording comes to today. Nobody is asked."""
    return verify_run(reference)


# ---------------------------------------------------------------- making new runs of old ones


async def fork(
    reference: str,
    turn: int,
    *,
    row: int | None = None,
    overrides: Mapping[str, object] | None = None,
    sinks: Sequence[Sink] = (),
    keep: bool = False,
) -> RunOutcome:
    """What another agent would have said: conversations as recorded up to the user's words of ``turn``, then anew.

    ``overrides`` replace options of the recorded run, above all ``target``. ``row`` picks one conversation; otherwise
    all are forked that have that turn. ``ReplayError`` for a run without a journal, ``ConfigError`` where no
    conversation has that turn and for an agent that keeps a memory of its own. The fork is called as its source with
    ``-fork``, unless ``run_name`` says otherwise.
    """
    past = Past.open(reference)
    if past.journal is None:
        raise ReplayError(f"{reference} was saved without its journal, so nothing can be forked")
    config = resumed_config(past.plan, overrides or {})
    limits = past.plan.limits.model_copy(update={"max_turns": config.max_turns or past.plan.limits.max_turns})
    prefixes = {}
    for each in past.rows if row is None else [_existing(past, row)]:
        events = up_to_turn(past.plan.datapoints[each], past.plan.limits, past.events(each), turn)
        if events is not None and turn <= limits.max_turns:
            prefixes[each] = events
    if not prefixes:
        which = f"conversation {row}" if row is not None else "no conversation"
        raise ConfigError(f"{which} of {reference} {'does not have' if row is not None else 'has'} a turn {turn}")
    rows = tuple(prefixes)
    async with assembled(config) as assembly, served(assembly.crew, config) as crew:
        plan = _plan(config, assembly, past, rows).model_copy(
            update={
                "run_name": str((overrides or {}).get("run_name") or f"{past.plan.run_name}-fork"),
                "limits": limits,
                "origin": Origin(kind="fork", run=past.plan.run_id, turn=turn),
            }
        )
        await try_worlds(plan, crew)
        options = replace(run_options(config, plan, keep=keep), redactor=redactor_of(config, crew, plan))
        outcome = await fork_plan(
            plan, dict(enumerate(prefixes.values())), crew, options, with_telemetry(config, sinks)
        )
    await write_outputs(outcome, config)
    return outcome


async def rejudge(
    reference: str,
    *,
    overrides: Mapping[str, object] | None = None,
    sinks: Sequence[Sink] = (),
    keep: bool = False,
) -> RunOutcome:
    """The same conversations judged again: user and agent as recorded, the judge of ``overrides`` asked live.

    ``overrides`` are options such as ``judge_model``, ``judge``, ``llm_config``, ``offline``, ``evaluator_names``. The
    new run is called as its source with ``-rejudged``, unless ``run_name`` says otherwise.
    """
    past = Past.open(reference)
    rows = tuple(past.rows)
    if not rows:
        raise ReplayError(f"{reference} holds no conversations to judge")
    config = SimulationConfig.parse({**_judging(past.plan), **(overrides or {}), "datapoints": _cases(past, rows)})
    async with assembled(config) as assembly:
        source = past.plan
        plan = _plan(config, assembly, past, rows).model_copy(
            update={
                "run_name": str((overrides or {}).get("run_name") or f"{source.run_name}-rejudged"),
                "target_kind": source.target_kind,
                "target": source.target,
                "target_type": source.target_type,
                "target_model": source.target_model,
                "limits": source.limits.model_copy(update={"stop_on_violation": False}),
                "models": {**source.models, "judge": assembly.models.get("judge", "checks")},
                "origin": Origin(kind="rejudge", run=source.run_id),
            }
        )
        recording = recording_for(plan, past)
        crew = recording.crew(assembly.crew)
        options = replace(run_options(config, plan, keep=keep), redactor=redactor_of(config, crew, plan))
        outcome = await run_plan(plan, crew, options, with_telemetry(config, sinks), conduct=recording.conduct)
    await write_outputs(outcome, config)
    return outcome


async def rescore(reference: str, evaluators: Sequence[object], *, name: str | None = None) -> Path:
    """The same results with other scores, in a new run file; nobody is asked. Returns its path.

    ``evaluators`` are names, ``module:attribute`` or functions of a result.
    """
    made = resolve_evaluators(evaluators)  # type: ignore[arg-type]  # it says itself what is no evaluator
    return await rescore_file(find_run(reference), made, SystemClock(), name=name)


def rebuild(reference: str) -> Path:
    """A run's file made again from its journal. Returns its path; a file that is there keeps its time."""
    return rebuild_file(reference)


# ---------------------------------------------------------------- plans


def _plan(config: SimulationConfig, assembly: Assembly, past: Past, rows: Sequence[int]) -> RunPlan:
    """The plan of a run that is made of conversations ``rows`` of another."""
    cases = Cases(_cases(past, rows))
    plan = plan_of(config, cases, assembly, now=SystemClock().now())
    chosen = {"only": past.plan.config["only"]} if "only" in past.plan.config else {}
    return plan.model_copy(
        update={
            "config": {**plan.config, **chosen},
            "run_id": uuid.uuid4().hex,
            "run_name": config.run_name or past.plan.run_name,
            "seed": past.plan.seed,
            "replayed_from": past.plan.run_id,
            "source_rows": tuple(rows),
        }
    )


def _cases(past: Past, rows: Sequence[int]) -> tuple[SimulationDatapoint, ...]:
    return tuple(past.plan.datapoints[row] for row in rows)


def _judging(plan: RunPlan) -> dict[str, object]:
    """Of a run's recorded options those that say how it is judged and scored."""
    kept = ("llm_config", "judge_every", "scoring", "datapoint_parallelism", "run_name")
    options: dict[str, object] = {name: plan.config[name] for name in kept if name in plan.config}
    return {**options, "target": "demo", "evaluator_names": list(plan.evaluator_names) or None}


def _existing(past: Past, row: int) -> int:
    if row not in past.rows:
        raise ConfigError(f"there is no conversation {row}; the run has 0 to {len(past.plan.datapoints) - 1}")
    return row


__all__ = [
    "Comparison", "GateReport", "GateRules", "Run", "Verification", "compare", "facts_of", "fork", "gate", "rebuild",
    "rejudge", "rescore", "verify",
]  # fmt: skip
