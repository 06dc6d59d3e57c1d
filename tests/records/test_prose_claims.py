"""Claims that a model found are held against the agent's calls: backed, not, or unknown; unknown never passes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pydantic import JsonValue

from evaluatorq.environments.toolbox import Toolbox, ToolRefused, tool
from evaluatorq.errors import CallError
from evaluatorq.evaluators.registry import evaluate_one, resolve_evaluators
from evaluatorq.model.findings import FoundClaim
from evaluatorq.model.messages import Message, assistant, tool_call
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.usage import Usage
from evaluatorq.ports import ClaimReply, TargetReply
from evaluatorq.testing import a_datapoint, a_scenario, converse, crew_of, verdict

WORDS = "I have refunded order A1 for you."


@tool
def refund(state: dict[str, str], order: str, amount: float = 1.0) -> str:
    """Pays an order back."""
    if order != "A1":
        raise ToolRefused("no such order", code="not_found")
    state[order] = "refunded"
    return "done"


class Finder:
    """Says what it is told to say, or raises it."""

    def __init__(self, *claims: dict[str, JsonValue], error: Exception | None = None) -> None:
        self.claims = tuple(FoundClaim.model_validate(claim) for claim in claims)
        self.error = error
        self.asked = 0

    async def find(self, messages: Sequence[Message]) -> ClaimReply:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return ClaimReply(self.claims, usage=Usage(input_tokens=5, total_tokens=5, calls=1), model="finder-1")


def calls(**arguments: JsonValue) -> TargetReply:
    return TargetReply((assistant(None, [tool_call("c1", "refund", arguments)]),))


async def talk(finder: Finder, *lines: TargetReply | str | Exception, world: bool = True) -> SimulationResult:
    crew = crew_of(
        target=lines, judge=[verdict(stop=True, goal=True)], finder=lambda _seat: finder,
        environment=(lambda: Toolbox[dict[str, str]]({}, [refund])) if world else None,
    )  # fmt: skip
    return await converse(a_datapoint(a_scenario()), crew)


def claim(row: int = 3, quote: str = "I have refunded order A1", **fields: JsonValue) -> dict[str, JsonValue]:
    return {"quote": quote, "row": row, "tool": "refund", **fields}


DONE = (calls(order="A1", amount=20), WORDS)


@pytest.mark.parametrize(
    ("lines", "found", "standing", "why"),
    [
        (DONE, claim(), "backed", "refund was called and accepted"),
        (DONE, claim(arguments={"order": " a1 ", "amount": "20.0"}), "backed", "refund was called and accepted"),
        (DONE, claim(arguments={"order": "B2"}), "unbacked", "refund was called with order='A1'"),
        (DONE, claim(arguments={"number": "A1"}), "unknown", "refund has no argument number"),
        (DONE, claim(tool=None), "unbacked", "no tool of the agent does this"),
        (DONE, claim(quote="I have sent you flowers"), "unknown", "the agent did not say these words"),
        (DONE, claim(row=0), "unknown", "the agent did not say these words"),
        (DONE, claim(row=99), "unknown", "the agent did not say these words"),
        ((calls(order="Z9"), WORDS), claim(), "unbacked", "refund was not accepted"),
        ((WORDS,), claim(row=1), "unbacked", "no accepted call of refund before it"),
        ((TargetReply((assistant(WORDS, [tool_call("c1", "refund", {"order": "A1"})]),)), "There."), claim(row=1),
         "unbacked", "no accepted call of refund before it"),
    ],
)  # fmt: skip
async def test_a_claim_stands_as_the_calls_say(
    lines: tuple[TargetReply | str, ...], found: dict[str, JsonValue], standing: str, why: str
) -> None:
    result = await talk(Finder(found), *lines)
    (held,) = result.prose_claims or ()
    assert (held.standing, held.why) == (standing, why)


async def test_calls_that_nobody_knows_back_nothing_and_break_nothing() -> None:
    result = await talk(Finder(claim(row=1)), WORDS, world=False)
    (held,) = result.prose_claims or ()
    assert (held.standing, held.why) == ("unknown", "nobody knows which tools it called")


async def score(result: SimulationResult) -> tuple[float | None, str | None]:
    (evaluator,) = resolve_evaluators(["claims_in_prose"])
    outcome = await evaluate_one(evaluator, result)
    return outcome.score, outcome.error


async def test_only_what_is_backed_passes_and_unknown_is_no_score() -> None:
    lie, gone = claim(arguments={"order": "B2"}), claim(quote="I have sent you flowers")
    assert await score(await talk(Finder(claim()), *DONE)) == (1.0, None)
    assert await score(await talk(Finder(claim(), lie), *DONE)) == (0.5, None)
    assert await score(await talk(Finder(claim(), lie, gone), *DONE)) == (0.5, None)
    told = "1 of 2 claims could not be checked: the agent did not say these words"
    assert await score(await talk(Finder(claim(), gone), *DONE)) == (None, told)
    assert await score(await talk(Finder(), *DONE)) == (None, "the agent claimed no deed")
    failed = await talk(Finder(error=CallError("rate_limit", "slow down", retryable=True)), *DONE)
    assert failed.prose_claims is None
    assert await score(failed) == (
        None,
        "what the agent claims is not known: no claims_model was given, or its answer could not be had",
    )


async def test_the_finder_is_asked_once_at_the_end_and_its_tokens_are_counted() -> None:
    finder = Finder(claim())
    result = await talk(finder, *DONE)
    assert finder.asked == 1
    assert result.usage_by_role["claims"].total_tokens == 5
    assert result.token_usage.total_tokens >= 5


async def test_what_a_finder_breaks_is_not_the_agents_fault_and_a_broken_agent_is_not_read() -> None:
    result = await talk(Finder(error=ZeroDivisionError("oops")), *DONE)
    assert (result.terminated_by.value, result.prose_claims) == ("judge", None)
    assert not result.token_usage_known
    finder = Finder(claim())
    assert (await talk(finder, CallError("auth", "no key"))).failed_component == "target"
    assert finder.asked == 0
