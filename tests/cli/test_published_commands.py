"""Commands and options that scripts for the published command line use: export, schema, role models, older names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

PUBLISHED = Path(__file__).parents[1] / "data" / "published_runs"
CASES = str(PUBLISHED / "datapoints_raw.jsonl")


@pytest.mark.parametrize("name", ["two_turns_20261130-151616.json", "results.jsonl"])
def test_a_run_or_its_results_are_exported_as_open_responses(inside, folder: Path, name: str):
    done = inside("sim", "export", "-i", str(PUBLISHED / name), "-o", "out.json")
    assert (done.code, done.out, done.err) == (0, "", "Exported 4 results to out.json\n")
    documents = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    assert [document["status"] for document in documents] == ["completed"] * 4
    assert documents[0]["metadata"]["datapoint_id"] == "dp_00"


def test_a_run_of_the_store_is_exported_by_its_name(inside, folder: Path):
    inside("sim", "simulate", "--offline", "--only", "vague", "-q", "-n", "nightly")
    assert inside("sim", "export", "-i", "latest", "-o", "a.json", "--format", "openresponses").code == 0
    assert inside("sim", "export", "-i", "nightly", "-o", "b.json").code == 0
    assert len(json.loads((folder / "a.json").read_text(encoding="utf-8"))) >= 6


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["-i", "nothing", "-o", "x"], 2, "no saved run"),
        (["-i", "nothing.jsonl", "-o", "x"], 2, "no such file"),
        (["-i", "latest", "-o", "x", "--format", "foo"], 2, "no such format: 'foo'; there is openresponses"),
        (["-o", "x"], 2, "--input"),
    ],
)
def test_an_export_that_cannot_be_made_says_why(inside, words: list[str], code: int, said: str):
    done = inside("sim", "export", *words)
    assert (done.code, done.out) == (code, "")
    assert said in done.err


def test_an_export_replaces_a_file_only_when_told_to(inside, folder: Path):
    (folder / "out.json").write_text("mine", encoding="utf-8")
    words = ("sim", "export", "-i", str(PUBLISHED / "results.jsonl"), "-o", "out.json")
    assert "exists" in inside(*words).err
    assert (folder / "out.json").read_text(encoding="utf-8") == "mine"
    assert inside(*words, "--force").code == 0


@pytest.mark.parametrize(("command", "option"), [("simulate", "target"), ("run", "num_personas")])
def test_the_schema_of_each_commands_options_is_printed(inside, command: str, option: str):
    schema = json.loads(inside("sim", "schema", "--input", "--command", command).out)
    assert option in schema["properties"]
    assert schema["additionalProperties"] is False


def test_the_schema_of_a_run_is_printed(inside):
    schema = json.loads(inside("sim", "schema", "--output").out)
    assert {"run_name", "results", "datapoints"} <= schema["properties"].keys()


def test_models_named_before_the_command_play_their_roles(cli):
    cases = str(PUBLISHED / "datapoints_raw.jsonl")
    run = cli(
        "--fast-model", "my-fast", "--smart-model=my-smart", "sim", "simulate", "-i", cases,
        "--target", "agents:polite", "--yes", "--max-turns", "1", OPENAI_BASE_URL="http://127.0.0.1:9/v1",
        EVALUATORQ_LLM_TIMEOUT_S="1", PYTHONWARNINGS="default",
    )  # fmt: skip
    assert "user_simulator my-fast, judge my-smart" in run.err
    named = cli("--fast-model")
    assert (named.code, "--fast-model names a model" in named.err) == (2, True)
    assert "--fast-model MODEL" in cli("--help").out


def test_the_older_name_of_validate_does_the_same(inside):
    raw = str(PUBLISHED / "datapoints_raw.jsonl")
    assert inside("sim", "validate-dataset", raw).out == inside("sim", "validate", raw).out


def test_an_option_that_changes_nothing_is_told_in_one_line(cli):
    done = cli(
        "sim", "simulate", "--offline", "--only", "vague", "-q", "--config", '{"upload_results": true}',
        PYTHONWARNINGS="default",
    )  # fmt: skip
    assert (done.code, done.err) == (
        0, "Warning: upload_results has no effect: nothing is uploaded; the run store and results hold everything\n",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], ["no input", "--input", "--personas", "--from-run"]),
        (["-i", "missing.jsonl"], ["no target", "--target", "--openai-model", "--vercel-url"]),
        (["-i", "missing.jsonl", "--target", "demo"], ["missing.jsonl", "no such file"]),
        (["-i", "empty.jsonl", "--target", "demo"], ["empty.jsonl", "the file is empty"]),
        (["-i", "x", "--from-run", "latest", "--target", "demo"], ["more than one input", "input", "previous_run"]),
        (["-i", "x", "--target", "demo", "--openai-model", "m"], ["two targets", "target and openai_model"]),
        (["-i", CASES, "--target", "agent:key"], ["agent:", "Orq"]),
        (["-i", "x", "--target", "demo", "--llm-parallelism", "0"], ["--llm-parallelism", "at least 1, or -1"]),
        (
            ["-i", "x", "--target", "demo", "--config", '{"llm_config": {"modl": 1}}'],
            ["llm_config.modl", "not permitted"],
        ),
        (["-i", "x", "--target", "demo", "--config", '{"dataset_id": "d"}'], ["dataset_id", "give input"]),
        (["--target", "demo", "--openai-model", "m"], ["two targets", "target and openai_model"]),
        (["-i", "x", "--target", "demo", "--samples", "0"], ["--samples: input should be greater than"]),
        (["-i", "x", "--target", "demo", "-n", " "], ["--name is blank; say what it should be, or leave it out"]),
        (["-i", "x", "--target", "demo", "--parallelism", "0"], ["Error: --parallelism: input should be"]),
        (["--target", "demo", "--from-run", ""], ["--from-run is blank; say what it should be, or leave it out"]),
        (["--target", "http:/host", "-i", CASES], ["'http:/host' is no URL; write http://host"]),
        (["--from-run", "never", "--target", "demo"], ["no saved run answers to 'never'", "there are none"]),
        (["-i", CASES, "--target", "demo", "--evaluator", "nope"], ["'nope'", "criteria_met"]),
    ],
)
def test_a_mistake_is_one_line_that_names_what_would_be_right(inside, folder: Path, words: list[str], said: list[str]):
    (folder / "empty.jsonl").write_text("", encoding="utf-8")
    done = inside("sim", "simulate", *words, *(() if "--config" in words else ("-q",)))
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("Error: ")
    assert [word for word in said if word not in done.err] == []
