"""A conversation's turns read as observations: what the agent did, as its world and its store show it.

Tool calls come from the transcript, their outcome from the rows that answer them: an ``error`` is a refusal (a failure
where the tool broke), ``{"outcome": "no_change"}`` or ``"awaiting"`` says just that, no answer is awaiting. States come
from snapshots; what a turn appended to a top-level list of texts called ``events`` are its events.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from pydantic import JsonValue

from evaluatorq.conversation.facts import UNUSABLE, TurnFacts
from evaluatorq.conversation.machine import Conversation
from evaluatorq.model.messages import Message, ToolCall
from evaluatorq.model.observation import (
    CallOutcome,
    Change,
    Detail,
    Discarded,
    Observation,
    ObservedCall,
    TurnReport,
    digest_of,
)
from evaluatorq.records.states import appended_events, changes_between, revisions_in

T = TypeVar("T")
BROKEN_TOOL = "tool_error"
NO_REPORT = TurnReport()


def observations_of(conversation: Conversation) -> list[Observation]:
    """One observation for each turn of the agent, in order; pure over the conversation's events."""
    return [_observed(facts, conversation) for facts in conversation.facts]


def conversation_signature(observations: Iterable[Observation], include: Collection[Detail] = ()) -> str:
    """The signatures of all turns, in order."""
    return "".join(f"turn\n{seen.signature(include)}" for seen in observations)


def _observed(facts: TurnFacts, conversation: Conversation) -> Observation:
    rows = conversation.messages[facts.start : facts.end]
    report = merged(facts.reports)
    present = conversation.environment.present
    known = present or conversation.reports_tools
    calls = tuple(_calls((*rows, *facts.called), facts.effects or {})) if known else None
    world = _world(facts, calls or ()) if present else NO_REPORT
    own = {**vars(report)}
    for name in ("commands", "events", "revisions"):
        own[name] = getattr(world, name) if own[name] is None else own[name]
    discarded = tuple(Discarded(code=code) for code in facts.failures if code in UNUSABLE)
    return Observation.model_validate(
        {
            **own,
            "turn": facts.number,
            "error_code": facts.error_code,
            "tool_calls": calls,
            "states": joined_states((world.states, report.states)),
            "outside": changes_between(facts.world, facts.before) or None,
            "read_error": report.read_error or facts.read_error,
            "provider_failures": report.provider_failures + len(facts.failures),
            "discarded_answers": (*discarded, *report.discarded_answers),
            "cards_created": sum(card.turn == facts.number for card in report.interactions or ()),
            "answer": "\n".join(row.text for row in rows if row.role == "assistant" and row.is_spoken),
        }
    )


def _world(facts: TurnFacts, calls: Sequence[ObservedCall]) -> TurnReport:
    """What the environment's snapshots and effects say of the turn."""
    acted = tuple(call.name for call in calls if (facts.effects or {}).get(call.id))
    return TurnReport(
        commands=None if facts.effects is None and calls else acted,
        events=appended_events(facts.before, facts.after),
        states=changes_between(facts.before, facts.after),
        revisions=revisions_in(facts.after) or None,
    )


# ---------------------------------------------------------------- tool calls


def _calls(rows: Sequence[Message], effects: Mapping[str, bool]) -> Iterator[ObservedCall]:
    answers = {row.tool_call_id: row for row in rows if row.role == "tool"}
    for call in (call for row in rows for call in row.tool_calls or ()):
        outcome, reason = call_outcome(answers.get(call.id))
        if outcome == "accepted" and effects.get(call.id) is False:
            outcome = "no_change"
        yield ObservedCall(id=call.id, name=call.function.name, digest=_digest(call), outcome=outcome, reason=reason)


def _digest(call: ToolCall) -> str:
    arguments = call.parsed_arguments()
    return digest_of(call.function.arguments if arguments is None else arguments)


def call_outcome(row: Message | None) -> tuple[CallOutcome, str | None]:
    """How a call went by the row that answers it, and the stable code of a refusal."""
    if row is None:
        return "awaiting", None
    answer = _object(row.text)
    error = answer.get("error")
    if error:
        code = error.get("code") if isinstance(error, dict) else None
        return ("failed" if code == BROKEN_TOOL else "rejected"), code if isinstance(code, str) else "refused"
    match answer.get("outcome"):
        case "no_change":
            return "no_change", None
        case "awaiting":
            return "awaiting", None
    return "accepted", None


def _object(text: str) -> dict[str, JsonValue]:
    if not text.lstrip().startswith("{"):
        return {}
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


# ---------------------------------------------------------------- several as one


def merged(reports: Sequence[TurnReport]) -> TurnReport:
    """Several reports as one: lists are joined, later single values win, a state keeps its first before."""
    if not reports:
        return NO_REPORT
    return TurnReport(
        turn_id=_last(report.turn_id for report in reports),
        acts=_joined(report.acts for report in reports),
        target_resolutions=_joined(report.target_resolutions for report in reports),
        understanding=_last(report.understanding for report in reports),
        commands=_joined(report.commands for report in reports),
        events=_joined(report.events for report in reports),
        events_truncated=any(report.events_truncated for report in reports),
        read_error=_last(report.read_error for report in reports),
        revisions=_overlaid(report.revisions for report in reports),
        states=joined_states(report.states for report in reports),
        interactions=_joined(report.interactions for report in reports),
        blocks=_joined(report.blocks for report in reports),
        phase=_last(report.phase for report in reports),
        provider_failures=sum(report.provider_failures for report in reports),
        discarded_answers=_joined(report.discarded_answers for report in reports) or (),
        offers=_joined(report.offers for report in reports),
        asks=_joined(report.asks for report in reports),
    )


def joined(observations: Sequence[Observation]) -> Observation:
    """The turns of a conversation as one: the net change of each resource, the last standing of each card."""
    report = merged(observations)
    cards = {card.id: card for card in report.interactions or ()}
    calls = [seen.tool_calls for seen in observations]
    unknown = not calls or None in calls
    return Observation.model_validate(
        {
            **{name: getattr(report, name) for name in TurnReport.model_fields},
            "interactions": None if report.interactions is None else tuple(cards.values()),
            "turn": observations[-1].turn if observations else 0,
            "error_code": _last(seen.error_code for seen in observations),
            "tool_calls": None if unknown else tuple(call for some in calls for call in some or ()),
            "outside": joined_states(seen.outside for seen in observations),
            "cards_created": sum(seen.cards_created for seen in observations),
            "answer": "\n".join(seen.answer for seen in observations if seen.answer),
        }
    )


def joined_states(several: Iterable[dict[str, Change] | None]) -> dict[str, Change] | None:
    """Changes one after the other as the net change of each resource; ``None`` where nobody told any."""
    told = [states for states in several if states is not None]
    net: dict[str, Change] = {}
    for resource, change in (item for states in told for item in states.items()):
        first = net.get(resource)
        net[resource] = change if first is None else Change(before=first.before, after=change.after)
    return net if told else None


def _last(values: Iterable[T | None]) -> T | None:
    return next((value for value in reversed(list(values)) if value is not None), None)


def _joined(several: Iterable[tuple[T, ...] | None]) -> tuple[T, ...] | None:
    told = [values for values in several if values is not None]
    return tuple(value for values in told for value in values) if told else None


def _overlaid(several: Iterable[dict[str, int] | None]) -> dict[str, int] | None:
    told = [values for values in several if values is not None]
    return {key: value for values in told for key, value in values.items()} if told else None
