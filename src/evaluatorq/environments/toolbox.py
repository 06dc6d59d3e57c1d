"""An environment made of typed Python functions over a state.

    class Shop(BaseModel):
        stock: dict[str, int]

    @tool
    def take(state: Shop, item: str, count: Annotated[int, "How many."] = 1) -> int:
        \"\"\"Takes items out of stock.\"\"\"
        if state.stock.get(item, 0) < count:
            raise ToolRefused("not enough of it", code="out_of_stock")
        state.stock[item] -= count
        return state.stock[item]

    Toolbox(Shop(stock={"lamp": 3}), [take])

A parameter called ``state`` is given the state, which the function may change; a model sees the others. Calls never
overlap, so a tool needs no lock. Plain functions run on the event loop: one that waits for something should be async.
A tool that fails is not undone: the state is what it left behind.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Generic, TypeVar, get_args, get_origin, get_type_hints, overload

import anyio
from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError, create_model
from pydantic_core import to_json

from evaluatorq.errors import ConfigError
from evaluatorq.model.messages import Message, ToolCall, tool_result
from evaluatorq.ports import ToolSpec, ToolsReply
from evaluatorq.toolset import ToolRefused, spec_named

S = TypeVar("S")
Function = Callable[..., object]  # type: ignore[explicit-any]  # only "..." can say: whatever its parameters are
_STATE = "state"


class _Arguments(BaseModel):
    """What a call of one tool may say; the fields are numbered, so that a parameter may have any name."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


@dataclass(frozen=True)
class ToolFunction:
    """A function as a tool: its name and description, and the schema that its annotations say."""

    function: Function
    name: str
    description: str
    idempotent: bool = False

    def __call__(self, *values: object, **arguments: object) -> object:
        """The function itself, for tests of it."""
        return self.function(*values, **arguments)

    @cached_property
    def spec(self) -> ToolSpec:
        """The tool as a model sees it."""
        schema = self._arguments.model_json_schema()
        return ToolSpec(self.name, self.description, _without_titles(schema), self.idempotent)

    def bind(self, raw: dict[str, JsonValue], state: object) -> dict[str, object]:
        """The keyword arguments of a call, validated; ``ToolRefused`` says what is wrong with them."""
        try:
            parsed = self._arguments.model_validate(raw)
        except ValidationError as error:
            raise ToolRefused(_sentence(error), code="bad_arguments") from None
        fields = type(parsed).model_fields
        bound: dict[str, object] = {info.alias or key: getattr(parsed, key) for key, info in fields.items()}
        return {**bound, _STATE: state} if self._takes_state else bound

    @cached_property
    def _takes_state(self) -> bool:
        return _STATE in inspect.signature(self.function).parameters

    @cached_property
    def _arguments(self) -> type[_Arguments]:
        hints = get_type_hints(self.function, include_extras=True)
        fields: dict[str, tuple[object, object]] = {}
        for number, parameter in enumerate(inspect.signature(self.function).parameters.values()):
            if parameter.name == _STATE:
                continue
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise ConfigError(f"tool {self.name}: {parameter} cannot be given by name; name every parameter")
            if parameter.name not in hints:
                raise ConfigError(f"tool {self.name}: parameter {parameter.name} has no type; annotate it")
            default = ... if parameter.default is parameter.empty else parameter.default
            hint = hints[parameter.name]
            fields[f"p{number}"] = (hint, Field(default, alias=parameter.name, description=_described(hint)))
        return create_model(self.name, __base__=_Arguments, **fields)  # type: ignore[call-overload,no-any-return]  # fields are made at run time


@overload
def tool(function: Function, /) -> ToolFunction: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, idempotent: bool = False
) -> Callable[[Function], ToolFunction]: ...
def tool(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    idempotent: bool = False,
) -> ToolFunction | Callable[[Function], ToolFunction]:
    """Makes a function a tool. ``idempotent`` says that calling it twice does no more than calling it once."""

    def made(plain: Function) -> ToolFunction:
        own: str = getattr(plain, "__name__", "tool")
        return ToolFunction(plain, name or own, description or inspect.getdoc(plain) or "", idempotent)

    return made if function is None else made(function)


class Toolbox(Generic[S]):
    """Tools over a state, which is a pydantic model, a dataclass, or JSON; it keeps a copy of the one it is given."""

    def __init__(self, state: S, tools: Sequence[ToolFunction | Function]) -> None:
        self._adapter: TypeAdapter[S] = TypeAdapter(type(state))
        self._functions: dict[str, ToolFunction] = {}
        for item in tools:
            function = item if isinstance(item, ToolFunction) else tool(item)
            if function.name in self._functions:
                raise ConfigError(f"two tools are called {function.name!r}; give one of them another name")
            self._functions[function.name] = function
        self._one_at_a_time = anyio.Lock()
        self.state = copy.deepcopy(state)

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """What can be called."""
        return tuple(function.spec for function in self._functions.values())

    async def run(self, calls: Sequence[ToolCall]) -> ToolsReply:
        """Carries the calls out in order: one row each under its call's id, an error as ``{"error": {...}}``."""
        async with self._one_at_a_time:
            effects: dict[str, bool] = {}
            rows = tuple([await self._answer(call, effects) for call in calls])
            return ToolsReply(rows, effects)

    def snapshot(self) -> JsonValue:
        """The state as JSON; later calls do not change it."""
        dumped: JsonValue = self._adapter.dump_python(self.state, mode="json")
        return copy.deepcopy(dumped)

    def restore(self, state: JsonValue) -> None:
        """Puts a snapshot back; ``pydantic.ValidationError`` when it is not one of this state."""
        self.state = self._adapter.validate_python(copy.deepcopy(state))

    async def _answer(self, call: ToolCall, effects: dict[str, bool]) -> Message:
        """The row that answers a call; notes whether the state is another one now, unless the call only read it."""
        function = self._functions.get(call.function.name)
        before = self._adapter.dump_json(self.state)
        row = await self._answered(call)
        changed = self._adapter.dump_json(self.state) != before
        if changed or (function is not None and not function.idempotent):
            effects[call.id] = changed
        return row

    async def _answered(self, call: ToolCall) -> Message:
        try:
            content = _encoded(await self._call(call))
        except ToolRefused as refusal:
            content = _error(refusal.code, refusal.message)
        except Exception as error:  # noqa: BLE001  whatever a tool raises is its answer
            content = _error("tool_error", f"{type(error).__name__}: {error}".removesuffix(": "))
        return tool_result(call.id, content, call.function.name)

    async def _call(self, call: ToolCall) -> object:
        try:
            function = self._functions[spec_named(self.tools, call.function.name).name]
        except LookupError as error:
            raise ToolRefused(str(error), code="unknown_tool") from None
        raw = call.parsed_arguments()
        if raw is None:
            raise ToolRefused("the arguments are not a JSON object", code="bad_arguments")
        result = function(**function.bind(raw, self.state))
        return await result if isinstance(result, Awaitable) else result


def _encoded(result: object) -> str:
    return result if isinstance(result, str) else to_json(result, inf_nan_mode="null").decode()


def _error(code: str, message: str) -> str:
    return to_json({"error": {"code": code, "message": message}}).decode()


def _sentence(error: ValidationError) -> str:
    """All that is wrong, each with its place, on one line."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(
        f"{'.'.join(str(part) for part in fault['loc']) or 'arguments'}: {fault['msg']}" for fault in faults
    )


def _described(hint: object) -> str | None:
    """The text beside a type: ``Annotated[int, "How many."]``."""
    if get_origin(hint) is not Annotated:
        return None
    return next((extra for extra in get_args(hint)[1:] if isinstance(extra, str)), None)


def _without_titles(schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The schema without the titles that repeat every name; a property that is called ``title`` stays."""

    def strip(node: JsonValue, *, names: bool = False) -> JsonValue:
        if isinstance(node, list):
            return [strip(item) for item in node]
        if not isinstance(node, dict):
            return node
        kept = node.items() if names else [(key, value) for key, value in node.items() if key != "title"]
        return {key: strip(value, names=not names and key in ("properties", "$defs")) for key, value in kept}

    stripped = strip(schema)
    return stripped if isinstance(stripped, dict) else schema


__all__ = ["ToolFunction", "ToolRefused", "Toolbox", "tool"]
