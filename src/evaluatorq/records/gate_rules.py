"""What a gate asks (``GateRules``, the table ``[gate]`` of the project's settings), and what it answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError

from evaluatorq.errors import ConfigError
from evaluatorq.model.base import Record, Strict
from evaluatorq.model.rules import Placed, nowhere
from evaluatorq.records.compare import RunLabel

State = Literal["holds", "broken", "could not measure"]
HOLDS, BROKEN, UNMEASURED = 0, 1, 3


def _share(value: object) -> object:
    """A share as people write it: ``0.95``, or ``95%``."""
    if not isinstance(value, str) or not value.strip().endswith("%"):
        return value
    with suppress(ValueError):
        return float(value.strip().removesuffix("%")) / 100
    raise ValueError(f"is {value!r}; write a share such as 0.95 or '95%'")


Share = Annotated[float, BeforeValidator(_share), Field(ge=0, le=1)]
GATE_VERSION = 1


class Allowed(Strict):
    """How many conversations may be so: a count, or a share of all (written ``5%`` or ``0.05``)."""

    count: int | None = Field(None, ge=0)
    share: Share | None = None

    def __str__(self) -> str:
        return f"{self.share * 100:g} %" if self.share is not None else str(self.count)

    def most(self, total: int) -> int:
        """The largest number of ``total`` that is allowed; 29 % of 100 are 29, whatever 0.29 is as a float."""
        return math.floor(self.share * total + 1e-9) if self.share is not None else self.count or 0


def _allowed(value: object) -> object:
    """A count or a share as people write them."""
    match value:
        case None | Allowed() | dict():
            return value
        case bool():
            pass
        case int():
            return {"count": value}
        case float() if 0 <= value < 1:
            return {"share": value}
        case str() if value.strip().isdecimal():
            return {"count": int(value)}
        case str() if value.strip().endswith("%"):
            return {"share": _share(value)}
        case str():
            with suppress(ValueError):
                if 0 <= float(value) < 1:
                    return {"share": float(value)}
    raise ValueError(f"is {value!r}; write a count such as 3, or a share such as '5%' or 0.05")


Most = Annotated[Allowed | None, BeforeValidator(_allowed)]


class GateRules(Strict):
    """Thresholds, and a baseline; without any the reference gate decides, and with any it does only when ``strict``. A
    ``min_`` is of a rate or mean (``0.95`` or ``"95%"``), a ``max_`` of conversations (a count, or ``"5%"``), of
    criteria, or of what the run spent.
    """

    strict: bool = Field(
        False, description="Also what the gate without rules asks, and that claims and expectations held."
    )
    min_pass_rate: Share | None = Field(None, description="Least share of conversations that passed.")
    min_goal_rate: Share | None = Field(None, description="Least share of conversations that reached their goal.")
    min_criteria_rate: Share | None = Field(None, description="Least share of criteria that held.")
    min_criterion: dict[str, Share] = Field(
        default_factory=dict, description="Least share for one criterion, by a part of its text or a glob."
    )
    min_evaluator: dict[str, Share] = Field(default_factory=dict, description="Least mean of an evaluator.")
    min_pass_hat_k: Share | None = Field(None, description="Least chance that all samples of a datapoint pass.")
    max_errors: Most = Field(None, description="Most conversations that ended in an error or timeout.")
    max_unknown: Most = Field(None, description="Most conversations that nobody could decide.")
    max_unaudited: int | None = Field(None, ge=0, description="Most criteria that nobody audited.")
    max_unverified: int | None = Field(None, ge=0, description="Most verdicts whose quote nobody said.")
    max_flaky: Most = Field(None, description="Most datapoints that pass in some samples only.")
    max_tokens: int | None = Field(None, ge=0, description="Most tokens of the whole run.")
    max_cost: float | None = Field(None, ge=0, description="Most USD of the whole run.")
    max_mean_turns: float | None = Field(None, gt=0, description="Most exchanges of a conversation, on average.")
    baseline: str | None = Field(
        None, description="A run of the same cases: nothing may be worse, by a paired significance test (5 %)."
    )
    max_lost: Most = Field(
        None, description="Most datapoints that held in the baseline and do not now; counted, in place of the test."
    )

    @classmethod
    def parse(cls, options: Mapping[str, object], *, where: str = "", placed: Placed = nowhere) -> Self:
        """The rules that ``options`` describe; ``ConfigError`` in one sentence, which begins with ``where``; each
        fault is told with where it is ``placed``.
        """
        try:
            return cls.model_validate(dict(options))
        except ValidationError as error:
            faults = [
                placed(fault["loc"]) + _sentence(fault["type"], fault["loc"], fault["msg"], fault["input"])
                for fault in error.errors()
            ]
            raise ConfigError(f"{where}: {'; '.join(faults)}" if where else "; ".join(faults)) from None


class Evidence(Record):
    """A conversation that a rule points at: why, and the words that show it."""

    row: int
    name: str
    why: str
    quote: str = ""
    turn: int | None = None


class RuleResult(Record):
    """One rule: what it asks, what was found, and the conversations to look at."""

    rule: str
    state: State
    found: str
    conversations: tuple[Evidence, ...] = ()


class GateReport(Record):
    """The gate's decision. ``broken`` outweighs ``could not measure``, which outweighs ``holds``. ``note`` says if the
    rules of the gate without options were left out, ``warnings`` what failed and no rule of this gate reads, ``subset``
    that the run was to have only a part of the baseline's cases.
    """

    gate_version: int = GATE_VERSION
    run: RunLabel
    baseline: RunLabel | None = None
    subset: str = ""
    state: State
    rules: tuple[RuleResult, ...]
    note: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def decision(self) -> str:
        """The state in words, and what it does not say: a gate may hold for a run in which conversations failed, and
        for a part of the baseline's cases.
        """
        failed = f", though {self.run.failed} of {self.run.conversations} conversations failed"
        told = self.state + (failed if self.state == "holds" and self.run.failed else "")
        return f"{told} ({self.subset})" if self.subset else told

    @property
    def exit_code(self) -> int:
        """0 holds, 1 broken, 3 could not measure."""
        return {"holds": HOLDS, "broken": BROKEN, "could not measure": UNMEASURED}[self.state]


def _sentence(kind: str, place: tuple[int | str, ...], message: str, given: object) -> str:
    path = ".".join(map(str, place))
    if kind == "extra_forbidden":
        near = get_close_matches(path, GateRules.model_fields, n=1)
        return f"{path}: no such rule" + (f"; did you mean {near[0]}?" if near else "")
    if kind == "value_error":
        return f"{path} {message.removeprefix('Value error, ')}"
    return f"{path}: {message[:1].lower()}{message[1:]} (got {given!r})"
