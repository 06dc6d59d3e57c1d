"""What a conversation asks for next. Imperative names: a driver carries them out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from evaluatorq.errors import Component
from evaluatorq.model.events import EndedBy, TerminatedByName
from evaluatorq.model.messages import Message, ToolCall
from evaluatorq.model.worlds import OutsideEvent


@dataclass(frozen=True, slots=True)
class AskUser:
    """The simulated user's next line. ``scripted`` is sent as it is, and no simulator is asked."""

    messages: tuple[Message, ...]
    scripted: str | None = None
    is_first_message: bool = False


@dataclass(frozen=True, slots=True)
class AskTarget:
    """The agent's answer. ``messages`` is empty when the agent opens the conversation."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class ChangeWorld:
    """Something that somebody else does to the environment before the agent answers."""

    number: int
    event: OutsideEvent


@dataclass(frozen=True, slots=True)
class RunTools:
    """The calls that the agent made and nobody has answered."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class AskJudge:
    """A verdict on the transcript so far; ``final`` tells the judge that no turn follows."""

    messages: tuple[Message, ...]
    open_criteria: tuple[str, ...]
    final: bool


@dataclass(frozen=True, slots=True)
class Stop:
    """Nothing more to ask. The driver reads the environment once more and writes ``ended``."""

    terminated_by: TerminatedByName
    ended_by: EndedBy
    reason: str
    failed_component: Component | None = None
    error_type: str | None = None


Request: TypeAlias = AskUser | AskTarget | ChangeWorld | RunTools | AskJudge | Stop
