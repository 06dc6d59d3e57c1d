"""Every published option of ``simulate`` is taken or refused with a way out, and errors are of the published kinds."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from evaluatorq.errors import CaseError, ConfigError, MissingLLMCredentialsError, ReplayError
from evaluatorq.llm.endpoint import Sampling
from evaluatorq.model.calls import LLMCallConfig
from evaluatorq.simulation import Criterion, Persona, Scenario, SimulationDatapoint, SimulationResult, simulate
from evaluatorq.simulation.calling import sampling_of, timeout_of
from evaluatorq.simulation.config import ALIASES, SimulationConfig
from evaluatorq.simulation.elsewhere import ELSEWHERE
from evaluatorq.simulation.models import opened_models
from evaluatorq.testing import a_persona, a_scenario

SURFACE = json.loads((Path(__file__).parents[1] / "data" / "published_surface.json").read_text(encoding="utf-8"))
PERSONA, SCENARIO = a_persona(background="new"), a_scenario()
POINT = SimulationDatapoint(id="dp_1", persona=PERSONA, scenario=SCENARIO, first_message="hello")


def answer(messages: list[object]) -> str:
    return "hello"


ENOUGH: dict[str, object] = {"target": answer, "datapoints": [POINT]}


def test_every_published_option_is_known():
    known = {*SimulationConfig.model_fields, *ALIASES, *ELSEWHERE}
    assert [name for name in SURFACE["callables"]["simulate"] if name not in known] == []


@pytest.mark.parametrize("name", sorted(set(SURFACE["callables"]["simulate"]) - {*ELSEWHERE, "target", "datapoints"}))
def test_none_means_not_given(name: str):
    assert SimulationConfig.parse({**ENOUGH, name: None}) == SimulationConfig.parse(ENOUGH)


PAIRS = [
    ("run_name", "evaluation_name", "a", "b"),
    ("report_path", "report", Path("a.json"), Path("b.json")),
    ("raise_on_execution_failure", "exit_on_failure", False, True),
    ("experiment_description", "evaluation_description", "a", "b"),
    ("orq_folder_path", "orq_results_path", "a", "b"),
    ("datapoint_parallelism", "parallelism", 3, 4),
]


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(("name", "alias", "value", "other"), PAIRS)
def test_the_second_name_of_an_option_means_the_first(name: str, alias: str, value: object, other: object):
    assert getattr(SimulationConfig.parse({**ENOUGH, alias: value}), name) == value
    assert getattr(SimulationConfig.parse({**ENOUGH, name: value, alias: value}), name) == value
    with pytest.raises(ValueError, match=f"{name} and {alias} are one option"):
        SimulationConfig.parse({**ENOUGH, name: value, alias: other})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"upload_results": True}, "nothing is uploaded"),
        ({"experiment_description": "x"}, "experiment_description has no effect"),
        ({"orq_folder_path": "x"}, "orq_folder_path has no effect"),
        ({"max_tool_result_chars": 500}, "never see what tools answer"),
        ({"target_reasoning_effort": "low"}, "the agent is no model"),
        ({"llm_config": {"api": "responses"}}, "chat completions"),
    ],
)
def test_an_option_that_changes_nothing_says_so(options: dict[str, object], words: str):
    with pytest.warns(UserWarning, match=words):
        SimulationConfig.parse({**ENOUGH, **options})


def test_saying_that_nothing_is_to_be_uploaded_is_no_news():
    assert SimulationConfig.parse({**ENOUGH, "upload_results": False}).upload_results is False


@pytest.mark.parametrize("name", ELSEWHERE)
async def test_options_of_a_platform_are_refused_with_a_way_out(name: str):
    with pytest.raises(ValueError, match=f"{name}: .*(cannot be|give input)"):
        await simulate(**ENOUGH, **{name: "x"})


class NoJudge:
    """Has nothing that a judge has."""


KINDS = [
    ({"target": answer}, ValueError, "no input"),
    ({"datapoints": [POINT]}, ValueError, "no target"),
    ({**ENOUGH, "previous_run": "latest"}, ValueError, "more than one input"),
    ({"target": answer, "datapoints": []}, ValueError, "datapoints.*empty"),
    ({"target": answer, "personas": [PERSONA]}, ValueError, "without scenarios"),
    ({**ENOUGH, "target": 3}, TypeError, "cannot be called"),
    ({**ENOUGH, "target": "openai:gpt"}, ValueError, "is no target"),
    ({**ENOUGH, "target": "agent:mine"}, ValueError, "Orq"),
    ({**ENOUGH, "target": "deployment:mine"}, ValueError, "Orq"),
    (
        {**ENOUGH, "evaluator_names": ["nope"]},
        ValueError,
        "goal_achieved, criteria_met, turn_efficiency",
    ),
    ({**ENOUGH, "evaluator_names": ["criteria_met", "criteria_met"]}, ValueError, "more than once"),
    ({**ENOUGH, "llm_parallelism": 0}, ValueError, "at least 1, or -1"),
    ({**ENOUGH, "datapoint_parallelism": 0}, ValueError, "datapoint_parallelism"),
    ({**ENOUGH, "per_simulation_timeout_s": 0}, ValueError, "per_simulation_timeout_s"),
    ({**ENOUGH, "unheard_of": 1}, ValueError, "unheard_of.*not permitted"),
    ({**ENOUGH, "scoring": {"turn_efficency_floor": 1}}, ValueError, "turn_efficency_floor.*not permitted"),
    ({**ENOUGH, "judge": NoJudge(), "offline": True}, TypeError, "evaluate"),
    ({**ENOUGH, "user_simulator": NoJudge(), "offline": True}, TypeError, "respond_async"),
    ({**ENOUGH, "hooks": NoJudge()}, TypeError, "on_confirm"),
    ({**ENOUGH, "generation_client": NoJudge()}, TypeError, "base_url"),
    ({"target": answer, "previous_run": "never-saved"}, ReplayError, "no saved run"),
    ({"target": answer, "previous_run": "never-saved"}, RuntimeError, "there are none"),
    (ENOUGH, MissingLLMCredentialsError, "OPENAI_API_KEY"),
    (ENOUGH, ValueError, "OPENAI_API_KEY"),
]


@pytest.mark.parametrize(("options", "kind", "words"), KINDS)
async def test_a_mistake_raises_the_published_kind_before_anything_runs(
    options: dict[str, object], kind: type[Exception], words: str
):
    with pytest.raises(kind, match=words) as caught:
        await simulate(**options)
    assert "\n" not in str(caught.value)


async def test_one_persona_and_one_scenario_of_ones_own_make_one_result():
    persona = Persona(
        name="P", patience=0.1, assertiveness=0.2, politeness=0.3, technical_level=0.4, communication_style="terse",
        background="new",
    )  # fmt: skip
    results = await simulate(
        target=answer, personas=[persona], scenarios=[Scenario(name="S", goal="g")], offline=True, max_turns=1
    )
    assert [type(result) for result in results] == [SimulationResult]


BLANK = {
    "persona": a_persona(name="", background=""),
    "scenario": Scenario(name="", goal="", context=" ", criteria=[]),
    "criterion": Scenario(name="S", goal="g", criteria=[Criterion(type="must_happen", description="")]),
}


@pytest.mark.parametrize("which", BLANK)
async def test_what_code_leaves_blank_is_taken_as_it_is(which: str):
    case = BLANK[which]
    persona, scenario = (case, SCENARIO) if isinstance(case, Persona) else (PERSONA, case)
    point = SimulationDatapoint(id="dp_1", persona=persona, scenario=scenario, first_message="hello")
    for given in ({"personas": [persona], "scenarios": [scenario]}, {"datapoints": [point]}):
        [result] = await simulate(target=answer, offline=True, max_turns=1, **given)
        assert result.terminated_by == "max_turns"


async def test_what_a_file_leaves_blank_is_not_finished(tmp_path: Path):
    file = tmp_path / "cases.yaml"
    text = PERSONA.model_copy(update={"background": ""}).model_dump_json(exclude_none=True)
    file.write_text(text + "\n", encoding="utf-8")
    with pytest.raises(CaseError, match=r"cases\.yaml:1: background: is blank"):
        await simulate(target=answer, offline=True, personas=[file], scenarios=[SCENARIO])


# ---------------------------------------------------------------- how models are called


def test_published_call_options_are_known():
    assert set(SURFACE["models"]["LLMCallConfig"]) <= set(LLMCallConfig.model_fields)


def test_only_what_was_set_is_sent(monkeypatch: pytest.MonkeyPatch):
    for name in ("EVALUATORQ_LLM_TIMEOUT_S", "EVALUATORQ_LLM_MAX_TOKENS", "EVALUATORQ_REASONING_EFFORT"):
        monkeypatch.delenv(name, raising=False)
    assert sampling_of(LLMCallConfig()) == Sampling()
    assert timeout_of(LLMCallConfig()) == 90.0


def test_what_was_not_set_is_read_from_the_environment_when_it_is_needed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EVALUATORQ_LLM_TIMEOUT_S", "30")
    monkeypatch.setenv("EVALUATORQ_LLM_MAX_TOKENS", "500")
    monkeypatch.setenv("EVALUATORQ_REASONING_EFFORT", "low")
    assert sampling_of(LLMCallConfig()) == Sampling(max_tokens=500, reasoning_effort="low")
    assert timeout_of(LLMCallConfig()) == 30.0
    set_here = LLMCallConfig(timeout_ms=5_000, max_tokens=9, reasoning_effort="high")
    assert sampling_of(set_here) == Sampling(max_tokens=9, reasoning_effort="high")
    assert timeout_of(set_here) == 5.0
    assert sampling_of(LLMCallConfig(), cap=100).max_tokens == 100


@pytest.mark.parametrize("value", ["", "none", "OFF"])
def test_no_effort_is_not_sent(value: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EVALUATORQ_REASONING_EFFORT", value)
    assert sampling_of(LLMCallConfig()).reasoning_effort is None


@pytest.mark.parametrize("value", ["0", "-1", "soon"])
def test_a_number_in_the_environment_that_is_none_is_refused(value: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EVALUATORQ_LLM_TIMEOUT_S", value)
    with pytest.raises(ConfigError, match="EVALUATORQ_LLM_TIMEOUT_S must be a number above 0"):
        timeout_of(LLMCallConfig())


def test_further_members_of_a_request_cannot_be_what_it_is_made_of():
    calls = LLMCallConfig(extra_kwargs={"top_p": 0.5}, extra_body={"user": "u"})
    assert sampling_of(calls).extra_body == {"top_p": 0.5, "user": "u"}
    for name in ("extra_kwargs", "extra_body"):
        with pytest.raises(ValueError, match=f"{name} cannot set messages"):
            LLMCallConfig.model_validate({name: {"messages": []}})


async def test_a_client_gives_its_endpoint_and_its_key():
    client = SimpleNamespace(base_url="http://127.0.0.1:9/v1/", api_key="secret-key")
    for calls, given in ((LLMCallConfig(client=client), None), (None, client)):
        async with opened_models(calls, 1, given) as models:
            endpoint = models.ours("m").endpoint
            assert (endpoint.base_url, endpoint.api_key) == (client.base_url, client.api_key)


def test_a_client_is_not_written_down():
    client = SimpleNamespace(base_url="http://127.0.0.1:9/v1/", api_key="secret-key")
    config = SimulationConfig.parse({**ENOUGH, "llm_config": LLMCallConfig(client=client), "generation_client": client})
    recorded = json.dumps(config.recorded())
    assert "secret-key" not in recorded
    assert "<types:SimpleNamespace>" in recorded
