"""Symptoms that people met when runs share a process, an event loop or a report: errors that look like verdicts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluatorq.model.judgments import parse_criteria_meta
from evaluatorq.model.messages import Message
from evaluatorq.simulation import simulate, simulate_sync
from evaluatorq.testing import a_persona, a_scenario
from mock_server.served import MockEndpoint, serving
from mock_server.shell import evaluatorq

CASES = {"personas": [a_persona()], "scenarios": [a_scenario(criteria=[{"must_not_happen": "is rude"}])]}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[MockEndpoint]:
    with serving(finish_turn=1) as mock:
        yield mock


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALUATORQ_DIR", str(tmp_path))


def test_a_second_run_fails_on_what_the_first_ones_event_loop_left_behind(endpoint: MockEndpoint) -> None:
    for _ in range(2):
        results = simulate_sync(target=endpoint.agent_url, offline=True, max_turns=2, **CASES)
        assert [(result.errored, result.turn_count) for result in results] == [(False, 2)]


def test_an_agents_client_is_bound_to_another_loop_than_the_one_it_is_asked_on() -> None:
    async def twice() -> None:
        lock = asyncio.Lock()
        loops = {asyncio.get_running_loop()}

        async def agent(messages: list[Message]) -> str:
            async with lock:
                loops.add(asyncio.get_running_loop())
            return "Certainly, I can help."

        for _ in range(2):
            results = await simulate(target=agent, offline=True, max_turns=2, **CASES)
            assert not any(result.errored for result in results)
        assert len(loops) == 1

    asyncio.run(twice())


def test_the_text_of_a_loop_error_is_returned_as_a_failed_evaluation() -> None:
    async def warm_up() -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()

    stale = asyncio.run(warm_up())

    async def agent(messages: list[Message]) -> str:
        await stale
        return "never"

    results = simulate_sync(target=agent, offline=True, max_target_retries=0, raise_on_execution_failure=False, **CASES)
    (result,) = results
    assert (result.ended_by, result.failed_component) == ("error", "target")
    assert "different loop" in result.reason
    assert [row.role for row in result.messages] == ["user"]
    assert result.rules_broken == []
    metas, _ = parse_criteria_meta(result.metadata["criteria_meta"])
    assert [meta.state for meta in metas] == ["unknown"]


def test_a_report_wants_a_reference_answer_that_simulated_cases_do_not_have(tmp_path: Path) -> None:
    words = ("--offline", "--name", "none", "--max-turns", "2", "--only", "*Refund*")
    made = evaluatorq(tmp_path, "sim", "simulate", "-q", *words, "--report-md", "r.md", "--report-html", "r.html")
    assert made.returncode == 0, made.stderr
    for more in (("show", "none"), ("samples", "none"), ("compare", "none", "none"), ("traces", "export", "none",
                 "-o", "t.jsonl"), ("export", "-i", "none", "-o", "rows.jsonl")):  # fmt: skip
        done = evaluatorq(tmp_path, "sim", *more)
        assert done.returncode == 0, (more, done.stderr)
    gate = evaluatorq(tmp_path, "sim", "gate", "none", "--junit", "gate.xml")
    assert gate.returncode in (0, 1)
    assert {"r.md", "r.html", "gate.xml", "rows.jsonl"} <= {path.name for path in tmp_path.iterdir()}
