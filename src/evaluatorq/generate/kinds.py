"""The two kinds of case that a model can make: what one looks like, what its writer is told, how it is read.

The schema of an item lists every key that is taken from a model. What a person may write beside those (checks, an
environment and its state, scripts, reference facts) is never taken from generated text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from pydantic import JsonValue

from evaluatorq.model.cases import (
    CommunicationStyle,
    ConversationStrategy,
    CulturalContext,
    EmotionalArc,
    InputFormat,
    Persona,
    Scenario,
    StartingEmotion,
)
from evaluatorq.ports import AnswerSpec, closed_object

M = TypeVar("M", Persona, Scenario)
Rule = Callable[[JsonValue], Iterable[str]]
"""What is wrong with a case, a sentence each: the rules that case files are held to."""


@dataclass(frozen=True, slots=True)
class Kind(Generic[M]):
    """One kind of case. ``guide`` is the part of the prompt that says what a good one is."""

    noun: str
    plural: str
    item: dict[str, JsonValue]
    guide: str
    rule: Rule
    model: type[M]

    def answer(self, count: int) -> AnswerSpec:
        """The object that holds ``count`` of them."""
        listed: JsonValue = {"type": "array", "items": self.item, "minItems": count, "maxItems": count}
        about = f"The {self.plural}, in the order in which they were asked for."
        return AnswerSpec(self.plural, about, closed_object({self.plural: listed}))

    @property
    def keys(self) -> frozenset[str]:
        """The keys of an item that a model may fill."""
        properties = self.item["properties"]
        return frozenset(properties) if isinstance(properties, dict) else frozenset()


def persona_kind(rule: Rule) -> Kind[Persona]:
    """Personas, held to ``rule``."""
    return Kind("persona", "personas", _PERSONA, _PERSONA_GUIDE, rule, Persona)


def scenario_kind(rule: Rule) -> Kind[Scenario]:
    """Scenarios, held to ``rule``."""
    return Kind("scenario", "scenarios", _SCENARIO, _SCENARIO_GUIDE, rule, Scenario)


def _words(description: str) -> JsonValue:
    return {"type": "string", "minLength": 1, "description": description}


def _share(description: str) -> JsonValue:
    return {"type": "number", "minimum": 0, "maximum": 1, "description": description}


def _one_of(enum: type[StrEnum], description: str) -> JsonValue:
    return {"type": "string", "enum": [member.value for member in enum], "description": description}


_PERSONA = closed_object(
    {
        "name": _words("A first name with a few words that tell the person apart, such as 'Noor, hurried nurse'."),
        "background": _words("Two or three sentences: who they are, what they have to do with the agent."),
        "patience": _share("0 gives up at once, 1 never hurries."),
        "assertiveness": _share("0 follows, 1 insists."),
        "politeness": _share("0 is rude, 1 is very polite."),
        "technical_level": _share("0 is a novice, 1 an expert."),
        "communication_style": _one_of(CommunicationStyle, "How they write."),
        "emotional_arc": _one_of(EmotionalArc, "How their mood develops; stable for most people."),
        "cultural_context": _one_of(CulturalContext, "How directly they speak; neutral for most people."),
    }
)
_PERSONA_GUIDE = """\
You invent the people who will write to an agent in a test of it.

- Make real people of them: different ages, jobs, moods, abilities, and reasons to write. No two alike.
- A persona says who somebody is, never what they want from the agent: that comes from elsewhere.
- Numbers run from 0 to 1; use the whole range, and let them fit the background.
- Edge cases are people who are hard to serve: very impatient, barely literate, hostile, confused, in distress."""

_SCENARIO = closed_object(
    {
        "name": _words("A few words that tell the scenario apart."),
        "goal": _words("What the user wants from the agent, in one sentence that starts with a verb."),
        "context": _words("What happened before, with the names, numbers and dates that the user knows."),
        "starting_emotion": _one_of(StartingEmotion, "How the user feels at the start."),
        "conversation_strategy": _one_of(ConversationStrategy, "How the user goes about it; cooperative for most."),
        "input_format": _one_of(InputFormat, "What the user sends; plain_text for most."),
        "criteria": {
            "type": "array",
            "minItems": 1,
            "maxItems": 5,
            "description": "Two to four behaviours of the agent, at least one of each type.",
            "items": closed_object(
                {
                    "type": {"type": "string", "enum": ["must_happen", "must_not_happen"]},
                    "description": _words("One behaviour that a reader of the transcript can see, named positively."),
                }
            ),
        },
    }
)
_SCENARIO_GUIDE = """\
You invent the situations in which users will write to an agent in a test of it.

- Stay within what the description says the agent is for, and cover different parts of it. No two alike.
- The goal is the user's. The context is told from the user's side and holds every detail they would be asked for.
- Criteria judge the agent alone. Each is one behaviour that is either seen in the transcript or not: "The agent asks
  for the order number", never "The agent is helpful". For must_not_happen name the behaviour itself: "The agent
  promises a refund", not "The agent does not promise a refund".
- Ask for nothing that a text conversation cannot show, and for no fact that the description does not give.
- Edge cases are situations that are rare, contradictory, or at the limit of what the agent may do."""
