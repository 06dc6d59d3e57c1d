"""Has a model fill slots: a few to a request, requests side by side, every item held to the rules of case files.

Items that do not hold are asked for again, with what was wrong; those that hold are kept whatever becomes of the rest.
A name that is taken is asked for anew, and numbered when none comes: names tell results apart. A credential or quota
that was refused ends the work, since every further request would be refused too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Generic

from pydantic import JsonValue

from evaluatorq.errors import CallError
from evaluatorq.generate.kinds import Kind, M
from evaluatorq.generate.prompts import About, making_system, making_tail
from evaluatorq.generate.reading import read_item
from evaluatorq.generate.slots import Slot
from evaluatorq.pacing.paid import PaidCalls
from evaluatorq.pacing.window import work_through
from evaluatorq.ports import ChatModel, ChatPrefix, ChatReply, ChatRequest

TOGETHER = 5
"""So many items are asked for in one request: few enough to fit into an answer, enough to differ from each other."""
FRUITLESS = 3
"""So many requests in a row that bring nothing new end the work on a batch."""
HOPELESS = frozenset({"auth", "quota"})


@dataclass(slots=True)
class Made(Generic[M]):
    """The items by slot, and a sentence for each group of slots that stayed empty."""

    by_slot: dict[int, M] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def items(self) -> list[M]:
        """What was made, in the order of the slots."""
        return [self.by_slot[place] for place in sorted(self.by_slot)]


@dataclass(frozen=True, slots=True)
class Writer:
    """The model that writes, how its calls are retried and billed, and how many requests it gets at once."""

    model: ChatModel
    calls: PaidCalls
    at_once: int = 10


async def make(kind: Kind[M], about: About, slots: Sequence[Slot], writer: Writer) -> Made[M]:
    """Fills the slots as far as the model can be brought to."""
    job = _Job(kind, about, slots, writer)
    batches = [range(len(slots))[at : at + TOGETHER] for at in range(0, len(slots), TOGETHER)]
    await work_through(batches, writer.at_once, job.fill)
    job.made.problems = [sentence for _, sentence in sorted(job.faults)]
    return job.made


class _Job(Generic[M]):
    """One call of ``make``."""

    def __init__(self, kind: Kind[M], about: About, slots: Sequence[Slot], writer: Writer) -> None:
        self.made: Made[M] = Made()
        self.faults: list[tuple[int, str]] = []
        self._kind: Kind[M] = kind
        self._slots = slots
        self._writer = writer
        self._system = making_system(kind, about)
        self._names: dict[str, str] = {}
        self._hopeless: CallError | None = None

    async def fill(self, batch: range) -> None:
        """Fills the slots of one batch; what cannot be had is written down."""
        waiting, size, fruitless = list(batch), len(batch), 0
        complaints: list[str] = []
        while waiting and fruitless < FRUITLESS:
            if self._hopeless is not None:
                self._give_up(waiting, self._hopeless.message)
                return
            asked = waiting[:size]
            try:
                reply = await self._ask(asked, complaints)
            except CallError as error:
                if not error.reask:
                    self._hopeless = error if error.code in HOPELESS else self._hopeless
                    self._give_up(waiting, error.message)
                    return
                complaints, fruitless = [error.message], fruitless + 1
                size = max(1, size // 2) if error.code == "truncated_response" else size
                continue
            complaints = self._take(asked, reply, numbered=fruitless == FRUITLESS - 1)
            left = [place for place in waiting if place not in self.made.by_slot]
            fruitless = 0 if len(left) < len(waiting) else fruitless + 1
            waiting = left
        if waiting:
            self._give_up(waiting, "; ".join(complaints) or "the model gave none")

    async def _ask(self, asked: Sequence[int], complaints: Sequence[str]) -> ChatReply:
        prefix = ChatPrefix(self._system, answer=self._kind.answer(len(asked)))
        tail = making_tail(self._kind, [self._slots[place] for place in asked], self._names.values(), complaints)
        request = ChatRequest(prefix, (), tail)
        return await self._writer.calls.make("generation", lambda: self._writer.model.complete(request))

    def _take(self, asked: Sequence[int], reply: ChatReply, *, numbered: bool) -> list[str]:
        """Keeps what holds; returns what does not, a sentence each."""
        given = self._given(reply)
        complaints: list[str] = []
        for number, (place, value) in enumerate(zip(asked, given, strict=False), 1):
            item = read_item(self._kind, value, self._slots[place].fixed)
            if isinstance(item, list):
                complaints += [f"{self._kind.noun} {number}: {fault}" for fault in item]
            elif item.name.casefold() in self._names and not numbered:
                complaints.append(
                    f"{self._kind.noun} {number}: its name is taken, and so may be the idea; make another"
                )
            else:
                self._keep(place, item)
        if len(given) < len(asked):
            complaints.append(f"{len(asked)} were asked for and {len(given)} came")
        return complaints

    def _given(self, reply: ChatReply) -> list[JsonValue]:
        answer = reply.answer or {}
        listed = answer.get(self._kind.plural)
        if isinstance(listed, list):
            return listed
        return [answer] if len(answer.keys() & self._kind.keys) > 1 else []

    def _keep(self, place: int, item: M) -> None:
        free = (item.name if n == 1 else f"{item.name} ({n})" for n in count(1))
        name = next(name for name in free if name.casefold() not in self._names)
        self._names[name.casefold()] = name
        self.made.by_slot[place] = item if name == item.name else item.model_copy(update={"name": name})

    def _give_up(self, places: Sequence[int], why: str) -> None:
        numbers = ", ".join(str(place + 1) for place in places)
        noun = self._kind.noun if len(places) == 1 else self._kind.plural
        self.faults.append((places[0], f"{noun} {numbers} of {len(self._slots)} could not be made: {why}"))
