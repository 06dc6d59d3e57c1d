"""Templates of the viewer: those of the HTML report, so that a verdict looks the same everywhere, and its own pages."""

from __future__ import annotations

import json
from datetime import datetime
from importlib.resources import files

from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import HTMLResponse

from evaluatorq.reports.document import QUALITY, interval
from evaluatorq.reports.html import template_environment
from evaluatorq.reports.plain_words import in_words
from evaluatorq.reports.terminal import percent
from evaluatorq.reports.view import VERDICTS
from evaluatorq.viewer.choice import LABELS, SORTS, STATES

STATIC = {
    "report.css": ("evaluatorq.reports", "templates/report.css", "text/css; charset=utf-8"),
    "viewer.css": ("evaluatorq.viewer", "static/viewer.css", "text/css; charset=utf-8"),
    "icon.svg": ("evaluatorq.viewer", "static/icon.svg", "image/svg+xml"),
    "live.js": ("evaluatorq.viewer", "static/live.js", "text/javascript; charset=utf-8"),
}
"""The files that pages load: where each of them is, and its type."""
_LONGEST_VALUE, _ONE_LINE = 2000, 60


class Pages:
    """Draws pages. ``folder`` is what the header says is looked at, ``token`` what forms must carry."""

    def __init__(self, folder: str, token: str) -> None:
        self._environment = template_environment("evaluatorq.viewer")
        self._environment.filters.update(json=as_json, when=_when, in_words=in_words)
        self._environment.globals.update(
            folder=folder, token=token, verdicts=VERDICTS, quality=QUALITY, states=STATES, label_words=LABELS,
            sorts=SORTS, percent=percent, interval=interval,
        )  # fmt: skip

    def page(self, template: str, request: Request, **values: object) -> HTMLResponse:
        """A whole page."""
        text = self._environment.get_template(template).render(path=request.url.path, **values)
        return HTMLResponse(text.encode("utf-8", "backslashreplace"))

    def error(self, request: Request, status: int, text: str) -> HTMLResponse:
        """The page of something that is not there, refused, or cannot be read."""
        page = self.page("error.html.j2", request, code=status, text=text)
        page.status_code = status
        return page


def static_file(name: str) -> tuple[bytes, str]:
    """A file that pages load, and its type. ``KeyError`` for any other name."""
    package, place, kind = STATIC[name]
    return files(package).joinpath(place).read_bytes(), kind


def as_json(value: JsonValue, most: int = _LONGEST_VALUE) -> str:
    """A value of a state, on one line where it fits, and cut where it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if not isinstance(value, str) and len(text) > _ONE_LINE:
        text = json.dumps(value, ensure_ascii=False, indent=2)
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} more characters)"


def _when(text: str) -> str:
    """An ISO time as people read it."""
    try:
        return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M}"
    except ValueError:
        return text
