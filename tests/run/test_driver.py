"""What a call that failed may have cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evaluatorq.errors import CallError
from evaluatorq.model.messages import assistant
from evaluatorq.model.usage import Usage
from evaluatorq.ports import TargetReply
from evaluatorq.run.engine import RunOptions, run_plan
from evaluatorq.testing import a_plan, crew_of, verdict

COSTLY = Usage(input_tokens=5, total_tokens=5, calls=1)


def lost(code: str) -> CallError:
    return CallError(code, "gone", retryable=True)


@pytest.mark.parametrize("code", ["timeout", "network_error", "truncated_response", "malformed_response"])
@pytest.mark.parametrize("metered", [True, False])
async def test_an_answer_that_was_lost_makes_the_cost_unknown_only_where_answers_cost(
    tmp_path: Path, code: str, metered: bool
) -> None:
    crew = crew_of(target=[lost(code), "I will help you"], judge=[verdict(stop=True)])
    crew = replace(crew, metered=frozenset({"target"} if metered else ()))
    outcome = await run_plan(a_plan(), crew, RunOptions(runs_dir=tmp_path, keep=True))
    (result,) = outcome.results
    assert result.token_usage_known is not metered
    assert result.unread_answers == ([f"target: {code}"] if metered else [])


async def test_an_agent_that_told_its_cost_before_is_one_whose_answers_cost(tmp_path: Path) -> None:
    first = TargetReply((assistant("Hello there you"),), usage=COSTLY)
    crew = crew_of(target=[first, lost("timeout"), "I will help you"], judge=[verdict(), verdict(stop=True)])
    outcome = await run_plan(a_plan(), crew, RunOptions(runs_dir=tmp_path, keep=True))
    (result,) = outcome.results
    assert result.unread_answers == ["target: timeout"]


@pytest.mark.parametrize("code", ["rate_limit", "server_error", "auth", "bad_request"])
async def test_a_refusal_is_known_to_be_free(tmp_path: Path, code: str) -> None:
    crew = replace(
        crew_of(target=[lost(code), "I will help you"], judge=[verdict(stop=True)]), metered=frozenset({"target"})
    )
    outcome = await run_plan(a_plan(), crew, RunOptions(runs_dir=tmp_path, keep=True))
    assert outcome.results[0].token_usage_known
