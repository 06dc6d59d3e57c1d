"""Scores read off facts: expectations and statements."""

from __future__ import annotations

import pytest

from evaluatorq.environments.toolbox import Toolbox, tool
from evaluatorq.evaluators.registry import evaluate_one, resolve_evaluators
from evaluatorq.model.messages import assistant, tool_call
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import Limits
from evaluatorq.testing import a_datapoint, a_scenario, converse, crew_of, verdict

PAID = {"tool_called": {"name": "refund", "outcome": "accepted"}}
CLAIMS = [
    {"says": "have refunded", "requires": PAID},
    {"says": "it is paid", "requires": {"state": {"pointer": "/paid", "equals": True}}},
]
(EXPECTED, CLAIMED) = resolve_evaluators(["expectations_met", "operational_claims"])


@tool
def refund(state: dict[str, bool], works: bool = True) -> str:
    """Pays."""
    if not works:
        raise ValueError("no money")
    state["paid"] = True
    return "paid"


async def played(*target: object, turns: int = 1, **scenario: object) -> SimulationResult:
    crew = crew_of(
        target=target, environment=lambda: Toolbox({"paid": False}, [refund]), judge=[verdict(goal=True)] * 3
    )  # type: ignore[arg-type]
    return await converse(a_datapoint(a_scenario(**scenario)), crew, Limits(max_turns=turns))


def paying(**arguments: bool) -> object:
    return assistant(None, [tool_call("c1", "refund", {**arguments})])


async def test_met_expectations_are_one_and_missed_ones_zero_with_every_reason() -> None:
    expect = {"tools": ["refund"], "state": [{"pointer": "/paid", "equals": True}]}
    met = await evaluate_one(EXPECTED, await played(paying(), "Done.", expect=expect))
    assert (met.score, met.details) == (1.0, {"failures": []})
    missed = await evaluate_one(EXPECTED, await played("I have refunded you.", expect=expect))
    assert missed.score == 0.0
    assert missed.details is not None
    assert len(missed.details["failures"]) == 2  # type: ignore[arg-type]


async def test_where_nothing_is_expected_or_claimed_there_is_no_score() -> None:
    result = await played("Hi.")
    assert (await evaluate_one(EXPECTED, result)).error == "the scenario expects nothing"
    assert (await evaluate_one(CLAIMED, result)).error == "the scenario names no claims"


@pytest.mark.parametrize(
    ("target", "score", "backed"),
    [
        (["I have refunded you."], 0.0, [False]),
        ([paying(), "I have refunded you."], 1.0, [True]),
        ([paying(works=False), "I have refunded you."], 0.0, [False]),
        ([paying(), "I have refunded you, it is paid."], 1.0, [True, True]),
        (["Rest assured: it is paid, I have refunded you."], 0.0, [False, False]),
        (["I cannot do that."], 1.0, []),
    ],
)
async def test_what_the_agent_says_it_did_is_held_against_what_it_did(
    target: list[object], score: float, backed: list[bool]
) -> None:
    result = await played(*target, claims=CLAIMS)
    assert [finding.backed for finding in result.claims or []] == backed
    assert (await evaluate_one(CLAIMED, result)).score == score


async def test_a_deed_that_comes_after_the_words_does_not_back_them() -> None:
    result = await played("I have refunded you.", paying(), "Now it is paid.", turns=2, claims=CLAIMS)
    assert [(finding.turn, finding.backed) for finding in result.claims or []] == [(1, False), (2, True)]
