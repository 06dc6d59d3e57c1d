"""What may be tuned in the built-in scores: the steps of ``turn_efficiency`` and the weights of the quality mix."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Self

from pydantic import Field, ValidationError, model_validator

from evaluatorq.errors import ConfigError
from evaluatorq.model.base import Strict

Share = Annotated[float, Field(ge=0, le=1)]
Cliff = tuple[Annotated[int, Field(ge=1)], Share]


class SimulationScoringConfig(Strict):
    """A cliff ``(turns, score)`` gives its score to goals achieved within that many turns; later ones lose
    ``turn_efficiency_decay_per_turn`` for each turn past the last cliff, down to the floor. The weights add up to 1.
    """

    turn_efficiency_cliffs: tuple[Cliff, ...] = Field(((2, 1.0), (4, 0.9), (6, 0.7)), min_length=1)
    turn_efficiency_decay_per_turn: Share = 0.1
    turn_efficiency_floor: Share = 0.3
    goal_achieved_weight: Share = 0.4
    criteria_met_weight: Share = 0.3
    turn_efficiency_weight: Share = 0.3

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for (turns, score), (more_turns, later_score) in pairwise(self.turn_efficiency_cliffs):
            if more_turns <= turns or later_score > score:
                raise ValueError("turn_efficiency_cliffs: turns must increase and scores must not")
        if self.turn_efficiency_floor > self.turn_efficiency_cliffs[-1][1]:
            raise ValueError("turn_efficiency_floor is above the last cliff's score")
        total = math.fsum((self.goal_achieved_weight, self.criteria_met_weight, self.turn_efficiency_weight))
        if abs(total - 1) > 1e-9:
            raise ValueError(f"the three weights add up to {total:g}, not to 1")
        return self


DEFAULT_SCORING = SimulationScoringConfig()


def scoring_of(given: object) -> SimulationScoringConfig:
    """A scoring config from itself, from a mapping, or the default for ``None``; ``ConfigError`` in one sentence."""
    if given is None:
        return DEFAULT_SCORING
    if isinstance(given, SimulationScoringConfig):
        return given
    if not isinstance(given, Mapping):
        raise ConfigError(f"scoring is a SimulationScoringConfig or a mapping, not {type(given).__name__}")
    try:
        return SimulationScoringConfig.model_validate(dict(given))
    except ValidationError as error:
        faults = (".".join(map(str, (*fault["loc"], fault["msg"]))) for fault in error.errors(include_url=False))
        raise ConfigError(f"scoring: {'; '.join(faults)}") from None
