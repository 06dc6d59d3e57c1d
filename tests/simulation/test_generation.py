"""Runs whose cases a model makes: what they cost, who may decline, what is kept when something fails."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import anyio
import pytest

from evaluatorq.errors import (
    CallError,
    ConfigError,
    MissingLLMCredentialsError,
    ReplayError,
    SimulationCancelledError,
    SimulationDroppedError,
    SimulationError,
)
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.usage import NO_USAGE, Usage
from evaluatorq.simulation.api import resume_simulation
from evaluatorq.simulation.generation import generate, generate_and_simulate, resume_made
from evaluatorq.simulation.generators import (
    DatapointGenerator,
    FirstMessageGenerationError,
    FirstMessageGenerator,
    PersonaGenerator,
    ScenarioGenerator,
    generate_persona,
    generate_personas,
    generate_scenario,
    generate_scenarios,
)
from evaluatorq.simulation.hook_stream import HOOK_NAMES
from evaluatorq.simulation.hooks import DefaultHooks
from evaluatorq.simulation.workshop import unquoted
from evaluatorq.store.journal import JournalReader
from evaluatorq.store.paths import get_sim_runs_dir, journals_dir
from evaluatorq.store.runs import read_run
from evaluatorq.testing import a_persona, a_scenario
from writing_models import USAGE, WritingModel, author, names_of, persona, scripted, wanted

ABOUT = "Support of a shop for kettles."
BROKEN = CallError("bad_request", "out of order", usage=USAGE)


def polite(_messages: object) -> str:
    return "Could you tell me your order number?"


def failing(model: WritingModel, spec: str, error: CallError = BROKEN) -> WritingModel:
    """The model, failing where it is asked for ``spec``."""
    inner = model._answer
    model._answer = lambda request, number: (
        error if request.prefix.answer and request.prefix.answer.name == spec else inner(request, number)
    )
    return model


# ---------------------------------------------------------------- a whole run


async def test_the_run_is_the_product_of_what_was_made_and_its_total_holds_every_token(tmp_path: Path):
    model, emitted = author(), []
    results = await generate_and_simulate(
        agent_description=ABOUT, num_personas=2, num_scenarios=3, target=polite, generation_client=model,
        emit_datapoints=emitted.append, save=True, executive_summary=True, recommendations=True, max_turns=1,
    )  # fmt: skip
    run = results.run
    assert len(results) == 6
    assert (run.mode, run.models["generator"]) == ("run", "openai/gpt-6-luna")
    assert emitted == [run.datapoints]
    assert {case.first_message for case in run.datapoints or ()} == {"My kettle is broken."}
    assert set(run.usage_by_category) == {
        "conversations", "generation", "first_messages", "executive_summary", "recommendations",
    }  # fmt: skip
    assert run.token_usage_total == sum(run.usage_by_category.values(), NO_USAGE)
    assert run.token_usage_total.calls == len(model.requests)
    assert run.usage_by_category["first_messages"].calls == 6
    assert run.executive_summary == "Most of it went well."
    assert results.path is not None
    saved = read_run(results.path)
    assert (saved.usage_by_category, saved.mode) == (run.usage_by_category, "run")


async def test_nothing_of_the_run_as_a_whole_is_made_unless_it_is_asked_for_and_stored():
    asked = {"executive_summary": True, "recommendations": True}
    told = pytest.warns(UserWarning, match="executive_summary and recommendations not made: the run is not stored")
    for options, warned in (({}, nullcontext()), (asked, told)):
        with warned:
            results = await generate_and_simulate(
                agent_description=ABOUT, num_personas=1, num_scenarios=1, target=polite, generation_client=author(),
                max_turns=1, **options,
            )  # fmt: skip
        assert (results.run.executive_summary, results.run.recommendations) == (None, None)
        assert set(results.run.usage_by_category) == {"conversations", "generation", "first_messages"}


async def test_an_async_callback_is_awaited_before_the_first_conversation():
    seen: list[int] = []

    async def emit(cases: list[SimulationDatapoint]) -> None:
        await anyio.lowlevel.checkpoint()
        seen.append(len(cases))

    def target(_messages: object) -> str:
        assert seen == [1]
        return "Yes."

    await generate_and_simulate(
        agent_description=ABOUT, num_personas=1, num_scenarios=1, target=target, generation_client=author(),
        emit_datapoints=emit, max_turns=1,
    )  # fmt: skip


async def test_what_must_not_be_written_is_taken_out_of_a_run_on_made_cases_too():
    await generate_and_simulate(
        agent_description=ABOUT, num_personas=1, num_scenarios=1, target=lambda _messages: "Write to kim@example.com!",
        generation_client=author(), save=True, max_turns=1, redact=["email"],
    )  # fmt: skip
    written = [path.read_text(encoding="utf-8") for path in get_sim_runs_dir().rglob("*.json*") if path.is_file()]
    assert written
    assert not any("kim@example.com" in text for text in written)


class Listener(DefaultHooks):
    def __init__(self, *, confirms: bool = True) -> None:
        self.heard: list[tuple[str, object]] = []
        self.confirms = confirms
        for name in HOOK_NAMES:
            setattr(self, name, self._hearing(name))

    def _hearing(self, name: str) -> Callable[..., object]:
        async def hear(*what: object) -> bool:
            await anyio.lowlevel.checkpoint()
            self.heard.append((name.removeprefix("on_"), what))
            return self.confirms

        return hear


async def test_hooks_confirm_before_anything_is_spent_and_hear_of_both_stages():
    listener, model = Listener(), author()
    await generate_and_simulate(
        agent_description=ABOUT, num_personas=2, num_scenarios=1, target=polite, generation_client=model,
        hooks=listener, max_turns=1,
    )  # fmt: skip
    names = [name for name, _ in listener.heard]
    assert names[:6] == ["confirm", "stage_start", "generate_inputs_ready", "stage_end", "stage_start", "run_start"]
    assert names.count("confirm") == names.count("run_complete") == 1
    assert dict(listener.heard)["generate_inputs_ready"] == (2, 1)
    (meta,) = listener.heard[0][1]
    assert meta["num_datapoints"] == 2


async def test_a_hook_that_declines_costs_nothing():
    model = author()
    with pytest.raises(SimulationCancelledError, match="6 conversations were declined"):
        await generate_and_simulate(
            agent_description=ABOUT, num_personas=2, num_scenarios=3, target=polite, generation_client=model,
            hooks=Listener(confirms=False),
        )  # fmt: skip
    with pytest.raises(SimulationCancelledError):
        await generate(agent_description=ABOUT, generation_client=model, hooks=Listener(confirms=False))
    assert model.requests == []


async def test_hooks_hear_that_making_failed():
    listener = Listener()
    with pytest.raises(SimulationError):
        await generate(agent_description=ABOUT, generation_client=scripted(BROKEN), hooks=listener)
    name, (stage, meta) = listener.heard[-1]
    assert (name, stage) == ("stage_end", "generate")
    assert isinstance(meta["error"], SimulationError)


# ---------------------------------------------------------------- what fails


async def test_what_could_not_be_made_is_said_in_the_log_and_in_the_run(caplog: pytest.LogCaptureFixture):
    def answer(request, _number):
        spec = request.prefix.answer.name
        if spec == "personas":
            return {"personas": [persona("Ann"), persona("Bob", patience=9)][-wanted(request) :]}
        return author()._answer(request, 0)

    with caplog.at_level(logging.WARNING, "evaluatorq"):
        results = await generate_and_simulate(
            agent_description=ABOUT, num_personas=2, num_scenarios=1, target=polite,
            generation_client=WritingModel(answer), max_turns=1,
        )  # fmt: skip
    (problem,) = results.run.generation_problems
    assert problem.startswith("persona 2 of 2 could not be made: ")
    assert problem in caplog.text
    assert len(results) == 1


async def test_nothing_made_is_an_error_with_its_reason_and_nothing_is_kept():
    with pytest.raises(SimulationError, match="persona 1 of 1 could not be made: no credit left"):
        await generate_and_simulate(
            agent_description=ABOUT, num_personas=1, num_scenarios=1, target=polite,
            generation_client=scripted(CallError("quota", "no credit left")),
        )  # fmt: skip
    assert not list(get_sim_runs_dir().rglob("*.json*"))


async def test_what_was_paid_for_before_the_making_failed_is_neither_asked_nor_paid_again(
    caplog: pytest.LogCaptureFixture,
):
    with pytest.raises(SimulationError, match="scenarios 1, 2 of 2 could not be made: out of order"):
        await generate_and_simulate(
            agent_description=ABOUT, num_personas=1, num_scenarios=2, target=polite, save=True, max_turns=1,
            generation_client=failing(author(), "scenarios"),
        )  # fmt: skip
    (folder,) = journals_dir(get_sim_runs_dir()).iterdir()
    assert f"evaluatorq sim resume {folder.name}" in caplog.text
    with pytest.raises(ReplayError, match="stopped while its cases were made"):
        await resume_simulation(folder.name)
    model = author()
    outcome = await resume_made(folder, overrides={"target": polite, "generation_client": model})
    run = outcome.read()
    assert (run.run_id, run.total_results, run.mode) == (folder.name, 2, "run")
    assert "personas" not in {request.prefix.answer.name for request in model.requests if request.prefix.answer}
    assert run.usage_by_category["generation"] == USAGE + USAGE + USAGE
    assert run.token_usage_total.calls == len(model.requests) + 2


async def test_past_its_budget_no_more_cases_are_made_and_with_more_the_run_goes_on():
    options = {"agent_description": ABOUT, "num_personas": 1, "num_scenarios": 2, "save": True, "max_turns": 1}
    with pytest.raises(SimulationError, match="stopped by its budget of 200 tokens: 240 are spent"):
        await generate_and_simulate(**options, target=polite, generation_client=author(), max_total_tokens=200)
    (folder,) = journals_dir(get_sim_runs_dir()).iterdir()
    model = author()
    more = {"target": polite, "generation_client": model, "max_total_tokens": 100_000}
    outcome = await resume_simulation(folder.name, overrides=more)
    assert outcome.read().token_usage_total.calls == len(model.requests) + 2


async def test_a_draft_under_redaction_holds_what_answers_cost_and_not_what_they_say():
    with pytest.raises(SimulationError):
        await generate_and_simulate(
            agent_description=ABOUT, num_personas=1, num_scenarios=1, target=polite, save=True, redact=["goods=kettle"],
            generation_client=failing(author(), "scenarios"),
        )  # fmt: skip
    (draft,) = get_sim_runs_dir().rglob("draft.jsonl")
    _plan, *answers = draft.read_text(encoding="utf-8").splitlines()
    assert len(answers) == 2
    assert not any("reply" in answer or "kettle" in answer for answer in answers)


async def test_a_pair_without_a_first_message_is_kept_and_the_simulated_user_speaks_first():
    made = await generate(
        agent_description=ABOUT, num_personas=1, num_scenarios=2, generation_client=failing(author(), "user_message")
    )
    assert [case.first_message for case in made] == ["", ""]
    assert len(made.problems) == 2
    assert "left to the simulated user: out of order" in made.problems[0]
    assert made.spent.usage["first_messages"] == USAGE + USAGE


async def test_a_refused_key_is_tried_on_one_first_message_and_the_rest_is_counted():
    error = CallError("quota", "no credit left")
    made = await generate(
        agent_description=ABOUT, num_personas=5, num_scenarios=5, llm_parallelism=1,
        generation_client=failing(author(), "user_message", error),
    )  # fmt: skip
    assert made.problems[1:] == ["24 more pairs have no first message, for the same reason"]


async def test_an_interrupt_after_the_cases_were_made_leaves_a_run_to_resume(caplog: pytest.LogCaptureFixture):
    model = author()
    inner = model.complete
    asked = 0

    async def slow(request):
        nonlocal asked
        if request.prefix.answer and request.prefix.answer.name == "user_message":
            asked += 1
            if asked > 1:
                scope.cancel()
                await anyio.sleep_forever()
        return await inner(request)

    model.complete = slow
    with anyio.CancelScope() as scope:
        await generate_and_simulate(
            agent_description=ABOUT, num_personas=1, num_scenarios=2, target=polite, generation_client=model, save=True,
            llm_parallelism=1, max_turns=1,
        )  # fmt: skip
    (folder,) = journals_dir(get_sim_runs_dir()).iterdir()
    assert folder.name in caplog.text
    plan = JournalReader(folder).plan
    assert [case.first_message for case in plan.datapoints] == ["My kettle is broken.", ""]
    model.complete = inner
    outcome = await resume_simulation(folder.name, overrides={"target": polite, "generation_client": model})
    run = outcome.read()
    assert (run.total_results, run.mode) == (2, "run")
    assert run.usage_by_category["generation"].calls == 2
    assert run.unread_by_category == {"first_messages": 1}


async def test_cases_that_are_kept_when_a_run_fails_early_are_redacted_too(caplog: pytest.LogCaptureFixture):
    def fails(_datapoints: object) -> None:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        await generate_and_simulate(
            agent_description=ABOUT, num_personas=1, num_scenarios=1, target=polite, generation_client=author(),
            save=True, redact=["goods=kettle"], emit_datapoints=fails,
        )  # fmt: skip
    written = [path.read_text(encoding="utf-8") for path in get_sim_runs_dir().rglob("*.json*") if path.is_file()]
    assert "My [goods" in "".join(written)
    assert not any("My kettle" in text for text in written)
    assert "kept redacted, so no run can go on with them" in caplog.text


async def test_a_conversation_that_breaks_is_reported_as_from_simulate():
    def broken(_messages: object) -> str:
        raise RuntimeError("boom")

    with pytest.raises(SimulationDroppedError) as caught:
        await generate_and_simulate(
            agent_description=ABOUT, num_personas=1, num_scenarios=1, target=broken, generation_client=author(),
            max_target_retries=0, save=True,
        )  # fmt: skip
    assert caught.value.path is not None
    assert caught.value.run.usage_by_category["generation"].calls == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"agent_description": None}, "agent_description is missing: say what the agent is for"),
        ({"offline": True}, "only a model can make cases"),
        ({"personas": "personas", "scenarios": "scenarios"}, "personas and scenarios cannot be given"),
        ({"edge_case_percentage": 30}, "edge_case_percentage: input should be less than or equal to 1"),
        ({"num_personas": 0}, "num_personas"),
        ({"persona_seeds": [" "]}, "persona_seeds.0 is blank"),
        ({"num_scenario": 3}, "num_scenario: unknown option, extra keys are not permitted; did you mean num_scenarios"),
        ({"target": None}, "no target"),
    ],
)
async def test_what_cannot_be_right_is_refused_before_anything_is_asked(options: dict[str, object], words: str):
    model = author()
    given = {"agent_description": ABOUT, "target": polite, "generation_client": model, **options}
    with pytest.raises(ConfigError, match=words):
        await generate_and_simulate(**given)
    assert model.requests == []


async def test_without_credentials_the_error_says_so():
    with pytest.raises(MissingLLMCredentialsError, match="OPENAI_API_KEY is not set"):
        await generate(agent_description=ABOUT)


# ---------------------------------------------------------------- the published makers


async def test_makers_make_what_their_names_say_and_count_what_it_cost():
    model = author()
    people = PersonaGenerator(client=model)
    assert len(await people.generate(agent_description=ABOUT, num_personas=6, generation_instructions="old")) == 6
    assert "old" in model.requests[0].prefix.system
    assert people.get_usage() == USAGE + USAGE
    people.reset_usage()
    assert people.get_usage() == Usage()
    assert len(await people.generate_with_coverage(agent_description=ABOUT)) == 8
    scenes = ScenarioGenerator(client=model)
    assert sum(bool(s.is_edge_case) for s in await scenes.generate(agent_description=ABOUT, context="EU only")) == 3
    assert "EU only" in model.requests[-1].prefix.system
    assert len(await scenes.generate_with_coverage(agent_description=ABOUT, num_scenarios=3)) == 3
    known = [a_scenario("Known")]
    edges = await scenes.generate_edge_cases(agent_description=ABOUT, existing_scenarios=known, num_edge_cases=2)
    assert [edge.is_edge_case for edge in edges] == [True, True]
    assert "Known: Get a refund" in model.requests[-1].prefix.system
    assert len(await scenes.generate_boundary_scenarios(agent_description=ABOUT, num_scenarios=1)) == 1
    attacks = await scenes.generate_security_scenarios(agent_description=ABOUT, categories=["fraud"], num_scenarios=2)
    assert len(attacks) == 2
    assert model.tails[-1].count("fraud") == 2
    await scenes.close()


async def test_a_first_message_is_the_simulated_users_and_loses_its_quotes():
    model = author()
    text = await FirstMessageGenerator(client=model).generate(a_persona("Pat"), a_scenario())
    assert text == "My kettle is broken."
    assert "Pat" in model.requests[0].prefix.system
    with pytest.raises(FirstMessageGenerationError, match="Pat / Refund"):
        await FirstMessageGenerator(client=scripted({"reply": " ", "end_conversation": False})).generate(
            a_persona("Pat"), a_scenario()
        )


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ('"Hi."', "Hi."), ("\u201cHi.\u201d", "Hi."), (' "Hi" or "Ho" ', '"Hi" or "Ho"'), ("It's", "It's"),
        ('""', '""'),
    ],
)  # fmt: skip
def test_one_pair_of_quotes_around_everything_is_taken_off(said: str, kept: str):
    assert unquoted(said) == kept


async def test_datapoints_from_a_description_have_boundaries_attacks_and_seeded_noise():
    async def ids_and_lines(rate: float) -> list[tuple[str, str]]:
        maker = DatapointGenerator(client=author())
        cases = await maker.generate_from_description(
            agent_description=ABOUT, num_personas=2, num_scenarios=1, include_boundary=True, num_boundary=2,
            include_security=True, num_security=1, perturbation_rate=rate, seed=7,
        )  # fmt: skip
        assert len(cases) == 8
        return [(case.id, case.first_message) for case in cases]

    noisy = await ids_and_lines(1.0)
    assert {line for _, line in await ids_and_lines(0.0)} == {"My kettle is broken."}
    assert [line for _, line in noisy] == [line for _, line in await ids_and_lines(1.0)]
    assert all(line != "My kettle is broken." for _, line in noisy)


async def test_datapoints_from_combinations_pair_each_with_each():
    cases = await DatapointGenerator(client=author()).generate_from_combinations(
        [a_persona("A"), a_persona("B")], [a_scenario("S"), a_scenario("T", script=["Hello."])]
    )
    assert [(c.persona.name, c.scenario.name, bool(c.first_message)) for c in cases] == [
        ("A", "S", True), ("A", "T", False), ("B", "S", True), ("B", "T", False),
    ]  # fmt: skip
    assert all("Your goal" in case.user_system_prompt for case in cases)


async def test_one_seed_gives_one_case_and_a_seed_that_yields_none_is_an_error():
    assert len(await generate_personas(["a", "b"], generation_client=author(), agent_description=ABOUT)) == 2
    assert (await generate_persona("a", generation_client=author())).name == "Person 0"
    assert names_of(await generate_scenarios(["a"], generation_client=author())) == ["Scene 0"]
    assert (await generate_scenario("a", generation_client=author())).goal == "Get a refund"
    half = scripted({"personas": [persona("Ann"), persona("Bob", patience=3)]}, {"personas": []})
    with pytest.raises(SimulationError, match="persona 2 of 2 could not be made"):
        await generate_personas(["a", "b"], generation_client=half)
    for seeds in ([], "angry", [" "]):
        with pytest.raises(ValueError, match="at least one idea"):
            await generate_personas(seeds, generation_client=author())


def test_cases_are_made_and_simulated_on_trio_as_well():
    async def run() -> int:
        results = await generate_and_simulate(
            agent_description=ABOUT, num_personas=2, num_scenarios=2, target=polite, generation_client=author(),
            max_turns=1, save=True, recommendations=True,
        )  # fmt: skip
        return len(results)

    assert anyio.run(run, backend="trio") == 4
