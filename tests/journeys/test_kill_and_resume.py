"""A run killed or interrupted anywhere is resumed to the same results; only what was under way is asked again."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from mock_server.interrupt import OFFLINE, Scene, histogram, is_running, manifest_of, repeated, without_volatile
from mock_server.served import MockEndpoint, serving
from mock_server.shell import (
    MODELS,
    command,
    environment,
    evaluatorq,
    journal_lines,
    killed_on_failure,
    saved_run,
    write_cases,
)

OFFLINE_KILLS, HTTP_KILLS = 18, 7
PARALLEL = 4
ONE_MODEL = ("-i", "cases.jsonl", "--openai-model", "mock-target", *MODELS)
pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> tuple[Scene, list[dict[str, object]], int]:
    scene = Scene(tmp_path_factory.mktemp("offline"), OFFLINE)
    whole = scene.whole()
    return scene, whole, len(journal_lines(scene.folder))


@pytest.fixture(scope="module")
def endpoint() -> Iterator[MockEndpoint]:
    with serving(latency_ms=8) as mock:
        yield mock


def over_http(folder: Path, endpoint: MockEndpoint) -> Scene:
    folder.mkdir(exist_ok=True)
    write_cases(folder / "cases.jsonl", 12, criteria=1)
    words = ("-i", "cases.jsonl", "--openai-model", "mock-target", *MODELS, "--parallelism", str(PARALLEL))
    return Scene(folder, words, endpoint)


def test_a_run_killed_anywhere_is_resumed_to_the_same_results(
    offline: tuple[Scene, list[dict[str, object]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    scene, whole, last = offline
    places: list[int] = []
    for seed in range(OFFLINE_KILLS):
        scene.forget()
        stopped = scene.stop_at(Random(seed).randrange(2, last))
        places.append(stopped.lines)
        resumed = scene.resume()
        assert resumed.returncode == 0, resumed.stderr
        assert scene.facts() == whole, f"killed after line {stopped.lines}"
        again = repeated(stopped, scene.asked())
        assert len(again) <= PARALLEL
        assert not {int(question.split("/")[0]) for question in again} & stopped.finished
    with capsys.disabled():
        print(f"\n{len(places)} kills between the first and line {last}:\n{histogram(places, last)}")
    assert sum(1 < place < last for place in places) >= 0.8 * OFFLINE_KILLS


def test_over_http_the_endpoint_sees_only_what_was_under_way_again(tmp_path: Path, endpoint: MockEndpoint) -> None:
    scene = over_http(tmp_path / "scene", endpoint)
    whole = scene.whole()
    last, cases_once = len(journal_lines(scene.folder)), endpoint.stats()["cases"]
    for seed in range(HTTP_KILLS):
        scene.forget()
        endpoint.reset()
        stopped = scene.stop_at(Random(seed).randrange(2, last))
        before = endpoint.stats()["cases"]
        resumed = scene.resume()
        assert resumed.returncode == 0, resumed.stderr
        stats = endpoint.stats()
        for row in stopped.finished:
            case = f"CASE-{row:04}"
            assert stats["cases"][case] == before[case], "a finished conversation was asked again"  # type: ignore[index]
        repeats: dict[str, int] = stats["repeats"]  # type: ignore[assignment]
        assert sum(repeats.values()) <= PARALLEL
        assert scene.facts() == whole
        check_tokens(saved_run(scene.folder), stats["cases"], cases_once)  # type: ignore[arg-type]


def check_tokens(
    run: dict[str, object], served: dict[str, dict[str, dict[str, int]]], once: dict[str, dict[str, dict[str, int]]]
) -> None:
    """Known usage is the endpoint's; where an answer was lost on its way, that is said and the rest is known."""
    results = run["results"]
    assert isinstance(results, list)
    for row, result in enumerate(results):
        counted = sum(role["charged"] for role in served[f"CASE-{row:04}"].values())
        ours = result["token_usage"]["total_tokens"]
        if result["token_usage_known"]:
            assert ours == counted
        else:
            assert result["attempts"] == 2
            assert result["unread_answers"]
            assert ours <= counted
        assert ours == sum(role["charged"] for role in once[f"CASE-{row:04}"].values())


def test_ctrl_c_stops_at_once_says_how_to_go_on_and_loses_nothing(
    offline: tuple[Scene, list[dict[str, object]], int],
) -> None:
    scene, whole, last = offline
    scene.forget()
    stopped = scene.stop_at(last // 2, signal.SIGINT)
    manifest = manifest_of(scene.folder)
    assert stopped.code == 130
    assert "Interrupted." in stopped.stderr
    assert f"evaluatorq sim resume {manifest['run_id']}" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert (manifest["status"], manifest["error"]) == ("cancelled", None)
    assert manifest["stages"][0]["completed"] == len(stopped.finished) < 48  # type: ignore[index]
    assert not is_running(int(str(manifest["pid"])))
    assert not list((scene.folder / ".evaluatorq" / "sim-runs").glob("*.json")), "no run file before all are finished"
    assert scene.resume().returncode == 0
    assert scene.facts() == whole
    assert manifest_of(scene.folder)["status"] == "completed"


def test_ctrl_c_while_the_run_file_is_written_leaves_it_whole_and_listed_once(
    offline: tuple[Scene, list[dict[str, object]], int],
) -> None:
    scene, whole, _ = offline
    scene.forget()
    store = scene.folder / ".evaluatorq" / "sim-runs"
    with (
        subprocess.Popen(command(*scene.words), cwd=scene.folder, env=environment(**scene.env)) as process,
        killed_on_failure(process),
    ):
        while process.poll() is None and not list(store.glob(".cut_*.tmp")):
            pass
        process.send_signal(signal.SIGINT)
    assert process.returncode in (0, 130)
    assert list(store.glob(".cut_*.tmp")) == []
    (row,) = json.loads(evaluatorq(scene.folder, "sim", "runs", "--json").stdout)
    assert (row["status"], row["file"] is None) in (("completed", False), ("cancelled", True))
    assert scene.resume().returncode == 0
    assert scene.facts() == whole


def test_a_run_can_be_stopped_again_while_it_is_being_resumed(
    offline: tuple[Scene, list[dict[str, object]], int],
) -> None:
    scene, whole, last = offline
    scene.forget()
    first = scene.stop_at(last // 4)
    scene.words, words = ("sim", "resume", "-q", manifest_of(scene.folder)["run_id"]), scene.words  # type: ignore[assignment]
    second = scene.stop_at(last // 2, signal.SIGINT)
    scene.words = words
    assert (first.code, second.code) in ((-9, 130), (-9, 0))
    assert scene.resume().returncode == 0
    assert scene.facts() == whole
    results = saved_run(scene.folder)["results"]
    assert isinstance(results, list)
    assert max(result["attempts"] for result in results) >= 2
    assert [without_volatile(result) for result in results] == whole


@pytest.mark.parametrize(("first", "other", "said"), [
    (("--offline",), ("--target", "demo:flawed"), "the run's agent is demo, not demo:flawed"),
    (ONE_MODEL, ("--openai-model", "mock-target-2"),
     "the run's agent is mock-target, not mock-target-2"),
    (ONE_MODEL, ("--target", "demo"), "the run's agent is mock-target, not demo"),
])  # fmt: skip
def test_nobody_else_finishes_what_one_agent_began(
    tmp_path: Path, endpoint: MockEndpoint, first: tuple[str, ...], other: tuple[str, ...], said: str
) -> None:
    """What the second agent does would stand under the name of the first."""
    write_cases(tmp_path / "cases.jsonl", 12, criteria=1)
    scene = Scene(tmp_path, (*first, "--parallelism", "2"), endpoint)
    scene.stop_at(12)
    refused = scene.resume(*other)
    assert refused.returncode == 2
    assert said in refused.stderr
    assert scene.resume().returncode == 0
