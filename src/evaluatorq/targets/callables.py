"""Python functions as agents: ``agent(messages)``, async or not, with the tools of the environment if it asks for them.

What a function takes is decided once, from its signature: messages first, then by name ``tools`` (a ``Toolset``),
``thread_id`` and ``tools_url`` (where the tools are served over MCP). Code that does not await runs in a thread of its
own unless it is marked with ``inline``. One call is one attempt: when it fails, what its tools changed is undone, and
tools that it left running are refused.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from anyio import from_thread
from pydantic import JsonValue

from evaluatorq.errors import CallError, ConfigError
from evaluatorq.model.messages import Message, ToolCall
from evaluatorq.ports import Environment, Seat, TargetReply, ToolSpec, ToolsReply
from evaluatorq.targets.faults import described, fault_of, is_stray_cancellation
from evaluatorq.targets.replies import reply_of
from evaluatorq.targets.threads import in_thread
from evaluatorq.toolset import Bridge, Recorder, ToolRefused, Toolset

AgentFunction = Callable[..., object]  # type: ignore[explicit-any]  # only "..." can say: whatever its parameters are
F = TypeVar("F", bound=AgentFunction)
_OFFERED = ("tools", "thread_id", "tools_url")
_INLINE = "runs_inline"


def inline(function: F) -> F:
    """Marks a quick function that neither blocks nor awaits: it is called on the event loop, without a thread."""
    setattr(function, _INLINE, True)
    return function


# ---------------------------------------------------------------- what a function takes


@dataclass(frozen=True, slots=True)
class AgentCall:
    """A function with what its signature says about it."""

    function: AgentFunction
    name: str
    is_async: bool
    tools: str | None = None
    tools_optional: bool = False
    takes_thread_id: bool = False
    takes_tools_url: bool = False
    runs_inline: bool = False


def read_signature(function: AgentFunction, name: str | None = None) -> AgentCall:
    """What ``function`` takes. ``ConfigError`` when it cannot be called with messages."""
    name = name or name_of(function)
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  whether calling it awaits, not whether it can be called
    )
    runs_inline = bool(getattr(function, _INLINE, False))
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return AgentCall(function, name, is_async, runs_inline=runs_inline)
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    first = parameters[0] if parameters else None
    if first is None or first.kind not in (*positional, inspect.Parameter.VAR_POSITIONAL):
        raise ConfigError(f"{name} takes no messages; an agent is a function such as {name}(messages) that returns str")
    rest = [p for p in parameters[1:] if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    tools = next((p for p in rest if p.name == "tools" or _is_toolset(p.annotation)), None)
    unknown = [p.name for p in rest if p is not tools and p.name not in _OFFERED and p.default is p.empty]
    if unknown:
        raise ConfigError(
            f"{name} also asks for {', '.join(unknown)}; an agent gets messages, tools, thread_id and tools_url"
        )
    return AgentCall(
        function,
        name,
        is_async,
        tools=tools.name if tools else None,
        tools_optional=tools is not None and tools.default is not tools.empty,
        takes_thread_id=any(p.name == "thread_id" for p in rest),
        takes_tools_url=any(p.name == "tools_url" for p in rest),
        runs_inline=runs_inline,
    )


def _is_toolset(annotation: object) -> bool:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return re.search(r"\bToolset\b", text) is not None


def name_of(thing: object) -> str:
    """How a function, class or object is called in messages and in the run file."""
    while isinstance(thing, partial):
        thing = thing.func
    own = getattr(thing, "name", None) or getattr(thing, "__qualname__", None)
    name = own if isinstance(own, str) else type(thing).__qualname__
    return name.rpartition("<locals>.")[2]


# ---------------------------------------------------------------- one attempt


class _NoTools:
    """The environment of a scenario that has none."""

    tools: tuple[ToolSpec, ...] = ()

    async def run(self, calls: Sequence[ToolCall]) -> ToolsReply:  # noqa: ARG002  no name leads here
        return ToolsReply(())

    def snapshot(self) -> JsonValue:
        return None

    def restore(self, state: JsonValue) -> None:
        pass


class _Attempt:
    """The environment as one call of the agent may use it: all or nothing, and only while the call runs."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._before: JsonValue = None
        self._used = self._over = False

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self._environment.tools

    async def run(self, calls: Sequence[ToolCall]) -> ToolsReply:
        if self._over:
            raise ToolRefused("the answer that this tool was offered for is over", code="too_late")
        with _blaming_the_environment():
            if not self._used:
                self._before, self._used = self._environment.snapshot(), True
            return await self._environment.run(calls)

    def snapshot(self) -> JsonValue:
        return self._environment.snapshot()

    def restore(self, state: JsonValue) -> None:
        self._environment.restore(state)

    def end(self, *, undo: bool) -> None:
        self._over = True
        if undo and self._used:
            with _blaming_the_environment():
                self._environment.restore(self._before)
        if isinstance(self._environment, Recorder):
            self._environment.drain()


@contextmanager
def _blaming_the_environment() -> Iterator[None]:
    """What an environment raises is no fault of the agent that called it."""
    try:
        yield
    except CallError:
        raise
    except Exception as error:
        raise CallError("tool_error", described(error), component="environment") from error


# ---------------------------------------------------------------- the target


class FunctionTarget:
    """One conversation with a function. Memory, if it has any, is its own affair: ``stateful`` says so."""

    def __init__(
        self, call: AgentCall, environment: Environment | None, *, stateful: bool = False, tools_url: str | None = None
    ) -> None:
        self.stateful = stateful
        self._tools_url = tools_url
        self._call = call
        self._environment = environment

    async def respond(self, messages: Sequence[Message], *, thread_id: str) -> TargetReply:
        """The function's answer, the calls it made through ``tools`` first."""
        offers_tools = self._call.tools is not None and not (self._environment is None and self._call.tools_optional)
        attempt = _Attempt(_NoTools() if self._environment is None else self._environment)
        recorder = Recorder(attempt)
        if offers_tools:
            recorder.begin(messages)
        done = False
        try:
            value = await self._ask(messages, thread_id, recorder if offers_tools else None)
            reply = reply_of(
                value,
                messages,
                recorded=recorder.drain(),
                reports_tools=offers_tools and self._environment is not None,
            )
            done = True
        finally:
            attempt.end(undo=not done)
        return reply

    async def _ask(self, messages: Sequence[Message], thread_id: str, recorder: Recorder | None) -> object:
        try:
            if self._call.is_async or self._call.runs_inline:
                value = self._invoke(messages, thread_id, recorder)
            else:
                value = await in_thread(lambda portal: self._invoke(messages, thread_id, recorder, portal.call))
            return await value if inspect.isawaitable(value) else value
        except BaseException as error:
            if isinstance(error, Exception | SystemExit) or is_stray_cancellation(error):
                raise self._fault(error) from error
            raise

    def _invoke(
        self,
        messages: Sequence[Message],
        thread_id: str,
        recorder: Recorder | None,
        bridge: Bridge = from_thread.run,
    ) -> object:
        arguments: dict[str, object] = {}
        if self._call.tools is not None and recorder is not None:
            arguments[self._call.tools] = Toolset(recorder, bridge=bridge)
        if self._call.takes_thread_id:
            arguments["thread_id"] = thread_id
        if self._call.takes_tools_url:
            arguments["tools_url"] = self._tools_url
        return self._call.function(list(messages), **arguments)

    def _fault(self, error: BaseException) -> CallError:
        return fault_of(error)


class FunctionTargets:
    """Makes a target for each conversation from one function, which all of them share."""

    def __init__(self, function: AgentFunction, *, name: str | None = None) -> None:
        self._call = read_signature(function, name)
        self._stateful = bool(getattr(function, "stateful", False))

    def __call__(self, seat: Seat) -> FunctionTarget:
        """The target of one conversation."""
        return FunctionTarget(self._call, seat.environment, stateful=self._stateful, tools_url=seat.tools_url)
