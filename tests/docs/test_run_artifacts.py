"""docs/run-artifacts.md does what it says."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from pathlib import Path

import pytest
import yaml

from evaluatorq.cli.app import run
from evaluatorq.evaluators.beliefs import BELIEF_SCORES
from evaluatorq.model.cognition import Cognition
from evaluatorq.store.cases import load_scenarios

PAGE = (Path(__file__).parents[2] / "docs" / "run-artifacts.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


def test_the_commands_run_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (commands,) = blocks("bash")
    for line in commands.strip().splitlines():
        assert run(shlex.split(line)[1:]) == 0
    told = capsys.readouterr().out
    assert re.search(r"Right level +68 %  51 % to 81 %", told)
    assert "34 of 34 user prompts proven not to depend on it" in told
    assert "0 leaks" in told
    assert len(list(Path("artifacts").glob("*.json"))) == 34


async def test_the_python_runs_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    for code in blocks("python"):
        ran = eval(compile(code, "run-artifacts.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
        if inspect.isawaitable(ran):
            await ran
    told = capsys.readouterr().out
    assert "turn  3 end           triage=2 (medium)" in told
    assert "right: True" in told
    assert "because: I have chest pain that goes into my left arm." in told
    assert "flips: 1 wrong turns: 1 of 4" in told


def test_the_case_is_one_that_files_may_hold_and_names_every_key(tmp_path: Path) -> None:
    (case,) = blocks("yaml")
    path = tmp_path / "case.yaml"
    path.write_text(case, encoding="utf-8")
    [scenario] = load_scenarios(path)
    assert scenario.cognition is not None
    given = set(yaml.safe_load(case)["cognition"])
    assert set(Cognition.model_fields) - given == {"agent"}


def test_every_evaluator_of_beliefs_is_on_the_page() -> None:
    assert [name for name in BELIEF_SCORES if f"`{name}`" not in PAGE] == []
