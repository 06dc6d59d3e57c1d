"""What is known of one conversation at one point: the value that the machine moves on from event to event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import JsonValue

from evaluatorq.conversation.facts import Facts
from evaluatorq.conversation.ledger import Ledger
from evaluatorq.conversation.requests import Stop
from evaluatorq.model.assessments import Assessment
from evaluatorq.model.cases import Scenario, SimulationDatapoint
from evaluatorq.model.events import Ended
from evaluatorq.model.judgments import Judgment
from evaluatorq.model.messages import Message
from evaluatorq.model.results import ResponseTrace
from evaluatorq.model.runs import Limits
from evaluatorq.model.usage import NO_USAGE, Usage


class Phase(StrEnum):
    """Whom the conversation waits for."""

    USER = "user"
    TARGET = "target"
    TOOLS = "tools"
    JUDGE = "judge"
    CLOSED = "closed"
    OVER = "over"


@dataclass(frozen=True)
class Turn:
    """One begun turn: what it cost, its verdict and what of that is unknown, or why it has none."""

    number: int
    usage: Usage
    judgment: Judgment | None = None
    note: str = ""
    unknown_scores: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Environment:
    """What is known of the world behind the tools."""

    present: bool = False
    initial: JsonValue = None
    state: JsonValue = None
    error: str | None = None


@dataclass(frozen=True)
class Conversation:
    """Everything known about one conversation; a fold of its events."""

    datapoint: SimulationDatapoint
    limits: Limits
    phase: Phase
    ledger: Ledger
    turn_count: int = 0
    messages: tuple[Message, ...] = ()
    turns: tuple[Turn, ...] = ()
    carried: Usage = NO_USAGE
    usage_by_role: Mapping[str, Usage] = field(default_factory=dict)
    usage_by_model: Mapping[str, Usage] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    traces: tuple[ResponseTrace, ...] = ()
    target_model: str | None = None
    judgment: Judgment | None = None
    goal_known: bool = False
    completion_known: bool = False
    final_verdict: bool = False
    environment: Environment = Environment()
    facts: Facts = ()
    outside_at: int = 0
    reports_tools: bool = False
    tool_rounds: int = 0
    repeats: int = 1
    last_exchange: tuple[str, str] | None = None
    script_at: int = 0
    attempts: int = 1
    chain: str = ""
    assessments: tuple[tuple[int, Assessment], ...] = ()
    beliefs: tuple[JsonValue, ...] = ()
    claims: JsonValue = None
    ending: Stop | None = None
    ended: Ended | None = None

    @property
    def scenario(self) -> Scenario:
        """The scenario of the datapoint."""
        return self.datapoint.scenario

    @property
    def usage(self) -> Usage:
        """Everything spent, failed calls included."""
        return sum((turn.usage for turn in self.turns), self.carried)

    @property
    def is_last_verdict(self) -> bool:
        """The verdict being asked for is the last one."""
        return self.ending is not None or self.turn_count >= self.limits.max_turns


def begin(datapoint: SimulationDatapoint, limits: Limits) -> Conversation:
    """A conversation before its first event."""
    first = Phase.TARGET if datapoint.scenario.opens == "agent" else Phase.USER
    return Conversation(datapoint, limits, first, Ledger.empty(datapoint.scenario))
