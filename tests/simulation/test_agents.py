"""Published simulated users and judges: configured or subclassed, they speak, judge, count and are handed in."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from published_actors import Judge, User, datapoint, greeter

from evaluatorq.errors import CallError
from evaluatorq.model.usage import Usage
from evaluatorq.ports import ChatReply, ChatRequest
from evaluatorq.simulation import (
    BaseAgent,
    JudgeAgent,
    LLMCallConfig,
    Message,
    MustHappenCriterion,
    UserSimulatorAgent,
    simulate,
)

COST = Usage(input_tokens=4, output_tokens=1, total_tokens=5, calls=1)


class Model:
    """Gives the answers in order and keeps what it was asked."""

    name = "fake"

    def __init__(self, answers: Sequence[str | ChatReply | CallError]) -> None:
        self.answers = list(answers)
        self.asked: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, CallError):
            raise answer
        return ChatReply(text=answer, usage=COST) if isinstance(answer, str) else answer


def calls(*answers: str | ChatReply | CallError) -> tuple[LLMCallConfig, Model]:
    model = Model(answers)
    return LLMCallConfig(client=model), model


def verdict(*, done: bool, seen: bool = True) -> ChatReply:
    quote = {"criterion_id": "criteria_0", "evidence": "good day to you" if seen else "", "occurred": seen}
    answer = {
        "reason": "said so", "criteria_verdicts": [quote], "goal_achieved": done, "should_terminate": done,
        "goal_completion_score": 1.0 if done else 0.2,
        **dict.fromkeys(("response_quality", "hallucination_risk", "tone_appropriateness", "factual_accuracy")),
    }  # fmt: skip
    return ChatReply(text=json.dumps(answer), answer=answer, usage=COST)


# ---------------------------------------------------------------- any agent


class Parrot(BaseAgent):
    name = "parrot"
    system_prompt = "Repeat."


async def test_an_agent_answers_a_transcript_and_counts():
    config, model = calls("  polly  ", "again")
    parrot = Parrot(config)
    assert await parrot.respond_async([Message(role="user", content="hi")]) == "polly"
    assert (model.asked[0].prefix.system, len(model.asked[0].lines)) == ("Repeat.", 1)
    await parrot.respond_async([])
    assert parrot.get_usage() == COST + COST
    parrot.reset_usage()
    assert parrot.get_usage() == Usage()
    await parrot.close()


async def test_an_agent_that_says_nothing_is_an_error_that_was_paid_for():
    config, _ = calls("   ")
    parrot = Parrot(config)
    with pytest.raises(RuntimeError, match="parrot said nothing"):
        await parrot.respond_async([])
    assert parrot.get_usage() == COST


def test_an_agent_without_a_name_is_none():
    with pytest.raises(TypeError, match="abstract"):
        BaseAgent()


def test_models_are_those_of_the_roles_unless_one_is_named():
    assert UserSimulatorAgent().model == "openai/gpt-6-luna"
    assert JudgeAgent().model == "openai/gpt-6-sol"
    assert JudgeAgent(LLMCallConfig(model="m")).model == "m"


# ---------------------------------------------------------------- the user


async def test_a_user_plays_whom_it_is_told_to_play():
    config, model = calls('"I want my money back"', "Still waiting")
    user = UserSimulatorAgent(config, system_prompt="Be brief.")
    user.update_context(persona_context="You are Ann.", scenario_context="Your goal: a refund")
    assert await user.generate_first_message() == "I want my money back"
    assert model.asked[0].prefix.system == "Be brief.\n\nYou are Ann.\n\nYour goal: a refund"
    assert await user.respond_async([Message(role="user", content="What for?")]) == "Still waiting"
    assert "You play one person" in UserSimulatorAgent().system_prompt


async def test_a_user_is_handed_in():
    config, model = calls("first", "second", "third")
    [result] = await simulate(
        datapoints=[datapoint(first_message="")],
        target=greeter,
        user_simulator=UserSimulatorAgent(config),
        judge=Judge(2),
    )
    assert [message.text for message in result.messages if message.role == "user"] == ["first", "second"]
    assert "bought a lamp" in model.asked[0].prefix.system
    assert "greets" not in model.asked[0].prefix.system
    assert result.usage_by_role["user_simulator"] == COST + COST


# ---------------------------------------------------------------- the judge

CRITERIA = [MustHappenCriterion("Agent greets the user")]
TALK = [Message(role="user", content="hi"), Message(role="assistant", content="good day to you")]


def test_a_judge_is_told_goal_criteria_and_truth():
    judge = JudgeAgent(goal="be greeted", criteria=CRITERIA, ground_truth="the shop is open")
    for text in ("be greeted", "Agent greets the user", "the shop is open"):
        assert text in judge.system_prompt


async def test_a_judge_reports_what_occurred_with_its_quote():
    config, model = calls(verdict(done=True))
    judgment = await JudgeAgent(config, goal="be greeted", criteria=CRITERIA).evaluate(TALK)
    assert (judgment.goal_achieved, judgment.should_terminate, judgment.goal_completion_score) == (True, True, 1.0)
    [seen] = judgment.criteria_verdicts or ()
    assert (seen.criterion_id, seen.occurred, seen.evidence) == ("criteria_0", True, "good day to you")
    assert "criteria_0" in str(model.asked[0].tail)


async def test_a_settled_criterion_is_not_asked_about_again():
    config, model = calls(verdict(done=False))
    judge = JudgeAgent(config, goal="g", criteria=CRITERIA)
    judge.mark_settled(["criteria_0"])
    await judge.evaluate(TALK)
    assert "criteria_0" not in str(model.asked[0].tail)


async def test_a_judge_is_handed_in():
    config, _ = calls(verdict(done=False), verdict(done=True))
    [result] = await simulate(
        datapoints=[datapoint()], target=greeter, judge=JudgeAgent(config), user_simulator=User(), max_turns=3
    )
    assert (result.terminated_by.value, result.goal_achieved, result.turn_count) == ("judge", True, 2)
    assert result.metadata["criteria_meta"][0]["evidence"] == "good day to you"
    assert result.usage_by_role["judge"] == COST + COST


async def test_a_failed_call_of_a_judge_is_raised():
    config, _ = calls(CallError("server_error", "HTTP 500", retryable=True))
    with pytest.raises(CallError, match="HTTP 500"):
        await JudgeAgent(config, goal="g").evaluate(TALK)


async def test_an_unusable_verdict_is_asked_for_again_and_then_an_error():
    config, model = calls(ChatReply(text="I think it went well", usage=COST))
    judge = JudgeAgent(config, goal="g", criteria=CRITERIA)
    with pytest.raises(CallError):
        await judge.evaluate(TALK)
    assert len(model.asked) == 4
    assert judge.get_usage() == sum([COST] * 4, Usage())
