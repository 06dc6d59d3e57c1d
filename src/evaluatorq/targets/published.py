"""Objects as agents: anything with ``respond``, in our shape or the published one, fresh for each conversation.

The published shape is ``async respond(messages) -> AgentResponse`` with ``new()``; ours adds ``thread_id``. Both are
read from the signature, as functions are. An object that says nothing about ``stateful`` may remember things, so it
counts as if it did.
"""

from __future__ import annotations

import inspect
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Self

from evaluatorq.errors import CallError, ConfigError
from evaluatorq.model.messages import Message
from evaluatorq.model.responses import AgentResponse, AgentResponseError
from evaluatorq.model.usage import Usage
from evaluatorq.ports import Environment, Seat
from evaluatorq.targets.callables import AgentCall, FunctionTarget, name_of, read_signature
from evaluatorq.targets.faults import described, fault_of
from evaluatorq.targets.parts import empty, unfit
from evaluatorq.targets.replies import declared
from evaluatorq.targets.threads import in_thread

_log = logging.getLogger(__name__)


class AgentTarget(ABC):
    """Base class of agents in the published shape. Everything but ``respond`` and ``new`` is optional."""

    stateful: bool = True
    manages_own_timeout: bool = False

    @abstractmethod
    async def respond(self, messages: list[Message]) -> AgentResponse:
        """The answer to the transcript so far."""

    @abstractmethod
    def new(self) -> Self:
        """An agent for another conversation, sharing no memory with this one."""

    def map_error(self, error: Exception) -> tuple[str, str] | None:  # noqa: ARG002  for subclasses
        """Code and message of an exception that ``respond`` raised, ``None`` to leave it to its type and status."""
        return None

    async def close(self) -> None:
        """Called at the end of the conversation."""
        return


# ---------------------------------------------------------------- one object, one conversation


class ObjectTarget(FunctionTarget):
    """One conversation with an object; closed at its end if it was made for it."""

    def __init__(self, agent: object, call: AgentCall, environment: Environment | None, *, owned: bool) -> None:
        super().__init__(call, environment, stateful=_is_stateful(agent, owned=owned))
        self.manages_own_timeout = bool(getattr(agent, "manages_own_timeout", False))
        self._agent = agent
        self._owned = owned

    def _fault(self, error: BaseException) -> CallError:
        read = getattr(self._agent, "map_error", None)
        fault = fault_of(error)
        named = read(error) if callable(read) and isinstance(error, Exception) else None
        if not isinstance(named, tuple):
            return fault
        mapped = declared(AgentResponseError(code=str(named[0]), message=str(named[1])))
        mapped.retryable = mapped.retryable and fault.retryable
        mapped.retry_after = fault.retry_after
        return mapped

    async def aclose(self) -> None:
        """Calls the agent's ``aclose`` or ``close``; what that raises is logged."""
        if not self._owned:
            return
        close = getattr(self._agent, "aclose", None) or getattr(self._agent, "close", None)
        try:
            result = close() if callable(close) else None
            if inspect.isawaitable(result):
                await result
        except Exception as error:  # noqa: BLE001  the conversation is over; this is not its result
            _log.warning("%s could not be closed: %s", self._call.name, described(error))


def _is_stateful(agent: object, *, owned: bool) -> bool:
    declared = getattr(agent, "stateful", None)
    return declared if isinstance(declared, bool) else owned or not is_shareable(agent)


def is_shareable(agent: object) -> bool:
    """The object says that one of it may serve many conversations at once."""
    return getattr(agent, "shareable", False) is True


class ObjectTargets:
    """Makes a target for each conversation: from a fresh object, or (``owned`` false) from the one that all share."""

    def __init__(
        self, make: Callable[[], object], *, owned: bool = True, name: str | None = None, prototype: object = None
    ) -> None:
        self._make = make
        self._prototype = prototype
        self._owned = owned
        self._name = name
        self._read: dict[type, AgentCall] = {}

    def __call__(self, seat: Seat) -> ObjectTarget:
        """The target of one conversation."""
        agent = self._make()
        function = getattr(agent, "respond", agent)
        if not callable(function):
            raise ConfigError(f"{self._name or name_of(agent)} has no respond(messages) and cannot be called")
        call = self._read.get(type(agent))
        if call is None:
            call = self._read[type(agent)] = read_signature(function, self._name or name_of(agent))
        return ObjectTarget(agent, replace(call, function=function), seat.environment, owned=self._owned)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The credentials that the object says it holds: what must not be written anywhere."""
        held = getattr(self._prototype, "secrets", ())
        return tuple(text for text in held if isinstance(text, str)) if isinstance(held, tuple) else ()

    async def aclose(self) -> None:
        """Calls ``aclose_shared`` of the object that the others were made from, if it has one."""
        close = getattr(self._prototype, "aclose_shared", None)
        if close is not None:
            await close()


# ---------------------------------------------------------------- published helpers


class CallableTarget(AgentTarget):
    """A function as an ``AgentTarget``: text or an ``AgentResponse`` for messages.

    ``usage_fn(messages, text)`` says what a text answer cost; ``reset_fn`` runs before each conversation.
    """

    stateful = False

    def __init__(
        self,
        fn: Callable[[list[Message]], object],
        *,
        reset_fn: Callable[[], object] | None = None,
        usage_fn: Callable[[list[Message], str], Usage | None] | None = None,
        agent_context: object = None,
    ) -> None:
        self._call = read_signature(fn)
        self._function = fn
        self._reset = reset_fn
        self._usage = usage_fn
        self.agent_context = agent_context
        self.name = self._call.name

    def new(self) -> Self:
        """The same function, reset."""
        if self._reset is not None:
            self._reset()
        return type(self)(self._function, reset_fn=self._reset, usage_fn=self._usage, agent_context=self.agent_context)

    async def respond(self, messages: list[Message]) -> AgentResponse:
        """The function's answer."""
        answer = (
            self._function(messages) if self._call.is_async else await in_thread(lambda _: self._function(messages))
        )
        value = await answer if inspect.isawaitable(answer) else answer
        if isinstance(value, AgentResponse):
            return value
        if value is None:
            raise empty(f"{self.name} returned None.")
        if not isinstance(value, str):
            raise unfit(f"{self.name} returned {type(value).__name__}; return str or AgentResponse.")
        return AgentResponse.of(value, usage=self._cost(messages, value))

    def _cost(self, messages: list[Message], text: str) -> Usage | None:
        if self._usage is None:
            return None
        try:
            return self._usage(messages, text)
        except Exception as error:  # noqa: BLE001  an unknown cost is not the agent's failure
            _log.warning("what %s cost is unknown: %s", self.name, described(error))
            return None


ChatRows = list[dict[str, str]]


def from_chat_completions(fn: Callable[[ChatRows], object]) -> Callable[[list[Message]], object]:
    """An agent from a function over ``[{"role": ..., "content": ...}]``; tool traffic becomes text of the agent.

    ``fn`` returns the words (``str``), or awaits them.
    """

    def agent(messages: list[Message]) -> object:
        return fn(_chat_rows(messages))

    async def async_agent(messages: list[Message]) -> object:
        answer = fn(_chat_rows(messages))
        return await answer if isinstance(answer, Awaitable) else answer

    made: Callable[[list[Message]], object] = async_agent if inspect.iscoroutinefunction(fn) else agent
    made.__name__ = made.__qualname__ = name_of(fn)
    return made


def _chat_rows(messages: Sequence[Message]) -> ChatRows:
    rows: ChatRows = []
    for message in messages:
        calls = [f"[called {call.function.name}({call.function.arguments})]" for call in message.tool_calls or ()]
        if message.role == "tool":
            rows.append({"role": "assistant", "content": f"[{message.name or 'the tool'} returned {message.text}]"})
        elif text := "\n".join(part for part in (message.text, *calls) if part):
            rows.append({"role": message.role, "content": text})
    return rows
