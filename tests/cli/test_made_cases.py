"""``sim run``, ``sim generate`` and ``sim apply``: what they ask, print and write, against an endpoint on loopback."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluatorq.model.runs import SimulationRecommendation
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.store.runs import read_run
from llm.fake_endpoint import FakeEndpoint, Seen, Served, completion, serving, tool_answer
from mock_server.shell import killed_on_failure
from writing_models import persona, scenario, verdict

ABOUT = ("--agent-description", "Support of a shop for kettles.")
RUN = (
    "sim",
    "run",
    *ABOUT,
    "--num-personas",
    "1",
    "--num-scenarios",
    "2",
    "--target",
    "agents:polite",
    "--max-turns",
    "1",
)


def writes(seen: Seen) -> Served:
    """Everything that the commands ask for, by the name of the object wanted."""
    tools, messages = seen.body.get("tools"), seen.body["messages"]
    if not tools:
        return completion({"content": "Most of it went badly."})
    name = tools[0]["function"]["name"]
    found = re.match(r"Make (\d+) ", messages[-1]["content"])
    count = int(found[1]) if found else 0
    criteria = [{"criterion_id": f"criteria_{i}", "evidence": "", "occurred": False} for i in range(2)]
    answers: dict[str, object] = {
        "personas": {"personas": [persona(f"Person {i}") for i in range(count)]},
        "scenarios": {"scenarios": [scenario(f"Scene {i}") for i in range(count)]},
        "user_message": {"reply": "My kettle is broken.", "end_conversation": False},
        "verdict": verdict(criteria_verdicts=criteria, goal_achieved=False),
        "suggestions": {"suggestions": ["Ask for the order number first."]},
        "edits": {"edits": [{"suggestion": 1, "find": "Be good.", "replace": "Ask first."}]},
    }
    return tool_answer(name, json.dumps(answers[name]))


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEndpoint]:
    with serving() as fake:
        fake.answer = writes
        monkeypatch.setenv("OPENAI_BASE_URL", fake.base_url)
        yield fake


def saved(folder: Path) -> Path:
    (path,) = (folder / ".evaluatorq" / "sim-runs").glob("*.json")
    return path


def test_run_makes_cases_writes_them_and_simulates_them(inside, folder: Path, endpoint: FakeEndpoint):
    ran = inside(*RUN, "-d", "cases.jsonl", "--executive-summary", "--recommendations")
    assert (ran.code, ran.out) == (0, "")
    first, second, *_ = ran.err.splitlines()
    assert first.startswith("Making 1 persona and 2 scenarios with 2 first messages by ")
    assert first.endswith(", then 2 conversations")
    assert second.startswith("Made 1 persona and 2 scenarios: 2 cases, ")
    run = read_run(saved(folder))
    assert (run.mode, run.total_results) == ("run", 2)
    assert run.token_usage_total.total_tokens == 15 * len(endpoint.seen)
    assert "Most of it went badly." in ran.err
    assert re.search(r"Tokens .*generation 30, first\s+messages 30", ran.err, re.DOTALL)
    rows = [json.loads(line) for line in (folder / "cases.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == [case.id for case in run.datapoints or ()]
    assert inside("sim", "validate", "cases.jsonl").out == "2 datapoints: all right\n"
    assert sum(run.usage_by_model.values(), NO_USAGE) == run.token_usage_total, "advice and making are in it"
    assert inside("sim", "replay", "latest", "--verify").code == 0
    before = saved(folder).read_bytes()
    assert inside("sim", "rebuild", "latest").code == 0
    assert saved(folder).read_bytes() == before
    again = inside("sim", "simulate", "-i", "cases.jsonl", "--target", "agents:polite", "--max-turns", "1", "-y")
    assert again.code == 0


def asked_for(seen: Seen) -> str:
    tools = seen.body.get("tools")
    return tools[0]["function"]["name"] if tools else ""


def test_a_run_that_is_killed_while_its_cases_are_made_goes_on_and_counts_what_it_spent(
    cli, inside, folder: Path, endpoint: FakeEndpoint
):
    hangs, paid = threading.Event(), []

    def pays(seen: Seen) -> Served:
        paid.append(asked_for(seen))
        return writes(seen)

    def until_first_messages(seen: Seen) -> Served:
        if asked_for(seen) != "user_message":
            return pays(seen)
        hangs.set()
        return Served(hang=True)

    endpoint.answer = until_first_messages
    with subprocess.Popen(
        cli.command(*RUN, "-y"), cwd=cli.folder, env=cli.environment(OPENAI_BASE_URL=endpoint.base_url),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process, killed_on_failure(process):  # fmt: skip
        assert hangs.wait(30)
        process.kill()
    (row,) = json.loads(inside("sim", "runs", "--json").out)
    assert (row["status"], row["stage"], row["alive"]) == ("interrupted", "generate", False)
    assert "making cases" in inside("sim", "runs").out
    shown = inside("sim", "show", row["run_id"])
    assert shown.code == 2
    assert f"evaluatorq sim resume {row['run_id']}" in shown.err

    assert sorted(paid) == ["personas", "scenarios"]
    endpoint.answer = pays
    resumed = inside("sim", "resume", row["run_id"])
    assert resumed.code == 0
    assert "Made 1 persona and 2 scenarios" in resumed.err
    assert set(paid[2:]) == {"user_message", "verdict"}
    run = read_run(saved(folder))
    assert (run.run_id, run.mode, run.total_results) == (row["run_id"], "run", 2)
    assert run.usage_by_category["generation"].total_tokens == 30
    assert run.token_usage_total.total_tokens == 15 * len(paid)
    manifest = json.loads((folder / ".evaluatorq/sim-runs/.manifests" / f"{run.run_id}.json").read_text())
    assert [(stage["name"], stage["status"]) for stage in manifest["stages"]] == [
        ("generate", "completed"),
        ("simulate", "completed"),
    ]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("there", ["nothing", "an old file to replace", "a file that came in between"])
def test_a_run_that_goes_on_writes_the_cases_where_they_were_wanted(
    cli, inside, folder: Path, endpoint: FakeEndpoint, how: signal.Signals, there: str
):
    hangs, cases = threading.Event(), folder / "cases.jsonl"

    def until_first_messages(seen: Seen) -> Served:
        if asked_for(seen) != "user_message":
            return writes(seen)
        hangs.set()
        return Served(hang=True)

    endpoint.answer = until_first_messages
    if there == "an old file to replace":
        cases.write_text("old\n")
        os.utime(cases, (0, 0))
    force = ("--force",) if there == "an old file to replace" else ()
    with subprocess.Popen(
        cli.command(*RUN, "-y", "-d", "cases.jsonl", *force), cwd=cli.folder, text=True, stdout=subprocess.DEVNULL,
        env=cli.environment(OPENAI_BASE_URL=endpoint.base_url), stderr=subprocess.DEVNULL,
    ) as process, killed_on_failure(process):  # fmt: skip
        assert hangs.wait(30)
        process.send_signal(how)
        process.wait(30)
    if there == "a file that came in between":
        cases.write_text("mine\n")
    endpoint.answer = writes
    (row,) = json.loads(inside("sim", "runs", "--json").out)
    resumed = inside("sim", "resume", row["run_id"])
    assert resumed.code == 0, resumed.err
    if there == "a file that came in between":
        assert cases.read_text() == "mine\n"
        return
    rows = [json.loads(line) for line in cases.read_text().splitlines()]
    assert [row["id"] for row in rows] == [case.id for case in read_run(saved(folder)).datapoints or ()]


def test_json_of_a_run_is_one_document_also_when_nothing_is_saved(inside, folder: Path, endpoint: FakeEndpoint):
    ran = inside(*RUN, "--json", "--no-save", "-q", "--recommendations")
    assert (ran.code, ran.err) == (0, "")
    printed = json.loads(ran.out)
    assert (printed["mode"], len(printed["recommendations"])) == ("run", 2)
    assert not (folder / ".evaluatorq" / "sim-runs").exists() or not list(
        (folder / ".evaluatorq" / "sim-runs").glob("*.json")
    )


def test_what_could_not_be_made_is_said_and_the_rest_is_run(inside, folder: Path, endpoint: FakeEndpoint):
    def half(seen: Seen) -> Served:
        served = writes(seen)
        return (
            served
            if b"scenarios" not in served.body
            else tool_answer("scenarios", json.dumps({"scenarios": [scenario("S")]}))
        )

    endpoint.answer = half
    ran = inside(*RUN, "-q")
    assert ran.code == 0
    assert read_run(saved(folder)).total_results == 2
    assert ran.err == ""
    endpoint.answer = lambda seen: (
        Served(b"{}", 400) if "Make" in seen.body["messages"][-1]["content"] else writes(seen)
    )
    failed = inside(*RUN, "-d", "none.jsonl")
    assert failed.code == 1
    assert "could not be made" in failed.err
    assert not (folder / "none.jsonl").exists()


def test_a_project_that_simulates_its_own_cases_offline_can_still_have_some_made(
    inside, folder, endpoint: FakeEndpoint
):
    store = folder / ".evaluatorq"
    store.mkdir()
    lines = ("[simulate]", 'personas = "p"', 'scenarios = "s"', 'target = "demo"', "offline = true", "max_turns = 1")
    (store / "config.toml").write_text("\n".join(lines))
    assert inside("sim", "run", *ABOUT, "--persona-seed", "a", "--scenario-seed", "b", "-q").code == 0
    assert read_run(saved(folder)).target == "demo"
    assert inside("sim", "generate", *ABOUT, "-d", "made.jsonl", "-q").code == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("sim", "run", "--target", "demo"), "agent_description is missing"),
        (("sim", "run", *ABOUT), "no target"),
        (("sim", "run", *ABOUT, "--target", "demo", "--personas", "p"), "no such option or argument: --personas"),
        (("sim", "run", *ABOUT, "--target", "demo", "--num-personas", "0"), "--num-personas: input should be greater"),
        (("sim", "run", *ABOUT, "--target", "demo", "--config", '{"num_person": 1}'), "num_person: unknown option"),
        (("sim", "generate", *ABOUT), "-d/--datapoints"),
        (("sim", "generate", "-d", "x.jsonl"), "agent_description is missing"),
        (("sim", "generate", *ABOUT, "-d", "agents.py"), "agents.py exists"),
        (("sim", "apply", "latest"), "--prompt"),
        (("sim", "apply", "latest", "--prompt", "p.txt"), "no saved runs"),
    ],
)
def test_what_cannot_be_right_exits_2_before_anything_is_asked(inside, endpoint: FakeEndpoint, words, told: str):
    ran = inside(*words)
    assert (ran.code, ran.out) == (2, "")
    assert told in " ".join(ran.err.split())
    assert endpoint.seen == []


def test_the_schema_of_run_has_its_options_and_no_input(inside):
    properties = json.loads(inside("sim", "schema", "--command", "run").out)["properties"]
    assert {"agent_description", "num_personas", "persona_seeds", "target"} <= properties.keys()
    assert not {"personas", "input", "previous_run", "offline", "hooks"} & properties.keys()
    assert "agent_description" not in json.loads(inside("sim", "schema").out)["properties"]


def test_generate_writes_cases_or_rows_of_a_data_set(inside, folder: Path, endpoint: FakeEndpoint):
    counts = ("--num-personas", "2", "--num-scenarios", "1")
    ran = inside("sim", "generate", *ABOUT, "-d", "a.jsonl", *counts)
    assert (ran.code, ran.out) == (0, "2 cases written to a.jsonl\n")
    assert inside("sim", "generate", *ABOUT, "-d", "b.jsonl", *counts, "--dataset-format", "--config", "{}").code == 0
    row = json.loads((folder / "b.jsonl").read_text().splitlines()[0])
    assert row["inputs"]["category"] == "Person 0 - Scene 0"
    for name in ("a.jsonl", "b.jsonl"):
        assert inside("sim", "validate", name).out == "2 datapoints: all right\n"
    assert not (folder / ".evaluatorq" / "sim-runs").exists()


def test_an_export_has_changes_suggested_only_when_asked_and_where_the_run_has_none(
    inside, folder: Path, endpoint: FakeEndpoint
):
    assert (
        inside("sim", "simulate", "--offline", "--only", "refund within*", "--target", "agents:polite", "-q").code == 0
    )
    told = "Ask for the order number first."
    assert inside("sim", "export", "-i", "latest", "-o", "plain.md", "--format", "md").code == 0
    assert endpoint.seen == []
    asked = ("sim", "export", "-i", "latest", "--recommendations", "--sim-model", "advisor")
    ran = inside(*asked, "-o", "advised.md", "--format", "md")
    assert (ran.code, ran.out) == (0, "")
    assert {seen.body["model"] for seen in endpoint.seen} == {"advisor"}
    tokens = 15 * len(endpoint.seen)
    assert f"{len(endpoint.seen)} suggestions for {len(endpoint.seen)} conversations, {tokens} tokens" in ran.err
    assert told in (folder / "advised.md").read_text()
    assert told not in (folder / "plain.md").read_text()

    path = saved(folder)
    run = read_run(path)
    advice = SimulationRecommendation(result_index=0, persona="p", scenario="s", suggestions=["Be kinder."])
    path.write_text(run.model_copy(update={"recommendations": [advice]}).model_dump_json(indent=2))
    before = len(endpoint.seen)
    assert inside(*asked, "-o", "kept.html", "--format", "html").code == 0
    assert "Be kinder." in (folder / "kept.html").read_text()
    assert len(endpoint.seen) == before

    refused = inside(*asked, "-o", "out.json")
    assert (refused.code, len(endpoint.seen)) == (2, before)
    assert "--recommendations goes with --format md or html" in refused.err


def test_apply_shows_a_patch_until_it_is_told_to_write(inside, folder: Path, endpoint: FakeEndpoint):
    assert inside(*RUN, "--recommendations", "-q").code == 0
    (folder / "prompt.txt").write_text("You help.\nBe good.\n")
    dry = inside("sim", "apply", "latest", "--prompt", "prompt.txt")
    assert dry.code == 0
    assert dry.out.startswith("--- a/prompt.txt\n+++ b/prompt.txt\n")
    assert "-Be good.\n+Ask first.\n" in dry.out
    assert "Nothing was written" in dry.err
    assert (folder / "prompt.txt").read_text() == "You help.\nBe good.\n"
    wet = inside("sim", "apply", "latest", "--prompt", "prompt.txt", "--apply")
    assert (wet.code, wet.out) == (0, "")
    assert (folder / "prompt.txt").read_text() == "You help.\nAsk first.\n"
    assert read_run(saved(folder)).applied_suggestions == ["Ask for the order number first."]
    asked = len(endpoint.seen)
    third = inside("sim", "apply", "latest", "--prompt", "prompt.txt", "--apply")
    assert "already applied: Ask for the order number first." in third.err
    assert "Nothing to change." in third.err
    assert len(endpoint.seen) == asked
