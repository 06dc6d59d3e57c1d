"""``sim compare``, ``sim gate``, ``sim samples``: an old run as the measure of a new one, as CI calls them."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest

OFFLINE = ("sim", "simulate", "--offline", "-q", "--only", "Refund within*")
"""Six personas in one scenario that code decides in full."""


@pytest.fixture
def two_runs(inside):
    assert inside(*OFFLINE, "-n", "good").code == 0
    assert inside(*OFFLINE, "-n", "flawed", "--target", "demo:flawed").code == 0
    return inside


def test_the_flawed_agent_is_worse_and_the_words_of_both_sides_show_it(two_runs):
    compared = two_runs("sim", "compare", "good", "flawed")
    assert (compared.code, compared.err) == (0, "")
    assert "✗ worse: 6 of 6 datapoints lost, 0 gained (p = 0.031)" in compared.out
    text = " ".join(compared.out.split())
    assert "✗ lost Refund within the window: must happen: The agent looks the order up before it acts" in text
    assert "A [0] held: find_order(" in text
    assert "B [0] broken: never happened" in text


def test_a_comparison_is_json_and_markdown_as_well(two_runs, folder):
    compared = two_runs("sim", "compare", "good", "flawed", "--json", "--markdown", "out/report.md")
    found = json.loads(compared.out)
    assert (found["word"], found["unit"], found["datapoints"]) == ("worse", "datapoint", 6)
    assert all(flip["change"] == "lost" and flip["a"]["held"] for flip in found["flips"])
    assert (folder / "out" / "report.md").read_text().startswith("## ❌ worse")


def test_a_subset_is_compared_with_the_whole_and_says_so_everywhere(two_runs):
    chosen = ("--only", "Blunt*", "--from-run", "good", "--offline", "-q")
    assert two_runs("sim", "simulate", *chosen, "-n", "part", "--target", "demo").code == 0
    assert two_runs("sim", "rejudge", "part", "--offline", "-q", "-n", "judged").code == 0
    for name in ("part", "judged"):
        found = json.loads(two_runs("sim", "compare", "good", name, "--json").out)
        assert (found["subset"], found["left_out"]) == ("subset of 1 of 6 cases, chosen by only 'Blunt*'", {})
        assert len(found["not_asked"]) == 5
    held = two_runs("sim", "gate", "part", "--baseline", "good", "--max-lost", "0")
    assert held.code == 0
    assert "✓ gate: holds (subset of 1 of 6 cases, chosen by only 'Blunt*')" in held.out


def test_a_control_run_takes_its_noise_out(two_runs):
    compared = two_runs("sim", "compare", "good", "flawed", "--control", "good", "--json")
    assert json.loads(compared.out)["measures"][0]["noise"] == 0.0


def test_a_run_that_is_not_there_is_asked_wrongly(two_runs):
    compared = two_runs("sim", "compare", "good", "flwed")
    assert compared.code == 2
    assert "did you mean flawed" in compared.err


def test_the_gates_exit_code_is_its_decision(two_runs):
    assert two_runs("sim", "gate", "good").code == 0
    broken = two_runs("sim", "gate", "flawed")
    assert broken.code == 1
    assert "✗ gate: broken" in broken.out
    assert "[0] Blunt engineer · Refund within the window" in broken.out
    assert two_runs("sim", "gate", "flawed", "--min-goal-rate", "0.5").code in (0, 1)
    assert two_runs("sim", "gate", "flawed", "--baseline", "good").code == 1
    assert two_runs("sim", "gate", "good", "--baseline", "flawed", "--max-lost", "0").code == 0
    assert two_runs("sim", "gate", "--max-errors", "0").code == 0, "the latest run"


def test_what_was_not_measured_is_neither_green_nor_red(inside):
    assert inside("sim", "simulate", "--offline", "-q", "--only", "Wrong item*").code == 0
    unmeasured = inside("sim", "gate", "latest", "--min-pass-rate", "0.9")
    assert unmeasured.code == 3
    assert "? gate: could not measure" in unmeasured.out


def test_a_run_that_was_stopped_is_gone_on_with_first(inside, folder):
    assert inside(*OFFLINE, "-n", "stopped").code == 0
    (saved,) = (folder / ".evaluatorq" / "sim-runs").glob("*.json")
    run_id = json.loads(saved.read_text())["run_id"]
    saved.unlink()
    for words, code in ((["gate", run_id], 3), (["compare", run_id, run_id], 2)):
        refused = inside("sim", *words)
        assert (refused.code, refused.out) == (code, "")
        assert f"go on with it first: evaluatorq sim resume {run_id}" in " ".join(refused.err.split())


def test_a_file_that_cannot_be_read_could_not_be_measured(inside, folder):
    torn = folder / "torn.json"
    torn.write_text('{"mode": "simulate"')
    refused = inside("sim", "gate", str(torn))
    assert (refused.code, refused.out) == (3, "")
    assert refused.err.startswith("Error: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--min-gaol-rate", "1"], "did you mean --min-goal-rate?"),
        (["--min-goal-rate", "2"], "min_goal_rate: input should be less than or equal to 1"),
        (["--max-errors", "few"], "write a count such as 3, or a share such as '5%'"),
        (["--min-evaluator", "nice"], "--min-evaluator takes NAME=SHARE, not 'nice'"),
        (["--min-evaluator", "nice=1"], "it has 'goal_achieved', 'criteria_met'"),
        (["--min-criterion", "unicorn=1"], "no criterion of this run matches 'unicorn'"),
        (["--baseline", "nobody"], "no saved run answers to 'nobody'"),
    ],
)
def test_rules_that_cannot_be_right_are_exit_code_two(two_runs, words, said):
    refused = two_runs("sim", "gate", "good", *words)
    assert (refused.code, refused.out) == (2, "")
    assert said in " ".join(refused.err.split())


def test_the_projects_rules_stand_in_its_settings_and_an_option_wins(two_runs, folder):
    settings = folder / ".evaluatorq" / "config.toml"
    settings.write_text(
        '[gate]\nmin_goal_rate = 1.0\nmax_errors = "5%"\n[gate.min_criterion]\n"looks the order up" = 1.0\n'
    )
    assert two_runs("sim", "gate", "good").code == 0
    broken = two_runs("sim", "gate", "flawed")
    assert broken.code == 1
    assert "criterion 'looks the order up' held: at least 100 %" in " ".join(broken.out.split())
    assert two_runs("sim", "gate", "flawed", "--min-criterion", "looks the order up=0").code == 0
    settings.write_text("[gate]\nmin_gaol_rate = 1\n")
    wrong = two_runs("sim", "gate", "good")
    assert wrong.code == 2
    assert "config.toml:2: min_gaol_rate: no such rule; did you mean min_goal_rate?" in " ".join(wrong.err.split())


def test_ci_gets_junit_markdown_and_json(two_runs, folder):
    gated = two_runs("sim", "gate", "flawed", "--junit", "junit.xml", "--markdown", "summary.md", "--json")
    decision = json.loads(gated.out)
    assert (gated.code, decision["state"], decision["run"]["conversations"]) == (1, "broken", 6)
    suites = ET.fromstring((folder / "junit.xml").read_bytes())
    assert [(suite.get("name"), suite.get("tests"), suite.get("failures")) for suite in suites] == [
        ("flawed", "6", "6"), ("gate", "1", "1"),
    ]  # fmt: skip
    assert (folder / "summary.md").read_text().startswith("## ❌ Gate: broken")


def test_repeats_are_counted_by_datapoint(inside):
    assert inside(*OFFLINE, "--samples", "3", "-n", "thrice").code == 0
    counted = inside("sim", "samples", "thrice")
    assert "6 datapoints, 3 samples each" in counted.out
    assert "pass^3" in counted.out
    report = json.loads(inside("sim", "samples", "thrice", "--json", "--of", "goal").out)
    assert (report["of"], report["k"], report["run"]["samples"], len(report["datapoints"])) == ("goal", 3, 18, 6)
    again = inside("sim", "simulate", "--offline", "-q", "--from-run", "thrice", "--target", "demo", "-n", "again")
    assert again.code == 0
    compared = json.loads(inside("sim", "compare", "thrice", "again", "--json").out)
    assert (compared["datapoints"], compared["conversations"]) == (6, 18)


# ---------------------------------------------------------------- recordings


def test_a_run_is_proved_from_its_recording_and_drift_names_the_place(two_runs, folder):
    proved = two_runs("sim", "replay", "good", "--verify")
    assert (proved.code, proved.out, proved.err) == (0, "", "Replayed 6 conversations: no drift.\n")
    (journal,) = [
        path for path in (folder / ".evaluatorq/sim-runs/.journal").glob("*/0001.jsonl") if '"demo"' in path.read_text()
    ]
    journal.write_text(journal.read_text().replace("Shall I refund", "Shall I not refund", 1))
    drifted = two_runs("sim", "replay", "good", "--verify")
    assert drifted.code == 1
    assert "0001.jsonl: the line at byte " in drifted.out.splitlines()[0], "what explains the rest comes first"
    assert "request_drift at step" in drifted.out
    assert "result_drift at /messages/" in drifted.out
    told = json.loads(two_runs("sim", "replay", "good", "--verify", "--json").out)
    assert not told["holds"]
    assert {"conversation", "step", "path", "recorded", "replayed", "kind"} <= told["drifts"][0].keys()


def test_conversations_are_forked_judged_scored_and_written_again(two_runs, folder):
    forked = two_runs("sim", "replay", "good", "2", "--from-turn", "2", "--target", "demo:flawed", "-q", "-n", "forked")
    assert (forked.code, forked.out) == (0, "")
    assert "had anew from the agent's answer in turn 2 on" in " ".join(two_runs("sim", "show", "forked").out.split())
    assert two_runs("sim", "rejudge", "flawed", "--offline", "-q", "-n", "judged").code == 0
    compared = json.loads(two_runs("sim", "compare", "flawed", "judged", "--json").out)
    assert compared["measures"][0]["difference"] == 0
    scored = two_runs("sim", "rescore", "good", "--evaluator", "turn_efficiency", "-n", "scored")
    assert (scored.code, "turn_efficiency  0.90 mean of 6" in scored.out) == (0, True)
    assert two_runs("sim", "gate", "scored", "--min-evaluator", "turn_efficiency=0.9").code == 0
    rebuilt = two_runs("sim", "rebuild", "good")
    assert rebuilt.code == 0
    assert rebuilt.out.strip().endswith(".json")
    newest = json.loads(two_runs("sim", "show", "latest", "--json").out)
    assert newest["run_name"] == "scored", "what was rebuilt is not the newest run"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["replay", "good"], 2, "give one of --verify (prove the run) and --from-turn N (fork it)"),
        (["replay", "good", "--verify", "--from-turn", "2"], 2, "give one of --verify"),
        (["replay", "good", "--from-turn", "0"], 2, "--from-turn is a number from 1, not '0'"),
        (["replay", "good", "x", "--from-turn", "1"], 2, "N is a number from 0, not 'x'"),
        (["replay", "good", "--from-turn", "9"], 2, "no conversation of good has a turn 9"),
        (["replay", "nobody", "--verify"], 2, "no journal answers to 'nobody'"),
        (["rejudge", "good"], 2, "name the judge: --judge-model MODEL, or --offline"),
        (["rescore", "good"], 2, "--evaluator"),
        (["rescore", "good", "--evaluator", "goal_acheived"], 2, "did you mean goal_achieved?"),
        (["rebuild", "nobody"], 2, "no journal answers to 'nobody'"),
        (["simulate", "--target", "demo", "--from-run", "config.toml"], 2, "config.toml is not JSON"),
        (["simulate", "--target", "demo", "--from-run", "settings.json"], 2, "settings.json is not a simulation run"),
        (
            ["simulate", "--target", "demo", "--from-run", "abc1234"],
            2,
            "the beginning of a run id has 8 characters or more",
        ),
        (["compare", "good", "settings.json"], 2, "settings.json is not a simulation run"),
        (["replay", "settings.json", "--verify"], 2, "settings.json is not a simulation run"),
        (["rescore", "settings.json", "--evaluator", "goal_achieved"], 2, "settings.json is not a simulation run"),
    ],
)
def test_what_cannot_be_done_again_says_why(two_runs, folder, words, code, said):
    (folder / "config.toml").write_text("[simulate]\n")
    (folder / "settings.json").write_text('{"mode": "dark"}')
    refused = two_runs("sim", *words)
    assert (refused.code, refused.out) == (code, "")
    assert said in " ".join(refused.err.split())


# ---------------------------------------------------------------- what a gate writes


@pytest.mark.parametrize("option", ["--junit", "--markdown"])
def test_a_report_that_cannot_be_written_is_exit_code_two_before_anything_is_decided(two_runs, option):
    refused = two_runs("sim", "gate", "flawed", option, "/proc/x.xml")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith(f"Error: {option}: cannot write /proc/x.xml")


def test_a_second_build_replaces_its_reports_and_never_the_run(two_runs, folder):
    for run in ("flawed", "good"):
        two_runs("sim", "gate", run, "--junit", "gate.xml", "--markdown", "gate.md")
    assert ET.parse(folder / "gate.xml").find("testsuite").get("failures") == "0"
    assert (folder / "gate.md").read_text().startswith("## ✅")
    saved = next((folder / ".evaluatorq" / "sim-runs").glob("good*.json"))
    before = saved.read_bytes()
    refused = two_runs("sim", "gate", "flawed", "--baseline", "good", "--junit", str(saved))
    assert (refused.code, refused.out, saved.read_bytes()) == (2, "", before)
    assert "is the run itself" in " ".join(refused.err.split())


def test_a_gate_reads_percent_and_its_help_says_what_happens_to_files(two_runs):
    assert two_runs("sim", "gate", "good", "--min-goal-rate", "95%", "--max-errors", "0.02").code == 0
    told = " ".join(two_runs("sim", "gate", "--help").out.split())
    assert "SHARE is 0.95 or 95%" in told
    assert told.count("a file that is there is replaced") == 2
