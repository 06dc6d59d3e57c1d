"""Pages of one conversation: what was said and what rests on it, its events as they were written, and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from evaluatorq.reports.agreement import Agreement
from evaluatorq.reports.transcript import conversation_view
from evaluatorq.simulation.privacy import redactor_for
from evaluatorq.viewer.books import Book, OngoingBook
from evaluatorq.viewer.choice import Choice, Entry
from evaluatorq.viewer.shelf import Found, head
from evaluatorq.viewer.site import Site
from evaluatorq.viewer.tail import words_of
from evaluatorq.viewer.talk import label_of, subjects_of, turn_facts

LONGEST_NOTE = 4000


def conversation(site: Site, request: Request) -> Response:
    """One conversation with its verdicts beside the words they rest on."""
    found, book = site.opened(request)
    number = int(request.path_params["number"])
    view = conversation_view(book.result(number), number)
    values = site.head_values(found, book)
    labels = site.labels(found).read()
    choice = Choice.of(request.query_params)
    before, after = _neighbours(choice.chosen(book.entries.values(), labels), number)
    return site.pages.page(
        "conversation_page.html.j2", request, view=view, line=view.line, result=view.result, facts=turn_facts(view),
        subjects=subjects_of(view, labels), choice=choice, before=before, after=after,
        unfinished=isinstance(book, OngoingBook) and number not in book.entries, can_label=number in book.entries,
        **values,
    )  # fmt: skip


def _neighbours(chosen: Sequence[Entry], number: int) -> tuple[int | None, int | None]:
    """The conversations before and after this one in the order in which the reader has them."""
    order = [entry.line.index for entry in chosen]
    if number not in order:
        return None, None
    at = order.index(number)
    return (order[at - 1] if at else None), (order[at + 1] if at + 1 < len(order) else None)


def events(site: Site, request: Request) -> Response:
    """The events of a conversation as the journal has them; without a journal, its record."""
    found, book = site.opened(request)
    number = int(request.path_params["number"])
    result = book.result(number)
    read = site.library.events(found.journal, number) if found.journal else []
    told = [(event, words_of(event), event.model_dump_json(indent=2, exclude_defaults=True)) for event in read]
    return site.pages.page(
        "events.html.j2", request, number=number, events=told,
        record=result.model_dump_json(indent=2), **site.head_values(found, book),
    )  # fmt: skip


def record(site: Site, request: Request) -> Response:
    """One conversation's record as a JSON document."""
    _, book = site.opened(request)
    result = book.result(int(request.path_params["number"]))
    return Response(result.model_dump_json(indent=2).encode("utf-8", "backslashreplace"), media_type="application/json")


# ---------------------------------------------------------------- labels


def labels(site: Site, request: Request) -> Response:
    """The labels of a run and how often they agree."""
    found, book = site.opened(request)
    agreement = Agreement.of(site.labels(found).read().values())
    return site.pages.page(
        "labels.html.j2", request, tab="labels", agreement=agreement, **site.head_values(found, book)
    )


def labels_file(site: Site, request: Request) -> Response:
    """The labels as JSON Lines, to be kept."""
    labels = site.labels(site.found(request))
    lines = "".join(label.model_dump_json() + "\n" for label in labels.read().values())
    name = quote(labels.path.name)
    return Response(
        lines.encode("utf-8", "backslashreplace"), media_type="application/x-ndjson",
        headers={"content-disposition": f"attachment; filename*=utf-8''{name}"},
    )  # fmt: skip


def put_label(site: Site, request: Request, fields: Mapping[str, str]) -> Response:
    """Saves or removes the label that a form holds, and goes back to where it stood."""
    found, book = site.opened(request)
    number = int(request.path_params["number"])
    if number not in book.entries:
        raise HTTPException(404, "Only a conversation that has ended has verdicts to label.")
    view = conversation_view(book.result(number), number)
    subject = next((one for one in subjects_of(view, {}) if one.key == fields.get("subject")), None)
    said = fields.get("say")
    if subject is None or said not in ("agree", "disagree", "remove"):
        raise HTTPException(400, "A label says agree, disagree or remove of one of the verdicts of the conversation.")
    if said == "remove":
        site.labels(found).remove((number, subject.key))
    else:
        note = _redacted(" ".join(fields.get("note", "").split())[:LONGEST_NOTE], found, book)
        label = label_of(view, subject, book.about.run_id, agrees=said == "agree", note=note)
        site.labels(found).put(label)
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"/runs/{quote(found.key, safe='')}/{number}{query}#v-{subject.key}", 303)


def _redacted(note: str, found: Found, book: Book) -> str:
    """The note without credentials, and by the rules by which the run itself was redacted."""
    config = book.run.plan.config if isinstance(book, OngoingBook) else head(found.file).config if found.file else {}
    rules = config.get("redact")
    return redactor_for([rule for rule in rules if isinstance(rule, str)] if isinstance(rules, list) else ()).text(note)
