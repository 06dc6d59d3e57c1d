"""The plan that a run saved without a journal may have had, as far as its file says."""

from __future__ import annotations

from pathlib import Path

from evaluatorq.errors import ReplayError
from evaluatorq.model.runs import Limits, RunPlan
from evaluatorq.store.runs import iter_datapoints, read_header

NEVER = 1_000_000
"""A turn count that no conversation reaches."""


def plan_in(path: Path) -> RunPlan:
    """A plan like the one that the run may have had; limits that other writers do not know never end a conversation.

    ``ReplayError`` for a file without cases.
    """
    header, datapoints = read_header(path), tuple(iter_datapoints(path))
    if not datapoints:
        raise ReplayError(f"{path} holds no datapoints and has no journal, so nothing can be made of it")
    return RunPlan(
        run_id=header.run_id or path.name,
        run_name=header.run_name,
        created_at=header.created_at,
        mode=header.mode,
        target_kind=header.target_kind,
        target=header.target,
        target_type=header.target_type,
        target_model=header.target_model,
        evaluator_names=tuple(header.evaluator_names),
        limits=Limits(max_turns=header.max_turns or NEVER, repetition_limit=NEVER),
        seed=header.seed or 0,
        offline=bool(header.offline),
        config=header.config,
        versions=header.versions,
        models=header.models,
        datapoints=datapoints,
    )
