"""Which optional part of a request an endpoint cannot take, where all it says of it is status 500.

Such an answer looks like an overload, so nothing is concluded from one. The next request, usually the caller's own
retry, goes out without one of the parts that never worked here; if that is answered, the one after it is whole again.
Only when that went back and forth so often, and nothing else happened in between, is the part given up. No request is
made that would not have been made anyway, and a part that worked once is never doubted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

FORM = "form"
"""The part by which a request asks for an object: its tool, or its response format."""
SIGNS = 3
"""So many failures with a part, each followed by a success without it, show that the endpoint cannot take it."""


class Trial:
    """What requests leave out for now. Compared by identity: an answer to an earlier trial's request shows nothing."""

    __slots__ = ("left_out",)

    def __init__(self, left_out: Iterable[str] = ()) -> None:
        self.left_out = frozenset(left_out)


class Doubts:
    """The doubts about one model at one endpoint. ``trial`` is what the next request should leave out."""

    def __init__(self) -> None:
        self.trial = Trial()
        self._accepted: set[str] = set()
        self._plan: list[Trial] = []
        self._signs: Counter[frozenset[str]] = Counter()

    def answered(self, trial: Trial, parts: frozenset[str]) -> frozenset[str]:
        """Books a request with these parts that was answered. Returns the parts to give up, mostly none."""
        if not parts <= self._accepted:
            self._accepted |= parts
        if trial is not self.trial or not trial.left_out:
            return frozenset()
        self._signs[trial.left_out] += 1
        self.trial = Trial()
        return trial.left_out if self._signs[trial.left_out] >= SIGNS else frozenset()

    def failed(self, trial: Trial, parts: frozenset[str]) -> None:
        """Books a request with these parts that failed with status 500."""
        if trial is not self.trial:
            return
        if not trial.left_out:
            doubtful = sorted(parts - self._accepted, key=lambda part: part != FORM)
            self._plan = [Trial((part,)) for part in doubtful] + [Trial(doubtful)] * (len(doubtful) > 1)
        self._signs.pop(trial.left_out, None)
        self.trial = self._plan.pop(0) if self._plan else Trial()

    def forget(self, part: str) -> None:
        """The part means something else from now on."""
        self._accepted.discard(part)
        self._signs.clear()
