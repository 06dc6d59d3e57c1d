"""Scores how a message was understood, task by task: cut into parts, sent the right way, found, and read.

The understanding is what the target reported: ``{"units": [{"words", "kind", "acts": [{"operation", "record",
"arguments"}]}]}``. Scores are no failures. A task that nothing was stated about is ``None``; where nothing was
understood, stated tasks are false.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from evaluatorq.conversation.checks import same_json
from evaluatorq.conversation.quotes import fold
from evaluatorq.model.expectations import Expectations, UnitClaim
from evaluatorq.model.findings import TaskScores
from evaluatorq.model.observation import Observation

_EDGES = " .,;:!?"


class _ReadAct(BaseModel):
    model_config = ConfigDict(frozen=True)

    operation: str | None = None
    record: str | None = None
    arguments: dict[str, JsonValue] = {}


class _ReadUnit(BaseModel):
    model_config = ConfigDict(frozen=True)

    kind: str = ""
    words: str = ""
    acts: tuple[_ReadAct, ...] = ()


class _Reading(BaseModel):
    units: tuple[_ReadUnit, ...] = ()


@dataclass(frozen=True, slots=True)
class _Pair:
    claim: UnitClaim
    act: _ReadAct | None


def score_understanding(expect: Expectations, observations: Sequence[Observation]) -> list[TaskScores]:
    """The scores of each turn that says how it should be understood, in the order of the expectations."""
    by_number = {seen.turn: seen for seen in observations}
    scores = []
    for claims in expect.turns:
        seen = observations[-1:] if claims.turn == "last" else [by_number[n] for n in (claims.turn,) if n in by_number]
        if claims.understanding is not None and seen:
            scores.append(_scored(claims.understanding, seen[0]))
    return scores


def _scored(claims: Sequence[UnitClaim], seen: Observation) -> TaskScores:
    units = _units(seen.understanding)
    pairs = [_Pair(claim, _act_for(claim, _unit_for(claim, i, claims, units))) for i, claim in enumerate(claims)]
    return TaskScores(
        turn=seen.turn,
        segment=_segmented(claims, units),
        route=_every([p.act is not None and p.act.operation == p.claim.operation for p in pairs if p.claim.operation]),
        locate=_every([p.act is not None and p.act.record == p.claim.record for p in pairs if p.claim.record]),
        extract=_every([_extracted(p) for p in pairs if p.claim.arguments is not None]),
    )


def _units(understanding: JsonValue) -> tuple[_ReadUnit, ...]:
    try:
        return _Reading.model_validate(understanding or {}).units
    except ValidationError:
        return ()


def _every(held: list[bool]) -> bool | None:
    return all(held) if held else None


def _words(text: str) -> str:
    return fold(text).strip(_EDGES)


def _segmented(claims: Sequence[UnitClaim], units: Sequence[_ReadUnit]) -> bool:
    return len(claims) == len(units) and all(
        claim.kind == unit.kind and (claim.words is None or _words(claim.words) == _words(unit.words))
        for claim, unit in zip(claims, units, strict=True)
    )


def _unit_for(
    claim: UnitClaim, position: int, claims: Sequence[UnitClaim], units: Sequence[_ReadUnit]
) -> _ReadUnit | None:
    """The unit with the same words, else the one at the same place where there are equally many."""
    if claim.words is not None:
        same = next((unit for unit in units if _words(unit.words) == _words(claim.words)), None)
        if same is not None:
            return same
    return units[position] if len(units) == len(claims) else None


def _act_for(claim: UnitClaim, unit: _ReadUnit | None) -> _ReadAct | None:
    acts = unit.acts if unit else ()
    return next((act for act in acts if act.operation == claim.operation), acts[0] if acts else None)


def _extracted(pair: _Pair) -> bool:
    given = pair.act.arguments if pair.act else {}
    return pair.act is not None and all(
        (name not in given or given[name] is None)
        if wanted.not_given
        else name in given and same_json(given[name], wanted.equals)
        for name, wanted in (pair.claim.arguments or {}).items()
    )
