"""Holds us against the really published package, as a black box: each reads, lists, replays, reports the other's runs.

    python tests/compat/check_published.py [--python PATH] [--endpoint URL]

Not collected by pytest, because it installs the published release from the registry into an environment of its own
(unless ``--python`` names one that has it). Nothing of it is read, only run. With ``--endpoint``, an OpenAI-compatible
server on loopback that also speaks the Responses API, both command lines replay each other's runs with models as well.
Prints a line for each check; the exit code is 1 when one failed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
SNIPPETS = HERE.parent / "data" / "output_reference_snippets"
RELEASE = "evaluatorq==1.82.0"


class Side:
    """One of the two packages: its Python and its command line."""

    def __init__(self, name: str, python: Path, endpoint: str | None) -> None:
        self.name = name
        self.python = python
        self.environment = {
            "PATH": f"{python.parent}:/usr/bin:/bin", "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200",
            "HOME": os.environ.get("HOME", "/"), "ORQ_DISABLE_TRACING": "1",
        }  # fmt: skip
        if endpoint:
            self.environment |= {"OPENAI_BASE_URL": endpoint, "OPENAI_API_KEY": "not-a-secret"}
        if name == "ours":
            self.environment["PYTHONPATH"] = str(HERE.parents[1] / "src")

    def run(self, *words: str, cwd: Path, may_fail: bool = False) -> str:
        done = subprocess.run(words, cwd=cwd, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode and not may_fail:
            raise AssertionError(f"{' '.join(words)[:200]}: exit {done.returncode}\n{done.stderr[-1500:]}")
        return done.stdout

    def script(self, code: str, cwd: Path, *, may_fail: bool = False) -> str:
        return self.run(str(self.python), "-W", "ignore", "-c", code, cwd=cwd, may_fail=may_fail)

    def cli(self, *words: str, cwd: Path, may_fail: bool = False) -> str:
        return (
            self.run(str(self.python), "-m", "evaluatorq", *words, cwd=cwd, may_fail=may_fail)
            if (self.name == "ours")
            else self.run(str(self.python.parent / "evaluatorq"), *words, cwd=cwd, may_fail=may_fail)
        )


ACTORS = """
import asyncio, json
from evaluatorq.contracts import Usage
from evaluatorq.simulation import (
    CriterionVerdict, Judgment, MustHappenCriterion, MustNotHappenCriterion, Persona, Scenario, SimulationDatapoint,
    SimulationDroppedError, simulate,
)

class User:
    async def generate_first_message(self, *args, **options): return "Hello, is anybody there?"
    async def respond_async(self, messages, **options): return f"And then, after {len(messages)} messages?"
    def update_context(self, *args, **options): pass
    def get_usage(self): return Usage()
    def reset_usage(self): pass

class Judge:
    def __init__(self, goal=True, occurred=True): self.goal, self.occurred = goal, occurred
    async def evaluate(self, messages, *args, **options):
        seen = [
            CriterionVerdict(criterion_id="criteria_0", occurred=True, evidence="Good day to you"),
            CriterionVerdict(criterion_id="criteria_1", occurred=False, evidence=""),
        ]
        done = self.goal and sum(m.role == "assistant" for m in messages) > 1
        return Judgment(
            should_terminate=done, reason="greeted" if done else "not yet", goal_achieved=done, rules_broken=[],
            goal_completion_score=1.0 if done else 0.5, criteria_verdicts=seen if self.occurred else None,
        )
    def update_context(self, *args, **options): pass
    def get_usage(self): return Usage()
    def reset_usage(self): pass

async def polite(messages): return f"Good day to you, {len(messages)}."

async def breaks(messages):
    if len(messages) > 1: raise ConnectionError("the line is dead")
    return "Good day to you."

def points(n):
    persona = Persona(name="Pat", patience=.5, assertiveness=.5, politeness=.5, technical_level=.5,
                      communication_style="casual", background="new")
    scenario = Scenario(name="Greeting", goal="be greeted", criteria=[
        MustHappenCriterion("Agent greets the user"), MustNotHappenCriterion("Agent insults the user")])
    return [SimulationDatapoint(id=f"d{i}", persona=persona, scenario=scenario, user_system_prompt="",
                                first_message="") for i in range(n)]

def go(name, target, judge, **options):
    common = dict(run_name=name, target=target, user_simulator=User(), judge=judge, max_turns=3, save=True,
                  upload_results=False, raise_on_execution_failure=False)
    common |= options
    if "previous_run" not in common: common["datapoints"] = points(2)
    return asyncio.run(simulate(**common))
"""
QUIET = "EXTRA = dict(executive_summary=False, recommendations=False)\n"
MAKE = (
    ACTORS + QUIET + "go('clean', polite, Judge(), **EXTRA)\ngo('missed goal', polite, Judge(False), **EXTRA)\n"
    "go('unaudited', polite, Judge(True, False), **EXTRA)\ngo('dead', breaks, Judge(), **EXTRA)\n"
)
REPLAY = (
    ACTORS
    + QUIET
    + (
        "results = go('again', polite, Judge(), previous_run='clean', **EXTRA)\n"
        "print(json.dumps([[r.metadata['datapoint_id'], r.terminated_by.value, r.turn_count] for r in results]))\n"
    )
)
READ = """
import json, sys
from pathlib import Path
from evaluatorq.simulation import SimulationRun, get_evaluator
rows = {}
for path in sorted(Path('.evaluatorq/sim-runs').glob('*.json')):
    run = SimulationRun.model_validate_json(path.read_text())
    rows[run.run_name] = [
        run.total_results, run.scorer_averages, run.token_usage_total.total_tokens,
        [[r.terminated_by.value, r.goal_achieved, r.criteria_verified, r.criteria_results, r.rules_broken, r.turn_count,
          [get_evaluator(n)(r) for n in ('goal_achieved', 'criteria_met', 'turn_efficiency', 'conversation_quality')],
          len(r.messages), r.thread_id] for r in run.results],
    ]
print(json.dumps(rows, sort_keys=True))
"""


class Checks:
    def __init__(self) -> None:
        self.failed = 0

    def check(self, what: str, holds: Callable[[], object]) -> None:
        try:
            holds()
            print(f"ok    {what}")
        except Exception as error:  # noqa: BLE001  whatever goes wrong is the finding
            self.failed += 1
            print(f"FAIL  {what}\n      {type(error).__name__}: {str(error)[:1500]}")


def same(first: object, second: object) -> None:
    assert first == second, f"{first!r:.600}\n      {second!r:.600}"


def names(listing: str) -> list[tuple[str, str, int]]:
    return sorted((row["run_name"], row["status"], row["total_results"]) for row in json.loads(listing))


def one_way(checks: Checks, writer: Side, reader: Side, folder: Path) -> None:
    """Everything that ``reader`` does with runs of ``writer``."""
    way = f"{reader.name} on runs of {writer.name}"
    folder.mkdir()
    writer.script(MAKE, folder, may_fail=True)
    saved = sorted((folder / ".evaluatorq/sim-runs").glob("*.json"))
    checks.check(f"{writer.name} saved runs", lambda: same(bool(saved), True))
    checks.check(
        f"{way}: list",
        lambda: same(
            names(reader.cli("sim", "runs", "--json", cwd=folder)),
            names(writer.cli("sim", "runs", "--json", cwd=folder)),
        ),
    )
    checks.check(f"{way}: load and score alike", lambda: same(reader.script(READ, folder), writer.script(READ, folder)))
    for snippet in ("load_run.py.txt", "gate.py.txt"):
        code = (SNIPPETS / snippet).read_text(encoding="utf-8")
        checks.check(
            f"{way}: {snippet} prints the same",
            lambda code=code: same(
                reader.script(code, folder, may_fail=True), writer.script(code, folder, may_fail=True)
            ),
        )
    offered = reader.cli("sim", "export", "--help", cwd=folder)
    for form in (form for form in ("openresponses", "md", "html") if form in offered):
        for path in saved:
            checks.check(
                f"{way}: export {path.stem} as {form}",
                lambda path=path, form=form: exported(reader, path, folder / f"{path.stem}.{form}", form),
            )
    checks.check(
        f"{way}: replay",
        lambda: same(
            json.loads(reader.script(REPLAY, folder).splitlines()[-1]), [["d0", "judge", 2], ["d1", "judge", 2]]
        ),
    )


def exported(reader: Side, path: Path, output: Path, form: str) -> None:
    reader.cli("sim", "export", "-i", str(path), "-o", str(output), "--format", form, cwd=path.parent)
    assert output.stat().st_size > 200


def with_models(checks: Checks, ours: Side, theirs: Side, folder: Path) -> None:
    """Both command lines replay a run of the bundled cases, with models on both sides."""
    folder.mkdir()
    ours.cli("sim", "simulate", "--offline", "--name", "bundled", "--only", "wrong item*", "-q", cwd=folder)
    words = (
        "--from-run",
        "bundled",
        "--openai-model",
        "mock-target",
        "--sim-model",
        "mock-sim",
        "--max-turns",
        "2",
        "--yes",
    )
    quiet = ("--no-recommendations", "--no-executive-summary")
    for side, name in ((theirs, "their replay"), (ours, "our replay")):
        checks.check(
            f"{side.name} replays our bundled run with models",
            lambda side=side, name=name: side.cli(
                "sim", "simulate", *words, "--name", name, "-q", *(quiet if side is theirs else ()), cwd=folder
            ),
        )
    checks.check(
        "both list all three",
        lambda: same(
            names(ours.cli("sim", "runs", "--json", cwd=folder)), names(theirs.cli("sim", "runs", "--json", cwd=folder))
        ),
    )
    checks.check("ours shows their replay", lambda: ours.cli("sim", "show", "their_replay", "0", cwd=folder))


def published_python(given: str | None, folder: Path) -> Path:
    if given:
        return Path(given).absolute()
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", RELEASE], check=True)
    return python


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", help=f"a Python that has {RELEASE}")
    parser.add_argument("--endpoint", help="base URL of a model server, such as http://127.0.0.1:8900/v1")
    options = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = published_python(options.python, folder / "venv")
        ours = Side("ours", Path(sys.executable), options.endpoint)
        theirs = Side("theirs", python, options.endpoint)
        one_way(checks, ours, theirs, folder / "ours")
        one_way(checks, theirs, ours, folder / "theirs")
        if options.endpoint:
            with_models(checks, ours, theirs, folder / "models")
    print(f"{checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
