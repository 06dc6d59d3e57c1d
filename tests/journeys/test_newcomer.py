"""What a newcomer stumbled over, and what holds now."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evaluatorq.errors import CallError, ConfigError
from evaluatorq.model.cases import Check, Claim, StateCheck
from evaluatorq.records.verdicts import verdict_of
from evaluatorq.simulation import simulate_sync
from evaluatorq.simulation.again import gate
from evaluatorq.testing import a_datapoint, a_scenario, converse, crew_of, verdict

ROOT = Path(__file__).parents[2]
CASES = ["--offline", "--personas", str(ROOT / "personas"), "--scenarios", str(ROOT / "scenarios")]


def command(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "evaluatorq", "sim", *arguments]
    return subprocess.Popen(line, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(folder: Path, *arguments: str) -> tuple[int, str, str]:
    process = command(folder, *arguments)
    out, err = process.communicate(timeout=90)
    return process.returncode, out, err


def test_the_scenario_in_the_readme_passes_what_it_checks(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (tmp_path / "case.yaml").write_text(re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[0])
    results = simulate_sync(
        target="demo", personas=ROOT / "personas", scenarios=tmp_path / "case.yaml", offline=True, journal=False
    )
    assert all(result.goal_achieved for result in results)
    assert all(result.metadata["criteria_meta"][0]["passed"] for result in results)


def test_what_an_agent_prints_does_not_get_into_the_document(tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text(
        "import os\nprint('hello from the import')\n"
        "def agent(messages):\n    print('hello from the agent')\n    os.write(1, b'raw\\n')\n    return 'I see.'\n"
    )
    code, out, err = finished(tmp_path, "simulate", "--target", "noisy:agent", *CASES, "--only", "Vague*", "--json")
    assert code == 0
    assert json.loads(out)["total_results"] == 6
    assert "hello from the agent" in err


def test_a_run_is_not_finished_by_another_agent_under_the_first_ones_name(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(
        "import anyio\nasync def slow(messages):\n    await anyio.sleep(0.3)\n    return f'I see {len(messages)}.'\n"
        "async def other(messages):\n    return 'I am another agent.'\n"
    )
    process = command(tmp_path, "simulate", "--target", "two:slow", *CASES, "-q")
    journals = Path(os.environ["EVALUATORQ_DIR"]) / "sim-runs" / ".journal"
    for _ in range(400):
        if any(part.read_bytes().count(b"\n") > 20 for part in journals.glob("*/0001.jsonl")):
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    code, _, err = finished(tmp_path, "resume", "latest", "--target", "two:other")
    assert code == 2
    assert "the run's agent is two:slow, not two:other" in err


def test_losses_are_not_counted_without_a_baseline() -> None:
    results = simulate_sync(target="demo", offline=True, journal=False, only="Vague*")
    with pytest.raises(ConfigError, match="baseline"):
        gate(results, {"max_lost": 0})


async def test_a_goal_not_reached_before_the_simulator_broke_is_unknown() -> None:
    scenario = a_scenario(goal_check=Check(agent_says="refunded"))
    broken = await converse(a_datapoint(scenario), crew_of(user=[CallError("network_error", "no route")]))
    assert (broken.goal_achieved, broken.goal_known) == (False, False)
    reached = crew_of(
        user=["please", CallError("empty_reply", "silence")],
        target=["It is refunded."],
        judge=[verdict(), CallError("bad_verdict", "prose")],
    )
    result = await converse(a_datapoint(scenario), reached)
    assert (result.goal_achieved, result.goal_known) == (True, True)


async def test_a_claim_that_nothing_backs_fails_the_conversation() -> None:
    claim = Claim(says="have refunded", requires=Check(state=StateCheck(pointer="/refunds/0", equals="A1")))
    scenario = a_scenario(claims=[claim], goal_check=Check(agent_says="refunded"))
    lied = await converse(a_datapoint(scenario), crew_of(target=["I have refunded it."], judge=[verdict(stop=True)]))
    assert [finding.backed for finding in lied.claims or []] == [False]
    assert verdict_of(lied) == "failed"
