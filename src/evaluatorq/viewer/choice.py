"""Which conversations of a run a reader asked for, in which order, and which page of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from evaluatorq.model.results import SimulationResult
from evaluatorq.records.verdicts import CriterionView, State
from evaluatorq.reports.view import ConversationLine
from evaluatorq.store.labels import Labels

PAGE = 50
LABELS: Mapping[str, str] = {
    "any": "labelled", "none": "not labelled", "agree": "you agree", "disagree": "you disagree",
}  # fmt: skip
STATES: Mapping[str, str] = {"fail": "broken", "unknown": "not audited", "pass": "held"}


@dataclass(frozen=True, slots=True)
class Entry:
    """What is kept of a conversation to choose it by. ``place`` is its position in the run's file."""

    line: ConversationLine
    criteria: Mapping[str, State]
    scores: Mapping[str, float]
    place: int


def entry_of(result: SimulationResult, line: ConversationLine, criteria: Iterable[CriterionView], place: int) -> Entry:
    """The entry of a result."""
    given = result.metadata.get("evaluator_scores")
    scores = {
        name: float(value)
        for name, value in (given.items() if isinstance(given, dict) else ())
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    return Entry(line, {criterion.rule: criterion.state for criterion in criteria}, scores, place)


SORTS: dict[str, tuple[str, Callable[[Entry, str], tuple[float | str, ...]]]] = {
    "worst": ("worst first", lambda entry, _: (*entry.line.severity,)),
    "number": ("number", lambda _entry, _: ()),
    "turns": ("most turns", lambda entry, _: (-entry.line.turns,)),
    "tokens": ("most tokens", lambda entry, _: (-(entry.line.tokens or 0),)),
    "persona": ("persona", lambda entry, _: (entry.line.persona.casefold(),)),
    "scenario": ("scenario", lambda entry, _: (entry.line.scenario.casefold(),)),
    "score": ("lowest score", lambda entry, name: (_lowest(entry, name),)),
}


def _lowest(entry: Entry, name: str) -> float:
    """The score that ``name`` gave, or the lowest of all; what has none comes last."""
    if name:
        return entry.scores.get(name, float("inf"))
    return min(entry.scores.values(), default=float("inf"))


@dataclass(frozen=True, slots=True)
class Choice:
    """The filters in an address. ``below`` keeps what the evaluator (or any) scored under it, ``q`` what was said."""

    outcome: str = ""
    persona: str = ""
    scenario: str = ""
    criterion: str = ""
    state: str = ""
    evaluator: str = ""
    below: float | None = None
    label: str = ""
    sort: str = "worst"
    q: str = ""
    page: int = 1
    start: int = 0

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Choice:
        """What an address asks for; what makes no sense is left out."""
        texts = {name: query.get(name, "") for name in ("outcome", "persona", "scenario", "criterion", "evaluator")}
        state, sort, label = query.get("state", ""), query.get("sort", ""), query.get("label", "")
        return cls(
            **texts, state=state if state in STATES else "", below=_number(query.get("below", "")),
            label=label if label in LABELS else "", sort=sort if sort in SORTS else "worst",
            q=" ".join(query.get("q", "").split()), page=max(1, _count(query.get("page", ""))),
            start=_count(query.get("start", "")),
        )  # fmt: skip

    @property
    def narrows(self) -> bool:
        """Whether anything is filtered at all."""
        texts = (self.outcome, self.persona, self.scenario, self.criterion, self.state, self.evaluator, self.label)
        return any(texts) or bool(self.q) or self.below is not None

    def query(self, **changes: object) -> str:
        """The address's query with some parts changed; parts at their defaults are left out."""
        parts = {name: getattr(self, name) for name in Choice.__slots__} | {"page": 1, "start": 0} | changes
        plain = Choice()
        return urlencode({name: value for name, value in parts.items() if value != getattr(plain, name)})

    def accepts(self, entry: Entry) -> bool:
        """Whether a conversation is chosen, its words aside."""
        line = entry.line
        return (
            self.outcome in ("", line.verdict)
            and self.persona in ("", line.persona)
            and self.scenario in ("", line.scenario)
            and self._has_criterion(entry)
            and self._has_score(entry)
        )

    def _has_criterion(self, entry: Entry) -> bool:
        if self.criterion and self.criterion not in entry.criteria:
            return False
        states = [entry.criteria[self.criterion]] if self.criterion else entry.criteria.values()
        return not self.state or self.state in states

    def _said_in(self, labels: Labels) -> set[int]:
        """The conversations that have a label such as is asked for, on whatever of their verdicts."""
        wanted = {"agree": (True,), "disagree": (False,)}.get(self.label, (True, False))
        return {label.row for label in labels.values() if label.agrees in wanted}

    def _has_score(self, entry: Entry) -> bool:
        if not self.evaluator and self.below is None:
            return True
        scores = [value for name, value in entry.scores.items() if self.evaluator in ("", name)]
        return any(self.below is None or value < self.below for value in scores)

    def chosen(self, entries: Iterable[Entry], labels: Labels) -> list[Entry]:
        """The conversations in order; of equals, the earlier one first."""
        key = SORTS[self.sort][1]
        accepted = filter(self.accepts, entries)
        if self.label:
            said = self._said_in(labels)
            accepted = filter(lambda entry: (entry.line.index in said) != (self.label == "none"), accepted)
        found = sorted(accepted, key=lambda entry: entry.line.index)
        return sorted(found, key=lambda entry: key(entry, self.evaluator))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None


def _count(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


# ---------------------------------------------------------------- what was said


@dataclass(frozen=True, slots=True)
class Hit:
    """A conversation in which the words were said; the first place, cut out of its surroundings."""

    entry: Entry
    before: str = ""
    words: str = ""
    after: str = ""


@dataclass(slots=True)
class Hits:
    """One page of a search; ``next_start`` is where the next begins, ``None`` when everything was read."""

    found: list[Hit] = field(default_factory=list)
    next_start: int | None = None


def search(
    entries: Sequence[Entry], words: str, start: int, read: Callable[[Entry, str | None], SimulationResult | None]
) -> Hits:
    """Reads conversations from position ``start`` on until a page is full, one at a time.

    ``read`` gets the longest of the words in lower case as a quick test, and may return ``None`` for a conversation
    whose record holds it nowhere; ``None`` for the test means that there is none.
    """
    hits, sought = Hits(), words.lower()
    for position in range(start, len(entries)):
        if len(hits.found) == PAGE:
            hits.next_start = position
            break
        result = read(entries[position], _needle(words))
        hit = _said(entries[position], result, sought) if result else None
        if hit is not None:
            hits.found.append(hit)
    return hits


def _needle(words: str) -> str | None:
    """A word that stands in JSON as it is; others are escaped there."""
    plain = [word for word in words.split() if json.dumps(word, ensure_ascii=False) == f'"{word}"']
    return max(plain, key=len).lower() if plain else None


def _said(entry: Entry, result: SimulationResult, sought: str) -> Hit | None:
    for message in result.messages:
        calls = " ".join(f"{call.function.name} {call.function.arguments}" for call in message.tool_calls or ())
        text = " ".join(f"{message.text} {calls}".split())
        at = text.lower().find(sought)
        if at >= 0:
            end = at + len(sought)
            cut = "…" if at > 60 else ""
            return Hit(entry, cut + text[max(0, at - 60) : at], text[at:end], text[end : end + 80])
    return None
