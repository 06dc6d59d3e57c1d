"""What a model refuses to be told is left out, and the run says so: on the terminal, in its file, after a stop."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mock_server.served import MockEndpoint, serving
from mock_server.shell import MODELS, evaluatorq, journal_folder, saved_run, write_cases


@pytest.fixture(scope="module")
def endpoint() -> Iterator[MockEndpoint]:
    with serving(refused=["temperature", "tool_choice"], finish_turn=1) as mock:
        yield mock


def test_a_dropped_option_is_told_kept_and_rebuilt(endpoint: MockEndpoint, tmp_path: Path) -> None:
    write_cases(tmp_path / "cases.jsonl", 2, criteria=1)
    words = ("-i", "cases.jsonl", "--openai-model", "mock-target", *MODELS, "--llm-config", '{"temperature": 0.7}')
    done = evaluatorq(tmp_path, "sim", "simulate", *words, endpoint=endpoint)
    assert done.returncode == 0, done.stderr
    run = saved_run(tmp_path)
    where = endpoint.url
    assert run["param_dropped"] == {
        f"mock-user @ {where}": ["temperature", "tool_choice"],
        f"mock-judge @ {where}": ["temperature", "tool_choice"],
    }
    assert run["answer_forms"] == {f"mock-user @ {where}": "json_schema", f"mock-judge @ {where}": "json_schema"}
    told = " ".join(done.stderr.split())
    assert f"mock-judge @ {where} refused temperature, tool_choice; it was asked without." in told
    (path,) = (tmp_path / ".evaluatorq" / "sim-runs").glob("*.json")
    path.unlink()
    rebuilt = evaluatorq(tmp_path, "sim", "rebuild", journal_folder(tmp_path).name)
    assert rebuilt.returncode == 0, rebuilt.stderr
    again: dict[str, object] = json.loads((tmp_path / rebuilt.stdout.strip()).read_bytes())
    assert (again["param_dropped"], again["answer_forms"]) == (run["param_dropped"], run["answer_forms"])
    proved = evaluatorq(tmp_path, "sim", "replay", "--verify", "latest")
    assert proved.returncode == 0, proved.stderr
