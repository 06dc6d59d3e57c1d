"""A run that must not spend more, or that nobody answers any more, stops early, says why, and goes on when it may."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mock_server.interrupt import manifest_of
from mock_server.served import MockEndpoint, serving
from mock_server.shell import MODELS, evaluatorq, journal_lines, saved_run, write_cases

RUN = ("sim", "simulate", "-i", "cases.jsonl", "--openai-model", "mock-target", *MODELS, "--parallelism", "2")
CASES = 8


@pytest.fixture(scope="module")
def mock() -> Iterator[MockEndpoint]:
    with serving() as endpoint:
        yield endpoint


@pytest.fixture
def endpoint(mock: MockEndpoint, tmp_path: Path) -> MockEndpoint:
    mock.reset()
    mock.set(faults=[])
    write_cases(tmp_path / "cases.jsonl", CASES, criteria=1)
    return mock


def results(folder: Path) -> list[dict[str, object]]:
    found = saved_run(folder)["results"]
    assert isinstance(found, list)
    return found


def begun(endpoint: MockEndpoint) -> int:
    cases = endpoint.stats()["cases"]
    assert isinstance(cases, dict)
    return len(cases)


def test_past_its_tokens_a_run_stops_and_with_more_it_ends(endpoint: MockEndpoint, tmp_path: Path) -> None:
    stopped = evaluatorq(tmp_path, *RUN, "--max-total-tokens", "9000", endpoint=endpoint)
    assert stopped.returncode == 1
    assert "budget of 9,000 tokens" in stopped.stderr
    assert "sim resume" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    spent = sum(endpoint.tokens().values())
    assert 9000 <= spent < 9000 + 2 * 3000, "what was under way may end its turn, nothing else begins"
    assert begun(endpoint) < CASES
    manifest = manifest_of(tmp_path)
    assert manifest["status"] == "cancelled"
    assert "budget" in str(manifest["error"])
    again = evaluatorq(tmp_path, "sim", "resume", "latest", endpoint=endpoint)
    assert (again.returncode, sum(endpoint.tokens().values())) == (1, spent), "its budget is still used up"
    more = evaluatorq(tmp_path, "sim", "resume", "latest", "--max-total-tokens", "1000000", endpoint=endpoint)
    assert more.returncode == 0, more.stderr
    assert len(results(tmp_path)) == CASES
    assert saved_run(tmp_path)["token_usage_total"]["total_tokens"] == sum(endpoint.tokens().values())  # type: ignore[index]
    assert all(result["token_usage_known"] for result in results(tmp_path))


def test_a_budget_of_money_is_not_spent_where_nobody_knows_the_price(endpoint: MockEndpoint, tmp_path: Path) -> None:
    stopped = evaluatorq(tmp_path, *RUN, "--max-cost", "5", endpoint=endpoint)
    assert stopped.returncode == 1
    assert "budget of $5, which cannot be held" in stopped.stderr
    assert begun(endpoint) <= 2


@pytest.mark.parametrize("flag", ["--max-total-tokens", "--max-cost"])
@pytest.mark.parametrize("value", ["0", "-3", "lots", "nan"])
def test_a_budget_that_cannot_be_is_bad_usage(endpoint: MockEndpoint, tmp_path: Path, flag: str, value: str) -> None:
    refused = evaluatorq(tmp_path, *RUN, f"{flag}={value}", endpoint=endpoint)
    assert refused.returncode == 2
    assert len(refused.stderr.strip().splitlines()) == 1
    assert begun(endpoint) == 0


@pytest.mark.parametrize("role", ["user", "judge", "target"])
def test_a_used_up_quota_stops_the_run_and_no_conversation_is_lost_to_it(
    endpoint: MockEndpoint, tmp_path: Path, role: str
) -> None:
    endpoint.set(faults=[{"role": role, "kind": "quota"}])
    stopped = evaluatorq(tmp_path, *RUN, endpoint=endpoint)
    assert stopped.returncode == 1
    assert "used-up quota" in stopped.stderr
    assert "insufficient_quota" in stopped.stderr
    assert begun(endpoint) <= 2, "what remains is not started"
    refused = [line for line in journal_lines(tmp_path) if line["kind"] == "call_failed"]
    assert [(line["code"], line.get("attempt", 1)) for line in refused] in ([("quota", 1)], [("quota", 1)] * 2)
    endpoint.set(faults=[])
    resumed = evaluatorq(tmp_path, "sim", "resume", "latest", endpoint=endpoint)
    assert resumed.returncode == 0, resumed.stderr
    assert {result["ended_by"] for result in results(tmp_path)} == {"judge"}


@pytest.mark.parametrize("over_http", [False, True])
def test_an_endpoint_that_wants_to_be_left_alone_for_an_hour_is_neither_waited_for_nor_asked_by_everybody(
    endpoint: MockEndpoint, tmp_path: Path, over_http: bool
) -> None:
    """The run hung in silence for as long as the refusal said."""
    endpoint.set(faults=[{"role": "target", "kind": "429", "retry_after": 4000}])
    agent = ("--target", endpoint.agent_url) if over_http else ("--openai-model", "mock-target")
    words = ("-i", "cases.jsonl", *agent, *MODELS, "--parallelism", "4")
    stopped = evaluatorq(tmp_path, "sim", "simulate", *words, endpoint=endpoint, timeout=60)
    assert stopped.returncode == 1
    assert "Stopped by the target, which asks to be left alone for 67 minutes: " in stopped.stderr
    roles = endpoint.stats()["roles"]
    assert isinstance(roles, dict)
    assert roles["target"]["requests"] <= 4
    endpoint.set(faults=[])
    assert evaluatorq(tmp_path, "sim", "resume", "latest", endpoint=endpoint).returncode == 0
    assert {result["ended_by"] for result in results(tmp_path)} == {"judge"}


def test_credentials_that_are_refused_in_mid_run_cost_nothing_but_a_new_key(
    endpoint: MockEndpoint, tmp_path: Path
) -> None:
    endpoint.set(faults=[{"role": "judge", "kind": "401"}])
    stopped = evaluatorq(tmp_path, *RUN, endpoint=endpoint)
    assert stopped.returncode == 1
    assert "refused credentials of the judge" in stopped.stderr
    endpoint.set(faults=[])
    assert evaluatorq(tmp_path, "sim", "resume", "latest", endpoint=endpoint).returncode == 0
    assert len(results(tmp_path)) == CASES


def test_what_was_not_the_agents_fault_is_run_again_on_request(endpoint: MockEndpoint, tmp_path: Path) -> None:
    endpoint.set(faults=[{"role": "judge", "kind": "413"}])
    first = evaluatorq(tmp_path, *RUN, endpoint=endpoint)
    assert first.returncode == 1
    assert {result["failed_component"] for result in results(tmp_path)} == {"judge"}
    (file,) = (tmp_path / ".evaluatorq" / "sim-runs").glob("*.json")
    asked = endpoint.stats()["requests"]
    plain = evaluatorq(tmp_path, "sim", "resume", "latest", endpoint=endpoint)
    assert "complete already" in plain.stderr
    assert endpoint.stats()["requests"] == asked
    endpoint.set(faults=[])
    again = evaluatorq(tmp_path, "sim", "resume", "latest", "--retry-errors", endpoint=endpoint)
    assert again.returncode == 0, again.stderr
    assert {(result["ended_by"], result["attempts"]) for result in results(tmp_path)} == {("judge", 2)}
    assert list((tmp_path / ".evaluatorq" / "sim-runs").glob("*.json")) == [file]
    assert saved_run(tmp_path)["token_usage_total"]["total_tokens"] == sum(endpoint.tokens().values())  # type: ignore[index]
    saved = file.read_bytes()
    assert evaluatorq(tmp_path, "sim", "rebuild", "latest").returncode == 0
    assert file.read_bytes() == saved, "what the first attempts cost is in the journal"
    proved = evaluatorq(tmp_path, "sim", "replay", "--verify", "latest")
    assert proved.returncode == 0, proved.stdout
    nothing = evaluatorq(tmp_path, "sim", "resume", "latest", "--retry-errors", endpoint=endpoint)
    assert "no conversation ended by a fault of anybody but the agent" in nothing.stderr


def test_a_second_attempt_that_was_stopped_is_gone_on_with_and_the_first_ones_file_replaced(
    endpoint: MockEndpoint, tmp_path: Path
) -> None:
    endpoint.set(faults=[{"role": "judge", "kind": "413"}])
    assert evaluatorq(tmp_path, *RUN, endpoint=endpoint).returncode == 1
    (file,) = (tmp_path / ".evaluatorq" / "sim-runs").glob("*.json")
    endpoint.set(faults=[{"role": "judge", "kind": "quota"}])
    stopped = evaluatorq(tmp_path, "sim", "resume", "latest", "--retry-errors", endpoint=endpoint)
    assert stopped.returncode == 1
    assert "used-up quota" in stopped.stderr
    endpoint.set(faults=[])
    (hint,) = [line for line in stopped.stderr.splitlines() if line.startswith("Go on with it:")]
    resumed = evaluatorq(tmp_path, *hint.split()[5:], endpoint=endpoint)
    assert resumed.returncode in (0, 1), resumed.stderr
    assert "complete already" not in resumed.stderr
    assert list((tmp_path / ".evaluatorq" / "sim-runs").glob("*.json")) == [file]
    ends = [result["ended_by"] for result in results(tmp_path)]
    assert ends.count("judge") >= 1, "those that were begun again have ended"
    again = evaluatorq(tmp_path, "sim", "resume", "latest", "--retry-errors", endpoint=endpoint)
    assert again.returncode == 0, again.stderr
    assert {result["ended_by"] for result in results(tmp_path)} == {"judge"}
    assert saved_run(tmp_path)["token_usage_total"]["total_tokens"] == sum(endpoint.tokens().values())  # type: ignore[index]


def test_requests_are_spaced_when_so_many_are_allowed_in_a_minute(endpoint: MockEndpoint, tmp_path: Path) -> None:
    write_cases(tmp_path / "cases.jsonl", 1, criteria=1)
    done = evaluatorq(tmp_path, *RUN, "--max-turns", "1", "--requests-per-minute", "120", "--json", endpoint=endpoint)
    assert done.returncode == 0, done.stderr
    assert float(str(saved_run(tmp_path)["duration_s"])) >= 1.0, "three requests, half a second apart"
