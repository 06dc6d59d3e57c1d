"""Flags over --config over the project's file over defaults; unknown keys are named with the file they are in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluatorq.cli.layers import config_of, file_layer, gate_layer, merged, project_layer
from evaluatorq.errors import ConfigError


@pytest.fixture(autouse=True)
def _in_a_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delenv("EVALUATORQ_DIR")


def project(text: str) -> None:
    Path(".evaluatorq").mkdir(exist_ok=True)
    Path(".evaluatorq/config.toml").write_text(text)


BASE = 'personas = "people"\nscenarios = "cases"\ntarget = "demo"\noffline = true\n'


def test_each_layer_wins_over_those_below():
    project(f"[simulate]\n{BASE}max_turns = 2\nseed = 2\njudge_every = 2\n")
    config = config_of({"seed": "4"}, '{"seed": 3, "judge_every": 3}', {"save": True})
    assert (config.max_turns, config.judge_every, config.seed) == (2, 3, 4)
    assert (config.save, config.tool_rounds) == (True, 8)


def test_a_second_name_in_one_layer_is_the_same_option_in_another():
    project(f'[simulate]\n{BASE}evaluation_name = "below"\n')
    assert config_of({"run_name": "above"}, None, {}).run_name == "above"


def test_an_input_above_clears_every_input_below():
    project(f"[simulate]\n{BASE}")
    config = config_of({"input": "rows.jsonl"}, None, {})
    assert (config.input, config.personas, config.scenarios) == (Path("rows.jsonl"), None, None)
    config = config_of({"scenarios": ["s.yaml"], "personas": ["p.yaml"]}, '{"previous_run": "latest"}', {})
    assert (config.scenarios, config.previous_run) == ((Path("s.yaml"),), None)


def test_one_half_of_a_product_above_keeps_the_other_half_below():
    project(f"[simulate]\n{BASE}")
    config = config_of({"scenarios": ["mine.yaml"]}, None, {})
    assert (config.personas, config.scenarios) == ((Path("people"),), (Path("mine.yaml"),))


def test_a_target_above_replaces_the_target_below():
    project(f"[simulate]\n{BASE}")
    config = config_of({"openai_model": "m"}, None, {})
    assert (config.target, config.openai_model) == (None, "m")


def test_a_model_above_switches_offline_below_off_and_the_other_way_round():
    project(f"[simulate]\n{BASE}")
    assert not config_of({"judge_model": "m"}, None, {}).offline
    assert not config_of({}, '{"llm_config": {"model": "m"}}', {}).offline
    assert config_of({"seed": "1"}, None, {}).offline
    project(f'[simulate]\n{BASE.replace("offline = true", "")}sim_model = "m"\n')
    assert config_of({"offline": True}, None, {}).sim_model is None


def test_model_options_are_merged_field_by_field():
    project(f'[simulate]\n{BASE.replace("offline = true", "")}[simulate.llm_config]\nmodel = "m"\ntimeout_ms = 5\n')
    config = config_of({"llm_config": '{"timeout_ms": 7}'}, '{"llm_config": {"temperature": 0.1}}', {})
    assert config.llm_config is not None
    assert (config.llm_config.model, config.llm_config.temperature, config.llm_config.timeout_ms) == ("m", 0.1, 7)


def test_a_layer_that_conflicts_with_itself_is_refused():
    with pytest.raises(ConfigError, match="two targets"):
        config_of({"target": "a:b", "openai_model": "m", "input": "x"}, None, {})


@pytest.mark.parametrize("name", ["options.json", "options.toml", "options.yaml"])
def test_a_file_of_options_is_read_by_its_ending(name: str):
    text = {"json": '{"seed": 3}', "toml": "[simulate]\nseed = 3", "yaml": "seed: 3"}[name.rpartition(".")[2]]
    Path(name).write_text(text)
    assert file_layer(name) == {"seed": 3}


def test_options_come_from_standard_input_too(cli):
    ran = cli("sim", "simulate", "--config", "-", "--json", "-q", stdin='{"offline": true, "only": "vague", "seed": 5}')
    assert json.loads(ran.out)["seed"] == 5


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("o.json", "{", "o.json is not JSON"),
        ("o.toml", "seed 3", "o.toml is not TOML"),
        ("o.toml", "seed = 3", "[simulate]"),
        ("o.yaml", "a: [", "o.yaml is not YAML"),
        ("o.json", "[]", "o.json is no table"),
        ("o.json", '{"sead": 3}', "o.json:1: sead: unknown option, extra keys are not permitted; did you mean seed?"),
        ("o.json", None, "cannot read o.json"),
    ],
)
def test_a_file_that_cannot_be_right_is_named(name: str, text: str | None, told: str):
    if text is not None:
        Path(name).write_text(text)
    with pytest.raises(ConfigError) as caught:
        file_layer(name)
    assert told in str(caught.value)


def test_an_unknown_key_of_the_project_is_told_with_its_file_and_the_nearest_name():
    project("[simulate]\nmax_turn = 3\n")
    with pytest.raises(ConfigError, match=r"config\.toml:2: max_turn: .*did you mean max_turns"):
        project_layer()


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        (
            "o.toml",
            "# mine\n[simulate]\n\nmax_turns = 'many'\n",
            "o.toml:4: max_turns: input should be a valid integer",
        ),
        ("o.toml", "[simulate.llm_config]\nmodel = 'm'\ntemperature = 'hot'", "o.toml:3: llm_config.temperature: "),
        ("o.toml", "[simulate]\nllm_config.temperature = 'hot'", "o.toml:2: llm_config.temperature: "),
        ("o.toml", '[simulate]\nonly = """\nmax_turns = 1\n"""\nmax_turns = "x"', "o.toml:5: max_turns: "),
        ("o.toml", "[simulate]\n'evaluation_name' = 3", "o.toml:2: run_name: "),
        ("o.toml", "[simulate]\n[gates]", "o.toml:2: gates: unknown key; options stand in the table [simulate]"),
        ("o.yaml", "target: demo\nsamples: -1\nmax_turns: many\n", "o.yaml:2: samples: "),
        ("o.yaml", "target: demo\nsamples: -1\nmax_turns: many\n", "; o.yaml:3: max_turns: "),
        ("o.json", '{\n "llm_config": {\n  "temperature": "hot"}}', "o.json:3: llm_config.temperature: "),
        ('{"max_turns": 0}', None, "--config: max_turns: "),
    ],
)
def test_what_is_wrong_in_a_file_of_options_is_told_with_its_line(name: str, text: str | None, told: str):
    if text is not None:
        Path(name).write_text(text)
    with pytest.raises(ConfigError) as caught:
        config_of({"offline": True}, name, {})
    assert told in str(caught.value)


def test_a_flag_and_the_layer_below_it_are_told_apart():
    project("[simulate]\ndatapoint_parallelism = 0\nmax_turns = 2\n[gate]\n\nmax_lots = 3\n")
    with pytest.raises(ConfigError) as caught:
        config_of({"offline": True, "max_turns": "many"}, None, {})
    assert "config.toml:2: datapoint_parallelism: " in str(caught.value)
    assert str(caught.value).startswith("--max-turns: ")
    with pytest.raises(ConfigError, match=r"config\.toml:6: max_lots: no such rule; did you mean max_lost"):
        gate_layer()


def test_the_projects_paths_are_relative_to_its_folder(monkeypatch: pytest.MonkeyPatch, folder: Path):
    project(f"[simulate]\n{BASE}")
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    monkeypatch.setenv("EVALUATORQ_DIR", str(folder / ".evaluatorq"))
    assert project_layer()["personas"] == str(folder / "people")


def test_merging_changes_neither_layer():
    below, above = {"target": "a", "seed": 1}, {"openai_model": "m"}
    assert merged(below, above) == {"seed": 1, "openai_model": "m"}
    assert (below, above) == ({"target": "a", "seed": 1}, {"openai_model": "m"})


def test_a_pack_brings_its_own_cases_and_agent_over_those_of_the_project():
    below = {"personas": "p", "scenarios": "s", "target": "demo", "offline": True}
    assert merged(below, {"pack": "triage"}) == {"pack": "triage", "offline": True}
    assert merged(below, {"pack": "triage", "target": "mine"}) == {"pack": "triage", "target": "mine", "offline": True}
