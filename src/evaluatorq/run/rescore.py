"""Scores the saved conversations of a run with other evaluators; nobody is asked, nothing else is changed."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from evaluatorq.errors import ReplayError
from evaluatorq.model.results import Origin, SimulationResult
from evaluatorq.model.runs import ScoreCount, SimulationRun
from evaluatorq.ports import Evaluator
from evaluatorq.records.result import with_scores
from evaluatorq.records.verdicts import RESTS_ON_GOAL
from evaluatorq.run.clock import Clock
from evaluatorq.run.score import score
from evaluatorq.run.spool import Spool
from evaluatorq.store.paths import get_sim_runs_dir
from evaluatorq.store.runs import iter_datapoints, iter_results, read_header, save_run

SCORE_KEYS = ("evaluator_scores", "evaluator_errors", "scorer_errors", "criteria_errors")


async def rescore(
    source: Path,
    evaluators: Sequence[Evaluator],
    clock: Clock,
    *,
    runs_dir: Path | None = None,
    name: str | None = None,
) -> Path:
    """Writes a new run file whose results have these evaluators' scores in place of their own, and returns its path.

    Without a ``name`` it is called as its source with ``-rescored``, so that a name still means one of them.
    """
    header = read_header(source)
    spool = Spool(source.parent)
    try:
        async for row, result in _scored(source, header, evaluators, clock):
            spool.add(row, result)
        if not len(spool):
            raise ReplayError(f"{source} holds no conversations to score")
        again = _header(header, source, spool, evaluators)
        again.run_name = name or f"{header.run_name}-rescored"
        again.datapoints = list(iter_datapoints(source)) or None
        return save_run(again, spool.documents(), runs_dir or get_sim_runs_dir(), clock.now())
    finally:
        spool.close()


async def _scored(
    source: Path, header: SimulationRun, evaluators: Sequence[Evaluator], clock: Clock
) -> AsyncIterator[tuple[int, SimulationResult]]:
    for position, result in enumerate(iter_results(source)):
        for key in SCORE_KEYS:
            result.metadata.pop(key, None)
        result.evaluator_details = {}
        scores = await score(evaluators, result.model_copy(), clock)
        result.origin = Origin(kind="rescore", run=header.run_id or source.name, thread_id=result.thread_id)
        yield position if result.row is None else result.row, with_scores(result, scores)


def _header(header: SimulationRun, source: Path, spool: Spool, evaluators: Sequence[Evaluator]) -> SimulationRun:
    summaries = list(spool.summaries())
    values = {
        evaluator.name: [summary.scores[evaluator.name] for summary in summaries if evaluator.name in summary.scores]
        for evaluator in evaluators
    }
    return header.model_copy(
        update={
            "run_id": uuid.uuid4().hex,
            "evaluator_names": list(values),
            "scorer_averages": {name: sum(given) / len(given) for name, given in values.items() if given},
            "score_counts": {
                name: ScoreCount(
                    scored=len(given),
                    left_out=len(summaries) - len(given),
                    undecided=sum(name in RESTS_ON_GOAL and not s.goal_known for s in summaries if name in s.scores),
                )
                for name, given in values.items()
            },
            "total_results": len(summaries),
            "origin": Origin(kind="rescore", run=header.run_id or source.name),
        }
    )
