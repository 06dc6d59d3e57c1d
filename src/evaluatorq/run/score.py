"""Scores a finished conversation: what evaluators said, or why they said nothing.

A conversation that the target broke scores 0.0 on everything; one that broke for another reason is not the agent's
doing and gets no score at all, so averages leave it out and say so.
"""

from __future__ import annotations

from collections.abc import Sequence

from evaluatorq.conversation.machine import Conversation
from evaluatorq.evaluators.registry import evaluate_one
from evaluatorq.model.events import Scored
from evaluatorq.model.results import SimulationResult
from evaluatorq.ports import Evaluator
from evaluatorq.run.clock import Clock


def expects_scores(conversation: Conversation) -> bool:
    """Whether evaluators have a say in this conversation."""
    ended = conversation.ended
    return ended is not None and (ended.terminated_by in ("judge", "max_turns") or ended.failed_component == "target")


async def score(evaluators: Sequence[Evaluator], result: SimulationResult, clock: Clock) -> list[Scored]:
    """One line for each evaluator; an evaluator that fails is recorded by name and leaves the average."""
    if not result.errored:
        return [await _scored(evaluator, result, clock) for evaluator in evaluators]
    if result.failed_component != "target":
        return []
    return [Scored(at=clock.now(), evaluator=evaluator.name, score=0.0) for evaluator in evaluators]


async def _scored(evaluator: Evaluator, result: SimulationResult, clock: Clock) -> Scored:
    value, error, details = await evaluate_one(evaluator, result)
    return Scored(at=clock.now(), evaluator=evaluator.name, score=value, error=error, details=details)
