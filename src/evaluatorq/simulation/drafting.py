"""The stage in which a run's cases are made: told in its manifest, and every paid answer kept from the first on."""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import anyio

from evaluatorq.errors import CallError, SimulationError
from evaluatorq.generate.prompts import TAKEN
from evaluatorq.model.runs import RunPlan
from evaluatorq.model.spending import NO_SPENDING, Bill, Category, Spending
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.pacing.budget import NO_LIMIT, Budget
from evaluatorq.ports import ChatModel, ChatReply, ChatRequest
from evaluatorq.records.redaction import Redactor
from evaluatorq.run.clock import SystemClock
from evaluatorq.run.engine import RunOptions
from evaluatorq.run.shelf import shelve
from evaluatorq.run.status import RunStatus
from evaluatorq.store.drafts import Draft, MayWrite, Unusable, open_order
from evaluatorq.store.paths import drafts_dir, get_sim_runs_dir, journals_dir

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Drafting:
    """A run's draft while it is open. ``plan`` makes the plan of what there is so far, once there are any cases.

    Past its ``budget`` no model is asked: ``SimulationError``.
    """

    status: RunStatus
    draft: Draft | None
    budget: Budget = NO_LIMIT
    plan: Callable[[], RunPlan] | None = None

    @property
    def spent(self) -> Spending:
        """What this and earlier processes spent, as far as it was put down."""
        return NO_SPENDING if self.draft is None else self.draft.spent

    def bill(self) -> Bill:
        """A bill that begins with what earlier processes spent on this run."""
        bill = Bill()
        bill.spending = self.spent
        return bill

    def kept(self, model: ChatModel, category: Category) -> ChatModel:
        """The model, with each of its answers on disk before it is used."""
        return model if self.draft is None else _Kept(model, category, self.draft, self.budget)

    def came_to_nothing(self, about: str) -> None:
        """No answer about this could be used: whoever goes on asks anew instead of reading them again."""
        if self.draft is not None:
            self.draft.forget(about)


@contextmanager
def drafting(
    plan: RunPlan, options: RunOptions, redactor: Callable[[RunPlan], Redactor], *, texts: bool, goes_on: bool
) -> Iterator[Drafting]:
    """Holds the run while the block makes its cases; when that fails or is stopped, ``resume`` goes on from there.

    Without ``texts`` only costs are written, because rules say what must not be. ``goes_on`` opens an earlier draft.
    """
    status = RunStatus(plan, get_sim_runs_dir() if options.save else None, options.parallelism, SystemClock(), None)
    draft = _opened(plan, redactor(plan), texts=texts, goes_on=goes_on) if options.journal else None
    desk = Drafting(status, draft, options.budget)
    try:
        status.begin()
        yield desk
    except BaseException as error:
        status.failed(error)
        _put_away(desk, options, redactor)
        raise
    if desk.draft is not None:
        desk.draft.close()


def _opened(plan: RunPlan, redactor: Redactor, *, texts: bool, goes_on: bool) -> Draft:
    folder, may_write = journals_dir(get_sim_runs_dir()) / plan.run_id, _allowed(redactor, texts=texts)
    return Draft.reopen(folder, may_write) if goes_on else Draft.begin(folder, redactor.plan(plan), may_write)


def _put_away(desk: Drafting, options: RunOptions, redactor: Callable[[RunPlan], Redactor]) -> None:
    """Leaves what was paid for so that it can be gone on with, and nothing where nothing was."""
    if desk.draft is None:
        return
    desk.draft.close()
    run_id = desk.draft.plan.run_id
    if desk.plan is not None:
        made = desk.plan()
        plan = redactor(made).plan(made)
        folder = shelve(plan, options)
        if plan.redacted:
            _log.warning("the cases that were made are kept redacted, so no run can go on with them: %s", folder)
        else:
            _log.warning("the cases that were made are kept; simulate them: evaluatorq sim resume %s", run_id)
    elif desk.draft.spent != NO_SPENDING:
        _log.warning("what was made so far is kept; go on with it: evaluatorq sim resume %s", run_id)
    else:
        shutil.rmtree(desk.draft.folder, ignore_errors=True)


@contextmanager
def ordered_cases(plan: RunPlan, order: str, redactor: Redactor, *, texts: bool) -> Iterator[Drafting]:
    """Keeps what is paid for while the block makes cases without a run and puts them away.

    When that fails or is stopped, the same ``order`` goes on from there.
    """
    draft = open_order(drafts_dir() / order, redactor.plan(plan), _allowed(redactor, texts=texts))
    try:
        yield Drafting(RunStatus(plan, None, 1, SystemClock(), None), draft)
    except BaseException:
        draft.close()
        if draft.spent == NO_SPENDING:
            _clear(draft.folder)
        else:
            _log.warning("what was paid for so far is kept; the same command goes on from there")
        raise
    _clear(draft.folder)  # before anybody else may open it
    draft.close()


def _clear(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):  # others are there, or it is not ours to take away
        folder.parent.rmdir()


def _allowed(redactor: Redactor, *, texts: bool) -> MayWrite:
    return lambda line: texts and not redactor.may_change(line)


class _Kept:
    """A ``ChatModel`` whose answers are kept, and given again to the same question in a later process."""

    def __init__(self, model: ChatModel, category: Category, draft: Draft, budget: Budget) -> None:
        self.name = model.name
        self._model = model
        self._category: Category = category
        self._draft = draft
        self._budget = budget

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The answer. One that was paid for by an earlier process costs nothing now: it is on the bill already."""
        question = _digest(self.name, request)
        known = self._draft.answered(question)
        if isinstance(known, Unusable):
            raise CallError(known.code, known.message, reask=True, usage=NO_USAGE)
        if known is not None:
            return replace(known, usage=NO_USAGE)
        used_up = self._budget.exceeded_by(self._draft.spent.total)
        if used_up is not None:
            raise SimulationError(f"the making of cases was stopped by {used_up}")
        about = request.prefix.answer.name if request.prefix.answer else ""
        bill = Bill()
        try:
            reply = await self._model.complete(request)
        except CallError as error:
            error.model = error.model or self.name
            bill.failed(self._category, error)
            if bill.spending != NO_SPENDING:
                why = Unusable(code=error.code, message=error.message) if error.reask else None
                self._draft.note(question, bill.spending, why, about=about)
            raise
        except anyio.get_cancelled_exc_class():
            bill.answered(self._category, None)
            self._draft.note(question, bill.spending)
            raise
        bill.answered(self._category, reply.usage, reply.model or self.name)
        self._draft.note(question, bill.spending, reply, about=about)
        return reply


def _digest(name: str, request: ChatRequest) -> str:
    """What tells one question from another: not the names that are taken, which depend on who was answered first."""
    answer = request.prefix.answer.name if request.prefix.answer else ""
    tail = "\n".join(line for line in (request.tail or "").split("\n") if not line.startswith(TAKEN))
    parts = [name, request.prefix.system, answer, tail, *(line.decode() for line in request.lines)]
    return hashlib.blake2b("\x1f".join(parts).encode(), digest_size=12).hexdigest()
