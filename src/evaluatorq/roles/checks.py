"""The judge of offline runs: it reads facts and has no opinion.

Criteria with a check are decided by the conversation itself, so this judge adds no verdict of its own; those without a
check stay unaudited, because only a model could judge them. It says that the goal is reached, and that the conversation
may end, where the scenario's goal is a check or a state that code can read.
"""

from __future__ import annotations

from collections.abc import Sequence

from evaluatorq.conversation.checks import occurrence, state_holds
from evaluatorq.model.cases import Check, Scenario
from evaluatorq.model.judgments import Judgment
from evaluatorq.model.messages import Message
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.ports import Judge, JudgeReply, Seat


class CheckJudge:
    """Decides by checks alone. Its verdicts cost nothing, and that is known: usage is zero."""

    def __init__(self, seat: Seat) -> None:
        self._scenario = seat.datapoint.scenario
        self._environment = seat.environment

    async def judge(self, messages: Sequence[Message], open_criteria: Sequence[str], *, final: bool) -> JudgeReply:  # noqa: ARG002  nothing to audit, nothing to hurry
        """Whether the goal's check or state holds now. It asks to stop only once nothing checked is still to come."""
        rows = tuple(messages)
        scenario = self._scenario
        known = scenario.goal_check is not None or bool(scenario.goal_state)
        reached = self._goal_holds(rows)
        waiting = reached and not all(self._seen(check, rows) for check in _must_happen(scenario))
        judgment = Judgment(
            should_terminate=reached and not waiting,
            reason=_reason(known=known, reached=reached),
            goal_achieved=reached,
            goal_completion_score=1.0 if reached else 0.0,
        )
        return JudgeReply(judgment, usage=NO_USAGE, goal_known=known)

    def _goal_holds(self, rows: tuple[Message, ...]) -> bool:
        """As the result decides it: by the state where the scenario states one, else by the check."""
        if self._scenario.goal_state:
            state = None if self._environment is None else self._environment.snapshot()
            return all(state_holds(claim, state) is not None for claim in self._scenario.goal_state)
        return self._scenario.goal_check is not None and self._seen(self._scenario.goal_check, rows)

    def _seen(self, check: Check, rows: tuple[Message, ...]) -> bool:
        if check.state is not None:
            return self._environment is not None and state_holds(check.state, self._environment.snapshot()) is not None
        return any(occurrence(check, index, row, rows) is not None for index, row in enumerate(rows))


def check_judge(seat: Seat) -> Judge:
    """Makes a judge without a model."""
    return CheckJudge(seat)


def _must_happen(scenario: Scenario) -> list[Check]:
    return [c.check for c in scenario.criterion_list if c.type == "must_happen" and c.check is not None]


def _reason(*, known: bool, reached: bool) -> str:
    if not known:
        return "Offline: no check states the goal, so nobody decided it."
    return f"Offline, decided by checks: the goal is {'reached' if reached else 'not reached'}."
