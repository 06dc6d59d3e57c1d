"""What every run of ``speed.py`` simulates: one persona, one kind of scenario with three criteria, first lines set."""

from __future__ import annotations

import re

from evaluatorq.model.cases import Criterion, Persona, Scenario, SimulationDatapoint
from evaluatorq.model.messages import Message

AGENT_TEXT = "I have looked at the order and see that what was sent does not match what is on the invoice " * 5
CASE = re.compile(r"CASE-\d{4}")
PERSONA = Persona(
    name="Pat",
    patience=0.5,
    assertiveness=0.5,
    politeness=0.5,
    technical_level=0.5,
    communication_style="casual",
    background="A customer who was sent the wrong thing.",
)


def scenario(number: int) -> Scenario:
    return Scenario(
        name=f"Wrong item {number}",
        goal=f"Have CASE-{number % 10_000:04} put right",
        criteria=[
            Criterion(description="The agent asks for the details of the order", type="must_happen"),
            Criterion(description="The agent offers a refund", type="must_happen"),
            Criterion(description="The agent blames the customer", type="must_not_happen"),
        ],
    )


def first_line(number: int) -> str:
    case = f"CASE-{number % 10_000:04}"
    return f"Hi, {case} arrived today and it is a phone case and not the headphones I paid for. Can you fix this?"


def datapoints(count: int) -> list[SimulationDatapoint]:
    return [
        SimulationDatapoint(id=f"d{n}", persona=PERSONA, scenario=scenario(n), first_message=first_line(n))
        for n in range(count)
    ]


def agent_line(first: str, turn: int) -> str:
    """What the agent in this process says: the judge of the mock quotes it."""
    return f"ANSWER-{turn} for {CASE.findall(first)[0]}. {AGENT_TEXT}"


async def agent(messages: list[Message]) -> str:
    return agent_line(messages[0].text, sum(message.role == "user" for message in messages))
