"""What the rules accept survives a trip through JSON and YAML unchanged, and no text at all makes the reader crash."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from evaluatorq.errors import CaseError
from evaluatorq.model.cases import (
    Check,
    CommunicationStyle,
    ConversationStrategy,
    Criterion,
    CulturalContext,
    EmotionalArc,
    InputFormat,
    Persona,
    Scenario,
    SimulationDatapoint,
    StartingEmotion,
    StateCheck,
    ToolCheck,
)
from evaluatorq.records.fingerprint import fingerprint
from evaluatorq.store.cases import check_datapoints, check_files, load_datapoints, validate_paths
from evaluatorq.store.documents import read_json
from evaluatorq.store.yaml_reader import read_yaml

READABLE = st.characters(exclude_categories=["Cs", "Cc"])
DISPUTED = re.compile(r"[-+.]?[0-9][0-9A-Za-z_.+-]*")  # 12E4 and the like, which YAML's writer leaves unquoted
WORDS = st.text(READABLE, max_size=12).filter(lambda text: not DISPUTED.fullmatch(text))
TEXT = WORDS.filter(str.strip)
TRAIT = st.floats(0, 1)
PATTERN = st.sampled_from(["refund", r"order \d+", "(?:yes|no)", r"\bA1\b"])
POINTER = st.lists(st.sampled_from(["orders", "A1", "a~1b", "0", "ä"]), max_size=3).map(
    lambda parts: "".join(f"/{part}" for part in parts)
)
NUMBER = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | NUMBER | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(READABLE, max_size=5), inner, max_size=3),
    max_leaves=6,
)

STATE = st.one_of(
    st.builds(StateCheck, pointer=POINTER, equals=JSON),
    st.builds(StateCheck, pointer=POINTER, one_of=st.lists(JSON, min_size=1, max_size=2)),
    st.builds(StateCheck, pointer=POINTER, absent=st.just(True)),
)
TOOL = st.builds(
    ToolCheck,
    name=TEXT,
    arguments=st.dictionaries(TEXT, JSON, max_size=2),
    outcome=st.sampled_from([None, "accepted", "rejected"]),
)
CHECK = st.one_of(
    st.builds(Check, agent_says=PATTERN),
    st.builds(Check, user_says=PATTERN),
    st.builds(Check, tool_called=TOOL),
    st.builds(Check, state=STATE),
)
CRITERION = st.builds(
    Criterion,
    description=TEXT,
    type=st.sampled_from(["must_happen", "must_not_happen"]),
    evaluator=st.none() | TEXT,
    check=st.none() | CHECK,
    about=st.sampled_from(["agent", "user"]),
)
PERSONA = st.builds(
    Persona,
    name=TEXT,
    patience=TRAIT,
    assertiveness=TRAIT,
    politeness=TRAIT,
    technical_level=TRAIT,
    communication_style=st.sampled_from(CommunicationStyle),
    background=TEXT,
    emotional_arc=st.none() | st.sampled_from(EmotionalArc),
    cultural_context=st.none() | st.sampled_from(CulturalContext),
)
GOALS = st.one_of(
    st.just({}),
    st.builds(lambda check: {"goal_check": check}, CHECK),
    st.builds(lambda states: {"goal_state": states}, st.lists(STATE, min_size=1, max_size=2)),
)
SCENARIO = st.builds(
    lambda goals, **fields: Scenario(**fields, **goals),
    GOALS,
    name=TEXT,
    goal=TEXT,
    context=st.none() | TEXT,
    starting_emotion=st.none() | st.sampled_from(StartingEmotion),
    criteria=st.none() | st.lists(CRITERION, min_size=1, max_size=3),
    is_edge_case=st.none() | st.booleans(),
    conversation_strategy=st.none() | st.sampled_from(ConversationStrategy),
    ground_truth=st.none() | TEXT,
    input_format=st.none() | st.sampled_from(InputFormat),
    knows=st.none() | st.dictionaries(TEXT, TEXT, max_size=2),
    script=st.lists(st.none() | TEXT, min_size=1, max_size=2),
    after_script=st.sampled_from([None, "simulate", "stop"]),
    opens=st.sampled_from([None, "agent", "user"]),
    environment=st.sampled_from([None, "orders", "shop-2"]),
    setup=JSON,
)
DATAPOINT = st.builds(
    SimulationDatapoint,
    id=TEXT,
    persona=PERSONA,
    scenario=SCENARIO,
    user_system_prompt=st.just("") | TEXT,
    first_message=st.just("") | TEXT,
)
on_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


@on_one_folder
@given(DATAPOINT)
def test_a_datapoint_survives_a_trip_through_json_and_yaml(tmp_path: Path, datapoint: SimulationDatapoint) -> None:
    check_datapoints([datapoint])
    whole = datapoint.model_dump(mode="json")
    files = {
        "raw.jsonl": datapoint.model_dump_json(),
        "list.json": json.dumps([whole], indent=1),
        "short.json": datapoint.model_dump_json(exclude_unset=True),
        "block.yaml": yaml.safe_dump({"datapoints": [whole]}, allow_unicode=True),
        "flow.yml": yaml.safe_dump(whole, default_flow_style=True),
    }
    for name, text in files.items():
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        (read,) = load_datapoints(path)
        assert read == datapoint
        assert fingerprint(read) == fingerprint(datapoint)


@given(JSON)
def test_json_and_yaml_give_equal_values_of_equal_types(value: JsonValue) -> None:
    text = json.dumps(value, indent=1)
    assert repr(read_json(text, "x.json").value) == repr(value)
    dumped = yaml.safe_dump(value, allow_unicode=True, sort_keys=False)
    assert repr(read_yaml(dumped, "x.yaml").value) == repr(value)


@on_one_folder
@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace")))
@pytest.mark.parametrize("suffix", [".yaml", ".json", ".jsonl"])
def test_any_bytes_at_all_are_cases_or_errors_with_one_sentence(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"any{suffix}"
    path.write_bytes(content)
    report = validate_paths([path])
    assert report.valid or report.errors
    assert all("\n" not in str(error) for error in report.errors)


@on_one_folder
@given(JSON, st.sampled_from(["personas", "scenarios", "datapoints"]))
def test_any_value_at_all_is_a_case_or_an_error_on_a_line(tmp_path: Path, value: JsonValue, kind: str) -> None:
    path = tmp_path / "any.json"
    path.write_text(json.dumps({kind: [value]}))
    errors = check_files([path])
    assert errors
    assert all(isinstance(error, CaseError) and error.line == 1 for error in errors)
