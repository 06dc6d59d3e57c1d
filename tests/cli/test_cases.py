"""``sim validate`` and ``init``: cases are checked as they are run, and a new folder works at once."""

from __future__ import annotations

import json
from pathlib import Path

from evaluatorq.store.runs import read_run


def test_what_init_writes_is_valid_and_runs_with_one_line_changed(cli, folder: Path):
    assert cli("init", "mine").code == 0
    cli = type(cli)(folder / "mine")
    checked = cli("sim", "validate", "personas", "scenarios")
    assert (checked.code, checked.err) == (0, "")
    assert "6 personas, 8 scenarios" in checked.out

    assert cli("sim", "simulate", "-q").code == 0
    agent = cli.folder / "my_agent.py"
    lines = agent.read_text().splitlines()
    (changed,) = [i for i, line in enumerate(lines) if "the one line to change" in line]
    lines[changed] = '    return "What is your order number, please?"'
    agent.write_text("\n".join(lines) + "\n")
    assert cli("sim", "simulate", "-q").code == 0
    (before, after) = sorted((read_run(path) for path in cli.runs()), key=lambda run: run.created_at)
    assert (before.target, before.total_results) == ("my_agent:answer", 48)
    assert before.results[0].messages != after.results[0].messages


def test_init_overwrites_nothing(cli, folder: Path):
    (folder / "mine" / "scenarios").mkdir(parents=True)
    (folder / "mine" / "my_agent.py").write_text("precious")
    ran = cli("init", "mine")
    assert ran.code == 2
    assert "my_agent.py exists" in ran.err
    assert [path.name for path in (folder / "mine").rglob("*") if path.is_file()] == ["my_agent.py"]


def test_every_wrong_case_is_listed_with_its_place(cli, folder: Path):
    (folder / "bad.yaml").write_text("name: Refund\ngoal: get it\ncriteria: []\n---\n")
    (folder / "worse.json").write_text('{"name": "Ann", "patience": 2.5}')
    ran = cli("sim", "validate", "bad.yaml", "-i", "worse.json")
    assert (ran.code, ran.out) == (2, "")
    assert "bad.yaml:" in ran.err
    assert "worse.json:1" in ran.err
    assert "patience" in ran.err


def test_a_wrong_case_stops_a_run_before_it_starts(cli, folder: Path):
    (folder / "rows.jsonl").write_text('{"id": "a"}\n')
    ran = cli("sim", "simulate", "--offline", "--target", "demo", "-i", "rows.jsonl")
    assert (ran.code, ran.out) == (2, "")
    assert "rows.jsonl:1" in ran.err
    assert cli.runs() == []


def test_an_empty_file_is_no_case_set(cli, folder: Path):
    (folder / "empty.jsonl").write_text("")
    assert cli("sim", "validate", "empty.jsonl").code == 2
    assert cli("sim", "simulate", "--offline", "--target", "demo", "-i", "empty.jsonl").code == 2


PERSONA = "patience: 0.5, assertiveness: 0.5, politeness: 0.5, technical_level: 0.5, communication_style: casual"
SECRETS = f"""
personas:
  - {{name: Ann, {PERSONA}, background: reads the log}}
  - {{name: Bob, {PERSONA}, background: knows that it is SRV-2291}}
"""
"""One of two users knows a code that another file's truth hides."""


def test_a_case_that_tells_what_it_hides_is_refused_by_validate_as_by_a_run(cli, folder):
    (folder / "people.yaml").write_text(SECRETS)
    (folder / "kept.yaml").write_text("name: Kept\ngoal: be helped\ntruth: {level: major}\nhidden: [/level]\n")
    assert cli("sim", "validate", "people.yaml", "kept.yaml").code == 0
    (folder / "told.yaml").write_text("name: Told\ngoal: be helped\ncontext: c\ntruth: {code: SRV-2291}\n")
    assert cli("sim", "validate", "told.yaml").code == 0, "nobody knows it"
    (folder / "lost.yaml").write_text("name: Lost\ngoal: say SRV-1234\ntruth: {code: SRV-1234}\nhidden: [/lvl]\n")
    words = ("people.yaml", "told.yaml", "kept.yaml", "lost.yaml")
    checked = cli("sim", "validate", *words)
    assert checked.code == 2
    told = (
        "told.yaml:4: truth: scenario 'Told' hides /code of its truth and tells it to its user; leave it out of goal, "
        "context, knows and script, or name in hidden only what is to be found out"
    )
    assert checked.err.splitlines() == [
        "lost.yaml:4: hidden: scenario 'Lost' hides /lvl and has no /lvl in its truth",
        told,
        "Error: 2 problems; right: 2 personas, 1 scenario",
    ]
    for name in ("told.yaml", "lost.yaml"):
        ran = cli("sim", "simulate", "--offline", "--target", "demo", "--personas", "people.yaml", "--scenarios", name)
        assert ran.code == 2
        said = " ".join(ran.err.split())
        assert any(line.split(": ", 2)[2] in said for line in checked.err.splitlines() if line.startswith(name))


def test_a_datapoint_that_tells_what_it_hides_is_refused_by_validate(cli, folder):
    scenario = {"name": "S", "goal": "g", "truth": {"code": "SRV-2291"}}
    ann = {
        "name": "Ann", "patience": 0.5, "assertiveness": 0.5, "politeness": 0.5, "technical_level": 0.5,
        "communication_style": "casual", "background": "b",
    }  # fmt: skip
    rows = [{"id": f"d{i}", "persona": ann, "scenario": scenario, "first_message": said}
            for i, said in enumerate(("Hello", "It is SRV-2291"))]  # fmt: skip
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    checked = cli("sim", "validate", "rows.jsonl")
    assert checked.code == 2
    assert checked.err.startswith("rows.jsonl:2: scenario.truth: scenario 'S' hides /code of its truth and tells it")
    assert checked.err.endswith("Error: 1 problem; right: 1 datapoint\n")
