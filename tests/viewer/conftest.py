"""Runs of the demo agents, and the viewer over them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from viewing import Viewer, serving

from evaluatorq.cli import main

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a good and a flawed agent's run of the same cases, with their journals."""
    store = tmp_path_factory.mktemp("viewed") / ".evaluatorq"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVALUATORQ_DIR", str(store))
        patch.chdir(ROOT)
        for name, target in (("good", "demo"), ("flawed", "demo:flawed")):
            assert main(["sim", "simulate", "--target", target, "--name", name, "--offline", "-q"]) == 0
    return store / "sim-runs"


@pytest.fixture(scope="session")
def viewer(made: Path) -> Iterator[Viewer]:
    """One viewer for tests that only read."""
    with serving(made) as started:
        yield started


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of the runs that a test may write to."""
    return Path(shutil.copytree(made, tmp_path / "sim-runs"))


@pytest.fixture
def own_viewer(folder: Path) -> Iterator[Viewer]:
    with serving(folder) as started:
        yield started
