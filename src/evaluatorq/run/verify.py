"""Proof replay of a run: every conversation stepped through today's machine, and its saved result made again.

No model and no tool is asked, and nothing is opened but the run's own files. A missing recording is an error. Built-in
scores are computed again; those of other evaluators are taken as they were given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from evaluatorq.errors import ConfigError, ReplayDrift, RunNotFound
from evaluatorq.evaluators.builtin import SIMULATION_EVALUATORS, evaluator_details, get_evaluator
from evaluatorq.evaluators.scoring import SimulationScoringConfig, scoring_of
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import RunPlan
from evaluatorq.records.drift import Drift
from evaluatorq.records.proof import Proof, missing_conversation, prove, record_drifts, value_drifts
from evaluatorq.records.result import result_of
from evaluatorq.records.run import RowSummary, as_saved, run_header
from evaluatorq.run.spool import Spool
from evaluatorq.store.journal_index import JournalIndex
from evaluatorq.store.paths import get_sim_runs_dir
from evaluatorq.store.run_traces import journal_of
from evaluatorq.store.runs import find_run, iter_datapoints, iter_results, read_header

NOT_DERIVED = {
    "results", "datapoints", "duration_s", "executive_summary", "recommendations", "applied_suggestions",
    "token_usage_total", "usage_by_category", "usage_by_model", "unread_by_category", "param_dropped", "answer_forms",
}  # fmt: skip
"""What a run file holds beside what its conversations come to."""


@dataclass(frozen=True, slots=True)
class Found:
    """One difference and the conversation that it is in; ``row`` is ``None`` for the run as a whole."""

    row: int | None
    thread_id: str
    drift: Drift

    def __str__(self) -> str:
        return f"{self.thread_id}: {self.drift}"


@dataclass(slots=True)
class Verification:
    """What a proof replay came to. ``redacted`` conversations are compared by the record that was written of them."""

    run_id: str
    conversations: int = 0
    redacted: int = 0
    unfinished: int = 0
    found: list[Found] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    saved: Path | None = None

    @property
    def holds(self) -> bool:
        """Nothing is different from what was recorded."""
        return not self.found and not self.damage

    def raise_for_drift(self) -> None:
        """Raises ``ReplayDrift`` with the first difference in its text and all of them in ``drifts``."""
        told = [*map(str, self.found), *self.damage]
        if told:
            more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
            raise ReplayDrift(f"{told[0]}{more}", [found.drift for found in self.found])


def verify_run(reference: str, runs_dir: Path | None = None) -> Verification:
    """Proves the run that ``reference`` names. ``ReplayError`` when it has no journal."""
    folder = runs_dir or get_sim_runs_dir()
    index = JournalIndex(journal_of(reference, folder), sparse=True)
    plan = index.plan
    saved = _saved(plan, folder)
    verification = Verification(plan.run_id, saved=saved)
    spool = Spool(index.folder)
    try:
        for row in index.rows:
            _prove(verification, row, index, spool, finished=saved is not None)
        if saved is not None:
            _compare(verification, index, saved, spool)
    finally:
        spool.close()
    verification.damage += index.damage
    return verification


def _saved(plan: RunPlan, folder: Path) -> Path | None:
    try:
        return find_run(plan.run_id, folder)
    except RunNotFound:
        return None


def _prove(verification: Verification, row: int, index: JournalIndex, spool: Spool, *, finished: bool) -> None:
    plan = index.plan
    proof = prove(index.datapoint(row), plan.limits, index.events(row))
    verification.conversations += 1
    verification.redacted += proof.redacted
    drifts = proof.drifts
    if not finished and [drift.kind for drift in drifts] == ["missing_step"] and drifts[0].recorded is None:
        verification.unfinished += 1
        return
    result = _result(plan, row, proof)
    if result is not None:
        drifts += _scores(plan, proof, result)
        spool.add(row, as_saved(plan, row, result, proof.scores.values()))
    thread_id = plan.thread_id(row)
    verification.found += [Found(row, thread_id, drift) for drift in drifts]


def _result(plan: RunPlan, row: int, proof: Proof) -> SimulationResult | None:
    if proof.redacted:
        return None if proof.record is None else SimulationResult.model_validate(proof.record)
    return result_of(proof.state, thread_id=plan.thread_id(row), row=row) if proof.is_over else None


def _scores(plan: RunPlan, proof: Proof, result: SimulationResult) -> Iterator[Drift]:
    """Built-in scores that come out otherwise; a conversation that the agent broke is 0.0 whatever the formula."""
    if result.errored or proof.redacted:
        return
    scoring = _scoring(plan)
    for name, scored in proof.scores.items():
        if name in SIMULATION_EVALUATORS and scoring is not None and scored.score is not None:
            now = float(get_evaluator(name, scoring)(_to_score(result)))
            yield from value_drifts(f"/metadata/evaluator_scores/{name}", scored.score, now)
            if name == "criteria_met":
                details: JsonValue = evaluator_details(name, _to_score(result))
                yield from value_drifts(f"/evaluator_details/{name}", scored.details, details)


def _to_score(result: SimulationResult) -> SimulationResult:
    """The result with metadata of its own, which scoring may write to."""
    return result.model_copy(update={"metadata": {**result.metadata}})


def _scoring(plan: RunPlan) -> SimulationScoringConfig | None:
    try:
        return scoring_of(plan.config.get("scoring"))
    except ConfigError:
        return None


def _compare(verification: Verification, index: JournalIndex, saved: Path, spool: Spool) -> None:
    """The run file against what the journal comes to."""
    plan = index.plan
    seen: set[int] = set()
    unrecorded: list[int] = []
    for position, result in enumerate(iter_results(saved)):
        row = position if result.row is None else result.row
        seen.add(row)
        if row not in spool:
            unrecorded.append(row)
            continue
        again = SimulationResult.model_validate_json(spool.read(row).model_dump_json())
        verification.found += [Found(row, plan.thread_id(row), drift) for drift in record_drifts(result, again)]
    drifted = {found.row for found in verification.found}
    verification.found += [
        Found(drift_row, plan.thread_id(drift_row), drift)
        for drift_row, drift in zip(unrecorded, missing_conversation("/results", unrecorded), strict=True)
        if drift_row not in drifted
    ]
    rows = set(range(index.size))
    verification.found += [
        Found(row, plan.thread_id(row), Drift("extra_step", None, f"/results/{row}", "a recording", "no result"))
        for row in sorted(rows - seen)
        if row in spool
    ]
    if not verification.found:
        verification.found += [
            Found(None, plan.run_id, drift) for drift in _run_drifts(index, saved, spool.summaries())
        ]


def _run_drifts(index: JournalIndex, saved: Path, summaries: Iterable[RowSummary]) -> Iterator[Drift]:
    recorded, again = read_header(saved), run_header(index.plan, summaries, duration_s=None)
    yield from record_drifts(recorded, again, without=NOT_DERIVED)
    for row, datapoint in enumerate(iter_datapoints(saved)):
        now = index.datapoint(row).model_dump(mode="json") if row < index.size else None
        yield from value_drifts(f"/datapoints/{row}", datapoint.model_dump(mode="json"), now)
