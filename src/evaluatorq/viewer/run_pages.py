"""Pages of runs: the list, a run's conversations, its numbers, and what goes on in it now."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from evaluatorq.viewer.books import OngoingBook
from evaluatorq.viewer.choice import PAGE, Choice, Entry, Hit, search
from evaluatorq.viewer.shelf import Shelved, Wanted
from evaluatorq.viewer.site import Site
from evaluatorq.viewer.tail import last_events

MOST_RUNS = 500
_MOST_IN_FLIGHT = 12


def runs(site: Site, request: Request) -> Response:
    """The list of runs, narrowed to what the address asks for."""
    wanted = Wanted.of(request.query_params)
    all_runs = site.shelf.runs()
    shown = [run for run in all_runs if wanted.accepts(run)]
    return site.pages.page(
        "runs.html.j2", request, wanted=wanted, runs=shown[:MOST_RUNS], found=len(shown), total=len(all_runs),
        statuses=_values(all_runs, "status"), targets=_values(all_runs, "target"),
        alive=any(run.alive for run in all_runs),
    )  # fmt: skip


def _values(runs: Sequence[Shelved], name: str) -> list[str]:
    return sorted({str(getattr(run, name)) for run in runs} - {""})


def conversations(site: Site, request: Request) -> Response:
    """A page of a run's conversations; with words to look for, those in which they were said."""
    found, book = site.opened(request)
    choice = Choice.of(request.query_params)
    chosen = choice.chosen(book.entries.values(), site.labels(found).read() if choice.label else {})
    pages = max(1, -(-len(chosen) // PAGE))
    page = min(choice.page, pages)
    if choice.q:
        hits = search(chosen, choice.q, choice.start, book.read)
        shown, next_start = hits.found, hits.next_start
    else:
        shown, next_start = [Hit(entry) for entry in chosen[(page - 1) * PAGE : page * PAGE]], None
    return site.pages.page(
        "conversations.html.j2", request, tab="conversations", choice=choice, hits=shown, found=len(chosen), page=page,
        pages=pages, next_start=next_start, options=_options(list(book.entries.values())),
        **site.head_values(found, book),
    )  # fmt: skip


def _options(entries: Sequence[Entry]) -> dict[str, list[str]]:
    """What can be chosen from: every value that occurs."""
    return {
        "outcome": list(dict.fromkeys(sorted(entry.line.verdict for entry in entries))),
        "persona": sorted({entry.line.persona for entry in entries}),
        "scenario": sorted({entry.line.scenario for entry in entries}),
        "criterion": sorted({rule for entry in entries for rule in entry.criteria}),
        "evaluator": sorted({name for entry in entries for name in entry.scores}),
    }


def overview(site: Site, request: Request) -> Response:
    """A saved run's numbers: rates, what to look at first, criteria, personas and scenarios."""
    found, _, book = site.saved(request)
    return site.pages.page(
        "overview.html.j2", request, tab="overview", doc=book.document, summary=book.document.summary,
        findings=book.document.summary.findings(10), **site.head_values(found, book),
    )  # fmt: skip


def live(site: Site, request: Request) -> Response:
    """What goes on in a run that is not finished; a finished one has no such page."""
    found, book = site.opened(request)
    if not isinstance(book, OngoingBook) or found.journal is None:
        return RedirectResponse(f"{request.url.path.removesuffix('/live')}", 302)
    plan = book.run.plan
    flying = [(row, plan.datapoints[row]) for row in book.in_flight]
    return site.pages.page(
        "live.html.j2", request, tab="live", flying=flying[:_MOST_IN_FLIGHT], more=len(flying) - _MOST_IN_FLIGHT,
        planned=len(plan.datapoints), told=last_events(found.journal, plan), **site.head_values(found, book),
    )  # fmt: skip
