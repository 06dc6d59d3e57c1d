"""Which optional part of a request an endpoint cannot take, where all it says of it is status 500.

Such an answer looks like an overload, so nothing is concluded from one. When its question is asked again, by a caller
who asks again anyway, it goes out without a part that never worked here; if that is answered, it is a sign, and the
next question is whole again. Signs count only one after the other, since what fails together may fail for one reason,
and one answer to a whole request, or one more failure without the part, sets them to nought. After some signs the part
is given up. No request is made on this account, and a part that worked once is never doubted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from weakref import WeakKeyDictionary

FORM = "form"
"""The part by which a request asks for an object: its tool, or its response format."""
SIGNS = 5
"""So many failures with a part, each made good without it, show that the endpoint cannot take it.

An overload that fails every third request passes for that in one of a thousand runs that ask one by one, and in fewer
that ask at once.
"""


@dataclass(frozen=True, slots=True)
class Trial:
    """How a question goes out: without what, which of that is to blame if it helps, and what is tried next.

    ``since`` counts the signs that there were when the question went out whole.
    """

    since: int
    left_out: frozenset[str] = frozenset()
    blamed: frozenset[str] = frozenset()
    then: frozenset[str] = frozenset()


class Doubts:
    """The doubts about one model at one endpoint. Who asks is told apart by identity and forgotten when gone."""

    def __init__(self) -> None:
        self._accepted: set[str] = set()
        self._signs: Counter[frozenset[str]] = Counter()
        self._count = 0
        self._whole = Trial(0)
        self._trials: WeakKeyDictionary[object, Trial] = WeakKeyDictionary()

    def trial(self, asker: object) -> Trial:
        """How the present question of ``asker`` goes out."""
        return self._trials.get(asker, self._whole) if self._trials else self._whole

    def answered(self, asker: object, trial: Trial, parts: frozenset[str]) -> frozenset[str]:
        """Books a request with these parts that was answered. Returns the parts to give up, mostly none."""
        if not parts <= self._accepted:
            self._accepted |= parts
            self._signs = Counter({blamed: n for blamed, n in self._signs.items() if not blamed & parts})
        if not trial.left_out:
            return frozenset()
        self._trials.pop(asker, None)
        if trial.since != self._count or trial.blamed & self._accepted:
            return frozenset()
        self._count += 1
        self._whole = Trial(self._count)
        self._signs[trial.blamed] += 1
        return trial.blamed if self._signs[trial.blamed] >= SIGNS else frozenset()

    def failed(self, asker: object, trial: Trial, parts: frozenset[str]) -> None:
        """Books a request with these parts that failed with status 500."""
        if trial.left_out:
            self._signs.pop(trial.blamed, None)
            self._trials.pop(asker, None)
            if trial.then:
                self._trials[asker] = Trial(trial.since, trial.then, trial.then - trial.left_out)
            return
        doubtful = parts - self._accepted
        first = doubtful & {FORM} or doubtful
        if doubtful:
            self._trials[asker] = Trial(trial.since, first, first, doubtful if first < doubtful else frozenset())

    def forget(self, part: str) -> None:
        """The part is another one from now on."""
        self._accepted.discard(part)
        self._signs.clear()
