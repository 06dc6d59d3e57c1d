"""docs/traces-and-training.md does what it says."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import shlex
from pathlib import Path

import pytest

from evaluatorq.cli.app import run
from evaluatorq.model.trace import Labels

PAGE = (Path(__file__).parents[2] / "docs" / "traces-and-training.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


def test_the_page_runs_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (commands,) = blocks("bash")
    for line in commands.strip().splitlines():
        assert run(shlex.split(line)[1:]) == 0
    capsys.readouterr()
    names: dict[str, object] = {"__name__": "page"}
    for code in blocks("python"):
        compiled = compile(code, "traces-and-training.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        ran = eval(compiled, names)
        if inspect.iscoroutine(ran):
            asyncio.run(ran)
    said = capsys.readouterr().out
    assert "48 completed without an error" in said
    assert "['live', 'reexecuted', 'substituted']" in said
    assert "extra_step at step" in said
    assert "46 rows, {'trained'" in said


def test_every_label_is_explained() -> None:
    assert [name for name in Labels.model_fields if f"`{name}`" not in PAGE] == []
