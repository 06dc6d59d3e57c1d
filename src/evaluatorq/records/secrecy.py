"""Whether hidden values stayed hidden, as far as words can show it.

Text proves a leak only for values that nobody writes by chance; the others are kept by how prompts are made, not by
searching. What a tool read out is no leak. A value that the case itself tells its user cannot be searched for; it is
named, because it is no secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from evaluatorq.conversation.checks import value_at
from evaluatorq.conversation.quotes import fold
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.cognition import Leak, Secrecy
from evaluatorq.model.messages import Message

HIDE_ALL = ("",)
_WORDS_TO_TELL = 4
_CHARACTERS_TO_TELL = 6


def hidden_values(truth: JsonValue, pointers: Sequence[str] = HIDE_ALL) -> dict[str, str]:
    """The texts and numbers under the hidden places of the truth, by JSON pointer."""
    found: dict[str, str] = {}
    for pointer in pointers:
        found.update(_leaves(pointer, value_at(truth, pointer)))
    return found


def _leaves(pointer: str, value: JsonValue) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}", item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(f"{pointer}/{index}", item)
    elif isinstance(value, str) and value.strip():
        yield pointer, value.strip()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield pointer, json.dumps(value)


def is_distinctive(text: str) -> bool:
    """Nobody writes it by chance: a code of six or more characters with a digit, or at least four words in a row."""
    words = text.split()
    if len(words) >= _WORDS_TO_TELL:
        return True
    return len(words) == 1 and len(text) >= _CHARACTERS_TO_TELL and any(letter.isdigit() for letter in text)


def secrecy_of(datapoint: SimulationDatapoint, messages: Sequence[Message]) -> Secrecy:
    """What a search of the transcript for the hidden values of a case comes to."""
    scenario = datapoint.scenario
    values = hidden_values(scenario.truth, HIDE_ALL if scenario.hidden is None else scenario.hidden)
    told = told_to_the_user(datapoint)
    open_secrets = {key for key, text in values.items() if is_distinctive(text) and holds(told, text)}
    searched = {key: text for key, text in values.items() if is_distinctive(text) and key not in open_secrets}
    known: set[str] = set()
    released: list[str] = []
    leaks: list[Leak] = []
    for row, message in enumerate(messages):
        said = _said(message)
        for pointer in [key for key, text in searched.items() if key not in known and holds(said, text)]:
            known.add(pointer)
            if message.role == "tool":
                released.append(pointer)
            else:
                leaks.append(Leak(pointer=pointer, said_by="user" if message.role == "user" else "agent", row=row))
    return Secrecy(
        searched=tuple(searched),
        not_distinctive=tuple(key for key, text in values.items() if not is_distinctive(text)),
        told_by_the_case=tuple(sorted(open_secrets)),
        released=tuple(released),
        leaks=tuple(leaks),
    )


def told_to_the_user(datapoint: SimulationDatapoint) -> str:
    """Everything that a case says to its simulated user."""
    scenario, persona = datapoint.scenario, datapoint.persona
    told = [datapoint.first_message, persona.name, persona.background, scenario.name, scenario.goal, scenario.context]
    told += [*(scenario.knows or {}).values(), *(scenario.script or ())]
    return "\n".join(text for text in told if text)


def holds(text: str, value: str) -> bool:
    """The value stands in the text as whole words, written as a quote may write it.

    What is tied to it by a hyphen or an apostrophe makes a quote another word, but a leak no smaller.
    """
    return re.search(rf"(?<!\w){re.escape(fold(value))}(?!\w)", fold(text)) is not None


def _said(message: Message) -> str:
    calls = (call.function.arguments for call in message.tool_calls or ())
    return "\n".join(part for text in (message.text, *calls) for part in (text, *_in_json(text)))


def _in_json(text: str) -> Iterator[str]:
    """The texts within a text that is JSON: there, what is not ASCII may be escaped."""
    if "\\" in text and text.lstrip().startswith(("{", "[")):
        try:
            value: JsonValue = json.loads(text)
        except (ValueError, RecursionError):
            return
        yield from (leaf for _, leaf in _leaves("", value))
