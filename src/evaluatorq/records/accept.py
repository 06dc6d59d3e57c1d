"""Which proposed items get on a list, and why the others do not.

One rule for the tool that keeps the list while a conversation runs and for whoever reads the transcript later, so both
come to the same list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from evaluatorq.model.cognition import AcceptPolicy, Normal, Refusal


def normal_form(text: str, steps: Iterable[Normal] = ("lower", "strip", "collapse")) -> str:
    """The text as it is compared with others."""
    for step in steps:
        if step == "lower":
            text = text.lower()
        elif step == "strip":
            text = text.strip()
        else:
            text = " ".join(text.split()) if "strip" in steps else _collapsed(text)
    return text


def _collapsed(text: str) -> str:
    """Runs of white space as one space, also at the ends."""
    inner = " ".join(text.split())
    return f"{' ' * text[:1].isspace()}{inner}{' ' * (bool(inner) and text[-1:].isspace())}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one proposed item: what is on the list now, or why it is not."""

    value: JsonValue
    stored: str | None = None
    refused: Refusal | None = None


@dataclass
class Acceptance:
    """A list while it grows. Give it each call in the order in which the calls were made."""

    policy: AcceptPolicy
    accepted: list[str] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)
    _counts: Counter[int] = field(default_factory=Counter)

    @classmethod
    def holding(cls, policy: AcceptPolicy, accepted: Sequence[str]) -> Acceptance:
        """A list that holds items already; caps per turn and per run count only what is added from now on."""
        return cls(policy, list(accepted), {normal_form(item, policy.normalise) for item in accepted})

    def propose(self, values: JsonValue, turn: int = 0) -> list[Verdict]:
        """Decides about the items of one call, in order. A single text stands for a list of one."""
        given = values if isinstance(values, list) else [values]
        if self.policy.per == "call":
            self._counts.clear()
        seen = self._seen if self.policy.unique == "run" else set[str]()
        return [self._decide(value, seen, turn if self.policy.per == "turn" else 0) for value in given]

    def _decide(self, value: JsonValue, seen: set[str], period: int) -> Verdict:
        if not isinstance(value, str):
            return Verdict(value, refused="not_text")
        if not value.strip():
            return Verdict(value, refused="blank")
        form = normal_form(value, self.policy.normalise)
        if self.policy.unique is not None and form in seen:
            return Verdict(value, refused="duplicate")
        if self.policy.cap is not None and self._counts[period] >= self.policy.cap:
            return Verdict(value, refused="cap")
        seen.add(form)
        self._counts[period] += 1
        stored = form if self.policy.keep == "normalised" else value
        self.accepted.append(stored)
        return Verdict(value, stored=stored)


def accept(policy: AcceptPolicy, calls: Iterable[JsonValue]) -> list[list[Verdict]]:
    """What becomes of the items of several calls in one turn, a list for each call."""
    growing = Acceptance(policy)
    return [growing.propose(values) for values in calls]
