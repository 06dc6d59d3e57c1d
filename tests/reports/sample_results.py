"""Results made by hand, with only what a report reads."""

from __future__ import annotations

from evaluatorq.model.messages import Message, assistant, tool_call, tool_result, user
from evaluatorq.model.results import SimulationResult, TurnMetrics
from evaluatorq.model.usage import Usage

TALK = [
    user("My parcel is late."),
    assistant("Let me look.", [tool_call("call_1", "find_order", {"order_id": "A1"})]),
    tool_result("call_1", '{"status": "shipped"}'),
    assistant("I have refunded the full amount to your card."),
    user("Thanks, bye."),
    assistant("Goodbye!"),
]


def criterion(index: int, kind: str, *, passed: bool, audited: bool | None = True, evidence: str = "") -> dict:
    return {
        "id": f"criteria_{index}", "description": f"behaviour {index}", "type": kind,
        "passed": passed, "audited": audited, "evidence": evidence,
    }  # fmt: skip


HELD = criterion(0, "must_happen", passed=True, evidence="Let me look.")
MISSED = criterion(1, "must_happen", passed=False)
SEEN = criterion(2, "must_not_happen", passed=False, evidence="refunded the full amount")
OPEN = criterion(3, "must_not_happen", passed=True, audited=False)


def result(
    *criteria: dict,
    goal: bool = True,
    messages: list[Message] | None = None,
    persona: str = "Ann",
    scenario: str = "Late parcel",
    **more: object,
) -> SimulationResult:
    fields = {
        "messages": TALK if messages is None else messages,
        "terminated_by": "judge", "ended_by": "judge", "reason": "finished",
        "goal_achieved": goal, "goal_known": True, "goal_completion_score": 1.0 if goal else 0.0,
        "rules_broken": [], "turn_count": 2, "token_usage": Usage(total_tokens=30),
        "turn_metrics": [TurnMetrics(turn_number=1, token_usage=Usage(), response_quality=0.5, judge_reason="so so")],
        "criteria_verified": True,
        "metadata": {
            "persona": persona, "scenario": scenario, "scenario_goal": "get help", "criteria_meta": [*criteria],
        },
    }  # fmt: skip
    return SimulationResult.model_validate({**fields, **more})


def dead(component: str | None, *criteria: dict, code: str = "error", **more: object) -> SimulationResult:
    return result(
        *criteria,
        goal=False,
        **{"terminated_by": code, "ended_by": code, "failed_component": component, "reason": "it broke", **more},
    )
