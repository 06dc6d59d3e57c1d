"""Datapoints: every shape of row, stable ids, the product, the selection, and what Python code may build."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from evaluatorq.errors import CaseError, ConfigError
from evaluatorq.model.cases import (
    Check,
    CommunicationStyle,
    Criterion,
    MustHappenCriterion,
    Persona,
    Scenario,
    SimulationDatapoint,
    StateCheck,
)
from evaluatorq.records.fingerprint import fingerprint
from evaluatorq.store.cases import (
    check_datapoints,
    export_datapoints_to_jsonl,
    load_datapoints,
    load_datapoints_from_jsonl,
    product,
    select,
)

ANNA = Persona(
    name="Anna",
    patience=0.2,
    assertiveness=0.8,
    politeness=0.4,
    technical_level=0.3,
    communication_style=CommunicationStyle.TERSE,
    background="Got the wrong colour",
)
BERTA = ANNA.model_copy(update={"name": "Berta"})
LATE = Scenario(name="Late parcel", goal="Get a delivery date")
REFUND = Scenario(name="Refund", goal="Get the money back")


def datapoint(**update: object) -> SimulationDatapoint:
    return SimulationDatapoint(id="d1", persona=ANNA, scenario=LATE).model_copy(update=update)


# ---------------------------------------------------------------- rows


def test_raw_rows_and_envelopes_hold_the_same_cases(tmp_path: Path) -> None:
    cases = [datapoint(first_message="Hello"), datapoint(id="d2", scenario=REFUND, user_system_prompt="be Anna")]
    raw, envelope = tmp_path / "raw.jsonl", tmp_path / "envelope.jsonl"
    raw.write_text("".join(case.model_dump_json() + "\n" for case in cases))
    export_datapoints_to_jsonl(cases, envelope)
    assert load_datapoints(raw) == load_datapoints_from_jsonl(raw) == cases
    read = load_datapoints(envelope)
    assert [case.model_copy(update={"id": ""}) for case in read] == [
        case.model_copy(update={"id": ""}) for case in cases
    ]
    assert all(case.id.startswith("dp_") for case in read)


def test_an_exported_row_has_the_published_shape(tmp_path: Path) -> None:
    export_datapoints_to_jsonl([datapoint(first_message="Grüß Gott")], tmp_path / "d.jsonl")
    row = json.loads((tmp_path / "d.jsonl").read_text(encoding="utf-8"))
    assert row["expected_output"] == ""
    assert set(row["inputs"]) == {"category", "first_message", "user_system_prompt", "persona", "scenario"}
    assert row["inputs"]["category"] == "Anna - Late parcel"
    assert json.loads(row["inputs"]["persona"])["patience"] == 0.2


def test_columns_of_a_data_set_beside_inputs_are_not_ours(tmp_path: Path) -> None:
    export_datapoints_to_jsonl([datapoint()], tmp_path / "d.jsonl")
    row = json.loads((tmp_path / "d.jsonl").read_text())
    (tmp_path / "d.jsonl").write_text(json.dumps({**row, "_id": "x", "messages": []}))
    assert len(load_datapoints(tmp_path / "d.jsonl")) == 1


def test_rows_without_an_id_get_one_that_stays_the_same_and_copies_are_numbered(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    export_datapoints_to_jsonl([datapoint(), datapoint(), datapoint(scenario=REFUND)], path)
    ids = [case.id for case in load_datapoints(path)]
    assert ids == [case.id for case in load_datapoints(path)]
    assert ids[1] == f"{ids[0]}-2"
    assert len(set(ids)) == 3


def test_flat_rows_are_read_only_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    flat = {"persona_name": "Anna", "scenario_name": "Late", "goal": "A date", "context": "nine days"}
    path.write_text(json.dumps({"inputs": flat}) + "\n" + json.dumps({"scenario_name": "B", "goal": "C"}) + "\n")
    with pytest.raises(CaseError, match="legacy"):
        load_datapoints(path)
    first, second = load_datapoints(path, legacy=True)
    assert (first.persona.name, first.persona.patience, first.scenario.context) == ("Anna", 0.5, "nine days")
    assert second.persona.name == "Unknown"


def test_a_flat_row_that_says_nothing_is_refused_even_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"a": 1}\n{"persona_name": "A"}\n')
    with pytest.raises(CaseError) as caught:
        load_datapoints(path, legacy=True)
    assert caught.value.line == 1


def test_names_are_resolved_with_near_names_for_a_typo(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text("- {persona: Anna, scenario: Refund}\n- {persona: Ana, scenario: Refund}\n")
    with pytest.raises(CaseError, match="no persona is called 'Ana'; did you mean Anna") as caught:
        load_datapoints(path, personas=[ANNA, BERTA], scenarios=[REFUND])
    assert (caught.value.line, caught.value.field) == (2, "persona")
    path.write_text("- {persona: Anna, scenario: Refund}\n")
    (case,) = load_datapoints(path, personas=[ANNA, BERTA], scenarios=[REFUND])
    assert (case.persona, case.scenario, case.id) == (ANNA, REFUND, product([ANNA], [REFUND])[0].id)


# ---------------------------------------------------------------- ids and fingerprints


def test_the_product_goes_persona_by_persona_with_ids_that_stay_the_same() -> None:
    cases = product([ANNA, BERTA], [LATE, REFUND])
    assert [(c.persona.name, c.scenario.name) for c in cases] == [
        ("Anna", "Late parcel"), ("Anna", "Refund"), ("Berta", "Late parcel"), ("Berta", "Refund"),
    ]  # fmt: skip
    assert [c.id for c in cases] == [c.id for c in product([ANNA, BERTA], [LATE, REFUND])]
    assert len({c.id for c in cases}) == 4
    assert all(c.id == f"dp_{fingerprint(c)[:12]}" for c in cases)


def test_the_product_refuses_equal_names() -> None:
    with pytest.raises(CaseError, match=r"'Anna' is also personas\[0\]") as caught:
        product([ANNA, BERTA, ANNA.model_copy(update={"patience": 0.9})], [LATE])
    assert caught.value.field == "personas[2].name"
    with pytest.raises(CaseError, match=r"scenarios\[0\]"):
        product([ANNA], [LATE, LATE])


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"persona": BERTA}, id="persona"),
        pytest.param({"scenario": REFUND}, id="scenario"),
        pytest.param({"scenario": LATE.model_copy(update={"script": ["Hello", None]})}, id="script"),
        pytest.param({"scenario": LATE.model_copy(update={"ground_truth": "A1"})}, id="ground truth"),
        pytest.param({"first_message": "Hello"}, id="first message"),
    ],
)
def test_another_case_has_another_fingerprint(changed: dict[str, object]) -> None:
    assert fingerprint(datapoint(**changed)) != fingerprint(datapoint())


def test_ids_prompts_and_spelled_out_defaults_do_not_change_a_fingerprint() -> None:
    assert fingerprint(datapoint(id="other", user_system_prompt="x")) == fingerprint(datapoint())
    short = datapoint(scenario=LATE.model_copy(update={"criteria": [MustHappenCriterion("Asks")]}))
    spelled = Criterion(description="Asks", type="must_happen", about="agent", check=None)
    assert fingerprint(short) == fingerprint(datapoint(scenario=LATE.model_copy(update={"criteria": [spelled]})))


def test_a_fingerprint_is_the_same_in_every_version() -> None:
    assert fingerprint(datapoint()) == "5c6f678ca42231713899f134f2ccd5e484451de0731d4d7e4f275b6c2d45111c"


# ---------------------------------------------------------------- selection


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("anna", ["Anna/Late parcel", "Anna/Refund"]),
        ("REF", ["Anna/Refund", "Berta/Refund"]),
        ("late*", ["Anna/Late parcel", "Berta/Late parcel"]),
        ("?erta", ["Berta/Late parcel", "Berta/Refund"]),
        (product([BERTA], [REFUND])[0].id, ["Berta/Refund"]),
        ("dp_*", ["Anna/Late parcel", "Anna/Refund", "Berta/Late parcel", "Berta/Refund"]),
    ],
)
def test_a_selection_matches_id_persona_or_scenario(pattern: str, expected: list[str]) -> None:
    chosen = select(product([ANNA, BERTA], [LATE, REFUND]), pattern)
    assert [f"{c.persona.name}/{c.scenario.name}" for c in chosen] == expected


@pytest.mark.parametrize(
    ("pattern", "near"), [("refnud", "Refund"), ("late parcl", "Late parcel"), ("no-such-case", "near it"), (" ", "")]
)
def test_a_selection_that_matches_nothing_is_refused_with_near_names(pattern: str, near: str) -> None:
    with pytest.raises(ConfigError, match="no case matches") as caught:
        select(product([ANNA, BERTA], [LATE, REFUND]), pattern)
    assert near in str(caught.value)


def test_a_selection_from_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="there are no cases"):
        select([], "anna")


# ---------------------------------------------------------------- built in Python


@pytest.mark.parametrize(
    ("case", "field", "words"),
    [
        (datapoint(persona=ANNA.model_copy(update={"patience": 2.5})), "persona.patience", "0 to 1"),
        (datapoint(persona=ANNA.model_copy(update={"patience": math.nan})), "persona.patience", "0 to 1"),
        (datapoint(scenario=LATE.model_copy(update={"knows": {"order": ""}})), "scenario.knows.order", "blank"),
        (
            datapoint(
                scenario=LATE.model_copy(update={"criteria": [MustHappenCriterion("a", check={"agent_says": "("})]})
            ),
            "scenario.criteria[0].check.agent_says",
            "regular expression",
        ),
        (datapoint(scenario=LATE.model_copy(update={"environment": "a.b:c"})), "scenario.environment", "registered"),
        (datapoint(id=""), "id", "blank"),
    ],
)
def test_datapoints_built_in_python_are_held_to_rules_too(case: SimulationDatapoint, field: str, words: str) -> None:
    with pytest.raises(CaseError, match=words) as caught:
        check_datapoints([datapoint(id="fine"), case])
    assert (caught.value.field, caught.value.file) == (f"datapoints[1].{field}", None)


def test_ids_of_datapoints_built_in_python_are_unique() -> None:
    with pytest.raises(CaseError, match=r"also datapoints\[0\]") as caught:
        check_datapoints([datapoint(), datapoint(scenario=REFUND)])
    assert caught.value.field == "datapoints[1].id"


def test_what_the_models_allow_and_the_rules_ask_for_passes() -> None:
    full = Scenario(
        name="Full",
        goal="All of it",
        criteria=[
            MustHappenCriterion("a", check=Check(tool_called={"name": "refund", "arguments": {"id": 1}})),
            Criterion(description="b", type="must_not_happen", about="user"),
        ],
        goal_state=[StateCheck(pointer="/a", equals=None), StateCheck(pointer="", absent=True)],
        knows={"order": "A1"},
        script=["Hello", None],
        opens="agent",
        environment="orders",
        setup={"orders": {"A1": None}},
    )
    check_datapoints([datapoint(), datapoint(id="d2", scenario=full)])
