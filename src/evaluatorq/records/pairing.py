"""Which conversations of two runs are the same case in the same sample, and which have no partner and why.

A case is the same by its persona, scenario, script, criteria and first message, never by its id alone: a changed case
is not a result of the change that is being measured, so it is named and left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, KeysView
from dataclasses import dataclass, field, replace

from evaluatorq.records.chosen import is_asked, selection_of
from evaluatorq.records.facts import Case, ConversationFacts, RunFacts
from evaluatorq.records.fingerprint import PARTS


@dataclass(frozen=True, slots=True)
class Pair:
    """One sample of one case on both sides."""

    a: ConversationFacts
    b: ConversationFacts

    @property
    def errored(self) -> bool:
        """One of the two was cut short, so the pair says nothing."""
        return self.a.errored or self.b.errored

    @property
    def unread(self) -> int:
        """How many criteria, and the goal, held in A and were left undecided in B, or are not in its record at all."""
        others = {criterion.id: criterion.held for criterion in self.b.criteria}
        items = [(one.held, others.get(one.id)) for one in self.a.criteria]
        return [*items, (self.a.goal, self.b.goal)].count((True, None))


@dataclass(frozen=True, slots=True)
class Changed:
    """A case that both runs have by id or by names, with the parts in which it differs."""

    a: Case
    b: Case
    parts: tuple[str, ...]


@dataclass(slots=True)
class Pairing:
    """Two runs side by side, the pairs of a case one after another. ``unpaired`` counts samples without a partner,
    ``missing`` those that have no result, ``gone`` the conversations of cases that only A has. ``not_asked`` are cases
    of A that B was not to have, because B's own record names a selection (``only``) that leaves them out; what it
    should have had and has not is never among them. ``of`` counts A's cases.
    """

    pairs: list[Pair] = field(default_factory=list)
    changed: list[Changed] = field(default_factory=list)
    only_a: list[Case] = field(default_factory=list)
    only_b: list[Case] = field(default_factory=list)
    not_asked: list[Case] = field(default_factory=list)
    of: int = 0
    unpaired: int = 0
    missing: int = 0
    gone: int = 0
    unverified: int = 0


def paired(a: RunFacts, b: RunFacts) -> Pairing:
    """Pairs two runs by case and sample."""
    if any(not talk.case.parts for facts in (a, b) for talk in facts.conversations[:1]):
        a, b = _by_names(a), _by_names(b)
    left, right = _by_case(a.conversations), _by_case(b.conversations)
    gone_a, gone_b = (Counter(case.key for case in facts.missing) for facts in (a, b))
    found = Pairing()
    for key in left:
        if key in right:
            talks, others = _by_sample(left[key]), _by_sample(right[key])
            found.pairs += [Pair(talk, others[sample]) for sample, talk in talks.items() if sample in others]
            found.unpaired += _unpaired(talks.keys(), others.keys(), gone_a[key], gone_b[key])
            found.unverified += not left[key][0].case.parts
    cases_a, cases_b = _cases(a), _cases(b)
    found.missing = sum(case.key in cases_b for case in a.missing) + sum(case.key in cases_a for case in b.missing)
    _sort_unmatched(
        found,
        [case for key, case in cases_a.items() if key not in cases_b],
        [case for key, case in cases_b.items() if key not in cases_a],
    )
    found.of, only = len(cases_a), selection_of(b)
    if only is not None:
        found.not_asked = [case for case in found.only_a if not is_asked(case, only)]
        found.only_a = [case for case in found.only_a if is_asked(case, only)]
    gone = {case.key for case in found.only_a}
    found.gone = sum(case.key in gone for case in (*(talk.case for talk in a.conversations), *a.missing))
    return found


def _unpaired(a: KeysView[int], b: KeysView[int], gone_a: int, gone_b: int) -> int:
    """Samples without a partner: those that the other run was not to have. One that it has lost (``gone``) is missing
    and need not be counted twice; where the numbers do not tell, it is.
    """
    return max(len(a ^ b) - gone_a - gone_b, abs(len(a) + gone_a - len(b) - gone_b))


def _by_case(talks: Iterable[ConversationFacts]) -> dict[tuple[str, ...], list[ConversationFacts]]:
    cases: dict[tuple[str, ...], list[ConversationFacts]] = {}
    for talk in talks:
        cases.setdefault(talk.case.key, []).append(talk)
    return cases


def _by_sample(talks: Iterable[ConversationFacts]) -> dict[int, ConversationFacts]:
    """The first conversation of each sample."""
    samples: dict[int, ConversationFacts] = {}
    for talk in talks:
        samples.setdefault(talk.sample, talk)
    return samples


def _cases(facts: RunFacts) -> dict[tuple[str, ...], Case]:
    cases = [*(talk.case for talk in facts.conversations), *facts.missing]
    return {case.key: case for case in cases}


def _by_names(facts: RunFacts) -> RunFacts:
    """The run with cases known by id and names alone, as where one of two files does not keep its cases."""
    plain = [replace(talk, case=replace(talk.case, parts=())) for talk in facts.conversations]
    return RunFacts(facts.header, plain, [replace(case, parts=()) for case in facts.missing], facts.source)


def _sort_unmatched(found: Pairing, left: list[Case], right: list[Case]) -> None:
    """Sorts cases without an equal into changed ones and those that only one run has."""
    free = dict(enumerate(right))
    by_id = {case.id: number for number, case in free.items()}
    by_names: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, case in free.items():
        by_names[case.persona, case.scenario].append(number)
    for case in left:
        candidates = [by_id[case.id]] if case.id in by_id else []
        candidates += by_names[case.persona, case.scenario]
        taken = next((number for number in candidates if number in free), None)
        if taken is None:
            found.only_a.append(case)
            continue
        partner = free.pop(taken)
        both = zip(PARTS, case.parts, partner.parts, strict=False)  # of no length where a file keeps no cases
        parts = tuple(name for name, one, other in both if one != other)
        found.changed.append(Changed(case, partner, parts))
    found.only_b = list(free.values())
