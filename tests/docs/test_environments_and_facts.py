"""docs/environments-and-facts.md does what it says."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "environments-and-facts.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


async def test_the_page_runs_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (case,) = blocks("yaml")
    (tmp_path / "last-lamp.yaml").write_text(case)
    (tmp_path / "plain.yaml").write_text("name: Plain\ngoal: Ask something\n")
    (tmp_path / "personas").mkdir()
    source = next((ROOT / "personas").glob("*.yaml"))
    (tmp_path / "personas" / source.name).write_text(source.read_text())
    names: dict[str, object] = {"__name__": "page"}
    for code in blocks("python"):
        compiled = compile(code, "environments-and-facts.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        ran = eval(compiled, names)
        if inspect.isawaitable(ran):
            await ran
    said = capsys.readouterr().out
    assert "tools: expected in this order [look, sell(item='lamp') accepted], got []" in said
    assert "call=sell outcome=accepted reason=-" in said


def test_every_kind_of_claim_is_in_the_table() -> None:
    from evaluatorq.model.expectations import Expectations

    table = PAGE[PAGE.index("| claim | about |") : PAGE.index("Every failure is told.")]
    assert [name for name in Expectations.model_fields if f"`{name}`" not in table] == []
