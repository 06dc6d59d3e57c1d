"""Options: one record, complete and consistent, refused in one sentence otherwise."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import get_type_hints

import pytest

from evaluatorq.errors import ConfigError
from evaluatorq.model.cases import CommunicationStyle, Persona, Scenario, SimulationDatapoint
from evaluatorq.simulation.config import ALIASES, Flag, SimulationConfig
from evaluatorq.simulation.keywords import SimulationOptions
from evaluatorq.simulation.recording import HIDDEN, must_be_given_again

PERSONA = Persona(
    name="Ann", patience=0.5, assertiveness=0.5, politeness=0.5, technical_level=0.5,
    communication_style=CommunicationStyle.CASUAL, background="buys kettles",
)  # fmt: skip
SCENARIO = Scenario(name="Refund", goal="get money back")
DATAPOINT = SimulationDatapoint(id="dp_1", persona=PERSONA, scenario=SCENARIO)
ENOUGH = {"target": "demo", "datapoints": [DATAPOINT]}


def answer(messages: list[object]) -> str:
    return "hello"


def refusal(**options: object) -> str:
    with pytest.raises(ConfigError) as caught:
        SimulationConfig.parse(options)
    return str(caught.value)


def test_the_keyword_arguments_of_simulate_are_the_fields_and_their_second_names():
    assert set(get_type_hints(SimulationOptions)) == set(SimulationConfig.model_fields) | set(ALIASES)


def test_every_field_says_what_it_is_for():
    assert [name for name, field in SimulationConfig.model_fields.items() if not field.description] == []


def test_no_flag_is_spelled_like_another():
    spelled = []
    for name, field in SimulationConfig.model_fields.items():
        for flag in field.metadata:
            if isinstance(flag, Flag):
                spelled += flag.names or [f"--{name.replace('_', '-')}"]
    assert len(spelled) == len(set(spelled))


def test_published_defaults_hold():
    config = SimulationConfig.parse(ENOUGH)
    published = {
        "max_turns": None, "datapoint_parallelism": 10, "target_agent_timeout_ms": 240_000,
        "max_target_retries": 2, "per_simulation_timeout_s": None, "save": False, "raise_on_execution_failure": True,
    }  # fmt: skip
    assert {name: getattr(config, name) for name in published} == published


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ["no input", "--input", "--personas", "--scenarios", "--from-run"]),
        ({"datapoints": [DATAPOINT]}, ["no target", "--target", "--openai-model"]),
        ({**ENOUGH, "openai_model": "m"}, ["two targets", "target", "openai_model"]),
        ({**ENOUGH, "previous_run": "latest"}, ["more than one input", "datapoints", "previous_run"]),
        ({"target": "demo", "personas": [PERSONA], "input": "x"}, ["more than one input", "input", "personas"]),
        ({"target": "demo", "personas": [PERSONA]}, ["personas without scenarios"]),
        ({"target": "demo", "scenarios": [SCENARIO]}, ["scenarios without personas"]),
        ({"target": "demo", "personas": [], "scenarios": [SCENARIO]}, ["personas", "is empty"]),
        ({"target": "demo", "datapoints": []}, ["datapoints", "is empty"]),
        ({"target": "  ", "datapoints": [DATAPOINT]}, ["target is blank"]),
        ({**ENOUGH, "sim_model": ""}, ["sim_model is blank"]),
        ({**ENOUGH, "run_name": " "}, ["run_name is blank"]),
        ({**ENOUGH, "run_name": "a", "evaluation_name": "b"}, ["run_name and evaluation_name", "'a'", "'b'"]),
        ({**ENOUGH, "parallelism": 3, "datapoint_parallelism": 4}, ["datapoint_parallelism and parallelism"]),
        ({**ENOUGH, "exit_on_failure": False, "raise_on_execution_failure": True}, ["exit_on_failure"]),
        ({**ENOUGH, "max_turns": 0}, ["max_turns", "greater than or equal to 1", "0"]),
        ({**ENOUGH, "datapoint_parallelism": 0}, ["datapoint_parallelism", "greater than or equal to 1"]),
        ({**ENOUGH, "llm_parallelism": 0}, ["llm_parallelism", "at least 1, or -1"]),
        ({**ENOUGH, "per_simulation_timeout_s": 0}, ["per_simulation_timeout_s", "greater than 0"]),
        ({**ENOUGH, "evaluator_names": ["goal_achieved", "goal_achieved"]}, ["goal_achieved more than once"]),
        ({**ENOUGH, "max_turn": 3}, ["max_turn", "not permitted", "did you mean max_turns?"]),
        ({**ENOUGH, "llm_config": {"temprature": 1}}, ["llm_config.temprature", "not permitted"]),
        ({**ENOUGH, "llm_config": {"temperature": 3}}, ["llm_config.temperature"]),
        ({**ENOUGH, "offline": True, "sim_model": "m"}, ["offline", "sim_model"]),
        ({**ENOUGH, "offline": True, "llm_config": {"model": "m"}}, ["offline", "llm_config.model"]),
    ],
)
def test_what_cannot_be_right_is_refused_in_one_sentence(options: dict[str, object], words: list[str]):
    told = refusal(**options)
    assert [word for word in words if word not in told] == []
    assert "\n" not in told


def test_cases_written_as_mappings_are_held_to_the_rules_of_case_files():
    persona = PERSONA.model_dump(mode="json", exclude_none=True)
    given = partial(refusal, target="demo", scenarios=[SCENARIO])
    assert "personas.0: patience" in given(personas=[{**persona, "patience": 2.5}])
    assert "moood" in given(personas=[{**persona, "moood": "bad"}])
    assert "personas.0: patience" in given(personas=[PERSONA.model_copy(update={"patience": 2.5})])


def test_a_single_path_stands_for_a_list_of_one():
    config = SimulationConfig.parse({"target": "demo", "personas": "people", "scenarios": ["a.yaml", "b.yaml"]})
    assert config.personas == (Path("people"),)
    assert config.scenarios == (Path("a.yaml"), Path("b.yaml"))


def test_only_offline_falls_back_on_the_bundled_cases_and_agent():
    config = SimulationConfig.parse({"offline": True})
    assert config.uses_bundled_cases
    assert config.agent == "demo"
    assert not SimulationConfig.parse({**ENOUGH, "offline": True}).uses_bundled_cases
    assert "no target" in refusal(offline=True, datapoints=[DATAPOINT])


def test_an_equal_second_name_is_no_conflict_and_an_empty_one_is_not_given():
    assert SimulationConfig.parse({**ENOUGH, "run_name": "a", "evaluation_name": "a"}).run_name == "a"
    assert SimulationConfig.parse({**ENOUGH, "evaluation_name": ""}).run_name is None
    with pytest.warns(DeprecationWarning, match="datapoint_parallelism"):
        assert SimulationConfig.parse({**ENOUGH, "parallelism": 3}).datapoint_parallelism == 3


def test_what_is_recorded_reads_back_as_the_same_options():
    config = SimulationConfig.parse(
        {**ENOUGH, "max_turns": 4, "llm_config": {"temperature": 0.5}, "scoring": {"turn_efficiency_floor": 0.2},
         "results": Path("out.jsonl"), "evaluator_names": ["goal_achieved"]}
    )  # fmt: skip
    recorded = json.loads(json.dumps(config.recorded()))
    assert "datapoints" not in recorded
    assert SimulationConfig.parse({**recorded, "datapoints": config.datapoints}) == config


def test_no_credential_is_recorded():
    secret = "hunter2"
    url = f"https://me:{secret}@host/chat?api_key={secret}&mode=test"
    spec = {"url": "https://host/chat", "headers": {"Authorization": f"Bearer {secret}", "X-Key": "${KEY}"}}
    for target in (url, spec):
        config = SimulationConfig.parse(
            {**ENOUGH, "target": target, "llm_config": {"base_url": f"http://a:{secret}@b"}}
        )
        recorded = config.recorded()
        assert secret not in json.dumps(recorded)
        assert HIDDEN in json.dumps(recorded)
        assert must_be_given_again(recorded) is not None
    assert "${KEY}" in json.dumps(recorded)


def test_an_object_is_recorded_by_its_import_path_only_where_that_leads_back_to_it():
    assert SimulationConfig.parse({**ENOUGH, "target": answer}).recorded()["target"] == f"{__name__}:answer"
    lost = SimulationConfig.parse({**ENOUGH, "target": lambda messages: "hi", "judge": object()}).recorded()
    assert must_be_given_again({"target": lost["target"]}) == "target"
    assert must_be_given_again({"judge": lost["judge"]}) == "judge"
