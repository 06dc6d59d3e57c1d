"""Finds the recording that a run is made from, also where the run is gone on with in another process."""

from __future__ import annotations

from evaluatorq.model.runs import RunPlan
from evaluatorq.run.past import Past
from evaluatorq.run.rejudge import Recording


def recording_of(plan: RunPlan) -> Recording | None:
    """What a run that judges recorded conversations plays; ``None`` for a run that has its own."""
    if plan.origin is None or plan.origin.kind != "rejudge":
        return None
    return recording_for(plan, Past.open(plan.origin.run))


def recording_for(plan: RunPlan, past: Past) -> Recording:
    """The recording of ``past`` as ``plan`` numbers its conversations."""
    return Recording(plan, lambda row: past.events(plan.source_rows[row]))
