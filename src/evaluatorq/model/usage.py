"""Tokens and money of model calls. Zero is a fact; ``None`` means that nobody knows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Self, TypeGuard

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, computed_field

_COUNTS = (
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cached_tokens",
    "cache_creation_tokens",
    "cache_creation_1h_tokens",
    "cache_creation_5m_tokens",
    "reasoning_tokens",
    "calls",
    "priced_calls",
)
_COSTS = ("input_cost", "output_cost", "total_cost")


def _aliases(*names: str) -> AliasChoices:
    return AliasChoices(*names)


class Usage(BaseModel):
    """What model calls cost. Adds with ``+`` and ``sum``; a cost is ``None`` only when no call was priced.

    ``calls`` counts requests, ``priced_calls`` those whose cost is known: a sum is complete only when they are equal.
    The dump repeats three values under their older names (``prompt_tokens``, ``completion_tokens``, ``cost_usd``).
    """

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    input_tokens: int = Field(0, ge=0, validation_alias=_aliases("input_tokens", "prompt_tokens"))
    output_tokens: int = Field(0, ge=0, validation_alias=_aliases("output_tokens", "completion_tokens"))
    total_tokens: int = Field(0, ge=0)
    cached_tokens: int = Field(0, ge=0)
    cache_creation_tokens: int = Field(0, ge=0)
    cache_creation_1h_tokens: int = Field(0, ge=0)
    cache_creation_5m_tokens: int = Field(0, ge=0)
    reasoning_tokens: int = Field(0, ge=0)
    input_cost: float | None = Field(None, ge=0, validation_alias=_aliases("input_cost", "prompt_cost"))
    output_cost: float | None = Field(None, ge=0, validation_alias=_aliases("output_cost", "completion_cost"))
    total_cost: float | None = Field(None, ge=0, validation_alias=_aliases("total_cost", "cost_usd", "cost"))
    calls: int = Field(0, ge=0)
    priced_calls: int = Field(0, ge=0)

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorated properties
    @property
    def prompt_tokens(self) -> int:
        """``input_tokens`` under its older name."""
        return self.input_tokens

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorated properties
    @property
    def completion_tokens(self) -> int:
        """``output_tokens`` under its older name."""
        return self.output_tokens

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorated properties
    @property
    def cost_usd(self) -> float | None:
        """``total_cost`` under its older name."""
        return self.total_cost

    @property
    def cost_is_partial(self) -> bool:
        """A cost is present and some calls were not priced."""
        return self.total_cost is not None and 0 < self.priced_calls < self.calls

    def with_calls(self, calls: int) -> Self:
        """The same usage, counted as ``calls`` requests."""
        return self.model_copy(update={"calls": calls})

    def __add__(self, other: Usage | int) -> Usage:
        if not isinstance(other, Usage):
            if other == 0:
                return self
            return NotImplemented
        if self is NO_USAGE or other is NO_USAGE:
            return other if self is NO_USAGE else self
        ours: dict[str, int | float | None] = self.__dict__
        more = {
            name: value + (ours[name] or 0)
            for name, value in other.__dict__.items()
            if value or (value is not None and ours[name] is None)  # adding nothing changes nothing
        }
        return self.model_copy(update=more)

    __radd__ = __add__

    def __sub__(self, other: Usage) -> Usage:
        if not isinstance(other, Usage):
            return NotImplemented
        values: dict[str, int | float | None] = {
            name: max(0, getattr(self, name) - getattr(other, name)) for name in _COUNTS
        }
        for name in _COSTS:
            a, b = getattr(self, name), getattr(other, name)
            values[name] = None if a is None else max(0.0, a - (b or 0.0))
        return NO_USAGE.model_copy(update=values)

    @classmethod
    def extract(cls, source: object, calls: int = 1) -> Usage | None:
        """Reads the usage of one answer in any of the shapes that providers and frameworks send.

        Accepts a mapping or an object with a ``usage`` member, or the usage itself: chat completions, Responses,
        camelCase, LangChain and Anthropic names. Numbers that are negative, not finite or not numbers are skipped and
        the next name is tried. Returns ``None`` when nothing usable is there.
        """
        found = _member(source, "usage")
        if found is None:
            found = _member(source, "usage_metadata")
        return _read_usage(source if found is None else found, calls)


TokenUsage = Usage
NO_USAGE = Usage()
NOT_TOLD = "not told"
"""Stands for the model where usage is kept by model and nobody said which one it was."""
Sums = Mapping[str, Usage]
"""Usage by role, category or model."""


def added(sums: Sums, key: str, usage: Usage) -> dict[str, Usage]:
    """The sums with one more usage under ``key``."""
    return {**sums, key: sums.get(key, NO_USAGE) + usage}


_NAMES: dict[str, tuple[str, ...]] = {
    "input_tokens": ("input_tokens", "prompt_tokens", "inputTokens", "promptTokens"),
    "output_tokens": ("output_tokens", "completion_tokens", "outputTokens", "completionTokens"),
    "total_tokens": ("total_tokens", "totalTokens"),
    "cached_tokens": ("cached_tokens", "cachedInputTokens", "cache_read_input_tokens"),
    "cache_creation_tokens": ("cache_creation_tokens", "cache_creation_input_tokens"),
    "reasoning_tokens": ("reasoning_tokens", "reasoningTokens"),
}
_NESTED: dict[str, tuple[tuple[str, str], ...]] = {
    "cached_tokens": (
        ("prompt_tokens_details", "cached_tokens"),
        ("input_tokens_details", "cached_tokens"),
        ("input_token_details", "cache_read"),
    ),
    "cache_creation_tokens": (("input_token_details", "cache_creation"),),
    "reasoning_tokens": (
        ("completion_tokens_details", "reasoning_tokens"),
        ("output_tokens_details", "reasoning_tokens"),
        ("output_token_details", "reasoning"),
    ),
}
_PRICES: dict[str, tuple[str, ...]] = {
    "input_cost": ("input_cost", "prompt_cost"),
    "output_cost": ("output_cost", "completion_cost"),
    "total_cost": ("total_cost", "cost_usd", "cost"),
}


_PLAIN = frozenset(
    {"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "completion_tokens_details"}
)


def _read_plain(usage: dict[str, object], calls: int) -> Usage | None:
    """Chat completions as nearly everybody sends them, without the search for other names; ``None`` for all else."""
    if usage.keys() - _PLAIN:
        return None
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    total = usage.get("total_tokens")
    cached = _member(usage.get("prompt_tokens_details"), "cached_tokens") or 0
    reasoning = _member(usage.get("completion_tokens_details"), "reasoning_tokens") or 0
    if not (_is_count(prompt) and _is_count(completion) and _is_count(total) and total):
        return None
    if not (_is_count(cached) and _is_count(reasoning)):
        return None
    return Usage(
        input_tokens=prompt,
        output_tokens=completion,
        total_tokens=total,
        cached_tokens=cached,
        reasoning_tokens=reasoning,
        calls=calls,
    )


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and value >= 0


def _member(source: object, name: str) -> object | None:
    if type(source) is dict or isinstance(source, Mapping):  # the first is what comes from JSON, and quicker to see
        return source.get(name)
    return getattr(source, name, None)


def _number(value: object) -> float | None:
    if type(value) is int:
        return value if value >= 0 else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _first(member: Callable[[str], object], names: tuple[str, ...]) -> float | None:
    for name in names:
        value = member(name)
        if value is not None and (number := _number(value)) is not None:
            return number
    return None


def _nested(member: Callable[[str], object], places: tuple[tuple[str, str], ...]) -> float | None:
    for outer, inner in places:
        details = member(outer)
        if details is not None and (number := _number(_member(details, inner))) is not None:
            return number
    return None


def _read_usage(source: object, calls: int) -> Usage | None:
    if type(source) is dict and (usage := _read_plain(source, calls)) is not None:
        return usage
    member = source.get if type(source) is dict else partial(_member, source)
    counts: dict[str, int] = {}
    for field, names in _NAMES.items():
        value = _first(member, names)
        if value is None and field in _NESTED:
            value = _nested(member, _NESTED[field])
        if value is not None:
            counts[field] = int(value)
    if "input_tokens" not in counts and "output_tokens" not in counts and not counts.get("total_tokens"):
        return None
    prices = {field: price for field, names in _PRICES.items() if (price := _first(member, names)) is not None}
    if not counts.get("total_tokens"):
        counts["total_tokens"] = counts.get("input_tokens", 0) + counts.get("output_tokens", 0)
    return Usage.model_validate(
        {**counts, **prices, "calls": calls, "priced_calls": calls if "total_cost" in prices else 0}
    )
