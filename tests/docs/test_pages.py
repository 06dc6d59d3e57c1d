"""Every page of the documentation does what it says: its commands, its code, what it shows of their output."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from page_runner import Page, blocks_of, environment

from llm.fake_endpoint import FakeEndpoint, Seen, Served, completion, serving, tool_answer
from writing_models import persona, scenario, verdict

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ELSEWHERE = {"compare-and-gate.md", "environments-and-facts.md", "run-artifacts.md", "traces-and-training.md"}
"""Pages that tests of their own run."""
PAGES = sorted({path.name for path in DOCS.glob("*.md")} - ELSEWHERE)
MOST_EXCUSED = 4
CLONE = ("personas", "scenarios", ".evaluatorq")
APP = "async def my_llm_app(text):\n    return 'Could you tell me your order number, please?'\n"


def answers(seen: Seen) -> Served:
    """A model in every role, by the name of the object that is wanted of it."""
    messages = seen.body["messages"]
    assert isinstance(messages, list)
    choice = seen.body.get("tool_choice")
    name = choice["function"]["name"] if isinstance(choice, dict) else ""
    last = str(messages[-1]["content"])
    if not name:
        return completion({"content": "Could you tell me your order number, please?"})
    count = int(found[1]) if (found := re.match(r"Make (\d+) ", last)) else 0
    spoken = ("Sorry, I cannot do that yet.", "Could you tell me your order number, please?")
    quote = next((words for words in spoken if words in json.dumps(messages)), "")
    asked = sorted(set(re.findall(r"criteria_\d+", last.split("\n", maxsplit=1)[0])))
    seen_by_judge = [{"criterion_id": key, "evidence": quote, "occurred": True} for key in asked]
    made: dict[str, object] = {
        "personas": {"personas": [persona(f"Person {i}") for i in range(count)]},
        "scenarios": {"scenarios": [scenario(f"Scene {i}") for i in range(count)]},
        "user_message": {"reply": "My kettle is broken and I want a refund.", "end_conversation": False},
        "verdict": verdict(criteria_verdicts=seen_by_judge),
        "suggestions": {"suggestions": ["Ask for the order number first."]},
        "edits": {"edits": [{"suggestion": 1, "find": "Be good.", "replace": "Be good. Ask for the number first."}]},
    }
    return tool_answer(name, json.dumps(made[name]))


@pytest.fixture(scope="module")
def endpoint() -> Iterator[FakeEndpoint]:
    with serving() as fake:
        fake.answer = answers
        yield fake


@pytest.fixture
def page(tmp_path: Path, endpoint: FakeEndpoint) -> Iterator[Page]:
    folder = tmp_path / "page"
    folder.mkdir()
    page = Page(folder, environment(endpoint.base_url, tmp_path))
    yield page
    page.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_runs_as_printed(name: str, page: Page) -> None:
    page.read(blocks_of(DOCS / name))


def test_the_readme_runs_as_printed(page: Page) -> None:
    for name in CLONE:
        shutil.copytree(ROOT / name, page.folder / name, ignore=shutil.ignore_patterns(".*", "[!b]*_*.json"))
    (page.folder / "my_app.py").write_text(APP)
    blocks = [block for block in blocks_of(ROOT / "README.md") if block.language != "bash"]
    assert page.read(blocks) == 0


@pytest.mark.parametrize(("agent", "code"), [("demo", 0), ("demo:flawed", 1)])
def test_the_recipe_for_ci_lets_a_good_agent_through_and_stops_a_bad_one(agent: str, code: int, page: Page) -> None:
    (recipe,) = [block for block in blocks_of(DOCS / "gate-ci.md") if block.file == ".github/workflows/agent.yml"]
    steps = [step["run"] for step in yaml.safe_load(recipe.text)["jobs"]["conversations"]["steps"] if "run" in step]
    install, simulate, gate = steps
    assert install.startswith("pip install ")
    page.command("evaluatorq init .", None, "set up")
    page.command("evaluatorq sim simulate --target demo --report baseline.json --quiet", None, "set up")
    page.command(simulate.replace("my_agent:answer", agent), None, "simulate")
    page.env["GITHUB_STEP_SUMMARY"] = str(page.folder / "summary.md")
    page.command(f"{gate}  # exit code {code}", None, "gate")
    assert "<testsuite" in (page.folder / "gate.xml").read_text()
    assert "| " in (page.folder / "summary.md").read_text()
    assert "<!doctype html>" in (page.folder / "report.html").read_text()


def test_hardly_any_block_is_excused() -> None:
    excused = [f"{b.place}: {b.excuse}" for path in DOCS.glob("*.md") for b in blocks_of(path) if b.excuse]
    assert len(excused) <= MOST_EXCUSED, "\n".join(excused)


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Broken links and pages that no table of contents lists are warnings, too."""
    words = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d", str(tmp_path / "trees")]
    done = subprocess.run(
        [*words, str(DOCS), str(tmp_path / "site")], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "index.html").exists()
