"""Whether the hidden truth of a run stayed hidden: what construction proves, what a search found, and where."""

from __future__ import annotations

from collections.abc import Iterable

from evaluatorq.model.base import Record
from evaluatorq.model.cognition import Leak
from evaluatorq.model.results import SimulationResult


class FoundLeak(Record):
    """A leak, and the conversation that it is in."""

    case: str
    leak: Leak


class SecrecySummary(Record):
    """Over a run. ``cases`` have a truth, for ``proven`` of them the user's prompt cannot depend on it; counts of
    hidden values that were ``searched`` for, that are ``not_distinctive`` (only construction keeps them), that a tool
    ``released`` before anybody said them, and that the case itself tells.
    """

    cases: int = 0
    proven: int = 0
    conversations: int = 0
    searched: int = 0
    not_distinctive: int = 0
    released: int = 0
    told_by_the_case: int = 0
    leaks: tuple[FoundLeak, ...] = ()


def pooled(results: Iterable[SimulationResult], *, cases: int = 0, proven: int = 0) -> SecrecySummary:
    """The secrecy of all conversations that have a truth."""
    told = [
        (str(result.metadata.get("datapoint_id") or result.thread_id), result.cognition.secrecy)
        for result in results
        if result.cognition is not None and result.cognition.secrecy is not None
    ]
    return SecrecySummary(
        cases=cases,
        proven=proven,
        conversations=len(told),
        searched=sum(len(secrecy.searched) for _, secrecy in told),
        not_distinctive=sum(len(secrecy.not_distinctive) for _, secrecy in told),
        released=sum(len(secrecy.released) for _, secrecy in told),
        told_by_the_case=sum(len(secrecy.told_by_the_case) for _, secrecy in told),
        leaks=tuple(FoundLeak(case=case, leak=leak) for case, secrecy in told for leak in secrecy.leaks),
    )
