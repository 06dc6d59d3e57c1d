"""From what a person names as the agent to a factory of targets: a function, an object, ``module:attribute``, a URL.

What an agent needs is loaded only when it is named: no HTTP client for a function, no demo for a URL.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Protocol, TypeGuard, get_args, runtime_checkable

from evaluatorq.errors import ConfigError, WrongKind
from evaluatorq.model.runs import TargetKind
from evaluatorq.plugins import import_attribute
from evaluatorq.ports import Seat, Target, TargetFactory
from evaluatorq.targets.callables import FunctionTargets, name_of
from evaluatorq.targets.published import ObjectTargets, is_shareable

if TYPE_CHECKING:
    from evaluatorq.targets.command import CommandTargetSpec
    from evaluatorq.targets.http import HttpTargetSpec

FORMS = "'module:attribute', 'http(s)://...', 'command:...', 'demo' or 'demo:flawed'"
_KINDS: tuple[TargetKind, ...] = get_args(TargetKind)


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """An agent ready to be talked to: how to make a target for each conversation, and what a run file says about it.

    ``name`` holds no credentials; ``type`` is the class that answers, or ``function``. ``metered``: its answers cost.
    """

    factory: TargetFactory
    kind: TargetKind
    name: str
    type: str
    model: str | None = None
    metered: bool = False

    async def aclose(self) -> None:
        """Gives back what the conversations of a run shared, such as connections; it may be used again."""
        close = getattr(self.factory, "aclose", None)
        if close is not None:
            await close()


class _Targets(Protocol):
    """The targets that a description makes, with what a run file says about them."""

    name: str
    type: str
    metered: bool

    def __call__(self, seat: Seat) -> Target: ...


@runtime_checkable
class _TargetSpec(Protocol):
    """A description of an endpoint or a command."""

    def make_targets(self, parallelism: int) -> _Targets: ...


def resolve_target(spec: object, *, parallelism: int = 1) -> ResolvedTarget:
    """The agent that ``spec`` names, for ``parallelism`` conversations at once. Raises ``ConfigError``."""
    if isinstance(spec, ResolvedTarget):
        return spec
    if isinstance(spec, str):
        return _from_text(spec.strip(), parallelism)
    if isinstance(spec, Mapping):
        return _from_spec(_parsed(spec), parallelism)
    return _from_object(spec, name_of(spec), parallelism)


# ---------------------------------------------------------------- text


def _from_text(text: str, parallelism: int) -> ResolvedTarget:
    prefix, colon, rest = text.partition(":")
    if prefix in ("http", "https") and rest.startswith("//"):
        return _from_spec(_parsed({"url": text}), parallelism)
    if prefix in ("http", "https") and colon:
        raise ConfigError(f"{text!r} is no URL; write {prefix}://{rest.lstrip('/')}")
    if prefix == "demo":
        return _demo(rest if colon else "")
    if prefix == "command" and colon:
        return _from_spec(_parsed({"command": _words(rest)}), parallelism)
    if prefix in ("agent", "deployment") and colon:
        raise ConfigError(f"{text!r}: {prefix}: is reserved for Orq targets, which this version cannot reach")
    if prefix in ("openai", "llm") and colon:
        raise ConfigError(f"{text!r} is no target; a model is the agent with openai_model (--openai-model {rest})")
    if not colon:
        raise ConfigError(f"{text!r} names no agent; a target is {FORMS}")
    return _from_object(import_attribute(text), text, parallelism)


def _demo(version: str) -> ResolvedTarget:
    from evaluatorq.targets.demo import demo_target  # noqa: PLC0415  only where it is the agent

    if version not in ("", "flawed"):
        raise ConfigError(f"there is no demo agent {version!r}; there is 'demo' and 'demo:flawed'")
    return ResolvedTarget(
        demo_target(flawed=bool(version)), "callback", "demo:flawed" if version else "demo", "DemoAgent"
    )


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"the command {command!r} cannot be split into words: {error}") from None


def kind_of_description(options: Mapping[str, object]) -> type[HttpTargetSpec | CommandTargetSpec]:
    """What a description describes. ``ConfigError`` where it does not say."""
    if "url" in options:
        from evaluatorq.targets.http import HttpTargetSpec  # noqa: PLC0415  only where it is the agent

        return HttpTargetSpec
    if "command" in options:
        from evaluatorq.targets.command import CommandTargetSpec  # noqa: PLC0415  only where it is the agent

        return CommandTargetSpec
    near = [(key, name) for key in options for name in get_close_matches(key, ("url", "command"), n=1)]
    meant = f", not {near[0][0]!r}; did you mean {near[0][1]}?" if near else ""
    raise ConfigError(f"a target given as a mapping has a 'url' or a 'command'{meant}")


def _parsed(options: Mapping[object, object]) -> _TargetSpec:
    return kind_of_description({str(key): value for key, value in options.items()}).parse(options)


def _from_spec(spec: _TargetSpec, parallelism: int) -> ResolvedTarget:
    targets = spec.make_targets(parallelism)
    return ResolvedTarget(targets, "callback", targets.name, targets.type, metered=targets.metered)


# ---------------------------------------------------------------- objects


def _from_object(spec: object, name: str, parallelism: int) -> ResolvedTarget:
    if isinstance(spec, _TargetSpec):
        return _from_spec(spec, parallelism)
    kind = getattr(spec, "target_kind", None)
    model = getattr(spec, "model", None)
    cls = spec if inspect.isclass(spec) else type(spec)
    return ResolvedTarget(
        _factory_of(spec, name, parallelism),
        kind if kind in _KINDS else "callback",
        name,
        "function" if inspect.isroutine(spec) else cls.__qualname__.rpartition("<locals>.")[2],
        model if isinstance(model, str) else None,
    )


def _factory_of(spec: object, name: str, parallelism: int) -> TargetFactory:
    if inspect.isclass(spec):
        return ObjectTargets(_constructor(spec, name), name=name)
    if callable(new := getattr(spec, "new", None)):
        return ObjectTargets(new, name=name, prototype=spec)
    if hasattr(spec, "respond"):
        if parallelism > 1 and not is_shareable(spec):
            raise ConfigError(
                f"{name} is one object for {parallelism} conversations at once: pass its class or a function that "
                "makes one, give it new(), or declare shareable = True"
            )
        return ObjectTargets(lambda: spec, owned=False, name=name)
    if _takes_a_seat(spec):
        return spec
    if not callable(spec):
        raise WrongKind(f"{name} is no agent: it cannot be called and has no respond(messages); a target is {FORMS}")
    return ObjectTargets(spec, name=name) if _is_factory(spec) else FunctionTargets(spec, name=name)


def _constructor(cls: type, name: str) -> Callable[[], object]:
    if not (hasattr(cls, "respond") or "__call__" in vars(cls) or any("__call__" in vars(c) for c in cls.__mro__[:-1])):
        raise ConfigError(f"{name} is a class without respond(messages)")
    if inspect.isabstract(cls):
        lacking = sorted(getattr(cls, "__abstractmethods__", ()))
        raise ConfigError(f"{name} is abstract: it lacks {', '.join(lacking)}")
    needed = _required(cls)
    if needed:
        raise ConfigError(f"{name}() needs {', '.join(needed)}; pass a function without parameters that makes one")
    return cls


def _is_factory(function: Callable[[], object]) -> bool:
    """A function without parameters makes agents; one that takes messages is one."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    return not parameters and not inspect.iscoroutinefunction(function)


def _takes_a_seat(spec: object) -> TypeGuard[TargetFactory]:
    """A factory of our own kind: its one parameter is annotated as a ``Seat``."""
    try:
        parameters = list(inspect.signature(spec).parameters.values()) if callable(spec) else []
    except (TypeError, ValueError):
        return False
    return len(parameters) == 1 and parameters[0].annotation in (Seat, "Seat")


def _required(function: Callable[[], object]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
