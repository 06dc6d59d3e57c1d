"""Which cases a selection by name picks (``only``, ``--only``), and what a run that made one was not asked."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from evaluatorq.records.facts import Case, RunFacts


def is_chosen(names: Iterable[str], pattern: str) -> bool:
    """One of the names holds the pattern, or fits it as a glob for all of it; letter case is free."""
    wanted = pattern.strip().casefold()
    return any(wanted in name or fnmatchcase(name, wanted) for name in map(str.casefold, names))


def selection_of(facts: RunFacts) -> str | None:
    """The selection that the run's own record says it was started with, ``None`` for a run of all its cases."""
    only = facts.header.config.get("only")
    return only if isinstance(only, str) and only.strip() else None


def is_asked(case: Case, only: str) -> bool:
    """A run with this selection would have had the case, had it been given it."""
    return is_chosen((case.id, case.persona, case.scenario), only)
