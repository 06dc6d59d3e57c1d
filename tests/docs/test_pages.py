"""Every page of the documentation does what it says: its commands, its code, what it shows of their output."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import yaml
from page_runner import Page, blocks_of, environment
from selenium.webdriver import Chrome
from warm_commands import WarmCommands

from browsing import axe_violations, shown_as
from evaluatorq import errors, packs
from evaluatorq.environments import registry as environments
from evaluatorq.evaluators import registry as evaluators
from evaluatorq.evaluators.builtin import SIMULATION_EVALUATORS
from evaluatorq.evaluators.evidence import FACT_SCORES
from evaluatorq.model.calls import DEFAULT_FAST_MODEL, DEFAULT_SMART_MODEL
from evaluatorq.model.cases import (
    Check,
    CommunicationStyle,
    ConversationStrategy,
    Criterion,
    CulturalContext,
    EmotionalArc,
    InputFormat,
    StartingEmotion,
)
from evaluatorq.store.case_rules import DATAPOINT_FIELDS, PERSONA_KEYS, SCENARIO_KEYS
from evaluatorq.targets.bodies import USUAL_TEXT
from evaluatorq.targets.command import CommandTargetSpec
from evaluatorq.targets.http import HttpTargetSpec
from evaluatorq.targets.templates import PLACEHOLDERS
from llm.fake_endpoint import FakeEndpoint, Seen, Served, completion, serving, tool_answer
from writing_models import persona, scenario, verdict

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
OTHERS = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py") if path != Path(__file__))
PAGES = sorted(path.name for path in DOCS.glob("*.md") if path.name not in OTHERS)
"""Pages that no test module of their own names."""
MOST_EXCUSED = 2  # one installs into its own environment, one needs a model server
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


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmCommands]:
    with WarmCommands() as started:
        yield started


@pytest.fixture
def page(tmp_path: Path, endpoint: FakeEndpoint, warm: WarmCommands) -> Iterator[Page]:
    folder = tmp_path / "page"
    folder.mkdir()
    page = Page(folder, environment(endpoint.base_url, tmp_path), warm)
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


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        ("console\n$ evaluatorq --version\nevaluatorq 9.9.9\n", "evaluatorq 9.9.9"),
        ("console\n$ evaluatorq --version\n…\nmore\n", "more"),
        ("console\n$ printf 'one\\ntwo'\none\n", "prints more than the page shows"),
        ("console\n$ evaluatorq sim show nothing\n", ": 2"),
        ("console\n$ true  # exit code 1\n", ": 0"),
        ("python\nraise ValueError('no')\n", "ValueError: no"),
        ("text\nHello\n", "no python block printed this"),
        ("yaml\nname: x\n", "neither run nor a file"),
    ],
)
def test_a_page_that_is_wrong_is_told_where(block: str, complaint: str, page: Page, tmp_path: Path) -> None:
    path = tmp_path / "wrong.md"
    path.write_text(f"# Wrong\n\n```{block}```\n")
    with pytest.raises(AssertionError, match=re.escape(complaint)) as told:
        page.read(blocks_of(path))
    assert "wrong.md:3" in str(told.value)
    path.write_text(f"# Wrong\n\n*Not run: it is wrong.*\n\n```{block}```\n")
    assert page.read(blocks_of(path)) == 1


def test_hardly_any_block_is_excused() -> None:
    excused = [f"{b.place}: {b.excuse}" for path in DOCS.glob("*.md") for b in blocks_of(path) if b.excuse]
    assert len(excused) <= MOST_EXCUSED, "\n".join(excused)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. Broken links and pages that no table of contents lists are warnings, too."""
    folder = tmp_path_factory.mktemp("docs")
    words = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d", str(folder / "trees")]
    done = subprocess.run(
        [*words, str(DOCS), str(folder / "site")], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "site"


def test_the_site_builds_without_a_warning(site: Path) -> None:
    assert (site / "index.html").exists()


@pytest.mark.parametrize("name", ["index", "compare-and-gate", "search"])
def test_axe_objects_to_no_page_of_the_site(name: str, site: Path, chromium: Chrome) -> None:
    shown_as(chromium, 400)
    chromium.get((site / f"{name}.html").as_uri())
    assert axe_violations(chromium) == []


def page_text(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def lacking(text: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)]


def test_every_key_of_a_case_is_on_its_page() -> None:
    text = page_text("personas-and-scenarios.md")
    names = {*PERSONA_KEYS, *SCENARIO_KEYS, *DATAPOINT_FIELDS, *Criterion.model_fields, *Check.model_fields}
    assert lacking(text, sorted(names)) == []
    words = (CommunicationStyle, StartingEmotion, EmotionalArc, CulturalContext, ConversationStrategy, InputFormat)
    assert lacking(text, [member.value for enum in words for member in enum]) == []


def test_every_key_of_an_endpoint_and_of_a_command_is_on_the_page_about_agents() -> None:
    text = page_text("simulate-your-agent.md")
    assert lacking(text, [*HttpTargetSpec.model_fields, *CommandTargetSpec.model_fields]) == []
    assert lacking(text, [f"{{{{{name}}}}}" for name in PLACEHOLDERS]) == []
    assert lacking(text, [path.text for path in USUAL_TEXT]) == []


def test_every_variable_that_is_read_is_on_the_page_about_settings() -> None:
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "src" / "evaluatorq").rglob("*.py"))
    read = {name for source in sources for name in re.findall(r"\b(?:EVALUATORQ|OPENAI|EQ)_[A-Z_]+\b", source)}
    text = page_text("settings.md")
    assert lacking(text, sorted(read)) == []
    assert lacking(text, [DEFAULT_FAST_MODEL, DEFAULT_SMART_MODEL]) == []


def test_every_error_that_simulate_raises_is_on_the_page_about_agents() -> None:
    named = ("ConfigError", "WrongKind", "CaseError", "MissingLLMCredentialsError", "ReplayError", "RunNotFound",
             "SimulationCancelledError", "StoreError", "SimulationDroppedError")  # fmt: skip
    assert lacking(page_text("simulate-your-agent.md"), named) == []
    assert [name for name in named if not hasattr(errors, name)] == []


def test_every_group_of_entry_points_and_every_evaluator_is_on_the_page_about_extending() -> None:
    text = page_text("extend.md")
    assert lacking(text, [environments.GROUP, evaluators.GROUP, packs.GROUP]) == []
    assert lacking(text, [*SIMULATION_EVALUATORS, *FACT_SCORES]) == []
