"""How good what an agent believed was: its decision, the slots it filled, the facts it listed, its reasons.

Pure over one ``Measurable``. A number that cannot be had is ``None`` and ``missing`` says why; it is never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from pydantic import Field, JsonValue

from evaluatorq.model.assessments import Level, Scale
from evaluatorq.model.base import Record
from evaluatorq.records.accept import normal_form
from evaluatorq.records.belief import RENAMES
from evaluatorq.records.measurable import Held, Measurable

NO_SCALE = "the case declares no scale"
NO_TRUTH = "the case says no right level"
NO_LEVEL = "the agent never held a level"


class OrdinalDecision(Record):
    """The level the agent came to, and its way there. ``over`` is too grave, ``under`` too slight.

    ``flips`` counts changes of level. ``wrong_turns`` counts turns at whose end the level held was not the right one,
    out of ``held_turns`` with a level; a turn in which nothing was said of it has the level of the turn before.
    """

    truth: Level | None = None
    final: Level | None = None
    correct: bool | None = None
    absolute_error: int | None = None
    over: bool | None = None
    under: bool | None = None
    first_correct_turn: int | None = None
    flips: int | None = None
    wrong_turns: int | None = None
    held_turns: int | None = None
    confidence: str | float | None = None
    missing: dict[str, str] = Field(default_factory=dict)


class SlotCoverage(Record):
    """Which of the slots that the case names hold a value."""

    covered: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    share: float | None = None
    missing: dict[str, str] = Field(default_factory=dict)


class Match(Record):
    """Found against expected. ``precision`` is ``None`` where nothing was found, ``recall`` where nothing was expected,
    ``f1`` only where both are empty.
    """

    hits: tuple[str, ...] = ()
    surplus: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    precision: float | None = None
    recall: float | None = None
    f1: float | None = None
    missing: dict[str, str] = Field(default_factory=dict)


class ListMatch(Record):
    """A list of facts against what was expected, letter by letter and in normal form."""

    exact: Match
    normalised: Match


class Rationale(Record):
    """Whether steps give reasons, and how long these are in words."""

    steps: int = 0
    given: int = 0
    share: float | None = None
    at_the_end: bool | None = None
    words_at_the_end: int | None = None
    mean_words: float | None = None
    missing: dict[str, str] = Field(default_factory=dict)


class BeliefMetrics(Record):
    """Everything about one conversation. ``left_out`` says why it counts neither for nor against the agent."""

    case: str
    decision: OrdinalDecision
    slots: SlotCoverage
    lists: dict[str, ListMatch] = Field(default_factory=dict)
    rationale: Rationale
    left_out: str | None = None


def belief_metrics(seen: Measurable) -> BeliefMetrics:
    """All metrics of one conversation."""
    return BeliefMetrics(
        case=seen.case,
        decision=ordinal_decision(seen.held, seen.truth, seen.rules.scale, turns=seen.turns),
        slots=slot_coverage(seen.filled, seen.rules.slots),
        lists={name: list_match(listed.found, listed.expected) for name, listed in seen.lists.items()},
        rationale=rationale(seen.held),
        left_out=seen.left_out,
    )


# ---------------------------------------------------------------- the decision


def ordinal_decision(held: Sequence[Held], truth: JsonValue, scale: Scale | None, *, turns: int = 0) -> OrdinalDecision:
    """The decision of one conversation. ``turns`` is how often the user spoke; the last turn may be a silent one."""
    if scale is None:
        return OrdinalDecision(missing=dict.fromkeys(_DECISION, NO_SCALE))
    right, wanted = scale.level(truth), scale.place(truth)
    levels = [(step.turn, place) for step in held if (place := scale.place(step.value)) is not None]
    said = next((step for step in reversed(held) if step.value is not None), None)
    final = None if said is None else scale.place(said.value)
    missing = dict(_missing(said, final, wanted, truth))
    place_of_error = None if final is None or wanted is None else final - wanted
    first = next((turn for turn, place in levels if place == wanted), None) if wanted is not None else None
    if first is None and levels and wanted is not None:
        missing["first_correct_turn"] = "the level was never right"
    by_turn = _at_end_of_turns(levels, turns)
    return OrdinalDecision(
        truth=right,
        final=None if said is None or final is None else scale.level(said.value),
        correct=None if place_of_error is None else place_of_error == 0,
        absolute_error=None if place_of_error is None else abs(place_of_error),
        over=None if place_of_error is None else place_of_error < 0,
        under=None if place_of_error is None else place_of_error > 0,
        first_correct_turn=first,
        flips=sum(a != b for (_, a), (_, b) in pairwise(levels)) if levels else None,
        wrong_turns=sum(place != wanted for place in by_turn) if by_turn and wanted is not None else None,
        held_turns=len(by_turn) if by_turn else None,
        confidence=None if said is None else said.confidence,
        missing=missing,
    )


_JUDGED = ("correct", "absolute_error", "over", "under", "first_correct_turn", "wrong_turns")
_DECISION = ("truth", "final", *_JUDGED, "flips", "held_turns")


def _missing(said: Held | None, final: int | None, wanted: int | None, truth: JsonValue) -> Iterable[tuple[str, str]]:
    if wanted is None:
        reason = NO_TRUTH if truth is None else f"the right level {truth!r} is not on the scale"
        yield from ((name, reason) for name in ("truth", *_JUDGED))
    if said is None:
        yield from ((name, NO_LEVEL) for name in ("final", *_JUDGED, "flips", "held_turns"))
    elif final is None:
        reason = f"the last level {said.value!r} is not on the scale"
        yield from ((name, reason) for name in ("final", "correct", "absolute_error", "over", "under"))


def _at_end_of_turns(levels: Sequence[tuple[int, int]], turns: int) -> list[int]:
    """The place held at the end of each turn, from the first turn with one to the last turn there was."""
    if not levels:
        return []
    last = dict(levels)
    place, places = levels[0][1], []
    for turn in range(levels[0][0], max(turns, levels[-1][0]) + 1):
        place = last.get(turn, place)
        places.append(place)
    return places


# ---------------------------------------------------------------- slots, lists, reasons


def slot_coverage(filled: Iterable[str], slots: Sequence[str] | None) -> SlotCoverage:
    """Which of ``slots`` are among the ``filled`` ones."""
    if not slots:
        return SlotCoverage(missing={"share": "the case names no slots"})
    have = {RENAMES.get(slot, slot) for slot in filled}
    covered = tuple(slot for slot in slots if RENAMES.get(slot, slot) in have)
    absent = tuple(slot for slot in slots if slot not in covered)
    return SlotCoverage(covered=covered, absent=absent, share=len(covered) / len(slots))


def list_match(found: Iterable[str], expected: Iterable[str] | None) -> ListMatch:
    """Found items against expected ones; each counts once however often it stands in a list."""
    wanted = None if expected is None else list(expected)
    have = list(found)
    return ListMatch(
        exact=_match(have, wanted),
        normalised=_match(map(normal_form, have), None if wanted is None else map(normal_form, wanted)),
    )


def _match(found: Iterable[str], expected: Iterable[str] | None) -> Match:
    have = set(found)
    if expected is None:
        reason = "the case says no expected items"
        return Match(surplus=(), missing=dict.fromkeys(("precision", "recall", "f1"), reason))
    want = set(expected)
    hits = have & want
    missing = {"precision": "nothing was found"} if not have else {}
    if not want:
        missing["recall"] = "nothing was expected"
    if not have and not want:
        missing["f1"] = "nothing was expected and nothing found"
    return Match(
        hits=tuple(sorted(hits)),
        surplus=tuple(sorted(have - want)),
        lacking=tuple(sorted(want - have)),
        precision=len(hits) / len(have) if have else None,
        recall=len(hits) / len(want) if want else None,
        f1=2 * len(hits) / (len(have) + len(want)) if have or want else None,
        missing=missing,
    )


def rationale(held: Sequence[Held]) -> Rationale:
    """What reasons the steps give."""
    if not held:
        reason = "there are no steps to read reasons from"
        return Rationale(missing=dict.fromkeys(("share", "at_the_end", "words_at_the_end", "mean_words"), reason))
    lengths = [len(step.rationale.split()) for step in held if step.rationale]
    last = held[-1].rationale
    return Rationale(
        steps=len(held),
        given=len(lengths),
        share=len(lengths) / len(held),
        at_the_end=last is not None,
        words_at_the_end=len(last.split()) if last else 0,
        mean_words=sum(lengths) / len(lengths) if lengths else None,
        missing={} if lengths else {"mean_words": "no step gives reasons"},
    )
