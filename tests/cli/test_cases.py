"""``sim validate`` and ``init``: cases are checked as they are run, and a new folder works at once."""

from __future__ import annotations

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
