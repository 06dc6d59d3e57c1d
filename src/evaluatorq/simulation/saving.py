"""Makes a ``SimulationRun`` of results that are in hand, and saves it where ``sim runs`` looks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path

from pydantic import JsonValue

from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import REPLAY_VERSION, RunMode, ScoreCount, SimulationRun, TargetKind
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.records.run import scores_of
from evaluatorq.records.verdicts import RESTS_ON_GOAL, goal_of
from evaluatorq.run.clock import SystemClock
from evaluatorq.store.atomic import create_file, replace_file
from evaluatorq.store.paths import get_sim_runs_dir, sanitise_run_name
from evaluatorq.store.runs import run_parts


def build_simulation_run(  # noqa: PLR0913  the fields of a run, keyword-only, as published
    *,
    run_name: str,
    mode: RunMode,
    target_kind: TargetKind,
    evaluator_names: Sequence[str],
    results: Sequence[SimulationResult],
    target: str | None = None,
    target_model: str | None = None,
    max_turns: int | None = None,
    agent_info: Mapping[str, JsonValue] | None = None,
    run_id: str | None = None,
    experiment_url: str | None = None,
    datapoints: Sequence[SimulationDatapoint] | None = None,
) -> SimulationRun:
    """The run of these results, created now. Averages are over the results that have a score."""
    scores = [scores_of(result) for result in results]
    undecided = [row for row, result in zip(scores, results, strict=True) if goal_of(result) is None]
    names = dict.fromkeys([*evaluator_names, *(name for row in scores for name in row)])
    values = {name: [row[name] for row in scores if name in row] for name in names}
    return SimulationRun(
        run_name=run_name,
        created_at=SystemClock().now(),
        mode=mode,
        target_kind=target_kind,
        target=target,
        target_model=target_model,
        max_turns=max_turns,
        agent_info=None if agent_info is None else dict(agent_info),
        evaluator_names=list(evaluator_names),
        total_results=len(results),
        scorer_averages={name: sum(found) / len(found) for name, found in values.items() if found},
        results=list(results),
        datapoints=None if datapoints is None else list(datapoints),
        replay_version=None if datapoints is None else REPLAY_VERSION,
        token_usage_total=sum((result.token_usage for result in results), NO_USAGE),
        run_id=run_id,
        experiment_url=experiment_url,
        score_counts={
            name: ScoreCount(
                scored=len(found),
                left_out=len(results) - len(found),
                undecided=sum(name in row for row in undecided) if name in RESTS_ON_GOAL else 0,
            )
            for name, found in values.items()
        },
    )


def auto_save_run(*, run: SimulationRun, run_name: str) -> Path:
    """Saves the run under ``run_name`` and the present time; a file that is there is never replaced."""
    stem = f"{sanitise_run_name(run_name)}_{SystemClock().now():%Y%m%d-%H%M%S}"
    return create_file(get_sim_runs_dir() / f"{stem}.json", _parts(run))


def write_report(run: SimulationRun, output: str | PathLike[str]) -> None:
    """Writes the run to ``output``, replacing what is there."""
    replace_file(Path(output), _parts(run))


def _parts(run: SimulationRun) -> Iterable[bytes]:
    documents = (result.model_dump_json(indent=2).encode() for result in run.results)
    return run_parts(run.model_copy(update={"results": []}), documents)
