"""Every fault in every role over real sockets: how the conversation ends, whose fault it is, and what it cost.

A fault that passes changes nothing but the bill. One that stays ends as the contract says. Each request that the
endpoint saw is either an answer or a recorded failure, and what it charged beyond our count is exactly what we say that
nobody could read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from evaluatorq.model.events import CallFailed, Event, TargetReplied, TurnJudged, UserSpoke
from evaluatorq.model.results import SimulationResult
from evaluatorq.run.outcome import RunOutcome
from evaluatorq.simulation.api import run_simulation
from evaluatorq.simulation.config import SimulationConfig
from evaluatorq.store.journal import JournalReader
from mock_server.served import MockEndpoint, serving
from mock_server.shell import write_cases

FAULTS: dict[str, tuple[dict[str, object], str]] = {
    "429": ({"kind": "429"}, "rate_limit"),
    "429 with seconds": ({"kind": "429", "retry_after": 0.05}, "rate_limit"),
    "429 with a date": ({"kind": "429", "retry_after": "date"}, "rate_limit"),
    "500": ({"kind": "500"}, "server_error"),
    "503": ({"kind": "503"}, "server_error"),
    "503 with seconds": ({"kind": "503", "retry_after": 0.05}, "server_error"),
    "hang": ({"kind": "hang"}, "timeout"),
    "slow body": ({"kind": "slow"}, "timeout"),
    "dropped": ({"kind": "drop"}, "network_error"),
    "cut body": ({"kind": "cut"}, "truncated_response"),
    "malformed JSON": ({"kind": "malformed"}, "malformed_response"),
    "empty content": ({"kind": "empty"}, "empty_reply"),
}
LASTING: dict[str, tuple[dict[str, object], str]] = {
    "400": ({"kind": "400"}, "bad_request"),
    "404": ({"kind": "404"}, "not_found"),
    "413": ({"kind": "413"}, "context_length"),
}
"""Asking again cannot help, so nobody does."""

ROLES = ("user", "judge", "target", "target over HTTP")
COMPONENT = {"user": "user_simulator", "judge": "judge", "target": "target", "target over HTTP": "target"}
CASES, TURNS = 2, 2
OTHER_FORMS = 3
"""How many other ways of asking for an object are tried, once, when a refusal does not say what it refuses."""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[MockEndpoint]:
    with serving(finish_turn=TURNS, slow_s=1.6) as mock:
        yield mock


@dataclass(frozen=True)
class Cell:
    """One run with one fault in one role."""

    outcome: RunOutcome
    results: list[SimulationResult]
    events: list[Event]
    stats: dict[str, object]

    @property
    def failures(self) -> list[CallFailed]:
        return [event for event in self.events if isinstance(event, CallFailed)]

    @property
    def answers(self) -> int:
        return sum(isinstance(event, UserSpoke | TargetReplied | TurnJudged) for event in self.events)

    def counted(self, name: str) -> int:
        roles = self.stats["roles"]
        assert isinstance(roles, dict)
        return sum(counted.get(name, 0) for counted in roles.values())


async def cell(
    endpoint: MockEndpoint, folder: Path, monkeypatch: pytest.MonkeyPatch, role: str, fault: dict[str, object]
) -> Cell:
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-secret-000")
    endpoint.reset()
    endpoint.set(faults=[{"role": role.partition(" ")[0], **fault}])
    over_http = {"target": {"url": endpoint.agent_url, "reply": "reply", "usage": "usage"}}
    config = SimulationConfig.parse({
        "input": write_cases(folder / "cases.jsonl", CASES, criteria=1),
        **(over_http if role == "target over HTTP" else {"openai_model": "mock-target"}),
        "sim_model": "mock-user",
        "judge_model": "mock-judge",
        "max_turns": TURNS,
        "save": True,
        "llm_config": {"timeout_ms": 500, "retry_count": 1},
        "max_target_retries": 1,
        "target_agent_timeout_ms": 500,
    })  # fmt: skip
    outcome = await run_simulation(config)
    assert outcome.journal is not None
    events = [line.event for line in JournalReader(outcome.journal).lines()]
    return Cell(outcome, list(outcome.iter_results()), events, endpoint.stats())


def check_bill(found: Cell) -> None:
    """Ours is the endpoint's but for what could not be read, which is listed answer by answer."""
    spent = sum(result.token_usage.total_tokens for result in found.results)
    assert found.counted("charged") - spent == found.counted("spoiled")
    assert sum(len(result.unread_answers) for result in found.results) == found.counted("spoiled_answers")
    for result in found.results:
        assert result.token_usage_known == (not result.unread_answers)
        assert sum(turn.token_usage.total_tokens for turn in result.turn_metrics) == result.token_usage.total_tokens


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_that_passes_changes_nothing_but_the_bill(
    endpoint: MockEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str, fault: str
) -> None:
    what, code = FAULTS[fault]
    found = await cell(endpoint, tmp_path, monkeypatch, role, {**what, "first": 1})
    assert found.outcome.dropped == []
    for result in found.results:
        assert (result.ended_by, result.turn_count, result.goal_achieved) == ("judge", TURNS, True)
        assert result.metadata["evaluator_scores"] == {"goal_achieved": 1.0, "criteria_met": 1.0}
    assert [(failed.component, failed.code, failed.final) for failed in found.failures] == [
        (COMPONENT[role], code, False)
    ] * (CASES * TURNS)
    assert found.stats["requests"] == found.answers + len(found.failures)
    check_bill(found)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("fault", [*FAULTS, *LASTING])
async def test_a_fault_that_stays_ends_as_the_contract_says_and_is_booked_on_who_failed(
    endpoint: MockEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str, fault: str
) -> None:
    what, code = {**FAULTS, **LASTING}[fault]
    found = await cell(endpoint, tmp_path, monkeypatch, role, what)
    component = COMPONENT[role]
    assert {(dropped.component, dropped.code) for dropped in found.outcome.dropped} == {(component, code)}
    for result in found.results:
        timed_out = component == "target" and code == "timeout"
        assert result.terminated_by == ("timeout" if timed_out else "error")
        assert (result.failed_component, result.metadata["error_type"]) == (component, code)
        scores = {"goal_achieved": 0.0, "criteria_met": 0.0} if component == "target" else None
        assert result.metadata.get("evaluator_scores") == scores
        assert result.goal_known == (component == "target")
        assert result.turn_count == (TURNS if component == "judge" else 0)
        assert len(result.messages) == {"user": 0, "judge": 2 * TURNS}.get(role, 1)
    assert {failed.code for failed in found.failures} == {code}
    retried = [failed for failed in found.failures if not failed.final]
    assert bool(retried) == (fault in FAULTS)
    requests = found.stats["requests"]
    assert isinstance(requests, int)
    tried = requests - found.answers - len(found.failures)
    assert 0 <= tried <= (OTHER_FORMS * CASES if fault in ("400", "404") and component != "target" else 0)
    check_bill(found)


async def test_a_judge_that_fails_in_mid_run_leaves_a_turn_unjudged_and_the_conversation_goes_on(
    endpoint: MockEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await cell(endpoint, tmp_path, monkeypatch, "judge", {"kind": "500", "first": 2})
    assert {result.ended_by for result in found.results} == {"error"}
    assert all(turn.judge_reason.startswith("not judged") for r in found.results for turn in r.turn_metrics[:1])
    assert all(result.turn_count == TURNS for result in found.results)
