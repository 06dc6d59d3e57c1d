"""Files that the published package saved: every field is ours too, and what is read is written back as it was."""

from __future__ import annotations

import json
import re
import shutil
from datetime import datetime
from pathlib import Path

import pytest
from pydantic import BaseModel

from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import RunManifest, SimulationRun
from evaluatorq.simulation import export_datapoints_to_jsonl, load_datapoints_from_jsonl, load_results_from_jsonl
from evaluatorq.simulation.replay import load_simulation_replay
from evaluatorq.store.paths import get_sim_runs_dir
from evaluatorq.store.runs import iter_results, list_runs, read_header, read_run

DATA = Path(__file__).parents[1] / "data"
PUBLISHED = DATA / "published_runs"
RUNS = sorted(PUBLISHED.glob("*.json"))
SCHEMA = json.loads((DATA / "published_schema.json").read_text(encoding="utf-8"))
Json = dict[str, object]

MAY_BE_MISSING = {
    "SimulationDatapoint.user_system_prompt",
    "SimulationDatapoint.first_message",
    "TurnMetrics.judge_reason",
    "SimulationRecommendation.triggers",
    "SimulationRecommendation.suggestions",
}
"""Fields that the published schema asks for and that we also read without."""


# ---------------------------------------------------------------- the schema


def expanded(node: object, defs: Json) -> object:
    """The schema without references, titles and descriptions."""
    if isinstance(node, list):
        return [expanded(item, defs) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        name = str(node["$ref"]).rpartition("/")[2]
        return {} if name == "JsonValue" else expanded(defs[name], defs)
    return {key: expanded(value, defs) for key, value in node.items() if key not in ("title", "description", "$defs")}


def covers(ours: Json, theirs: Json, path: str) -> list[str]:
    """Where ours lacks a property of theirs, or has it with another type or default."""
    if "anyOf" in theirs or "oneOf" in theirs:
        wanted, offered = (node.get("anyOf") or node.get("oneOf") or [node] for node in (theirs, ours))
        missing = [
            f"{path}: nothing of ours is {alternative}"
            for alternative in wanted
            if all(covers(candidate, alternative, path) for candidate in offered)
        ]
        return missing + differing_default(ours, theirs, path)
    problems = differing_default(ours, theirs, path)
    if theirs.get("type") != ours.get("type") or theirs.get("enum", []) != ours.get("enum", []):
        problems.append(f"{path}: {theirs} is {ours}")
    if "const" in theirs and theirs["const"] != ours.get("const"):
        problems.append(f"{path}: {theirs['const']} is {ours.get('const')}")
    if "items" in theirs:
        problems += covers(ours.get("items", {}), theirs["items"], f"{path}[]")
    if isinstance(theirs.get("additionalProperties"), dict):
        problems += covers(ours.get("additionalProperties", {}), theirs["additionalProperties"], f"{path}.*")
    if "properties" in theirs and "properties" in ours:
        for name, schema in theirs["properties"].items():
            if name not in ours["properties"]:
                problems.append(f"{path}.{name}: is missing")
            else:
                problems += covers(ours["properties"][name], schema, f"{path}.{name}")
    return problems


def differing_default(ours: Json, theirs: Json, path: str) -> list[str]:
    if "default" in theirs and ours.get("default", "none") != theirs["default"]:
        return [f"{path}: default {theirs['default']!r} is {ours.get('default')!r}"]
    return []


@pytest.mark.parametrize("model", [SimulationRun, SimulationDatapoint])
def test_every_published_property_is_ours_with_its_type_and_default(model: type[BaseModel]):
    theirs = SCHEMA[model.__name__]
    ours = model.model_json_schema(mode="serialization")
    assert covers(expanded(ours, ours["$defs"]), expanded(theirs, theirs["$defs"]), model.__name__) == []


@pytest.mark.parametrize("model", [SimulationRun, SimulationDatapoint])
def test_what_published_files_must_hold_ours_always_hold(model: type[BaseModel]):
    theirs, ours = SCHEMA[model.__name__], model.model_json_schema(mode="serialization")
    named = {model.__name__: (theirs, ours)} | {
        name: (definition, ours["$defs"][name]) for name, definition in theirs["$defs"].items() if name in ours["$defs"]
    }
    lenient = {
        f"{name}.{field}"
        for name, (their_schema, our_schema) in named.items()
        for field in set(their_schema.get("required", ())) - set(our_schema.get("required", ()))
    }
    assert lenient <= MAY_BE_MISSING


# ---------------------------------------------------------------- the files


def additions(ours: object, theirs: object) -> object:
    """Ours without the members that theirs does not have; their order is kept."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return {key: additions(value, theirs[key]) for key, value in ours.items() if key in theirs}
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [additions(mine, their) for mine, their in zip(ours, theirs, strict=True)]
    return ours


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_a_published_run_is_written_back_byte_for_byte_except_for_our_additions(path: Path):
    text = path.read_text(encoding="utf-8")
    run = SimulationRun.model_validate_json(text)
    ours = json.loads(run.model_dump_json(indent=2))
    assert json.dumps(additions(ours, json.loads(text)), indent=2, ensure_ascii=False) == text


@pytest.mark.parametrize("path", sorted((PUBLISHED / "manifests").glob("*.json")), ids=lambda path: path.stem[:8])
def test_a_published_manifest_is_written_back_as_it_was(path: Path):
    text = path.read_text(encoding="utf-8")
    ours = json.loads(RunManifest.model_validate_json(text).model_dump_json())
    assert json.dumps(additions(ours, json.loads(text)), indent=2) == text


def test_published_results_are_read_line_by_line():
    results = load_results_from_jsonl(PUBLISHED / "results.jsonl")
    run = read_run(PUBLISHED / "two_turns_20261130-151616.json")
    assert [result.messages for result in results] == [result.messages for result in run.results]


def test_published_datapoints_are_read_raw_and_as_rows_of_a_data_set(tmp_path: Path):
    raw = load_datapoints_from_jsonl(PUBLISHED / "datapoints_raw.jsonl")
    packed = load_datapoints_from_jsonl(PUBLISHED / "datapoints_envelope.jsonl")
    assert [point.model_copy(update={"id": ""}) for point in raw] == [
        point.model_copy(update={"id": ""}) for point in packed
    ]
    export_datapoints_to_jsonl(raw, tmp_path / "again.jsonl")
    assert load_datapoints_from_jsonl(tmp_path / "again.jsonl") == packed


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_a_published_run_is_read_by_its_head_and_one_result_at_a_time(path: Path):
    run, header = read_run(path), read_header(path)
    assert header.model_copy(update={"results": run.results, "datapoints": run.datapoints}) == run
    assert list(iter_results(path)) == run.results


@pytest.fixture
def store() -> Path:
    folder = get_sim_runs_dir()
    shutil.copytree(PUBLISHED, folder)
    (folder / "manifests").rename(folder / ".manifests")
    return folder


def test_a_published_store_is_listed_with_what_its_manifests_say(store: Path):
    rows = list_runs(store)
    assert sorted(row.run_name for row in rows) == [
        "personas x scenarios", "sim", "target died", "two turns", "with summary",
    ]  # fmt: skip
    assert {row.status for row in rows} == {"completed"}
    assert [row.created_at for row in rows] == sorted((row.created_at for row in rows), reverse=True)
    died = next(row for row in rows if row.run_name == "target died")
    assert (died.total_results, died.scorer_averages) == (2, {})


@pytest.mark.parametrize("reference", ["two_turns", "add88ac4672547f387fa944102675ee2", "add88ac4"])
def test_a_published_run_is_replayed_by_name_and_id(store: Path, reference: str):
    replay = load_simulation_replay(reference)
    assert (len(replay.datapoints), replay.max_turns) == (4, 3)
    assert replay.datapoints[0].id == "dp_00"


def test_every_run_of_ours_carries_what_other_readers_need(tmp_path: Path):
    times = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
    run = read_run(RUNS[0])
    moment = datetime.fromisoformat("2026-01-31T10:00:00.500000+02:00")
    again = SimulationRun.model_validate({**dict(run), "created_at": moment})
    assert times.match(json.loads(again.model_dump_json())["created_at"])


def test_nulls_are_written_and_parts_leave_theirs_out():
    row = {"role": "user", "content": [{"type": "input_image", "image_url": "https://x.example/a.png"}]}
    result = read_run(RUNS[0]).results[0].model_dump(mode="json")
    result["messages"] = [row]
    [message] = json.loads(SimulationResult.model_validate(result).model_dump_json())["messages"]
    assert message == {
        "role": "user",
        "content": [{"type": "input_image", "image_url": "https://x.example/a.png", "detail": "auto"}],
        "tool_calls": None,
        "tool_call_id": None,
        "name": None,
    }
