"""The viewer as an ASGI application: addresses, and what an error looks like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from evaluatorq.errors import EvaluatorqError, RunNotFound
from evaluatorq.viewer import compare_pages, run_pages, talk_pages
from evaluatorq.viewer.books import StillReading
from evaluatorq.viewer.drawing import static_file
from evaluatorq.viewer.guard import Guard
from evaluatorq.viewer.site import MovedOn, Site

Page = Callable[[Site, Request], Response]
ADDRESSES: Mapping[str, Page] = {
    "/": run_pages.runs,
    "/compare": compare_pages.compare,
    "/compare/talks": compare_pages.talks,
    "/runs/{key}": run_pages.conversations,
    "/runs/{key}/overview": run_pages.overview,
    "/runs/{key}/live": run_pages.live,
    "/runs/{key}/labels": talk_pages.labels,
    "/runs/{key}/labels.jsonl": talk_pages.labels_file,
    "/runs/{key}/{number:int}": talk_pages.conversation,
    "/runs/{key}/{number:int}/events": talk_pages.events,
    "/runs/{key}/{number:int}/record.json": talk_pages.record,
}


def viewer_app(folder: Path, host: str = "127.0.0.1", site: Site | None = None) -> ASGIApp:
    """The viewer of the runs in ``folder``, for a server that listens on ``host``."""
    made = site or Site(folder)
    routes = [Route(address, _shown(made, page), methods=["GET"]) for address, page in ADDRESSES.items()]
    routes.append(Route("/runs/{key}/{number:int}/labels", _writing(made), methods=["POST"]))
    routes.append(Route("/static/{name}", _static, methods=["GET"]))
    errors = (HTTPException, EvaluatorqError, OSError, StillReading, MovedOn, Exception)
    handlers = {kind: partial(_failed, made) for kind in errors}
    return Guard(Starlette(routes=routes, exception_handlers=handlers), host)


def _shown(site: Site, page: Page) -> Callable[[Request], Response]:
    """Pages read files, so they are made in worker threads; Starlette does so for what is no coroutine."""

    def show(request: Request) -> Response:
        return page(site, request)

    return show


def _writing(site: Site) -> Callable[[Request], object]:
    async def put_label(request: Request) -> Response:
        fields = await site.forms.read(request)
        return await run_in_threadpool(talk_pages.put_label, site, request, fields)

    return put_label


def _static(request: Request) -> Response:
    try:
        content, kind = static_file(request.path_params["name"])
    except KeyError:
        raise HTTPException(404) from None
    return Response(content, headers={"content-type": kind})


def _failed(site: Site, request: Request, error: Exception) -> Response:
    match error:
        case MovedOn():
            return RedirectResponse(error.url, 302)
        case StillReading():
            return site.pages.page("reading.html.j2", request, alive=True, done=error.done, total=error.total)
        case RunNotFound():
            status, text = 404, str(error)
        case HTTPException():
            status, text = error.status_code, error.detail
        case EvaluatorqError() | OSError():
            status, text = 422, str(error)
        case _:
            status, text = 500, "This is a fault of evaluatorq; the terminal that runs the viewer shows where."
    return site.pages.error(request, status, text)
