"""Runs a recorded round of tool calls again, as far as that does no harm, and compares what comes of it.

A tool that may be repeated is called again where the state that it found is known: from the start of the round on,
until a call that must not be repeated and whose own effect the recording does not tell. Every other answer is taken
from the recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue
from pydantic_core import from_json

from evaluatorq.conversation.checks import same_json
from evaluatorq.model.messages import Message, ToolCall
from evaluatorq.ports import Attentive, Environment
from evaluatorq.records.drift import differences

Difference = tuple[str, str, JsonValue, JsonValue]
"""The id of a call (empty for the round as a whole), the place, what was recorded, what came now."""


@dataclass(frozen=True, slots=True)
class Round:
    """Calls in order with their recorded answers, the states around them, and which of them changed it, if told."""

    calls: Sequence[ToolCall]
    answers: Mapping[str, Message]
    before: JsonValue
    after: JsonValue
    effects: Mapping[str, bool] | None
    transcript: Sequence[Message]


@dataclass(slots=True)
class Rerun:
    """What came of running a round again: which calls ran, and what was different."""

    live: set[str] = field(default_factory=set)
    differences: list[Difference] = field(default_factory=list)


async def rerun(environment: Environment, recorded: Round) -> Rerun:
    """Calls what may be called again, and compares answers and, where it is known to the end, the state."""
    harmless = {spec.name for spec in environment.tools if spec.idempotent}
    found = Rerun()
    state, known = recorded.before, True
    watcher: object = environment
    if isinstance(watcher, Attentive):
        watcher.attend(recorded.transcript)
    for number, call in enumerate(recorded.calls):
        answer = recorded.answers.get(call.id)
        if answer is None:
            continue
        if known and call.function.name in harmless:
            environment.restore(state)
            reply = await environment.run([call])
            state = environment.snapshot()
            found.live.add(call.id)
            found.differences += ((call.id, *one) for one in _answers_differ(answer, reply.messages[0]))
        else:
            state, known = _after(recorded, number, state, known=known)
    if known and not same_json(state, recorded.after):
        found.differences += (("", f"/state{path}", old, new) for path, old, new in differences(recorded.after, state))
    return found


def _after(recorded: Round, number: int, state: JsonValue, *, known: bool) -> tuple[JsonValue, bool]:
    """The state after a call that is not repeated, and whether that is known."""
    effects = recorded.effects
    if effects is None:
        return recorded.after, number == len(recorded.calls) - 1
    if not effects.get(recorded.calls[number].id):
        return state, known
    later = any(effects.get(call.id) for call in recorded.calls[number + 1 :])
    return (state, False) if later else (recorded.after, True)


def _answers_differ(recorded: Message, now: Message) -> Iterator[tuple[str, JsonValue, JsonValue]]:
    """Answers that are JSON are compared as JSON."""
    old, new = _value(recorded.text), _value(now.text)
    if isinstance(old, dict | list) and isinstance(new, dict | list):
        for path, before, after in differences(old, new):
            yield f"/message/content{path}", before, after
    elif recorded.text != now.text:
        yield "/message/content", recorded.text, now.text


def _value(text: str) -> JsonValue:
    try:
        value: JsonValue = from_json(text)
    except ValueError:
        return text
    return value
