"""The words of the command line: help, versions, and what mistakes are told as."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evaluatorq import __version__
from evaluatorq.cli.app import SIM
from evaluatorq.model.calls import DEFAULT_FAST_MODEL, DEFAULT_SMART_MODEL

FOUND_AT_START = "import sys, evaluatorq.cli.app as app; app.run(sys.argv[1:]); print(*sorted(sys.modules), sep='\\n')"
HEAVY = ("httpx", "httptools", "yaml", "pydantic", "rich", "anyio", "asyncio")


def test_help_is_there_at_every_level(inside):
    for words in ([], ["sim"], *(["sim", name] for name in SIM.commands), ["init"]):
        asked = inside(*words, "--help")
        assert (asked.code, asked.err) == (0, "")
        assert asked.out.startswith("usage: evaluatorq")
    assert inside().out == inside("--help").out


def test_every_command_is_listed_with_what_it_does(inside):
    listed = inside("sim", "--help").out
    for name, command in SIM.commands.items():
        assert re.search(rf"^  {name} +{re.escape(command.about)}$", listed, re.MULTILINE)


def test_the_version_is_told(inside):
    assert inside("--version").out == f"evaluatorq {__version__}\n"


def test_the_module_runs_as_the_command_does(cli):
    assert cli("--version").out == f"evaluatorq {__version__}\n"


def test_help_says_what_the_environment_decides_and_which_models_are_asked(inside):
    for words in ((), ("sim",)):
        told = inside(*words, "--help").out
        assert re.search(r"EVALUATORQ_DIR .*default: \.evaluatorq", told)
        assert re.search(rf"EVALUATORQ_FAST_MODEL .*{DEFAULT_FAST_MODEL}", told)
        assert re.search(rf"EVALUATORQ_SMART_MODEL .*{DEFAULT_SMART_MODEL}", told)
    for command in ("simulate", "run"):
        told = " ".join(inside("sim", command, "--help").out.split())
        assert "EVALUATORQ_DIR names another folder" in told
        assert f"EVALUATORQ_FAST_MODEL or {DEFAULT_FAST_MODEL} unless given" in told
        assert f"EVALUATORQ_SMART_MODEL or {DEFAULT_SMART_MODEL} unless given" in told


def test_help_imports_nothing_heavy(cli):
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-c", FOUND_AT_START, "sim", "--help"], capture_output=True, text=True, check=True, timeout=60
    )
    assert "usage: evaluatorq sim" in done.stdout
    assert [name for name in HEAVY if name in done.stdout.splitlines()] == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sin"], "did you mean sim?"),
        (["sim", "simulat"], "did you mean simulate?"),
        (["sim", "simulate", "--max-turn", "3"], "did you mean --max-turns?"),
        (["sim", "simulate", "--max-turns"], "expected one argument"),
        (["sim", "simulate", "--offline", "--max-turns", "0"], "--max-turns"),
        (["sim", "simulate", "--offline", "--max-turns", "many"], "--max-turns"),
        (["sim", "simulate"], "no input"),
        (["sim", "simulate", "--target", "demo", "--openai-model", "m", "-i", "rows.jsonl"], "two targets"),
        (["sim", "simulate", "--offline", "--from-run", "nowhere", "--target", "demo"], "nowhere"),
        (["sim", "simulate", "--offline", "--target", "agents:polit"], "did you mean polite"),
        (["sim", "simulate", "--offline", "--target", "agent:support"], "Orq"),
        (["sim", "simulate", "--offline", "--only", "nosuchcase"], "no case matches 'nosuchcase'"),
        (["sim", "simulate", "--offline", "--evaluator", "goal_achived"], "goal_achieved"),
        (["sim", "simulate", "--llm-config", "{"], "--llm-config is not JSON"),
        (["sim", "show"], "RUN"),
        (["sim", "show", "nowhere"], "no saved run answers to 'nowhere'"),
        (["sim", "resume", "nowhere"], "nowhere"),
        (["sim", "runs", "--limit", "0"], "--limit"),
        (["sim", "validate"], "at least one file"),
        (["sim", "validate", "nowhere.yaml"], "nowhere.yaml"),
        (["sim", "schema", "--input", "--output"], "not allowed with"),
    ],
    ids=lambda part: part if isinstance(part, str) else " ".join(part),
)
def test_a_mistake_is_one_line_that_helps_and_exit_code_2(inside, words: list[str], told: str):
    ran = inside(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines()[-1].startswith("Error: ")
    assert told in ran.err
    assert "Traceback" not in ran.err


def test_a_missing_key_says_what_to_do(inside):
    ran = inside("sim", "simulate", "--only", "refund", "--target", "demo", "--personas", "p", "--scenarios", "s")
    assert ran.code == 2
    ran = inside("init", "w")
    (Path("w") / ".evaluatorq" / "config.toml").unlink()
    ran = inside("sim", "simulate", "--target", "demo", "--personas", "w/personas", "--scenarios", "w/scenarios")
    assert (ran.code, ran.out) == (2, "")
    assert "OPENAI_API_KEY" in ran.err
    assert "--offline" in ran.err


def test_a_fault_of_ours_is_one_line_and_its_place_is_shown_on_demand(cli, folder):
    (folder / "agents.py").write_text("import evaluatorq.cli.live as l\nl.plan_line = None\ndef a(m): return 'hi'\n")
    words = ("sim", "simulate", "--offline", "--target", "agents:a", "--only", "vague")
    plain, debugged = cli(*words), cli(*words, EQ_DEBUG="1")
    assert plain.code == debugged.code == 1
    assert plain.err.splitlines()[-1].startswith("Error: TypeError")
    assert "Traceback" not in plain.err
    assert "Traceback" in debugged.err


def test_a_reader_who_goes_away_is_no_error(cli, inside):
    import subprocess

    inside("sim", "simulate", "--offline", "-q", "--only", "refund")
    piped = " ".join([*cli.command("sim", "show", "latest", "--json"), "| head -1"])
    done = subprocess.run(
        piped, shell=True, cwd=cli.folder, env=cli.environment(), capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == ("{\n", "")


def test_the_schemas_are_json_schemas(inside):
    options, run = json.loads(inside("sim", "schema").out), json.loads(inside("sim", "schema", "--output").out)
    assert {"personas", "scenarios", "target", "max_turns", "llm_config"} <= options["properties"].keys()
    assert options["additionalProperties"] is False
    assert "judge" not in options["properties"]
    assert {"run_name", "mode", "scorer_averages", "results"} <= set(run["required"])
    assert inside("sim", "schema", "--input").out == inside("sim", "schema").out
