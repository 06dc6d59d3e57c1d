"""Proves a recorded conversation: steps its events through today's machine and notes every difference.

Nobody is asked. Every recorded answer must fit the question that the machine asks at that place, by its digest; what
the machine decides alone (fixed lines, the ending) must be what was recorded; nothing may be missing or too much. After
a difference in the order of things there is nothing to go on with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, JsonValue

from evaluatorq.conversation.machine import Conversation, Phase, apply, begin, next_request, request_digest
from evaluatorq.conversation.requests import AskUser, Request, Stop
from evaluatorq.errors import ProtocolError
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.events import (
    RECORDED,
    REDACTED,
    CallFailed,
    Ended,
    Event,
    Noted,
    Observed,
    Resumed,
    Scored,
    Started,
    UserSpoke,
)
from evaluatorq.model.runs import Limits
from evaluatorq.records.drift import Drift, DriftKind, differences
from evaluatorq.records.due import answers, ending_differences, event_digest, from_outside, misplaced

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class Proof:
    """What stepping through a conversation came to. ``drifts`` number its recorded events from 0.

    ``redacted`` means that what was written is not what was asked, so that only ``record`` tells how it came out.
    """

    state: Conversation
    drifts: list[Drift] = field(default_factory=list)
    scores: dict[str, Scored] = field(default_factory=dict)
    redacted: bool = False
    record: JsonValue = None

    @property
    def is_over(self) -> bool:
        """The conversation came to an end that the machine agrees with."""
        return self.state.phase is Phase.OVER


def prove(datapoint: SimulationDatapoint, limits: Limits, events: Sequence[Event]) -> Proof:
    """Steps through one conversation."""
    proof = Proof(begin(datapoint, limits))
    for number, event in enumerate(events):
        match event:
            case Noted() if event.what == REDACTED:
                return _redacted(proof, events)
            case Scored():
                proof.scores[event.evaluator] = event
            case Started() | Resumed() | Noted() | Observed():
                if isinstance(event, Resumed) and event.restart:
                    proof.scores.clear()
            case _:
                if not _fits(proof, number, event, events[number + 1 :]):
                    return proof
        try:
            proof.state = apply(proof.state, event)
        except ProtocolError as error:
            proof.drifts.append(Drift("extra_step", number, "/kind", event.kind, str(error)))
            return proof
    if not proof.is_over:
        wanted = next_request(proof.state)
        proof.drifts.append(Drift("missing_step", len(events), "/kind", None, type(wanted).__name__))
    return proof


def _redacted(proof: Proof, events: Sequence[Event]) -> Proof:
    """Its digests are over the copy, its questions were not; the whole record stands at its end."""
    proof.redacted = True
    for event in events:
        if isinstance(event, Scored):
            proof.scores[event.evaluator] = event
        elif isinstance(event, Noted) and event.what == RECORDED:
            proof.record = event.data
    return proof


def _fits(proof: Proof, number: int, event: Event, later: Sequence[Event]) -> bool:
    """Whether the recorded event answers what the machine asks now; what is amiss is noted."""
    if proof.state.phase is Phase.OVER:
        proof.drifts.append(Drift("extra_step", number, "/kind", event.kind, None))
        return False
    request = next_request(proof.state)
    if isinstance(event, Ended):
        return _ends(proof, number, event, request)
    if isinstance(request, Stop) or not (isinstance(event, CallFailed) or answers(event, request)):
        proof.drifts.append(Drift(misplaced(request, later), number, "/kind", event.kind, type(request).__name__))
        return False
    recorded, now = event_digest(event), request_digest(proof.state, request)
    if recorded not in ("", now):
        proof.drifts.append(Drift("request_drift", number, "/digest", recorded, now))
    if isinstance(event, UserSpoke) and isinstance(request, AskUser):
        proof.drifts += _fixed_line(number, event, request)
    return True


def _fixed_line(number: int, event: UserSpoke, request: AskUser) -> Iterator[Drift]:
    """A line that the case fixes is the machine's own, not an answer."""
    simulated = event.source == "simulated"
    if simulated != (request.scripted is None):
        yield Drift(
            "request_drift", number, "/source", event.source, "simulated" if request.scripted is None else "scripted"
        )
    elif request.scripted is not None and event.text != (text := _SURROGATE.sub("\ufffd", request.scripted)):
        yield Drift("result_drift", number, "/text", event.text, text)


def _ends(proof: Proof, number: int, event: Ended, request: Request) -> bool:
    """An ending that the machine decides is decided again; one that came from outside is taken as it is."""
    if not isinstance(request, Stop):
        if from_outside(event):
            return True
        proof.drifts.append(
            Drift("terminal_drift", number, "/terminated_by", event.terminated_by, type(request).__name__)
        )
        return False
    for name, recorded, now in ending_differences(event, request):
        proof.drifts.append(Drift("terminal_drift", number, f"/{name}", recorded, now))
    return True


def record_drifts(recorded: BaseModel, replayed: BaseModel, *, without: Iterable[str] = ()) -> Iterator[Drift]:
    """Every place where a saved result or run is not what its events come to today, but for the fields ``without``.
    What a file of an older version does not have, at any depth, is not compared.
    """
    whole, now = (one.model_dump(mode="json", exclude=set(without), warnings=False) for one in (recorded, replayed))
    told = recorded.model_dump(mode="json", exclude=set(without), exclude_unset=True, warnings=False)
    for path, old, new in differences(told, _as_told(now, whole, told)):
        kind: DriftKind = "terminal_drift" if path in ("/terminated_by", "/ended_by") else "result_drift"
        yield Drift(kind, None, path, old, new)


def _as_told(now: JsonValue, whole: JsonValue, told: JsonValue) -> JsonValue:
    """``now`` without the fields that the recorded document has by default only."""
    match now, whole, told:
        case dict(), dict(), dict():
            names = [name for name in now if name in told or name not in whole]
            return {name: _as_told(now[name], whole.get(name), told.get(name)) for name in names}
        case list(), list(), list() if len(now) == len(whole) == len(told):
            return [_as_told(*items) for items in zip(now, whole, told, strict=True)]
    return now


def value_drifts(path: str, recorded: JsonValue, replayed: JsonValue) -> Iterator[Drift]:
    """The differences of two values that stand at ``path``."""
    return (Drift("result_drift", None, path + place, old, new) for place, old, new in differences(recorded, replayed))


def missing_conversation(path: str, recorded: Iterable[int]) -> Iterator[Drift]:
    """Saved results that no recording stands behind."""
    return (Drift("missing_step", None, f"{path}/{row}", "a result", "no recording") for row in recorded)
