"""Runs made of outcomes: what each conversation's goal and criteria came to, without holding any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from evaluatorq.model.cases import Criterion, SimulationDatapoint
from evaluatorq.model.messages import assistant, user
from evaluatorq.model.results import SimulationResult, TerminatedBy
from evaluatorq.model.runs import SimulationRun
from evaluatorq.model.usage import Usage
from evaluatorq.records.facts import RunFacts, run_facts
from evaluatorq.testing import a_datapoint, a_persona, a_scenario

CRITERIA = (
    Criterion(description="The agent greets", type="must_happen"),
    Criterion(description="The agent asks for a password", type="must_not_happen"),
)
Held = Sequence[bool | None]


def datapoints(n: int, samples: int = 1, *, criteria: Sequence[Criterion] = CRITERIA) -> list[SimulationDatapoint]:
    """``n`` personas in one scenario, each ``samples`` times."""
    scenario = a_scenario(criteria=criteria)
    return [
        a_datapoint(scenario, persona=a_persona(f"P{i}"), id=f"dp_{i}").model_copy(
            update={"sample": sample if samples > 1 else None}
        )
        for i in range(n)
        for sample in range(samples)
    ]


def talk(
    datapoint: SimulationDatapoint,
    row: int,
    held: Held = (True, True),
    *,
    goal: bool | None = True,
    ended: TerminatedBy = TerminatedBy.JUDGE,
    component: str | None = None,
    scores: Mapping[str, object] | None = None,
    said: str = "Hello there, how can I help?",
    tokens: int | None = 100,
    turns: int = 1,
) -> SimulationResult:
    """A result in which each criterion held (``True``), was broken (``False``) or was not audited (``None``)."""
    metas, audits = [], []
    for i, (criterion, state) in enumerate(zip(datapoint.scenario.criterion_list, held, strict=True)):
        occurred = (state is not False) == (criterion.type == "must_happen") if state is not None else False
        metas.append({
            "id": f"criteria_{i}", "description": criterion.description, "type": criterion.type,
            "passed": state is not False, "audited": state is not None, "evidence": said if occurred else "",
        })  # fmt: skip
        audits.append({"id": f"criteria_{i}", "occurred": occurred, "message_index": 1 if occurred else None})
    return SimulationResult.model_validate({
        "messages": [user("Hi"), assistant(said)],
        "terminated_by": ended,
        "reason": "it was over",
        "goal_achieved": bool(goal),
        "goal_known": goal is not None,
        "goal_completion_score": float(bool(goal)),
        "rules_broken": [meta["id"] for meta in metas if not meta["passed"]],
        "turn_count": turns,
        "token_usage": Usage(total_tokens=tokens or 0, calls=1),
        "token_usage_known": tokens is not None,
        "turn_metrics": [],
        "metadata": {
            "persona": datapoint.persona.name, "scenario": datapoint.scenario.name, "datapoint_id": datapoint.id,
            "criteria_meta": metas, "evaluator_scores": dict(scores or {}),
        },
        "criteria_verified": any(state is not None for state in held) or not held,
        "criteria_audit": audits,
        "failed_component": component,
        "thread_id": f"run:{row}",
        "row": row,
    })  # fmt: skip


def header(**fields: object) -> SimulationRun:
    """A run without results and datapoints."""
    values: dict[str, object] = {
        "run_name": "made", "created_at": datetime(2026, 1, 1, tzinfo=UTC), "mode": "simulate",
        "target_kind": "callback", "target": "agent", "evaluator_names": [], "total_results": 0,
        "scorer_averages": {}, "results": [], "max_turns": 10,
    }  # fmt: skip
    return SimulationRun.model_validate({**values, **fields})


def facts(points: Sequence[SimulationDatapoint], results: Sequence[SimulationResult], **fields: object) -> RunFacts:
    """The facts of a run."""
    return run_facts(header(**fields), points, results)


def run_of(points: Sequence[SimulationDatapoint], outcomes: Sequence[Held], **fields: object) -> RunFacts:
    """The facts of a run whose conversations' criteria came to ``outcomes``."""
    return facts(points, [talk(p, i, held) for i, (p, held) in enumerate(zip(points, outcomes, strict=True))], **fields)
