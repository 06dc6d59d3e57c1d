"""The pytest plugin as a user of it sees it: a suite in a folder, run by pytest."""

from __future__ import annotations

from importlib.metadata import entry_points
from xml.etree import ElementTree as ET

import pytest

pytest_plugins = ["pytester"]
INSTALLED = any(entry.name == "evaluatorq" for entry in entry_points(group="pytest11"))


@pytest.fixture
def suite(pytester: pytest.Pytester):
    """Writes a test file and runs it."""
    if not INSTALLED:
        pytester.makeconftest('pytest_plugins = ["evaluatorq.pytest_plugin"]')

    def run(text: str, *words: str) -> pytest.RunResult:
        pytester.makepyfile(test_agent=text)
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", "--strict-markers", *words)

    return run


MARKED = """
import pytest

@pytest.mark.simulation(target="demo{agent}", only="Refund within*"{more})
def test_refunds(simulated):
    simulated.{check}()
"""


def marked(agent: str = "", more: str = "", check: str = "assert_held") -> str:
    return MARKED.format(agent=agent, more=more, check=check)


def test_each_case_is_a_test_with_its_name(suite) -> None:
    listed = suite(marked(), "--collect-only", "-q")
    listed.stdout.fnmatch_lines(["test_agent.py::test_refunds[[]Blunt-engineer-Refund-within-the-window[]]"])
    assert sum("test_refunds[" in line for line in listed.outlines) == 6


def test_a_good_agent_passes_and_a_flawed_one_fails_with_its_words(suite) -> None:
    suite(marked()).assert_outcomes(passed=6)
    failed = suite(marked(agent=":flawed"))
    failed.assert_outcomes(failed=6)
    failed.stdout.fnmatch_lines(
        [
            "*NotHeld: Blunt engineer * Refund within the window: broken: did not happen: The agent looks the order *",
            "*user *A1001*",
            "*broken*must happen: The agent looks the order up before it acts*",
        ]
    )


def test_it_runs_in_several_processes_and_leaves_nothing_behind(suite, pytester: pytest.Pytester) -> None:
    suite(marked(), "-n", "2", "--junitxml=out.xml").assert_outcomes(passed=6)
    assert list(pytester.path.rglob("*.jsonl")) == []
    assert list(pytester.path.rglob("sim-runs")) == []
    case = next(ET.parse(pytester.path / "out.xml").iter("testcase"))
    noted = {prop.get("name"): prop.get("value") for prop in case.iter("property")}
    assert (noted["simulation.verdict"], noted["simulation.turns"]) == ("passed", "3")


def test_what_nobody_decides_passes_as_held_and_not_as_passed(suite) -> None:
    text = marked().replace("Refund within*", "Wrong item*")
    suite(text).assert_outcomes(passed=6)
    strict = suite(text.replace("assert_held", "assert_passed"))
    strict.assert_outcomes(failed=6)
    strict.stdout.fnmatch_lines(["*NotMeasured: * could not be measured: nothing broken; not audited: *"])


def test_an_agent_comes_from_a_fixture_and_its_crash_is_its_failure(suite) -> None:
    crashed = suite(
        """
import pytest

@pytest.fixture
def simulation_target():
    def agent(messages):
        raise RuntimeError("boom")
    return agent

@pytest.mark.simulation(only="Blunt*", max_target_retries=0)
class TestAgent:
    @pytest.mark.simulation(only="Vague*")
    def test_vague(self, simulated):
        simulated.assert_held()
"""
    )
    crashed.assert_outcomes(failed=6)
    crashed.stdout.fnmatch_lines(["*NotHeld: Blunt engineer * Vague request: the agent failed: *boom*"])


def test_every_sample_must_hold(suite) -> None:
    text = """
import itertools, pytest

asked = itertools.count()

def moody(messages):
    return "It works." if next(asked) % 2 else "No."

CASE = {"persona": {"name": "Pat", "patience": 0.5, "assertiveness": 0.5, "politeness": 0.5, "technical_level": 0.5,
                    "communication_style": "casual", "background": "b"},
        "scenario": {"name": "Works", "goal": "See it work", "script": ["Does it?"],
                     "criteria": [{"must_happen": "it works", "check": {"agent_says": "it works"}}]},
        "id": "dp_1"}

@pytest.mark.simulation(target=moody, datapoints=[CASE], samples=2, max_turns=1, datapoint_parallelism=1)
async def test_works(simulated):
    assert len(simulated.results) == 2
    assert [message.role for message in simulated.messages] == ["user", "assistant"]
    simulated.assert_held()
"""
    failed = suite(text, "-o", "asyncio_mode=auto")
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["*NotHeld: Pat * Works, sample 0 of 2: broken: did not happen: it works*"])


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ('(only="nothing like this")', "*test_refunds: no case matches 'nothing like this'*"),
        ("(trget='demo')", "*test_refunds: trget: unknown option*did you mean target*"),
        ("('demo')", "*the marker simulation takes options by name only*"),
    ],
)
def test_options_that_cannot_be_right_stop_the_collection(suite, marker: str, said: str) -> None:
    refused = suite(f"import pytest\n\n@pytest.mark.simulation{marker}\ndef test_refunds(simulated):\n    pass\n")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR or refused.ret == pytest.ExitCode.INTERRUPTED
    assert any(True for line in [*refused.outlines, *refused.errlines] if _like(line, said))
    assert not any(
        "another exception" in line or ".py:" in line.replace("test_agent.py::", "") for line in refused.outlines
    )


def _like(line: str, pattern: str) -> bool:
    from fnmatch import fnmatchcase

    return fnmatchcase(line, pattern)


def test_loading_it_imports_nothing_of_the_package(pytester: pytest.Pytester) -> None:
    code = "import sys, evaluatorq.pytest_plugin; print(*sorted(m for m in sys.modules if '.' in m or m == 'pydantic'))"
    loaded = pytester.runpython_c(code).outlines[0].split()
    ours = [name for name in loaded if name.startswith(("evaluatorq", "pydantic", "rich.", "anyio."))]
    assert ours == ["evaluatorq.pytest_plugin"]


EARLY = """
async def agent(messages, tools):
    if len(messages) == 1:
        return "Gladly. I have refunded your order A1001."
    await tools.find_order(order_id="A1001")
    await tools.refund_order(order_id="A1001", reason="broken")
    return "It is all settled now."
"""


@pytest.mark.parametrize("check", ["assert_held", "assert_passed"])
def test_an_agent_that_says_so_before_it_does_so_is_not_held(suite, pytester: pytest.Pytester, check: str) -> None:
    pytester.makepyfile(early=EARLY)
    failed = suite(marked(check=check).replace("demo", "early:agent").replace("import pytest", "import pytest, early"))
    failed.assert_outcomes(failed=6)
    failed.stdout.fnmatch_lines(["*NotHeld: *", "*have refunded*"])
