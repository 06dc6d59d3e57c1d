"""What an agent did over the samples of a case, and where its conversations got stuck; facts only, no wording.

A case is *flaky by result* when some of its measured samples passed and some did not, and *flaky by behaviour* when
they did different things; either may be without the other. Samples that nobody could measure are counted apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from evaluatorq.model.observation import Observation, hash_of
from evaluatorq.model.results import SimulationResult
from evaluatorq.records.expectations import is_measured
from evaluatorq.records.observation import conversation_signature
from evaluatorq.records.verdicts import Verdict, verdict_of


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One way in which a case went: its signature, how many samples went so, and the verdicts that they got."""

    signature: str
    count: int
    verdicts: tuple[Verdict, ...]

    @property
    def hash(self) -> str:
        """A digest of the signature, 32 hex digits."""
        return hash_of(self.signature)


@dataclass(frozen=True, slots=True)
class CaseBehaviours:
    """The samples of one datapoint. ``behaviours`` come most frequent first, then by their text."""

    datapoint_id: str
    behaviours: tuple[Behaviour, ...]
    unmeasured: int

    @property
    def measured(self) -> int:
        """How many samples say something about the agent."""
        return sum(behaviour.count for behaviour in self.behaviours)

    @property
    def flaky_behaviour(self) -> bool:
        """Samples did different things."""
        return len(self.behaviours) > 1

    @property
    def flaky_result(self) -> bool:
        """Some samples passed and some did not; samples that nobody decided are neither."""
        verdicts = {verdict for behaviour in self.behaviours for verdict in behaviour.verdicts}
        return "passed" in verdicts and bool(verdicts & {"failed", "errored"})


def behaviours_of(results: Iterable[SimulationResult]) -> list[CaseBehaviours]:
    """The behaviours of each datapoint, in the order in which the datapoints first come."""
    cases: dict[str, list[SimulationResult]] = {}
    for result in results:
        cases.setdefault(str(result.metadata.get("datapoint_id") or ""), []).append(result)
    return [_behaviours(identity, samples) for identity, samples in cases.items()]


def _behaviours(identity: str, samples: Sequence[SimulationResult]) -> CaseBehaviours:
    verdicts: dict[str, list[Verdict]] = {}
    measured = [result for result in samples if is_measured(result) and result.observations]
    for result in measured:
        verdicts.setdefault(conversation_signature(result.observations), []).append(verdict_of(result))
    found = [Behaviour(signature, len(got), tuple(got)) for signature, got in verdicts.items()]
    found.sort(key=lambda behaviour: (-behaviour.count, behaviour.signature))
    return CaseBehaviours(identity, tuple(found), len(samples) - len(measured))


# ---------------------------------------------------------------- where a conversation got stuck

_ASKS = re.compile(r"[^.!?]*\?")
_CLOSERS = "\"'\u201d\u2019)]*_ \n"


@dataclass(frozen=True, slots=True)
class Flow:
    """Turns (by number) that led nowhere: an answer without a way on, a question asked again, an offer taken back.

    ``refused`` are operations that were refused, whoever had asked for them.
    """

    dead_ends: tuple[int, ...] = ()
    loops: tuple[int, ...] = ()
    refused_offers: tuple[int, ...] = ()
    refused: tuple[str, ...] = field(default=())

    @property
    def violations(self) -> int:
        """Dead ends and refused offers."""
        return len(self.dead_ends) + len(self.refused_offers)


def flow_of(result: SimulationResult) -> Flow:
    """Where the conversation got stuck. Its last turn may end without a way on."""
    turns = result.observations
    pairs = list(pairwise(turns))
    return Flow(
        dead_ends=tuple(seen.turn for seen, _ in pairs if _is_dead_end(seen)),
        loops=tuple(seen.turn for before, seen in pairs if _asks(before) and _asks(before) == _asks(seen)),
        refused_offers=tuple(
            seen.turn for before, seen in pairs if set(before.offers or ()) & set(refused_operations(seen))
        ),
        refused=tuple(operation for seen in turns for operation in refused_operations(seen)),
    )


def refused_operations(seen: Observation) -> tuple[str, ...]:
    """Operations that were refused in a turn: tool calls that were rejected, and acts whose outcome says so."""
    calls = [call.name for call in seen.tool_calls or () if call.outcome == "rejected"]
    acts = [act.operation for act in seen.acts or () if act.outcome == "rejected" and act.operation]
    return (*calls, *acts)


def _is_dead_end(seen: Observation) -> bool:
    """The agent answered, did nothing, and left nothing to go on from: no question, offer or open card."""
    if not seen.answer or seen.error_code is not None or seen.states:
        return False
    open_card = any(card.status == "active" for card in seen.interactions or ())
    return not (seen.answer.rstrip(_CLOSERS).endswith("?") or seen.asks or seen.offers or open_card)


def _asks(seen: Observation) -> tuple[str, ...]:
    """What a turn asked for, as reported, else its questions without regard to case and spaces."""
    if seen.error_code is not None:
        return ()
    if seen.asks is not None:
        return seen.asks
    return tuple(" ".join(question.casefold().split()) for question in _ASKS.findall(seen.answer))
