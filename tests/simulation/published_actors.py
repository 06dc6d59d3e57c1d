"""Simulated users and judges as people wrote them for the published interface."""

from __future__ import annotations

from collections.abc import Sequence

from evaluatorq.simulation import (
    CriterionVerdict,
    Judgment,
    Message,
    MustHappenCriterion,
    Persona,
    Scenario,
    SimulationDatapoint,
    SimulationResult,
    TokenUsage,
)

PERSONA = Persona(
    name="Pat",
    patience=0.5,
    assertiveness=0.5,
    politeness=0.5,
    technical_level=0.5,
    communication_style="casual",
    background="bought a lamp",
)
SCENARIO = Scenario(name="Refund", goal="get money back", criteria=[MustHappenCriterion("Agent greets the user")])


def datapoint(number: int = 0, first_message: str = "hello there") -> SimulationDatapoint:
    return SimulationDatapoint(id=f"d{number}", persona=PERSONA, scenario=SCENARIO, first_message=first_message)


class User:
    """Says the same thing again, and counts ten tokens each time."""

    def __init__(self) -> None:
        self.spent = TokenUsage()

    async def generate_first_message(self) -> str:
        return self._say("my own first words")

    async def respond_async(self, messages: Sequence[Message], **options: object) -> str:
        return self._say(f"and more, {len(messages)}")

    def update_context(self, persona_context: str, scenario_context: str) -> None:
        pass

    def get_usage(self) -> TokenUsage:
        return self.spent

    def reset_usage(self) -> None:
        self.spent = TokenUsage()

    def _say(self, text: str) -> str:
        self.spent = self.spent + TokenUsage(input_tokens=7, output_tokens=3, total_tokens=10, calls=1)
        return text


class Judge:
    """Finishes after ``turns`` exchanges, having seen the greeting; costs nothing."""

    def __init__(self, turns: int = 2) -> None:
        self.turns = turns

    def get_usage(self) -> TokenUsage:
        return TokenUsage()

    async def evaluate(self, messages: Sequence[Message]) -> Judgment:
        done = sum(message.role == "assistant" for message in messages) >= self.turns
        seen = CriterionVerdict(criterion_id="criteria_0", occurred=True, evidence="good day to you")
        return Judgment(
            should_terminate=done,
            reason="finished" if done else "go on",
            goal_achieved=done,
            rules_broken=[],
            goal_completion_score=1.0 if done else 0.5,
            criteria_verdicts=[seen],
        )


async def greeter(messages: list[Message]) -> str:
    return f"good day to you, {len(messages)}"


async def dies_second(messages: list[Message]) -> str:
    if len(messages) > 1:
        raise ValueError("boom")
    return "good day to you"


def clueless(result: SimulationResult) -> float:
    raise ValueError("no idea")
