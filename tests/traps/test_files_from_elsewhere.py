"""Symptoms that people met with files that others made: a name in them that is a path, written to or read from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from mock_server.interrupt import OFFLINE, Scene
from mock_server.shell import evaluatorq, journal_folder

CASES = ("--only", "*Refund within*")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scene = Scene(tmp_path_factory.mktemp("made"), (*OFFLINE, *CASES))
    scene.whole()
    return scene.folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "copy"))


def beside(folder: Path) -> list[str]:
    return sorted(
        str(path.relative_to(folder.parent)) for path in folder.parent.rglob("*") if "copy/." not in str(path)
    )


@pytest.mark.parametrize("run_id", ["../../../pwned", "/tmp/pwned", "..", "a\\b"])
def test_a_journal_from_elsewhere_names_a_run_that_is_a_path(folder: Path, run_id: str) -> None:
    part = journal_folder(folder) / "0001.jsonl"
    first, *rest = part.read_bytes().splitlines(keepends=True)
    plan = {key: value for key, value in json.loads(first).items() if key != "crc"}
    lines = [line for line in rest if b'"row":0' in line]
    part.write_bytes(json.dumps({**plan, "run_id": run_id}).encode() + b"\n" + b"".join(lines))
    next((folder / ".evaluatorq" / "sim-runs").glob("*.json")).unlink()
    shutil.rmtree(folder / ".evaluatorq" / "sim-runs" / ".manifests")
    before = beside(folder)
    for words in (("resume", part.parent.name), ("rebuild", part.parent.name), ("show", part.parent.name)):
        done = evaluatorq(folder, "sim", *words)
        assert done.returncode in (1, 2), words
        assert "a run's id is a name and no path" in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    assert beside(folder) == before


def test_a_run_file_from_elsewhere_names_a_run_that_is_a_path(folder: Path) -> None:
    (file,) = (folder / ".evaluatorq" / "sim-runs").glob("*.json")
    run = json.loads(file.read_bytes())
    (folder / "theirs.json").write_text(json.dumps({**run, "run_id": "../../../.."}))
    before = beside(folder)
    for words in (("rebuild", "theirs.json"), ("show", "theirs.json"), ("rejudge", "theirs.json", "--offline")):
        done = evaluatorq(folder, "sim", *words)
        assert done.returncode in (1, 2), words
        assert "a run's id is a name and no path" in done.stderr
    assert beside(folder) == before


def test_the_name_of_a_run_leads_out_of_the_store(tmp_path: Path) -> None:
    done = evaluatorq(tmp_path, "sim", "simulate", "-q", "--offline", *CASES, "--name", "../../$(touch x)/\x1b[31m")
    assert done.returncode == 0
    (file,) = (tmp_path / ".evaluatorq" / "sim-runs").glob("*.json")
    assert file.name.startswith("touch_x_31m_")
    assert [path.name for path in tmp_path.iterdir()] == [".evaluatorq"]
