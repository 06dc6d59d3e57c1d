"""Symptoms that people met at rate limits, quotas and the limits of their own machine, over real sockets."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mock_server.served import MockEndpoint, serving
from mock_server.shell import MODELS, command, environment, evaluatorq, journal_lines, saved_run, write_cases

RUN = ("sim", "simulate", "-q", "-i", "cases.jsonl", "--openai-model", "mock-target", *MODELS)


@pytest.fixture(scope="module")
def mock() -> Iterator[MockEndpoint]:
    with serving() as endpoint:
        yield endpoint


@pytest.fixture
def endpoint(mock: MockEndpoint) -> MockEndpoint:
    mock.reset()
    mock.set(faults=[])
    return mock


@pytest.mark.parametrize("role", ["user", "judge", "target"])
def test_setting_retries_to_zero_is_not_obeyed(endpoint: MockEndpoint, tmp_path: Path, role: str) -> None:
    write_cases(tmp_path / "cases.jsonl", 1, criteria=1)
    endpoint.set(faults=[{"role": role, "kind": "500"}])
    words = ("--llm-config", '{"retry_count": 0}', "--max-target-retries", "0", "--max-turns", "1")
    assert evaluatorq(tmp_path, *RUN, *words, endpoint=endpoint).returncode == 1
    roles = endpoint.stats()["roles"]
    assert isinstance(roles, dict)
    assert roles[role]["requests"] == 1
    failed = [line for line in journal_lines(tmp_path) if line["kind"] == "call_failed"]
    assert [line["final"] for line in failed] == [True]


def test_running_out_of_file_handles_looks_like_a_broken_connection_and_is_retried(
    endpoint: MockEndpoint, tmp_path: Path
) -> None:
    write_cases(tmp_path / "cases.jsonl", 60, criteria=1)
    endpoint.set(latency_ms=20)
    done = subprocess.run(
        command(*RUN, "--parallelism", "60"),
        cwd=tmp_path,
        env=environment(endpoint),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (96, 96)),
    )
    endpoint.set(latency_ms=0)
    assert done.returncode == 0, done.stderr
    assert "connections fit under this process's limit of 96 open files" in done.stderr
    assert not [line for line in journal_lines(tmp_path) if line["kind"] == "call_failed"]
    assert saved_run(tmp_path)["total_results"] == 60
