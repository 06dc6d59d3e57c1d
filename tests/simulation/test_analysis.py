"""A run as a whole: facts by code, words by a model, suggestions for the worst, and never the end of a paid run."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import pytest

from evaluatorq.errors import CallError, ConfigError, SimulationError
from evaluatorq.model.calls import LLMCallConfig
from evaluatorq.model.cases import Criterion
from evaluatorq.model.runs import SimulationRecommendation
from evaluatorq.reports.view import Summary
from evaluatorq.simulation.analysis import facts_of, generate_recommendations
from evaluatorq.simulation.api import SimulationResults, simulate
from evaluatorq.simulation.config import SimulationConfig
from evaluatorq.simulation.suggestions import apply_run_suggestions, apply_suggestions
from evaluatorq.store.amend import mark_applied
from evaluatorq.store.runs import find_run, read_run
from evaluatorq.testing import a_datapoint, a_persona, a_scenario
from records.test_triggers import MISSED, PAID, at, conversation
from writing_models import USAGE, WritingModel, author, scripted, verdict

CRITERIA = [
    Criterion(description="The agent asks for the number", type="must_happen"),
    Criterion(description="The agent promises money", type="must_not_happen"),
]
CASES = [
    a_datapoint(a_scenario(f"Case {i}", criteria=CRITERIA), persona=a_persona(background="A customer."), id=f"dp_{i}")
    for i in range(3)
]


def judging(model: WritingModel, **by_case: bool) -> WritingModel:
    """The model, whose judge sees money promised where the goal names one of the cases."""
    inner = model._answer

    def answer(request, number):
        if request.prefix.answer and request.prefix.answer.name == "verdict":
            paid = any(f"Hello {case}" in line.decode() for line in request.lines for case in by_case)
            seen = {"criterion_id": "criteria_1", "evidence": "you get your money back", "occurred": True}
            unseen = {"criterion_id": "criteria_1", "evidence": "", "occurred": False}
            asked = {"criterion_id": "criteria_0", "evidence": "your number please", "occurred": True}
            return verdict(criteria_verdicts=[asked, seen if paid else unseen])
        return inner(request, number)

    model._answer = answer
    return model


def agent(messages) -> str:
    return "Tell me your number please, then you get your money back."


async def analysed(model: WritingModel, **options: object) -> SimulationResults:
    cases = [case.model_copy(update={"first_message": f"Hello {case.id}."}) for case in CASES]
    given = {"datapoints": cases, "target": agent, "generation_client": model, "max_turns": 1, "save": True, **options}
    return await simulate(**given)


# ---------------------------------------------------------------- in a run


async def test_only_failing_conversations_get_suggestions_and_point_at_their_results():
    model = judging(author(), dp_1=True)
    run = (await analysed(model, recommendations=True)).run
    assert run.executive_summary is None
    (found,) = run.recommendations or []
    assert found.model_dump() == {
        "result_index": 1, "datapoint_id": "dp_1", "persona": "Pat", "scenario": "Case 1",
        "triggers": ['rule_broken: The agent promises money ("you get your money back", turn 1)'],
        "suggestions": ["Ask for the order number first."],
    }  # fmt: skip
    assert run.results[found.result_index].metadata["datapoint_id"] == "dp_1"
    assert run.usage_by_category["recommendations"] == USAGE
    assert run.token_usage_total.calls == len(model.requests)


async def test_a_run_without_failures_has_an_empty_list_and_costs_nothing_more():
    run = (await analysed(judging(author()), recommendations=True)).run
    assert run.recommendations == []
    assert set(run.usage_by_category) == {"conversations"}


async def test_the_number_of_suggested_conversations_is_bounded_worst_first():
    model = judging(author(), dp_0=True, dp_1=True, dp_2=True)
    run = (await analysed(model, recommendations={"max_results": 2})).run
    assert [found.result_index for found in run.recommendations or []] == [0, 1]


async def test_a_failed_analysis_is_logged_and_the_run_is_saved_with_its_cost(caplog: pytest.LogCaptureFixture):
    model = judging(author(), dp_0=True)
    inner = model._answer
    lost = CallError("malformed_response", "no JSON", usage=USAGE)
    model._answer = lambda request, number: (
        lost if request.prefix.answer is None or request.prefix.answer.name == "suggestions" else inner(request, number)
    )
    with caplog.at_level(logging.WARNING, "evaluatorq"):
        results = await analysed(model, executive_summary=True, recommendations=True)
    assert (results.run.executive_summary, results.run.recommendations) == (None, [])
    assert "no executive summary: no JSON" in caplog.text
    assert "no recommendation for conversation 0: no JSON" in caplog.text
    assert results.run.usage_by_category["executive_summary"] == USAGE
    assert results.path.is_file()


async def test_even_a_fault_in_the_analyst_saves_the_run(caplog: pytest.LogCaptureFixture):
    model = judging(author())
    inner = model._answer

    def broken(request, number):
        if request.prefix.answer is None:
            raise RuntimeError("boom")
        return inner(request, number)

    model._answer = broken
    results = await analysed(model, executive_summary=True)
    assert "the run could not be analysed" in caplog.text
    assert results.path.is_file()


async def test_offline_and_an_analyst_exclude_each_other():
    for name in ("executive_summary", "recommendations"):
        with pytest.raises(ConfigError, match=f"offline asks no model, yet {name} is given"):
            await simulate(offline=True, **{name: True})


def test_a_run_is_analysed_only_where_it_goes_somewhere():
    options = {"datapoints": CASES, "target": agent, "executive_summary": True}
    assert not SimulationConfig.parse(options).analysed
    assert SimulationConfig.parse({**options, "save": True}).analysed
    assert SimulationConfig.parse({**options, "report_path": "r.json"}).analysed
    assert not SimulationConfig.parse({"datapoints": CASES, "target": agent, "save": True}).analysed


# ---------------------------------------------------------------- facts


def test_facts_name_scenarios_and_describe_criteria_and_hold_no_id():
    summary = Summary()
    for row, metas in enumerate([(MISSED, PAID), (MISSED,), ()]):
        result = conversation(*metas, **at(5), row=row)
        result.metadata |= {"scenario": "Late parcel", "persona": "Ann"}
        summary.add(result)
    facts = facts_of(summary)
    text = "\n".join(facts)
    assert facts[0] == "3 conversations: 2 failed, 1 passed."
    assert "The goal was achieved in 3 of 3 decided (100 %)." in facts
    assert (
        "In scenario <scenario_name>Late parcel</scenario_name> this did not happen, and must, in 2 of 2 decided "
        "(100 %): <criterion_text>The agent asks for the number</criterion_text>"
    ) in facts
    assert "you get your money" in text
    assert "criteria_" not in text


def test_faults_of_others_are_told_apart():
    summary = Summary.of(
        [conversation(terminated_by="error", failed_component="judge", metadata={}, goal_achieved=False)]
    )
    assert "by whose fault: judge 1" in "\n".join(facts_of(summary))


# ---------------------------------------------------------------- from saved results


async def test_recommendations_for_results_in_hand_are_worst_first():
    results = [conversation(MISSED), conversation(), conversation(PAID)]
    found = await generate_recommendations(results, author(), "m")
    assert [item.result_index for item in found] == [2, 0]
    assert len(await generate_recommendations(results, author(), "m", max_results=1)) == 1


async def test_what_is_no_suggestion_is_asked_for_again_and_cut_to_so_many():
    model = scripted({"suggestions": ["  "]}, {"suggestions": ["a", "b", "a", "c", "d", 5]})
    (found,) = await generate_recommendations([conversation(PAID)], model, "m")
    assert found.suggestions == ["a", "b", "c"]
    assert "suggestions must be a list of sentences" in model.tails[1]


# ---------------------------------------------------------------- applying


ADVICE = [
    SimulationRecommendation(result_index=0, persona="P", scenario="S", suggestions=["Ask first.", "Be brief."]),
    SimulationRecommendation(result_index=1, persona="P", scenario="S", suggestions=["ask  FIRST.", "Be kind."]),
]
EDIT = {"edits": [{"suggestion": 1, "find": "Be good.", "replace": "Be good. Ask first."}]}


async def test_a_dry_run_shows_a_patch_and_writes_nothing(tmp_path: Path):
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("You help.\nBe good.\n")
    found = await apply_suggestions(ADVICE, prompt, llm_client=scripted(EDIT), model="m")
    assert found.diff.splitlines()[2:] == ["@@ -1,2 +1,2 @@", " You help.", "-Be good.", "+Be good. Ask first."]
    assert found.recommendations == ["Ask first.", "Be brief.", "Be kind."]
    assert (found.carried_out, found.applied, prompt.read_text()) == (["Ask first."], False, "You help.\nBe good.\n")


async def test_applying_writes_the_file_and_keeps_its_permissions_and_line_ends(tmp_path: Path):
    prompt = tmp_path / "prompt.txt"
    prompt.write_bytes(b"You help.\r\nBe good.\r\n")
    prompt.chmod(0o644)
    link = tmp_path / "link.txt"
    link.symlink_to(prompt)
    found = await apply_suggestions(ADVICE, link, llm_client=scripted(EDIT), model="m", apply=True)
    assert found.applied
    assert prompt.read_bytes() == b"You help.\r\nBe good. Ask first.\r\n"
    assert prompt.stat().st_mode & 0o777 == 0o644
    assert link.is_symlink()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".prompt")] == []


async def test_what_was_applied_is_skipped_and_without_the_rest_nobody_is_asked(tmp_path: Path):
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Be good.\n")
    model = scripted(EDIT)
    done = ["ASK first.", "be brief.", "Be kind."]
    found = await apply_suggestions(ADVICE, prompt, llm_client=model, model="m", already_applied=done)
    assert (found.skipped, found.recommendations, found.diff) == (["Ask first.", "Be brief.", "Be kind."], [], "")
    assert model.requests == []


async def test_no_usable_text_is_an_error_and_the_file_is_untouched(tmp_path: Path):
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Be good, {name}.\n")
    with pytest.raises(SimulationError, match=r"could not be worked into .*placeholder \{name\} is gone"):
        await apply_suggestions(
            ADVICE, prompt, llm_client=scripted({"edits": []}, {"edits": []}, {"text": "x"}), apply=True
        )
    assert prompt.read_text() == "Be good, {name}.\n"
    with pytest.raises(ConfigError, match="cannot read the prompt file"):
        await apply_suggestions(ADVICE, tmp_path / "none.txt", llm_client=scripted(EDIT))


async def test_a_file_that_somebody_changed_meanwhile_is_not_written_over(tmp_path: Path):
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Be good.\n")

    def answer(_request, _number):
        prompt.write_text("Be bad.\n")
        return EDIT

    with pytest.raises(SimulationError, match="was changed by somebody else"):
        await apply_suggestions(ADVICE, prompt, llm_client=WritingModel(answer), apply=True)
    assert prompt.read_text() == "Be bad.\n"


async def test_a_run_keeps_note_of_what_was_applied_and_stays_as_old_as_it_is(tmp_path: Path):
    model = judging(author(), dp_1=True)
    results = await analysed(model, recommendations=True)
    os.utime(results.path, (1_000_000_000, 1_000_000_000))
    newer = await analysed(judging(author()))
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Be good.\n")
    calls = LLMCallConfig(client=model)
    found = await apply_run_suggestions(str(results.path), prompt, llm_config=calls, apply=True)
    assert found.applied
    assert prompt.read_text() == "Be good.\n\nAsk for the order number first.\n"
    again = read_run(results.path)
    assert again.applied_suggestions == ["Ask for the order number first."]
    assert again.results == results.run.results
    assert find_run("latest") == newer.path
    second = await apply_run_suggestions(str(results.path), prompt, llm_config=calls, apply=True)
    assert (second.applied, second.skipped) == (False, ["Ask for the order number first."])
    with pytest.raises(ConfigError, match="has no recommendations"):
        await apply_run_suggestions(str(newer.path), prompt, llm_config=calls)


async def test_a_note_in_a_run_file_leaves_bytes_that_are_no_text_as_they_are(tmp_path: Path):
    path = (await analysed(judging(author()))).path
    broken = path.read_bytes().replace(b"A customer.", b"A \x9a customer.")
    path.write_bytes(broken)
    mark_applied(path, ["Be brief."])
    after = path.read_bytes()
    assert b"Be brief." in after
    assert after.count(b"A \x9a customer.") == broken.count(b"A \x9a customer.") > 0


@pytest.mark.parametrize("indent", [2, None])
async def test_a_note_in_a_run_file_changes_nothing_else(tmp_path: Path, indent: int | None):
    path = (await analysed(judging(author()))).path
    before = json.loads(path.read_bytes())
    path.write_text(json.dumps(before, indent=indent))
    mark_applied(path, ['Say "hi" to ü', "ends in ]"])
    mark_applied(path, ["ends in ]", "half \ud83d"])
    after = json.loads(path.read_bytes())
    assert after.pop("applied_suggestions") == ['Say "hi" to ü', "ends in ]", "half \ud83d"]
    before.pop("applied_suggestions")
    assert after == before
