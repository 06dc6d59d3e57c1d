"""A run before its first conversation, while a model makes its cases: the plan without them, and every paid answer.

JSON Lines beside the journal that is to come, whole lines only. Whoever goes on asks the same questions, and those that
were answered are not asked again. What may not be written is kept as its cost alone. An order of cases without a run
has such a file in a folder of its own until its cases are where they were wanted.
"""

from __future__ import annotations

import os
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Self

from pydantic import TypeAdapter

from evaluatorq.errors import ReplayError, StoreError
from evaluatorq.model.base import Record
from evaluatorq.model.runs import RunPlan
from evaluatorq.model.spending import NO_SPENDING, Spending
from evaluatorq.ports import ChatReply
from evaluatorq.store.atomic import PRIVATE_FILE, make_private_dir
from evaluatorq.store.journal import DRAFT, hold, is_held, parts_of


class Unusable(Record):
    """Why an answer could not be used: its question was asked better at once, and would be again."""

    code: str
    message: str


class Paid(Record):
    """One answer: the digest of its question, what it cost, and what it said where that may be written.

    ``about`` is what was asked for. A line with ``forgets`` takes back what was said about that so far, not its cost.
    """

    question: str = ""
    spent: Spending = NO_SPENDING
    reply: ChatReply | Unusable | None = None
    about: str = ""
    forgets: str | None = None


_PAID = TypeAdapter(Paid)
MayWrite = Callable[[bytes], bool]


def is_draft(folder: Path) -> bool:
    """The run in this journal folder was stopped before its first conversation, with cases still to be made."""
    return (folder / DRAFT).is_file() and not parts_of(folder)


@dataclass(slots=True)
class Draft:
    """An open draft. It holds the run, as its journal would, until ``close``."""

    folder: Path
    plan: RunPlan
    may_write: MayWrite
    spent: Spending = NO_SPENDING
    _file: int = -1
    _lock: int = -1
    _told: set[str] = field(default_factory=set)
    _answers: dict[str, deque[ChatReply | Unusable]] = field(default_factory=lambda: defaultdict(deque))

    @classmethod
    def begin(cls, folder: Path, plan: RunPlan, may_write: MayWrite) -> Self:
        """A new draft; its first line is the plan."""
        make_private_dir(folder)
        draft = cls(folder, plan, may_write)
        draft._open()
        draft._write(plan.model_dump_json().encode())
        return draft

    @classmethod
    def reopen(cls, folder: Path, may_write: MayWrite) -> Self:
        """Goes on with the draft in ``folder``. ``StoreError`` while another process holds it."""
        draft = cls(folder, read_draft(folder), may_write)
        draft._open()
        if not (folder / DRAFT).read_bytes().endswith(b"\n"):
            draft._write(b"")  # the line that a killed process did not finish must not swallow the next
        draft._read()
        return draft

    def answered(self, question: str) -> ChatReply | Unusable | None:
        """What an earlier process was told; each answer is given once."""
        answers = self._answers.get(question)
        return answers.popleft() if answers else None

    def note(
        self, question: str, spent: Spending, reply: ChatReply | Unusable | None = None, *, about: str = ""
    ) -> None:
        """Puts down what a question cost, and its answer. ``StoreError`` when that cannot be written."""
        self.spent += spent
        line = _PAID.dump_json(Paid(question=question, spent=spent, reply=reply, about=about), exclude_defaults=True)
        if reply is not None and not self.may_write(line):
            line = _PAID.dump_json(Paid(question=question, spent=spent), exclude_defaults=True)
        elif reply is not None:
            self._told.add(about)
        self._write(line)

    def forget(self, about: str) -> None:
        """What was answered about this came to nothing, so a later process asks anew. What it cost stays."""
        if about in self._told:
            self._write(_PAID.dump_json(Paid(forgets=about), exclude_defaults=True))

    def close(self) -> None:
        """Gives the run free."""
        os.close(self._file)
        os.close(self._lock)

    def _read(self) -> None:
        kept: list[Paid] = []
        for paid in _lines(self.folder):
            self.spent += paid.spent
            if paid.forgets is not None:
                kept = [one for one in kept if one.about != paid.forgets]
            kept.append(paid)
        for paid in kept:
            if paid.reply is not None:
                self._answers[paid.question].append(paid.reply)
                self._told.add(paid.about)

    def _open(self) -> None:
        self._lock = hold(self.folder)
        try:
            self._file = os.open(self.folder / DRAFT, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_FILE)
        except OSError as error:
            os.close(self._lock)
            raise StoreError(f"cannot write {self.folder / DRAFT}: {error.strerror}") from error

    def _write(self, line: bytes) -> None:
        try:
            written = os.write(self._file, line + b"\n")
        except OSError as error:
            raise StoreError(f"cannot write {self.folder / DRAFT}: {error.strerror}") from error
        if written <= len(line):
            raise StoreError(f"cannot write {self.folder / DRAFT}: the disk is full")


def open_order(folder: Path, plan: RunPlan, may_write: MayWrite) -> Draft:
    """The draft of an order of cases: one that a process left behind, or a new one.

    ``folder`` is named by the order. Somebody who makes the same cases at this moment has a draft of his own.
    """
    for place in (folder.with_name(f"{folder.name}-{number}") for number in count(1)):
        if is_held(place):
            continue
        try:
            if not (place / DRAFT).exists():
                return Draft.begin(place, plan, may_write)
            with suppress(ReplayError):  # a draft whose first line was never written holds nothing
                return Draft.reopen(place, may_write)
        except StoreError:
            if not is_held(place):  # otherwise somebody was quicker
                raise
    raise AssertionError("numbers do not end")


def read_draft(folder: Path) -> RunPlan:
    """The plan of the draft in ``folder``. ``ReplayError`` where there is none."""
    try:
        with (folder / DRAFT).open("rb") as file:
            return RunPlan.model_validate_json(file.readline())
    except (OSError, ValueError) as error:
        raise ReplayError(f"there is no draft of a run in {folder}") from error


def _lines(folder: Path) -> list[Paid]:
    """Every answer that was written whole: a line that a killed process did not finish is none."""
    found: list[Paid] = []
    with (folder / DRAFT).open("rb") as file:
        file.readline()
        for line in file:
            try:
                found.append(_PAID.validate_json(line))
            except ValueError:
                continue
    return found
