"""What is known about each criterion so far: a sticky fold over checks and verdicts.

Occurrence goes from no to yes and never back. ``audited`` means that somebody competent looked: a judge whose quote
holds (or who saw nothing), or a check. A strict judge's occurrence without a true quote takes the audit away until a
verdict that holds arrives, because "I saw it but cannot show it" is not "it did not happen".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evaluatorq.conversation.checks import occurrence
from evaluatorq.conversation.quotes import find_quote
from evaluatorq.model.cases import Check, Criterion, Scenario, criterion_id_for
from evaluatorq.model.judgments import CriterionVerdict
from evaluatorq.model.messages import Message
from evaluatorq.model.replacing import replace

QUOTE_REFUSED = "the quote is not in a message of the party the criterion is about"


@dataclass(frozen=True)
class Entry:
    """One criterion's standing."""

    occurred: bool = False
    audited: bool = False
    by_check: bool = False
    evidence: str = ""
    message_index: int | None = None
    verified: bool | None = None
    refused: str | None = None


@dataclass(frozen=True)
class Ledger:
    """The entries of a scenario's criteria in order, and of its goal where a check decides it."""

    entries: tuple[Entry, ...]
    goal: Entry = Entry()
    any_audit: bool = False

    @classmethod
    def empty(cls, scenario: Scenario) -> Ledger:
        """Nothing seen yet."""
        return cls(tuple(Entry(by_check=c.check is not None) for c in scenario.criterion_list))

    def open_ids(self, scenario: Scenario) -> tuple[str, ...]:
        """Ids that a judge is still asked about: no check decides them and they were not seen yet."""
        return tuple(
            criterion_id_for(i)
            for i, criterion in enumerate(scenario.criterion_list)
            if criterion.check is None and not self.entries[i].occurred
        )

    def violated(self, scenario: Scenario) -> bool:
        """A behaviour that must not happen was seen."""
        pairs = zip(scenario.criterion_list, self.entries, strict=True)
        return any(criterion.type == "must_not_happen" and entry.occurred for criterion, entry in pairs)


def observe(ledger: Ledger, scenario: Scenario, messages: tuple[Message, ...], start: int) -> Ledger:
    """Runs the checks over ``messages[start:]``, which were just added."""
    criteria = scenario.criterion_list
    goal_check = scenario.goal_check
    if goal_check is None and not any(criterion.check for criterion in criteria):
        return ledger
    entries = list(ledger.entries)
    goal = ledger.goal
    for index in range(start, len(messages)):
        for i, criterion in enumerate(criteria):
            entries[i] = _look(entries[i], criterion.check, index, messages)
        goal = _look(goal, goal_check, index, messages)
    return replace(ledger, entries=tuple(entries), goal=goal)


def _look(entry: Entry, check: Check | None, index: int, messages: tuple[Message, ...]) -> Entry:
    if check is None or entry.occurred:
        return entry
    seen = occurrence(check, index, messages[index], messages)
    if seen is None:
        return entry
    return replace(
        entry, occurred=True, audited=True, evidence=seen.evidence, message_index=seen.message_index, verified=True
    )


def fold_verdicts(
    ledger: Ledger,
    scenario: Scenario,
    verdicts: list[CriterionVerdict] | None,
    messages: tuple[Message, ...],
    *,
    strict: bool,
    refused: Mapping[str, str],
) -> Ledger:
    """Adds one judge's audit. Verdicts on unknown ids and on criteria that a check decides count for nothing."""
    criteria = scenario.criterion_list
    entries = list(ledger.entries)
    any_audit = ledger.any_audit
    for verdict in verdicts or ():
        if verdict.index >= len(criteria) or verdict.criterion_id != criterion_id_for(verdict.index):
            continue
        if criteria[verdict.index].check is not None:
            continue
        entries[verdict.index] = _judged(
            entries[verdict.index], verdict, criteria[verdict.index], messages, strict=strict
        )
        any_audit = any_audit or entries[verdict.index].audited
    for i, entry in enumerate(entries):
        reason = refused.get(criterion_id_for(i))
        if reason is not None and not entry.occurred and not entry.by_check:
            entries[i] = replace(entry, audited=False, refused=reason)
    return replace(ledger, entries=tuple(entries), any_audit=any_audit)


def _judged(
    entry: Entry, verdict: CriterionVerdict, criterion: Criterion, messages: tuple[Message, ...], *, strict: bool
) -> Entry:
    if entry.occurred:
        return entry
    if not verdict.occurred:
        return replace(entry, audited=True, refused=None)
    at = find_quote(verdict.evidence, messages, criterion.about)
    if at is None and strict:
        return replace(entry, audited=False, refused=QUOTE_REFUSED)
    return replace(
        entry,
        occurred=True,
        audited=True,
        evidence=verdict.evidence,
        message_index=at,
        verified=at is not None,
        refused=None,
    )
