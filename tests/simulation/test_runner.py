"""Single conversations, batches and jobs: as published, over what ``simulate`` runs on."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from published_actors import PERSONA, SCENARIO, Judge, User, datapoint, dies_second, greeter

from evaluatorq.errors import ConfigError
from evaluatorq.simulation import DefaultHooks, SimulationRunner, generate_datapoint, wrap_simulation_agent


def runner(target: object = greeter, **options: object) -> SimulationRunner:
    return SimulationRunner(target=target, user_simulator=User(), judge=Judge(), max_turns=3, **options)


async def test_a_persona_and_a_scenario_make_one_conversation():
    result = await runner().run(persona=PERSONA, scenario=SCENARIO)
    assert (result.terminated_by.value, result.turn_count) == ("judge", 2)
    assert result.messages[0].text == "my own first words"
    assert list(result.metadata) == [
        "persona", "scenario", "criteria_meta", "persona_traits", "scenario_goal", "scenario_context",
    ]  # fmt: skip
    assert result.thread_id is not None


async def test_a_first_message_and_a_thread_id_are_kept():
    result = await runner().run(datapoint=datapoint(), first_message="another start", thread_id="mine")
    assert result.messages[0].text == "another start"
    assert result.thread_id == "mine"


async def test_a_target_that_breaks_is_in_the_result():
    result = await runner(dies_second).run(datapoint=datapoint())
    assert (result.terminated_by.value, result.failed_component) == ("error", "target")
    assert "boom" in result.reason


async def test_without_a_case_the_result_says_so():
    result = await runner().run(persona=PERSONA)
    assert (result.terminated_by.value, result.metadata["persona"]) == ("error", "unknown")
    assert result.reason == result.metadata["error"] == "give a datapoint, or both a persona and a scenario"


async def test_missing_credentials_are_in_the_result():
    bare = SimulationRunner(target=greeter)
    result = await bare.run(datapoint=datapoint())
    assert "OPENAI_API_KEY" in result.reason
    assert result.failed_component == "infrastructure"


@pytest.mark.parametrize("turns", [0, -1])
async def test_no_turns_is_a_mistake_and_not_the_default(turns: int):
    with pytest.raises(ConfigError, match="max_turns must be at least 1"):
        await runner().run(datapoint=datapoint(), max_turns=turns)


async def test_a_batch_is_in_order_and_one_failure_stays_one():
    class Choosy(DefaultHooks):
        async def on_datapoint_start(self, datapoint):
            assert datapoint.id != "d1", "not this one"

    points = [datapoint(i) for i in range(3)]
    results = await runner(hooks=Choosy()).run_batch(points, max_concurrency=2)
    assert [result.metadata["datapoint_id"] for result in results] == ["d0", "d1", "d2"]
    assert [result.terminated_by.value for result in results] == ["judge", "error", "judge"]
    assert "evaluator_scores" not in results[0].metadata
    assert await runner().run_batch([]) == []


@pytest.mark.parametrize("limits", [{"max_concurrency": 0}, {"timeout_per_simulation": 0}, {"max_turns": 0}])
async def test_limits_that_cannot_be_right_are_refused(limits: dict[str, int]):
    with pytest.raises(ConfigError, match=next(iter(limits))):
        await runner().run_batch([datapoint()], **limits)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, ValueError, "target_agent or target"),
        ({"target": greeter, "max_turns": 0}, ValueError, "max_turns"),
        ({"target": greeter, "max_target_retries": -1}, ValueError, "max_target_retries"),
        ({"target": greeter, "max_tool_result_chars": 0}, ValueError, "max_tool_result_chars"),
        ({"target": greeter, "model": " "}, ValueError, "blank"),
        ({"target": greeter, "user_simulator": object()}, TypeError, "respond_async"),
        ({"target": greeter, "judge": object()}, TypeError, "evaluate"),
        ({"target": greeter, "hooks": object()}, TypeError, "on_confirm"),
    ],
)
def test_what_cannot_be_right_is_refused_at_once(options: dict[str, object], error: type[Exception], words: str):
    with pytest.raises(error, match=words):
        SimulationRunner(**options)


def test_the_model_is_the_one_that_plays_the_user():
    assert runner().model == "openai/gpt-6-luna"
    assert SimulationRunner(target=greeter, model="other").model == "other"


async def test_a_runner_that_was_closed_twice_still_serves():
    one = runner()
    await one.close()
    await one.close()
    result = await one.run(datapoint=datapoint())
    assert result.terminated_by.value == "judge"


# ---------------------------------------------------------------- jobs

PERSONA_JSON, SCENARIO_JSON = PERSONA.model_dump(mode="json"), SCENARIO.model_dump(mode="json")
POINT = datapoint().model_dump(mode="json")


def job(**options: object):
    return wrap_simulation_agent(target=greeter, user_simulator=User(), judge=Judge(), max_turns=3, **options)


@pytest.mark.parametrize(
    ("inputs", "first"),
    [
        ({"datapoint": POINT}, "hello there"),
        ({"datapoint": json.dumps(POINT)}, "hello there"),
        ({"datapoints": [POINT]}, "hello there"),
        ({"datapoints": json.dumps([POINT])}, "hello there"),
        ({"persona": PERSONA_JSON, "scenario": json.dumps(SCENARIO_JSON), "first_message": "yo"}, "yo"),
        ({"personas": [PERSONA_JSON], "scenarios": [SCENARIO_JSON]}, "my own first words"),
    ],
)
async def test_a_row_holds_its_case_in_four_shapes(inputs: dict[str, object], first: str):
    answer = await job(name="mine")(SimpleNamespace(inputs=inputs), 0)
    assert (answer["name"], answer["error"]) == ("mine", None)
    assert answer["output"]["input"][0]["content"][0]["text"] == first
    assert answer["output"]["metadata"]["terminated_by"] == "judge"


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({}, "'persona' with 'scenario'"),
        ({"x": 1}, "there is 'x'"),
        ({"datapoints": [POINT, POINT]}, "exactly one datapoint, not 2"),
        ({"datapoints": []}, "exactly one datapoint, not 0"),
        ({"datapoint": "nonsense"}, "datapoint: Invalid JSON"),
        ({"datapoint": {"id": "x"}}, "datapoint.persona: Field required"),
        ({"persona": PERSONA_JSON}, "'persona' with 'scenario'"),
    ],
)
async def test_a_row_in_no_shape_is_refused_with_what_would_be_right(inputs: dict[str, object], words: str):
    with pytest.raises(ValueError, match=words):
        await job()(SimpleNamespace(inputs=inputs), 0)


async def test_a_job_says_what_cut_its_conversation_short():
    answer = await wrap_simulation_agent(target=dies_second, user_simulator=User(), judge=Judge())(
        SimpleNamespace(inputs={"datapoint": POINT}), 0
    )
    assert "boom" in answer["error"]
    assert answer["output"]["status"] == "failed"


async def test_a_job_that_was_closed_still_serves():
    one = job()
    await one.aclose()
    answer = await one(SimpleNamespace(inputs={"datapoint": POINT}), 0)
    assert (answer["error"], answer["output"]["metadata"]["terminated_by"]) == (None, "judge")


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, ValueError, "target or agent_key"),
        ({"agent_key": "k"}, ValueError, "Orq deployment"),
        ({"target": greeter, "evaluators": []}, TypeError, "evaluators="),
        ({"target": greeter, "wrong": 1}, TypeError, "wrong"),
    ],
)
def test_a_job_that_cannot_be_made_is_refused(options: dict[str, object], error: type[Exception], words: str):
    with pytest.raises(error, match=words):
        wrap_simulation_agent(**options)


def test_a_generated_datapoint_has_an_id_that_stays():
    point = generate_datapoint(PERSONA, SCENARIO)
    assert point.id.startswith("dp_")
    assert len(point.id) == 15
    assert point.id == generate_datapoint(PERSONA, SCENARIO).id
    assert "bought a lamp" in point.user_system_prompt
    assert "greets" not in point.user_system_prompt
