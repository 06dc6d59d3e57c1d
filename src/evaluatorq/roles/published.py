"""Simulators and judges of the published interface, injected as objects, behind our ports.

A simulator has ``generate_first_message``, ``respond_async`` and ``update_context``; a judge has ``evaluate`` and may
have ``update_context`` and ``mark_settled``. Both may count tokens (``get_usage``, ``reset_usage``). Each conversation
gets a shallow copy. Their word is taken as it is: no re-asks, and a quote that does not hold is only marked.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Sequence
from typing import Protocol

from pydantic import ValidationError

from evaluatorq.errors import CallError, WrongKind
from evaluatorq.model.cases import criterion_id_for
from evaluatorq.model.judgments import Judgment
from evaluatorq.model.messages import Message
from evaluatorq.model.usage import NO_USAGE, Usage
from evaluatorq.ports import JudgeFactory, JudgeReply, Seat, UserFactory, UserReply
from evaluatorq.roles.asking import Asking
from evaluatorq.roles.prompts_judge import QUALITY_SCORES
from evaluatorq.roles.prompts_user import persona_block, scenario_block


class Method(Protocol):
    """A method of somebody else's object."""

    def __call__(self, *args: object, **options: object) -> object:
        """Calls it."""
        ...


def published_user(simulator: object) -> UserFactory:
    """Simulated users that are copies of ``simulator``. Raises ``WrongKind`` naming the methods it lacks."""
    _require(simulator, "user simulator", ("generate_first_message", "respond_async", "update_context"))
    return lambda seat: PublishedUser(copy.copy(simulator), seat)


def published_judge(judge: object) -> JudgeFactory:
    """Judges that are copies of ``judge``. Raises ``WrongKind`` when it has no ``evaluate``."""
    _require(judge, "judge", ("evaluate",))
    return lambda seat: PublishedJudge(copy.copy(judge), seat)


class PublishedUser:
    """A ``UserSimulator`` over an object with the three published methods. It cannot stop by itself."""

    def __init__(self, simulator: object, seat: Seat) -> None:
        self._simulator = simulator
        self._meter = _Meter(simulator)
        self._asking = Asking()
        datapoint = seat.datapoint
        _method(simulator, "update_context")(
            persona_context=persona_block(datapoint.persona), scenario_context=scenario_block(datapoint.scenario)
        )

    async def speak(self, messages: Sequence[Message]) -> UserReply:
        """The next line. Raises ``CallError`` for an answer that is no text, and asks once more for an empty one."""
        self._asking.about(len(messages))
        if messages:
            said = await self._meter.watched(_method(self._simulator, "respond_async"), _seen_by_user(messages))
        else:
            said = await self._meter.watched(_method(self._simulator, "generate_first_message"))
        usage = self._meter.spent()
        if not isinstance(said, str):
            raise CallError("malformed_response", f"a user's line is a text, not {type(said).__name__}", usage=usage)
        if not said.strip():
            error = CallError("empty_reply", "the simulated user's line is empty", usage=usage, raw=said)
            raise self._asking.refuse(error, "it was empty.", 1)
        return UserReply(said, usage=usage)


class PublishedJudge:
    """A ``Judge`` over an object with ``evaluate``."""

    def __init__(self, judge: object, seat: Seat) -> None:
        scenario = seat.datapoint.scenario
        self._judge = judge
        self._meter = _Meter(judge)
        self._ids = tuple(criterion_id_for(i) for i in range(len(scenario.criterion_list)))
        self._settled: list[str] = []
        if _has(judge, "update_context"):
            _method(judge, "update_context")(
                goal=scenario.goal, criteria=list(scenario.criterion_list), ground_truth=scenario.ground_truth
            )

    async def judge(self, messages: Sequence[Message], open_criteria: Sequence[str], *, final: bool) -> JudgeReply:
        """What ``evaluate`` said. Raises ``CallError`` when that is no judgment. ``final`` is unknown to it."""
        del final
        settled = [key for key in self._ids if key not in open_criteria]
        if settled != self._settled and _has(self._judge, "mark_settled"):
            _method(self._judge, "mark_settled")(settled)
        self._settled = settled
        said = await self._meter.watched(_method(self._judge, "evaluate"), list(messages))
        usage = self._meter.spent()
        return JudgeReply(_as_judgment(said, usage), usage=usage, strict=False)


class _Meter:
    """Reads a running total of tokens as what was spent since the last look."""

    def __init__(self, participant: object) -> None:
        self._participant = participant
        if _has(participant, "reset_usage"):
            _method(participant, "reset_usage")()
        self._seen = self._total() or NO_USAGE

    def spent(self) -> Usage | None:
        """Usage since the last look, ``None`` when the participant does not say."""
        total = self._total()
        if total is None:
            return None
        spent, self._seen = total - self._seen, total
        return spent

    async def watched(self, ask: Method, *words: object) -> object:
        """What ``ask`` said. Where it raises, what it had spent by then is told with the error."""
        try:
            return await _awaited(ask(*words))
        except CallError as error:
            error.usage = error.usage or self.spent()
            raise
        except OSError:  # file handles and time limits are told apart by whoever asked
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise CallError("internal_error", text, usage=self.spent()) from error

    def _total(self) -> Usage | None:
        if not _has(self._participant, "get_usage"):
            return None
        try:
            total = _method(self._participant, "get_usage")()
        except Exception:  # noqa: BLE001  a counter that fails makes the usage unknown, not the conversation fail
            return None
        return total if isinstance(total, Usage) else Usage.extract(total)


def _seen_by_user(messages: Sequence[Message]) -> list[Message]:
    """Spoken rows with the roles swapped: the agent speaks to the simulator as a user."""
    return [
        Message(role="user" if message.role == "assistant" else "assistant", content=message.text)
        for message in messages
        if message.is_spoken
    ]


def _as_judgment(said: object, usage: Usage | None) -> Judgment:
    try:
        judgment = Judgment.model_validate(said, from_attributes=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or type(said).__name__
        raise CallError("bad_verdict", f"evaluate() gave no Judgment: {place}: {first['msg']}", usage=usage) from error
    scores: list[float | None] = [judgment.goal_completion_score, *(getattr(judgment, name) for name in QUALITY_SCORES)]
    if not all(score is None or math.isfinite(score) for score in scores):
        raise CallError("bad_verdict", "evaluate() gave a score that is no finite number", usage=usage)
    return judgment


def _has(participant: object, name: str) -> bool:
    return callable(getattr(participant, name, None))


def _method(participant: object, name: str) -> Method:
    method: Method = getattr(participant, name)
    return method


def _require(participant: object, role: str, names: tuple[str, ...]) -> None:
    missing = [name for name in names if not _has(participant, name)]
    if missing:
        kind = type(participant).__name__
        raise WrongKind(f"an injected {role} needs {', '.join(names)}; {kind} has no {', '.join(missing)}")


async def _awaited(value: object) -> object:
    return await value if inspect.isawaitable(value) else value
