"""Tools for an agent written in Python: callables over an environment, and a record of what was called.

``Recorder`` is an environment around another one; it writes each call down as transcript rows, which a target adapter
drains into its reply. ``Toolset`` offers the tools of any environment as async callables. Its errors are exceptions,
because that is what Python code expects; for a model the same error is a result row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass

from anyio import from_thread
from pydantic import JsonValue

from evaluatorq.conversation.checks import was_rejected
from evaluatorq.errors import EvaluatorqError
from evaluatorq.model.messages import Message, ToolCall, assistant, tool_call
from evaluatorq.model.rules import near_and_known
from evaluatorq.ports import Environment, ToolSpec, ToolsReply

TOOLS_URL = "EVALUATORQ_TOOLS_URL"
"""The environment variable that tells an agent's process where its conversation's tools are served."""

Bridge = Callable[[Callable[[], Coroutine[object, object, JsonValue]]], JsonValue]
"""Runs an async call on the event loop for a thread that waits."""


class ToolRefused(EvaluatorqError, RuntimeError):  # noqa: N818  what happened, as PermissionError is
    """A tool that did not do what it was asked.

    A tool raises it to answer with an error instead of a result; a ``Toolset`` raises it to the agent that called.
    ``code`` is short and stable: the tool's own (``refused`` unless it says otherwise), or ``unknown_tool``,
    ``bad_arguments``, ``tool_error``.
    """

    def __init__(self, message: str, *, code: str = "refused") -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class Recorder:
    """An environment that remembers the calls made through it, as rows of a transcript, until they are drained."""

    def __init__(self, environment: Environment, *, prefix: str = "call") -> None:
        self._environment = environment
        self._prefix = prefix
        self._rows: list[Message] = []
        self._effects: dict[str, bool] | None = None
        self._numbered = 0

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """What can be called."""
        return self._environment.tools

    async def run(self, calls: Sequence[ToolCall]) -> ToolsReply:
        """Carries the calls out and writes them down: one agent row with the calls, then one row for each result."""
        reply = await self._environment.run(calls)
        if calls:
            self._rows += [assistant(None, list(calls)), *reply.messages]
            if reply.effects is not None:
                self._effects = {**(self._effects or {}), **reply.effects}
        return reply

    def drain(self) -> tuple[Message, ...]:
        """The rows written since the last drain."""
        rows, self._rows = tuple(self._rows), []
        return rows

    def take_effects(self) -> dict[str, bool] | None:
        """Whether calls changed the state, by their ids, since this was last asked; ``None`` where nobody told."""
        effects, self._effects = self._effects, None
        return effects

    def begin(self, messages: Sequence[Message]) -> None:
        """Numbers later calls after those already in the transcript, so that a resumed conversation repeats no id."""
        self._numbered = max(self._numbered, sum(len(message.tool_calls or ()) for message in messages))

    def next_call_id(self) -> str:
        """An id for a call that has none yet: counted, not random, so that equal conversations are equal bytes."""
        self._numbered += 1
        return f"{self._prefix}_{self._numbered}"

    def snapshot(self) -> JsonValue:
        """The state as JSON."""
        return self._environment.snapshot()

    def restore(self, state: JsonValue) -> None:
        """Puts a snapshot back."""
        self._environment.restore(state)


def spec_named(tools: Sequence[ToolSpec], name: str) -> ToolSpec:
    """The tool of that name; ``LookupError`` says what was probably meant."""
    for spec in tools:
        if spec.name == name:
            return spec
    raise LookupError(f"no tool is called {name!r}; {near_and_known(name, (spec.name for spec in tools))}")


@dataclass(frozen=True)
class Tool:
    """One tool as an async callable. Arguments by name, or in the order of ``parameters['properties']``."""

    spec: ToolSpec
    recorder: Recorder

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.spec.name

    @property
    def description(self) -> str:
        """What it does, in a model's words."""
        return self.spec.description

    @property
    def parameters(self) -> dict[str, JsonValue]:
        """The JSON schema of its arguments."""
        return self.spec.parameters

    async def __call__(self, *values: JsonValue, **arguments: JsonValue) -> JsonValue:
        """The decoded result (the text itself where it is no JSON); ``ToolRefused`` for an error."""
        call = tool_call(self.recorder.next_call_id(), self.name, self._by_name(values, arguments))
        reply = await self.recorder.run([call])
        return _value(reply.messages[0])

    def _by_name(self, values: tuple[JsonValue, ...], arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
        properties = self.parameters.get("properties")
        names = list(properties) if isinstance(properties, dict) else []
        if len(values) > len(names):
            raise TypeError(f"{self.name} takes {len(names)} arguments, {len(values)} were given")
        placed = dict(zip(names, values, strict=False))
        twice = placed.keys() & arguments.keys()
        if twice:
            raise TypeError(f"{self.name} got {', '.join(sorted(twice))} twice")
        return {**placed, **arguments}


@dataclass(frozen=True)
class SyncTool:
    """One tool as a plain callable, for an agent that runs in a worker thread."""

    tool: Tool
    bridge: Bridge = from_thread.run

    def __call__(self, *values: JsonValue, **arguments: JsonValue) -> JsonValue:
        """As ``Tool``, waiting for the answer."""

        async def ask() -> JsonValue:
            return await self.tool(*values, **arguments)

        return self.bridge(ask)


class Toolset:
    """The tools of an environment as async callables: ``await tools.find_order(order_id="A1")``.

    ``tools["find_order"]`` is the same, for names that are no Python names. Iterating gives every tool with its name,
    description and schema. An unknown name is an ``AttributeError`` (or ``KeyError``) with near names. ``bridge``
    serves ``sync`` in threads that are not anyio's own.
    """

    def __init__(self, recorder: Recorder, *, bridge: Bridge = from_thread.run) -> None:
        self._recorder = recorder
        self._bridge = bridge

    @property
    def sync(self) -> SyncToolset:
        """The same tools for code that does not await, in a worker thread."""
        return SyncToolset(self, self._bridge)

    def __getattr__(self, name: str) -> Tool:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __getitem__(self, name: str) -> Tool:
        try:
            return Tool(spec_named(self._recorder.tools, name), self._recorder)
        except LookupError as error:
            raise KeyError(error.args[0]) from None

    def __iter__(self) -> Iterator[Tool]:
        return (Tool(spec, self._recorder) for spec in self._recorder.tools)

    def __len__(self) -> int:
        return len(self._recorder.tools)

    def __contains__(self, name: object) -> bool:
        return any(spec.name == name for spec in self._recorder.tools)

    def __dir__(self) -> list[str]:
        return ["sync", *(spec.name for spec in self._recorder.tools)]


class SyncToolset:
    """``Toolset`` for code that does not await: ``tools.sync.find_order(order_id="A1")``."""

    def __init__(self, tools: Toolset, bridge: Bridge = from_thread.run) -> None:
        self._tools = tools
        self._bridge = bridge

    def __getattr__(self, name: str) -> SyncTool:
        return SyncTool(getattr(self._tools, name), self._bridge)

    def __getitem__(self, name: str) -> SyncTool:
        return SyncTool(self._tools[name], self._bridge)


def _value(row: Message) -> JsonValue:
    """What a result row holds, or the refusal it stands for."""
    try:
        value: JsonValue = json.loads(row.text)
    except ValueError:
        return row.text
    if was_rejected(row) and isinstance(value, dict):
        raise _refusal(value["error"])
    return value


def _refusal(error: JsonValue) -> ToolRefused:
    if not isinstance(error, dict):
        return ToolRefused(error if isinstance(error, str) else json.dumps(error))
    code, message = error.get("code"), error.get("message")
    return ToolRefused(
        message if isinstance(message, str) else json.dumps(error), code=code if isinstance(code, str) else "refused"
    )
