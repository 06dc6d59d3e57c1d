"""The code of the output reference runs as it is printed there, on a clean, failed, unaudited, errored and old run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from evaluatorq.contracts import AgentResponse, AgentResponseError
from evaluatorq.simulation import (
    CriterionVerdict,
    Judgment,
    Message,
    MustHappenCriterion,
    MustNotHappenCriterion,
    Scenario,
    SimulationDatapoint,
    SimulationDroppedError,
    simulate,
)
from evaluatorq.testing import a_persona

DATA = Path(__file__).parents[1] / "data"
SNIPPETS = DATA / "output_reference_snippets"
GREETING, INSULT = "Good day to you", "you utter fool"
SCENARIO = Scenario(
    name="Greeting",
    goal="be greeted",
    criteria=[MustHappenCriterion("Agent greets the user"), MustNotHappenCriterion("Agent insults the user")],
)


class User:
    async def generate_first_message(self) -> str:
        return "Hello, is anybody there?"

    async def respond_async(self, messages: Sequence[Message], **options: object) -> str:
        return f"And then, after {len(messages)} messages?"

    def update_context(self, persona_context: str, scenario_context: str) -> None: ...


class Judge:
    """Says the same of every state of the conversation; ends it when the goal is achieved."""

    def __init__(self, *, goal: bool, seen: dict[int, str] | None, broken: Sequence[str] = ()) -> None:
        self.goal, self.seen, self.broken = goal, seen, list(broken)

    async def evaluate(self, messages: Sequence[Message]) -> Judgment:
        verdicts = None if self.seen is None else [
            CriterionVerdict(criterion_id=f"criteria_{i}", occurred=i in self.seen, evidence=self.seen.get(i, ""))
            for i in range(2)
        ]  # fmt: skip
        return Judgment(
            should_terminate=self.goal,
            reason="greeted" if self.goal else "not yet",
            goal_achieved=self.goal,
            goal_completion_score=1.0 if self.goal else 0.25,
            rules_broken=self.broken,
            criteria_verdicts=verdicts,
        )


async def polite(messages: list[Message]) -> str:
    return f"{GREETING}, {len(messages)}."


async def rude(messages: list[Message]) -> str:
    return f"{GREETING}, {INSULT}, {len(messages)}."


async def breaks(messages: list[Message]) -> str | AgentResponse:
    if len(messages) > 1:
        return AgentResponse(error=AgentResponseError(message="the line is dead", error_type="network_error"))
    return f"{GREETING}."


CASES = {
    "clean": (polite, Judge(goal=True, seen={0: GREETING})),
    "failed": (rude, Judge(goal=False, seen={0: GREETING, 1: INSULT})),
    "unaudited": (polite, Judge(goal=True, seen=None, broken=["was too short"])),
    "errored": (breaks, Judge(goal=False, seen={0: GREETING})),
}


@pytest.fixture(params=[*CASES, "old"])
async def run(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the run that lies in the store of the working folder, with ``out.jsonl`` beside it."""
    name: str = request.param
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVALUATORQ_DIR")
    if name == "old":
        Path(".evaluatorq/sim-runs").mkdir(parents=True)
        shutil.copy(DATA / "legacy" / "nulls.json", ".evaluatorq/sim-runs/old_20250301-093000.json")
        shutil.copy(DATA / "legacy" / "results.jsonl", "out.jsonl")
        return name
    target, judge = CASES[name]
    points = [SimulationDatapoint(id="dp_1", persona=a_persona(background="new here"), scenario=SCENARIO)]
    try:
        await simulate(
            run_name=name, datapoints=points, target=target, user_simulator=User(), judge=judge, max_turns=2, save=True,
            results="out.jsonl", max_target_retries=0,
        )  # fmt: skip
    except SimulationDroppedError:
        assert name == "errored"
    return name


def printed(command: list[str]) -> tuple[str, int]:
    environment = {key: value for key, value in os.environ.items() if key != "EVALUATORQ_DIR"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.stderr == ""
    return done.stdout, done.returncode


def python(snippet: str) -> tuple[str, int]:
    return printed([sys.executable, "-c", (SNIPPETS / snippet).read_text(encoding="utf-8")])


AVERAGES = {
    "clean": "{'goal_achieved': 1.0, 'criteria_met': 1.0}",
    "failed": "{'goal_achieved': 0.0, 'criteria_met': 0.5}",
    "unaudited": "{'goal_achieved': 1.0, 'criteria_met': 0.0}",
    "errored": "{'goal_achieved': 0.0, 'criteria_met': 0.0}",
    "old": "{'goal_achieved': 1.0}",
}
CRITERIA = "{'Agent greets the user': True, 'Agent insults the user': %s}"
LINES = {
    "clean": f"Pat / Greeting: goal=True stop=judge criteria={CRITERIA % True}",
    "failed": f"Pat / Greeting: goal=False stop=max_turns criteria={CRITERIA % False}",
    "unaudited": "Pat / Greeting: goal=True stop=judge criteria=unverified",
    "errored": f"Pat / Greeting: goal=False stop=error criteria={CRITERIA % True}",
    "old": "Ann / Late parcel: goal=True stop=judge criteria=None",
}


def test_loading_a_run_prints_each_conversation(run: str):
    assert python("load_run.py.txt") == (f"{run}: 1 conversations, averages {AVERAGES[run]}\n{LINES[run]}\n", 0)


def test_loading_results_reads_every_line(run: str):
    assert python("load_results.py.txt") == ("", 0)
    space: dict[str, list[object]] = {}
    exec((SNIPPETS / "load_results.py.txt").read_text(encoding="utf-8"), space)
    assert len(space["results"]) == (2 if run == "old" else 1)


GATE = {
    "clean": ["ok"],
    "failed": [
        "#0 Pat / Greeting: goal not achieved (max_turns: Maximum turns (2) reached)",
        "#0 Pat / Greeting: failed criteria_1 Agent insults the user",
    ],
    "unaudited": [
        "#0 Pat / Greeting: criteria_0 never audited",
        "#0 Pat / Greeting: criteria_1 never audited",
        "#0 Pat / Greeting: criteria not verified",
    ],
    "errored": ["#0 Pat / Greeting: error: the line is dead"],
    "old": ["#0 Ann / Late parcel: criteria not verified"],
}


def test_the_gate_says_what_broke_and_fails(run: str):
    assert python("gate.py.txt") == ("\n".join(GATE[run]) + "\n", 0 if run == "clean" else 1)


BROKEN_GOALS = {
    "failed": "Pat / Greeting: Maximum turns (2) reached\n",
    "errored": "Pat / Greeting: the line is dead\n",
}


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_jq_reads_a_run(run: str):
    out, code = printed(["bash", "-euo", "pipefail", "-c", (SNIPPETS / "jq.sh.txt").read_text(encoding="utf-8")])
    head = {"run_name": run, "total_results": 1, "scorer_averages": json.loads(AVERAGES[run].replace("'", '"'))}
    summary, rest = json.JSONDecoder().raw_decode(out)
    assert (summary, out[rest:].lstrip("\n"), code) == (head, BROKEN_GOALS.get(run, ""), 0)


def test_a_result_of_ours_has_everything_that_the_page_shows(run: str):
    shown = json.loads((SNIPPETS / "result.json").read_text(encoding="utf-8"))
    path = next(Path(".evaluatorq/sim-runs").glob("*.json"))
    [result] = json.loads(path.read_text(encoding="utf-8"))["results"]
    if run != "old":
        assert set(shown) <= set(result)
        assert set(shown["metadata"]) <= set(result["metadata"])
        assert set(shown["metadata"]["criteria_meta"][0]) | {"evidence"} == set(result["metadata"]["criteria_meta"][0])
        assert result["thread_id"].endswith(":0")
