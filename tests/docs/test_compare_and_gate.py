"""``compare-and-gate.md`` runs as printed in a clone, on the baseline that comes with it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from page_runner import Page, blocks_of, environment
from warm_commands import WarmCommands

ROOT = Path(__file__).parents[2]


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Page]:
    folder = tmp_path / "clone"
    for name in ("personas", "scenarios", ".evaluatorq"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns(".j*", ".m*", "[!b]*_*.json"))
    with WarmCommands() as warm:
        page = Page(folder, environment("http://127.0.0.1:9", tmp_path), warm)
        yield page
        page.close()


def test_the_page_on_comparing_runs_as_printed(clone: Page) -> None:
    assert clone.read(blocks_of(ROOT / "docs" / "compare-and-gate.md")) == 0
