"""The judge of offline runs: facts decide the goal, opinions are left to a model."""

from __future__ import annotations

from pydantic import JsonValue

from evaluatorq.environments.toolbox import Toolbox
from evaluatorq.model.cases import Persona, Scenario, SimulationDatapoint
from evaluatorq.model.messages import assistant, user
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.ports import JudgeReply, Seat
from evaluatorq.roles.checks import check_judge

PERSONA = Persona.model_validate({
    "name": "p", "patience": 0.5, "assertiveness": 0.5, "politeness": 0.5, "technical_level": 0.5,
    "communication_style": "casual", "background": "b",
})  # fmt: skip


async def verdict(said: str, *, state: dict[str, JsonValue] | None = None, **scenario: object) -> JudgeReply:
    made = Scenario.model_validate({"name": "s", "goal": "g", **scenario})
    world = None if state is None else Toolbox(state, [])
    seat = Seat(SimulationDatapoint(id="d", persona=PERSONA, scenario=made), "t", 1, 10, world)
    return await check_judge(seat).judge([user("hi"), assistant(said)], ["criteria_0"], final=False)


async def test_a_goal_that_a_check_states_is_decided_by_it() -> None:
    met = await verdict("It is 4 euros.", goal_check={"agent_says": r"\d+ euros"})
    assert (met.goal_known, met.judgment.goal_achieved, met.judgment.should_terminate) == (True, True, True)
    unmet = await verdict("No idea.", goal_check={"agent_says": r"\d+ euros"})
    assert (unmet.goal_known, unmet.judgment.goal_achieved, unmet.judgment.should_terminate) == (True, False, False)


async def test_a_goal_that_is_a_state_is_read_from_the_world() -> None:
    goal = [{"pointer": "/paid", "equals": True}, {"pointer": "/open", "absent": True}]
    assert (await verdict("Paid!", state={"paid": False}, goal_state=goal)).judgment.goal_achieved is False
    assert (await verdict("Hm.", state={"paid": True}, goal_state=goal)).judgment.goal_achieved is True
    assert (await verdict("Hm.", state={"paid": True, "open": 1}, goal_state=goal)).judgment.goal_achieved is False
    assert (await verdict("Paid!", goal_state=goal)).judgment.goal_achieved is False


async def test_a_goal_that_nobody_can_check_is_unknown() -> None:
    reply = await verdict("All done, goal achieved!")
    assert reply.goal_known is False
    assert reply.judgment.goal_achieved is False
    assert reply.judgment.should_terminate is False
    assert "nobody decided" in reply.judgment.reason


async def test_it_waits_for_what_must_still_happen() -> None:
    criteria = [{"must_happen": "says goodbye", "check": {"agent_says": "goodbye"}}, {"must_happen": "is kind"}]
    goal = {"agent_says": "4 euros"}
    waiting = await verdict("It is 4 euros.", goal_check=goal, criteria=criteria)
    assert (waiting.judgment.goal_achieved, waiting.judgment.should_terminate) == (True, False)
    over = await verdict("It is 4 euros, goodbye.", goal_check=goal, criteria=criteria)
    assert over.judgment.should_terminate is True


async def test_it_gives_no_opinion_and_costs_nothing() -> None:
    judged = await verdict("Hello.", goal_check={"agent_says": "hello"})
    scores = judged.judgment.model_dump(
        include={"response_quality", "hallucination_risk", "tone_appropriateness", "factual_accuracy"}
    )
    assert set(scores.values()) == {None}
    assert judged.judgment.criteria_verdicts is None
    assert judged.judgment.rules_broken == []
    assert judged.usage == NO_USAGE
    assert judged.model is None
    assert judged.judgment.reason.startswith("Offline")
