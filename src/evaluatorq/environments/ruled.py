"""An environment held to a case's rules: how often its tools may be called, and answers that are mocked.

Calls are counted off the transcript, so that a conversation that goes on in another process counts on. A mocked answer
touches no state. What a mock leaves to chance is drawn from the conversation's seed, the tool and the call's number.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from random import Random

from pydantic import JsonValue

from evaluatorq.conversation.checks import same_json
from evaluatorq.environments.outside import apply_event
from evaluatorq.model.messages import Message, ToolCall, tool_result
from evaluatorq.model.rules import Misfit, Problem, near_and_known
from evaluatorq.model.worlds import MockAnswer, OutsideEvent, ToolRules
from evaluatorq.ports import Closeable, Environment, ToolSpec, ToolsReply

_NO_ARGUMENTS: dict[str, JsonValue] = {"type": "object", "properties": {}}


class Ruled:
    """The environment with rules by tool name. ``Misfit`` for a name that is no tool and is not mocked."""

    def __init__(self, environment: Environment, rules: Mapping[str, ToolRules], seed: int) -> None:
        self._environment = environment
        self._rules = rules
        self._seed = seed
        self._called: Counter[str] = Counter()
        self._called_this_turn: Counter[str] = Counter()
        real = {spec.name: spec for spec in environment.tools}
        strange = [name for name in rules if name not in real and not rules[name].mocks]
        if strange:
            first = f"tools: {strange[0]} is no tool of this environment; {near_and_known(strange[0], real)}"
            raise Misfit(first, (_no_tool(name, real) for name in strange))
        self._real = real

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """What can be called, tools that exist only by their mocks last."""
        shown = tuple(_shown(spec, self._rules.get(spec.name)) for spec in self._real.values())
        mocked = [name for name in self._rules if name not in self._real]
        return shown + tuple(_shown(ToolSpec(name, "", _NO_ARGUMENTS), self._rules[name]) for name in mocked)

    def attend(self, messages: Sequence[Message]) -> None:
        """Counts the calls that were answered, in all and since the user spoke."""
        last_user = max((i for i, row in enumerate(messages) if row.role == "user"), default=0)
        self._called = _answered(messages)
        self._called_this_turn = _answered(messages[last_user:])

    async def run(self, calls: Sequence[ToolCall]) -> ToolsReply:
        """Carries the calls out in order, one row each: refused over a limit, mocked, or run."""
        rows: list[Message] = []
        effects: dict[str, bool] | None = {}
        for call in calls:
            row = self._by_rule(call)
            if row is None:
                reply = await self._environment.run([call])
                row = reply.messages[0]
                effects = None if effects is None or reply.effects is None else {**effects, **reply.effects}
            rows.append(row)
        return ToolsReply(tuple(rows), effects)

    def _by_rule(self, call: ToolCall) -> Message | None:
        """The row that the rules give, ``None`` where the tool itself should answer."""
        name = call.function.name
        self._called[name] += 1
        self._called_this_turn[name] += 1
        rules = self._rules.get(name)
        if rules is None:
            return None
        for count, most, when in (
            (self._called[name], rules.max_calls, "conversation"),
            (self._called_this_turn[name], rules.max_calls_per_turn, "turn"),
        ):
            if most is not None and count > most:
                return _refused(call, "limit_reached", f"{name} may be called {most} times in a {when}")
        mock = next((mock for mock in rules.mocks if self._fits(mock, call)), None)
        if mock is not None:
            return _mocked(call, mock)
        return None if name in self._real else _refused(call, "no_answer", f"no mocked answer of {name} fits this call")

    def _fits(self, mock: MockAnswer, call: ToolCall) -> bool:
        given = call.parsed_arguments() or {}
        number = self._called[call.function.name]
        return (
            mock.on_call in (None, number)
            and all(key in given and same_json(given[key], value) for key, value in mock.when.items())
            and (mock.chance is None or self._draw(call.function.name, number) < mock.chance)
        )

    def _draw(self, name: str, number: int) -> float:
        return Random(f"{self._seed}/{name}/{number}").random()  # noqa: S311  repeatable, not secret

    def snapshot(self) -> JsonValue:
        """The state as JSON."""
        return self._environment.snapshot()

    def restore(self, state: JsonValue) -> None:
        """Puts a snapshot back."""
        self._environment.restore(state)

    async def apply(self, event: OutsideEvent) -> None:
        """What other people do is bound by no rule and answered by no mock."""
        await apply_event(self._environment, event)

    async def aclose(self) -> None:
        """Gives back what the environment holds."""
        if isinstance(self._environment, Closeable):
            await self._environment.aclose()


def _no_tool(name: str, real: Collection[str]) -> Problem:
    reason = f"is no tool of this environment and has no mocks; {near_and_known(name, real)}"
    return Problem(reason, ("tools", name))


def _shown(spec: ToolSpec, rules: ToolRules | None) -> ToolSpec:
    if rules is None:
        return spec
    return ToolSpec(
        spec.name, rules.description or spec.description, rules.parameters or spec.parameters, spec.idempotent
    )


def _answered(messages: Sequence[Message]) -> Counter[str]:
    answered = {row.tool_call_id for row in messages if row.role == "tool"}
    return Counter(call.function.name for row in messages for call in row.tool_calls or () if call.id in answered)


def _mocked(call: ToolCall, mock: MockAnswer) -> Message:
    if mock.fails is not None:
        return _refused(call, mock.fails.code, mock.fails.message)
    text = mock.returns if isinstance(mock.returns, str) else json.dumps(mock.returns, ensure_ascii=False)
    return tool_result(call.id, text, call.function.name)


def _refused(call: ToolCall, code: str, message: str) -> Message:
    error = json.dumps({"error": {"code": code, "message": message}}, ensure_ascii=False)
    return tool_result(call.id, error, call.function.name)
