"""How often people agree with the verdicts of a run: over all labels, by who decided, and by rule."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from evaluatorq.model.labels import Label
from evaluatorq.records.verdicts import UNCOUNTED, Rate
from evaluatorq.reports.document import interval
from evaluatorq.reports.terminal import percent
from evaluatorq.reports.text import plural

DECIDED_BY = {"judge": "the judge", "check": "a check", None: "nobody, or not recorded"}


@dataclass(slots=True)
class Agreement:
    """Counts of labels: ``yes`` of a rate are those that agree, ``no`` those that do not."""

    overall: Rate = UNCOUNTED
    by_source: dict[str, Rate] = field(default_factory=dict)
    by_rule: dict[str, Rate] = field(default_factory=dict)

    @classmethod
    def of(cls, labels: Iterable[Label]) -> Agreement:
        """The agreement that ``labels`` come to."""
        found = cls()
        for label in labels:
            found.overall = found.overall.plus(label.agrees)
            for rates, key in ((found.by_source, DECIDED_BY[label.source]), (found.by_rule, label.rule)):
                rates[key] = rates.get(key, UNCOUNTED).plus(label.agrees)
        return found

    @property
    def words(self) -> str:
        """The rate as one sentence."""
        rate = self.overall
        if rate.share is None:
            return "Nobody has labelled a verdict of this run yet."
        share = f"{percent(rate.share)}{interval(rate)}"
        return f"Agreement with {rate.yes} of {plural(rate.decided, 'labelled verdict')} ({share})."
