"""Two runs side by side: what flipped first, then the numbers in words, and both transcripts of a flip."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from evaluatorq.errors import RunNotFound
from evaluatorq.records.compare import Comparison, Flip, compare_facts
from evaluatorq.records.facts import RunFacts
from evaluatorq.reports.comparison import MARKS as WORD_MARKS
from evaluatorq.reports.comparison import shown_evidence
from evaluatorq.reports.transcript import ConversationView, conversation_view
from evaluatorq.store.run_facts import read_facts
from evaluatorq.viewer.site import Site

_MOST_GROUPS = 50


def compare(site: Site, request: Request) -> Response:
    """The comparison of two runs; without two, a form to choose them."""
    saved = [run for run in site.shelf.runs() if run.error is None and run.status == "completed"]
    keys = request.query_params.getlist("run")
    if len(keys) == 2:
        age = {run.key: run.created_at for run in saved}
        a, b = sorted(keys, key=lambda key: age.get(key, ""))
    else:
        a, b = request.query_params.get("a", ""), request.query_params.get("b", "")
    if not (a and b):
        chosen = [key for key in (*keys, a, b) if key]
        return site.pages.page("compare_choose.html.j2", request, runs=saved, chosen=chosen, asked=len(keys))
    found = _compared(site, a, b)
    return site.pages.page(
        "compare.html.j2", request, a=a, b=b, found=found, groups=_groups(found.flips)[:_MOST_GROUPS],
        left=max(0, len(_groups(found.flips)) - _MOST_GROUPS), shown=shown_evidence, word_marks=WORD_MARKS,
    )  # fmt: skip


def _groups(flips: Iterable[Flip]) -> list[list[Flip]]:
    """Flips of one rule in one direction together, in the order of the comparison."""
    groups: dict[tuple[str, str, str], list[Flip]] = {}
    for flip in flips:
        groups.setdefault((flip.change, flip.scenario, flip.rule), []).append(flip)
    return list(groups.values())


def _compared(site: Site, a: str, b: str) -> Comparison:
    return _comparison(_state(site, a), _state(site, b))


def _state(site: Site, key: str) -> tuple[Path, int, int]:
    """A run file and its state: what is known of it holds until that changes."""
    found = site.shelf.find(key)
    if found.file is None:
        raise RunNotFound(f"run {key} is not finished; go on with it first: evaluatorq sim resume {key}")
    state = found.file.stat()
    return found.file, state.st_mtime_ns, state.st_size


@lru_cache(maxsize=8)
def _comparison(a: tuple[Path, int, int], b: tuple[Path, int, int]) -> Comparison:
    return compare_facts(_facts(a), _facts(b))


@lru_cache(maxsize=4)
def _facts(state: tuple[Path, int, int]) -> RunFacts:
    return read_facts(state[0])


def talks(site: Site, request: Request) -> Response:
    """Both transcripts of one case side by side."""
    query = request.query_params
    sides = []
    for name, number in (("a", query.get("left", "")), ("b", query.get("right", ""))):
        key = query.get(name, "")
        if not number.isascii() or not number.isdecimal() or len(number) > 9:
            raise HTTPException(400, "An address of two conversations names both by their numbers.")
        found = site.shelf.find(key)
        book = site.library.open(found)
        view = conversation_view(book.result(int(number)), int(number))
        sides.append((name.upper(), key, book.about, view))
    same = _same_turns(*(view for *_, view in sides))
    return site.pages.page("talks.html.j2", request, sides=sides, same=same, a=query.get("a", ""), b=query.get("b", ""))


def _same_turns(a: ConversationView, b: ConversationView) -> int:
    """In how many turns from the beginning on the same was said and called."""
    same = 0
    for left, right in zip(a.turns, b.turns, strict=False):
        if [(row.speaker, row.text) for row in left.rows] != [(row.speaker, row.text) for row in right.rows]:
            break
        same += 1
    return same
