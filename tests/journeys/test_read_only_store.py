"""A store that can only be read: everything that looks works, everything that writes says so in one sentence."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from mock_server.interrupt import OFFLINE, Scene
from mock_server.shell import command, environment

MOUNTED = "mount --bind .evaluatorq .evaluatorq && mount -o remount,bind,ro .evaluatorq && exec "


def read_only(scene: Scene, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a command to whom the store is mounted read-only."""
    script = MOUNTED + shlex.join(command(*words))
    return subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script],
        cwd=scene.folder, env=environment(**scene.env), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    words = ["unshare", "--map-root-user", "--mount", "sh", "-c", "mount -t tmpfs none /mnt"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not can_mount(), reason="this machine lets nobody mount in a namespace of their own")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    scene = Scene(tmp_path_factory.mktemp("read_only"), OFFLINE)
    scene.whole()
    return scene


@pytest.mark.parametrize("words", [
    ("runs",), ("show", "cut"), ("show", "cut", "3"), ("replay", "--verify", "cut"), ("samples", "cut"),
    ("resume", "cut"),
], ids=" ".join)  # fmt: skip
def test_whoever_only_looks_is_not_disturbed(scene: Scene, words: tuple[str, ...]) -> None:
    done = read_only(scene, "sim", *words)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [
    ("simulate", "-q", *OFFLINE), ("rebuild", "cut"), ("rescore", "cut", "--evaluator", "goal_achieved"),
    ("rejudge", "-q", "cut", "--offline"),
], ids=lambda words: words[0])  # fmt: skip
def test_whoever_writes_is_told_in_one_sentence_before_anybody_is_asked(scene: Scene, words: tuple[str, ...]) -> None:
    asked = scene.asked()
    done = read_only(scene, "sim", *words)
    assert done.returncode == 1
    assert done.stderr.startswith(("Error: cannot create ", "Error: cannot write ")), done.stderr
    assert done.stderr.strip().endswith("Read-only file system")
    assert len(done.stderr.strip().splitlines()) == 1
    assert scene.asked() == asked
    assert list(scene.folder.rglob("*.tmp")) == []


def test_a_stopped_run_is_seen_as_stopped_and_is_gone_on_with_once_it_can_be_written(tmp_path: Path) -> None:
    """Nobody writes it, whether or not somebody could."""
    scene = Scene(tmp_path / "scene", OFFLINE)
    scene.stop_at(120)
    shown = read_only(scene, "sim", "show", "latest")
    assert shown.returncode == 0, shown.stderr
    assert "this run was stopped" in shown.stdout
    refused = read_only(scene, "sim", "resume", "latest")
    assert refused.returncode == 1
    assert refused.stderr.strip().endswith("Read-only file system")
    assert scene.resume().returncode == 0
