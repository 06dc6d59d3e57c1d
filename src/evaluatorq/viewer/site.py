"""What every page of the viewer works with: the folder's runs, those that are open, templates, and the forms' token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from starlette.requests import Request

from evaluatorq.errors import RunNotFound
from evaluatorq.store.labels import LabelFile
from evaluatorq.viewer.books import Book, Library, OngoingBook, SavedBook
from evaluatorq.viewer.drawing import Pages
from evaluatorq.viewer.guard import Forms
from evaluatorq.viewer.shelf import Found, Shelf, head


class MovedOn(Exception):  # noqa: N818  what happened
    """The run is at another address: it was finished since."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.url = f"/runs/{quote(key, safe='')}"


@dataclass(slots=True)
class Site:
    """One viewer."""

    folder: Path
    shelf: Shelf = field(init=False)
    library: Library = field(default_factory=Library)
    forms: Forms = field(default_factory=Forms)
    pages: Pages = field(init=False)

    def __post_init__(self) -> None:
        self.shelf = Shelf(self.folder)
        self.pages = Pages(str(self.folder), self.forms.token)

    def found(self, request: Request) -> Found:
        """The run that an address names; ``MovedOn`` where it has a better one by now."""
        key = str(request.path_params["key"])
        found = self.shelf.find(key)
        if found.key != key:
            raise MovedOn(found.key)
        return found

    def opened(self, request: Request) -> tuple[Found, Book]:
        """The run that an address names, open."""
        found = self.found(request)
        return found, self.library.open(found)

    def saved(self, request: Request) -> tuple[Found, Path, SavedBook]:
        """The same for what only finished runs have."""
        found, book = self.opened(request)
        if found.file is None or not isinstance(book, SavedBook):
            raise RunNotFound("this run is not finished; what is asked for is there once it is saved")
        return found, found.file, book

    def labels(self, found: Found) -> LabelFile:
        """Where the labels of a run are, finished or not."""
        if found.file is not None:
            return LabelFile.beside(found.file, head(found.file).run_id)
        return LabelFile.of_unfinished(found.key, self.folder)

    def head_values(self, found: Found, book: Book) -> Mapping[str, object]:
        """What the head of every page of a run shows."""
        return {
            "key": found.key, "about": book.about, "counts": book.verdicts, "labels": self.labels(found).read(),
            "run": head(found.file) if found.file else None, "total": len(book.entries),
            "ongoing": isinstance(book, OngoingBook),
            "alive": isinstance(book, OngoingBook) and book.run.running,
        }  # fmt: skip
