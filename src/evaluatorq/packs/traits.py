"""Persona traits with levels that are anchored in behaviour, and levels that do not go together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from random import Random
from typing import Self

from pydantic import model_validator

from evaluatorq.errors import ConfigError
from evaluatorq.model.base import Strict

Levels = Mapping[str, str]


class TraitTable(Strict):
    """Traits, each with its levels and what somebody at that level does; ``never`` are levels that exclude each other.

    ``You`` in an anchor is whoever plays the persona.
    """

    traits: dict[str, dict[str, str]]
    never: tuple[dict[str, str], ...] = ()

    @model_validator(mode="after")
    def _known(self) -> Self:
        for pair in self.never:
            self._refuse_unknown(pair)
        return self

    def check(self, levels: Levels, who: str) -> None:
        """``ConfigError`` where a level is missing, is not known, or stands beside one that it excludes."""
        lacking = [name for name in self.traits if name not in levels]
        if lacking:
            raise ConfigError(f"{who} has no level for {', '.join(lacking)}")
        try:
            self._refuse_unknown(levels)
        except ValueError as error:
            raise ConfigError(f"{who}: {error}") from None
        for pair in self.never:
            if _fits(pair, levels):
                raise ConfigError(f"{who}: {_shown(pair)} do not go together")

    def describe(self, levels: Levels) -> str:
        """The anchors of these levels as sentences."""
        return " ".join(anchors[levels[name]] for name, anchors in self.traits.items())

    def combinations(self) -> Iterator[dict[str, str]]:
        """Every combination of levels that can be."""
        for chosen in product(*(anchors for anchors in self.traits.values())):
            levels = dict(zip(self.traits, chosen, strict=True))
            if not any(_fits(pair, levels) for pair in self.never):
                yield levels

    def draw(self, seed: int, case: str, k: int = 0) -> dict[str, str]:
        """One combination, the same for the same seed, case and number."""
        random = Random(f"{seed}/{case}/{k}")  # noqa: S311  repeatable, not secret
        while True:
            levels = {name: random.choice(list(anchors)) for name, anchors in self.traits.items()}
            if not any(_fits(pair, levels) for pair in self.never):
                return levels

    def _refuse_unknown(self, levels: Levels) -> None:
        for name, level in levels.items():
            known = self.traits.get(name)
            if known is None or level not in known:
                there = ", ".join(known if known is not None else self.traits)
                raise ValueError(f"{name}={level} is no level of a trait; there is {there}")


def _fits(pair: Levels, levels: Levels) -> bool:
    return all(levels.get(name) == level for name, level in pair.items())


def _shown(pair: Levels) -> str:
    return " and ".join(f"{name}={level}" for name, level in pair.items())
