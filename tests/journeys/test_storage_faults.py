"""A full disk, an unwritable store, two writers, a damaged or newer journal: one sentence, and nothing is lost."""

from __future__ import annotations

import json
import os
import resource
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mock_server.interrupt import OFFLINE, Scene, manifest_of
from mock_server.shell import command, environment, evaluatorq, journal_folder

Facts = list[dict[str, object]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Scene, Facts]:
    scene = Scene(tmp_path_factory.mktemp("whole"), OFFLINE)
    return scene, scene.whole()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "scene", OFFLINE)


def with_room_for(scene: Scene, size: int, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in whose process no file may grow beyond ``size`` bytes: a disk that is full there."""
    return subprocess.run(
        command(*words),
        cwd=scene.folder,
        env={**environment(**scene.env), "PYTHONDONTWRITEBYTECODE": "1"},  # a cut one would stay behind
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )


def sizes(scene: Scene) -> tuple[int, int, int]:
    """Bytes of a whole run's first journal line, of its journal, and of its run file."""
    journal = (journal_folder(scene.folder) / "0001.jsonl").read_bytes()
    (file,) = (scene.folder / ".evaluatorq" / "sim-runs").glob("*.json")
    return journal.index(b"\n"), len(journal), file.stat().st_size


@pytest.mark.parametrize("place", ["journal", "spool or run file"])
def test_a_disk_that_fills_stops_the_run_in_one_sentence_and_resumes_to_the_same_results(
    whole: tuple[Scene, Facts], scene: Scene, place: str
) -> None:
    plan, journal, file = sizes(whole[0])
    assert plan < journal < file
    size = (plan + journal) // 2 if place == "journal" else (journal + file) // 2
    stopped = with_room_for(scene, size, *scene.words)
    assert stopped.returncode == 1
    assert "the disk is full" in stopped.stderr or "File too large" in stopped.stderr
    assert stopped.stderr.count("Error:") == 1
    assert "sim resume" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert list((scene.folder / ".evaluatorq" / "sim-runs").glob("*.json")) == []
    assert list(scene.folder.rglob("*.tmp")) == []
    assert scene.resume().returncode == 0
    assert scene.facts() == whole[1]


def test_a_run_whose_first_line_finds_no_room_leaves_nothing_behind(scene: Scene) -> None:
    stopped = with_room_for(scene, 20_000, *scene.words)
    assert (stopped.returncode, scene.asked()) == (1, {})
    assert len(stopped.stderr.strip().splitlines()) == 1
    assert "the disk is full" in stopped.stderr
    assert [path for path in (scene.folder / ".evaluatorq").rglob("*") if path.is_file()] == []


def test_a_store_that_is_no_folder_is_one_sentence_before_anything_is_asked(scene: Scene) -> None:
    (scene.folder / "taken").write_text("a file")
    scene.env["EVALUATORQ_DIR"] = str(scene.folder / "taken")
    refused = evaluatorq(scene.folder, *scene.words, **scene.env)
    assert (refused.returncode, scene.asked()) == (1, {})
    assert refused.stderr.startswith("Error: cannot create ")
    assert len(refused.stderr.strip().splitlines()) == 1


# ---------------------------------------------------------------- two processes


@contextmanager
def running(scene: Scene) -> Iterator[subprocess.Popen[str]]:
    """A run that goes on slowly while the block runs."""
    env = environment(**scene.env, PACE="0.5")
    with subprocess.Popen(command(*scene.words), cwd=scene.folder, env=env, stderr=subprocess.DEVNULL) as process:
        try:
            while scene.lines_so_far() < 10:
                assert process.poll() is None
                time.sleep(0.01)
            yield process  # type: ignore[misc]
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


def listed(scene: Scene) -> dict[str, object]:
    done = evaluatorq(scene.folder, "sim", "runs", "--json", **scene.env)
    (row,) = json.loads(done.stdout)
    return dict(row)


def test_another_terminal_sees_a_run_live_and_die_and_cannot_write_into_it(scene: Scene) -> None:
    with running(scene) as process:
        second = scene.resume()
        assert (second.returncode, second.stderr.count("\n")) == (1, 1)
        assert "is being written by another process" in second.stderr
        shown = evaluatorq(scene.folder, "sim", "show", journal_folder(scene.folder).name, **scene.env)
        assert shown.returncode == 0
        assert "still going on" in shown.stdout
        row = listed(scene)
        assert (row["status"], row["alive"], row["total"]) == ("running", True, 48)
        manifest = manifest_of(scene.folder)
        assert manifest["pid"] == process.pid
        beat = manifest["heartbeat_at"]
        while manifest_of(scene.folder)["heartbeat_at"] == beat:
            time.sleep(0.1)
    row = listed(scene)
    assert (row["status"], row["alive"]) == ("interrupted", False)
    shown = evaluatorq(scene.folder, "sim", "show", journal_folder(scene.folder).name, **scene.env)
    assert "was stopped" in shown.stdout
    assert "sim resume" in shown.stdout


def test_two_resumes_at_once_are_one(scene: Scene) -> None:
    scene.stop_at(100)
    run_id = journal_folder(scene.folder).name
    words = command("sim", "resume", "-q", run_id)
    env = environment(**scene.env, PACE="0.02")
    pair = [subprocess.Popen(words, cwd=scene.folder, env=env, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    ends = [(process.communicate(timeout=60)[1], process.returncode) for process in pair]
    assert sorted(code for _, code in ends) == [0, 1] or [text for text, code in ends if "complete already" in text]
    assert all("another process" in text for text, code in ends if code == 1)
    assert len(list((scene.folder / ".evaluatorq" / "sim-runs").glob("*.json"))) == 1


# ---------------------------------------------------------------- journals from elsewhere


def test_a_journal_of_a_newer_version_is_refused_and_left_alone(scene: Scene) -> None:
    scene.stop_at(60)
    part = journal_folder(scene.folder) / "0001.jsonl"
    part.write_bytes(part.read_bytes().replace(b'"journal_version":1', b'"journal_version":99', 1))
    before = part.read_bytes()
    for refused in (scene.resume(), evaluatorq(scene.folder, "sim", "show", part.parent.name, **scene.env)):
        assert refused.returncode == 1
        assert "journal version 99 is newer" in refused.stderr
        assert len(refused.stderr.strip().splitlines()) == 1
    assert [path.name for path in part.parent.glob("*.jsonl")] == ["0001.jsonl"]
    assert part.read_bytes() == before


def test_a_line_that_was_damaged_is_named_and_costs_its_conversation_alone(
    whole: tuple[Scene, Facts], scene: Scene
) -> None:
    scene.stop_at(300)
    part = journal_folder(scene.folder) / "0001.jsonl"
    lines = part.read_bytes().splitlines(keepends=True)
    victim = next(i for i, line in enumerate(lines) if b"target_replied" in line)
    part.write_bytes(b"".join([*lines[:victim], b"\x00\xff not a line\n", *lines[victim + 1 :]]))
    shown = evaluatorq(scene.folder, "sim", "show", part.parent.name, **scene.env)
    assert f"0001.jsonl:{victim + 1}" in shown.stdout
    resumed = scene.resume()
    assert resumed.returncode == 0
    assert f"0001.jsonl:{victim + 1}" in resumed.stderr
    assert scene.facts() == whole[1]
    later = [json.loads(line) for line in (part.parent / "0002.jsonl").read_bytes().splitlines()]
    assert [line["row"] for line in later if line.get("restart")] == [json.loads(lines[victim])["row"]]


# ---------------------------------------------------------------- who may read


def test_everything_that_is_written_is_its_owners_alone(whole: tuple[Scene, Facts]) -> None:
    store = whole[0].folder / ".evaluatorq"
    for path in (store, *store.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), f"{path.relative_to(store)} {mode:o}"


def test_a_file_asked_for_by_name_is_private_as_well(scene: Scene) -> None:
    old = os.umask(0)
    try:
        done = evaluatorq(
            scene.folder, *scene.words, "--report", "out/run.json", "--results", "rows.jsonl", **scene.env
        )
    finally:
        os.umask(old)
    assert done.returncode == 0, done.stderr
    for name in ("out/run.json", "rows.jsonl"):
        assert stat.S_IMODE((scene.folder / name).stat().st_mode) == 0o600
