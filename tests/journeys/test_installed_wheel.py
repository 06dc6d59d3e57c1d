"""What somebody has who installed the wheel and never saw the repository: a working folder, and verdicts in five lines.

The wheel is built from the clone and unpacked into a folder of its own, which the commands import instead of the clone.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from evaluatorq.model.runs import SimulationRun
from mock_server.shell import environment, saved_run

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages that holds evaluatorq, and nothing else of the clone."""
    wheels, site = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", wheels], cwd=ROOT, check=True)
    (wheel,) = wheels.glob("*.whl")
    words = ["install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", "--target", site, wheel]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)
    return site


class Stranger:
    """Runs the installed command in a folder outside the clone, as typed."""

    def __init__(self, folder: Path, site: Path) -> None:
        self.folder, self.site = folder, site

    def types(self, line: str, code: int = 0) -> str:
        words = line.split()
        assert words.pop(0) == "evaluatorq"
        done = subprocess.run(
            [self.site / "bin" / "evaluatorq", *words],
            cwd=self.folder,
            env=environment(PYTHONPATH=str(self.site)),
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def run(self) -> SimulationRun:
        return SimulationRun.model_validate(saved_run(self.folder))


@pytest.fixture
def stranger(tmp_path: Path, site: Path) -> Stranger:
    return Stranger(tmp_path, site)


def test_the_wheel_is_what_runs_and_brings_its_cases(stranger: Stranger) -> None:
    where = [sys.executable, "-c", "import evaluatorq; print(evaluatorq.__file__)"]
    env = environment(PYTHONPATH=str(stranger.site))
    told = subprocess.run(where, cwd=stranger.folder, env=env, capture_output=True, text=True, check=True)
    assert told.stdout.startswith(str(stranger.site))
    stranger.types("evaluatorq sim simulate --offline -q")
    assert len(stranger.run().results) >= 8


def test_a_new_folder_runs_as_it_is_and_with_its_one_line_changed(stranger: Stranger) -> None:
    assert "Now: cd my-tests && evaluatorq sim simulate" in stranger.types("evaluatorq init my-tests")
    stranger.folder /= "my-tests"
    stranger.types("evaluatorq sim validate personas")
    stranger.types("evaluatorq sim validate scenarios")
    stranger.types("evaluatorq sim simulate -q")
    before = stranger.run()
    assert len(before.results) >= 8
    assert all("Sorry, I cannot do that yet." in result.messages[1].text for result in before.results)
    (line,) = re.findall(
        r"^.*<- the one line to change.*$", (stranger.folder / "my_agent.py").read_text(), re.MULTILINE
    )
    stub = (stranger.folder / "my_agent.py").read_text()
    (stranger.folder / "my_agent.py").write_text(stub.replace(line, '    return f"You said: {messages[-1].text}"'))
    stranger.types("evaluatorq sim simulate --name after -q")
    (after,) = (stranger.folder / ".evaluatorq" / "sim-runs").glob("after_*.json")
    rows = SimulationRun.model_validate_json(after.read_bytes()).results[0].messages
    assert rows[1].text == f"You said: {rows[0].text}"


def test_from_the_readme_to_a_verdict_on_ones_own_function_are_five_lines(stranger: Stranger) -> None:
    section = README.split("## Your agent in five lines")[1].split("\n## ")[0]
    (agent,) = re.findall(r"```python\n(# my_agent\.py\n.*?)```", section, re.DOTALL)
    command = next(line.removeprefix("$ ") for line in section.splitlines() if line.endswith("--offline"))
    assert len([line for line in (*agent.splitlines(), command) if line]) <= 5
    own = 'async def my_llm_app(text):\n    return "The refund window is 30 days."\n'
    (stranger.folder / "my_app.py").write_text(own)
    (stranger.folder / "my_agent.py").write_text(agent)
    stranger.types(command)
    results = stranger.run().results
    assert len(results) >= 8
    assert all(result.messages[1].text == "The refund window is 30 days." for result in results)
    metas = [meta for result in results for meta in result.metadata["criteria_meta"]]  # type: ignore[union-attr]
    told = [meta for meta in metas if meta["description"] == "The agent says that the refund window is 30 days"]
    assert told
    assert all(meta["passed"] and meta["audited"] for meta in told)
    assert {(meta["passed"], meta["audited"]) for meta in metas} == {(True, True), (False, True), (True, False)}
