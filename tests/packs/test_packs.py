"""The packs as a user meets them: found by name, run without a model, measured live and from their file alike."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from evaluatorq.errors import CaseError, ConfigError
from evaluatorq.evaluators.beliefs import BELIEF_SCORES
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.cognition import FIVE_A_CALL
from evaluatorq.model.messages import tool_call
from evaluatorq.packs import find_pack, pack_names
from evaluatorq.packs.traits import TraitTable
from evaluatorq.packs.triage.cases import personas, tables, vignettes
from evaluatorq.packs.triage.nurse import nurse_instructions
from evaluatorq.packs.triage.world import TriageWorld, triage_environment, vital_named
from evaluatorq.ports import Seat, Target
from evaluatorq.records.accept import accept
from evaluatorq.records.artifact import to_artifact
from evaluatorq.records.measurable import measurable, measurable_artifact
from evaluatorq.records.metrics import belief_metrics
from evaluatorq.simulation import SimulationRun, simulate, simulate_sync
from evaluatorq.simulation.api import SimulationResults
from evaluatorq.simulation.assemble import cases_of
from evaluatorq.simulation.config import SimulationConfig
from evaluatorq.store.cases import check_datapoints
from evaluatorq.testing import ScriptedTarget
from evaluatorq.toolset import ToolRefused


@pytest.fixture(scope="module")
def triage(tmp_path_factory: pytest.TempPathFactory) -> SimulationResults:
    folder = tmp_path_factory.mktemp("triage")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVALUATORQ_DIR", str(folder / ".evaluatorq"))
        return simulate_sync(pack="triage", offline=True, report_path=folder / "run.json")


# ---------------------------------------------------------------- the data


def test_packs_are_found_by_entry_points_and_near_names_are_told() -> None:
    assert {"triage", "incident"} <= set(pack_names())
    assert find_pack("triage").name == "triage:esi"
    assert find_pack("triage:ats").variant == "ats"
    with pytest.raises(
        ConfigError, match="no pack is called 'triag'; did you mean triage\\? There is incident, triage"
    ):
        find_pack("triag")
    with pytest.raises(ConfigError, match="has no variant 'mts'; there is esi, ats"):
        find_pack("triage:mts")


def test_there_are_enough_invented_patients_at_every_level() -> None:
    assert len(vignettes()) >= 30
    assert len({one.complaint for one in vignettes()}) >= 20
    for scale in ("esi", "ats"):
        levels = Counter(one.levels[scale] for one in vignettes())
        assert set(levels) == {1, 2, 3, 4, 5}
        assert min(levels.values()) >= 5


@pytest.mark.parametrize("name", ["triage", "triage:ats", "incident"])
def test_the_cases_obey_the_rules_of_case_files_and_read_back_from_json(name: str) -> None:
    cases = find_pack(name).cases(3)
    check_datapoints(cases)
    for case in cases:
        assert SimulationDatapoint.model_validate_json(case.model_dump_json()) == case


def test_who_meets_whom_depends_on_the_seed_and_the_case_alone() -> None:
    one, again, other = (find_pack("triage").cases(seed) for seed in (1, 1, 2))
    assert one == again
    assert [case.persona.name for case in one] != [case.persona.name for case in other]


def test_traits_are_anchored_and_some_exclude_each_other() -> None:
    table = tables()["patient"]
    patients, _ = personas()
    assert "You are unsure of times" in table.describe(patients["Stoic farmer"].traits)
    with pytest.raises(ConfigError, match="language=basic and verbosity=full do not go together"):
        table.check({**patients["New in the country"].traits, "verbosity": "full"}, "Somebody")
    with pytest.raises(ConfigError, match="has no level for mood"):
        table.check({k: v for k, v in patients["Stoic farmer"].traits.items() if k != "mood"}, "Somebody")
    assert table.draw(1, "a") == table.draw(1, "a") != table.draw(1, "a", 1)
    small = TraitTable(traits={"a": {"x": "X.", "y": "Y."}, "b": {"x": "X.", "y": "Y."}}, never=({"a": "x", "b": "y"},))
    assert len(list(small.combinations())) == 3


# ---------------------------------------------------------------- the world


def test_words_name_one_vital_sign_or_are_refused() -> None:
    assert vital_named("Blood pressure") == "sbp"
    assert vital_named("please check the pulse") == "heartrate"
    for words in ("subpar", "pulse and temperature"):
        with pytest.raises(ToolRefused):
            vital_named(words)


@pytest.mark.parametrize(("policy", "said"), [("null", '"value":null'), ("refuse", "not_measurable"), ("ask", "ask")])
async def test_a_vital_sign_that_nobody_measured_reads_as_the_policy_says(policy: str, said: str) -> None:
    desk = triage_environment()
    desk.state = TriageWorld.model_validate({"vitals": {"sbp": 120}, "missing": policy})
    held = {"triage": 3, "confidence": "low", "explanation": "x"}
    reply = await desk.run([tool_call("c1", "check_vital", {"vital": "o2sat", **held})])
    assert said in reply.messages[0].text


async def test_the_desk_keeps_the_list_that_the_record_reads_off_the_calls() -> None:
    desk = triage_environment()
    calls = [["Syncope", " ", "syncope", "b", "c", "d", "e", "f"], ["SYNCOPE", "g"]]
    held = {"triage": 2, "confidence": "low", "explanation": "x"}
    for number, flags in enumerate(calls):
        await desk.run([tool_call(f"c{number}", "log_red_flag", {"red_flags": flags, **held})])
    read = [one.stored for verdicts in accept(FIVE_A_CALL, calls) for one in verdicts if one.stored]  # type: ignore[arg-type]
    assert desk.state.red_flags == read == ["Syncope", "b", "c", "d", "e", "g"]


# ---------------------------------------------------------------- a run


def test_every_triage_ends_by_the_choice_of_the_nurse_who_is_often_wrong(triage: SimulationResults) -> None:
    assert {result.ended_by for result in triage} == {"agent"}
    assert all(result.goal_achieved and result.criteria_verified for result in triage)
    wrong = [result for result in triage if not BELIEF_SCORES["decision_correct"](result).value]
    assert 0.2 <= len(wrong) / len(triage) <= 0.6
    assert all(result.token_usage.calls == 0 and result.token_usage_known for result in triage)


def test_scores_from_the_file_are_those_of_the_run(triage: SimulationResults) -> None:
    saved = SimulationRun.model_validate_json(Path(str(triage.path)).read_text(encoding="utf-8"))
    for live, read in zip(triage, saved.results, strict=True):
        for name in ("decision_correct", "slot_coverage", "rationale_given"):
            assert BELIEF_SCORES[name](read).value == live.metadata["evaluator_scores"][name]  # type: ignore[index,call-overload]
        assert belief_metrics(measurable(read)) == belief_metrics(measurable(live))


def test_an_artifact_measures_like_the_result_that_it_was_made_of(triage: SimulationResults) -> None:
    for result in triage:
        rules = result.cognition.rules  # type: ignore[union-attr]
        read = json.loads(json.dumps(to_artifact(result)))
        from_file = belief_metrics(measurable_artifact(read, rules))  # type: ignore[arg-type]
        fresh = belief_metrics(measurable(result))
        assert from_file.model_copy(update={"case": fresh.case}) == fresh


def test_a_silent_end_counts_no_exchange_and_the_record_says_who_ended_it() -> None:
    results = simulate_sync(pack="incident", offline=True)
    assert {(result.ended_by, result.terminated_by.value) for result in results} == {("agent", "judge")}
    assert {result.turn_count for result in results} == {1}
    assert all(observed.error_code is None for result in results for observed in result.observations)
    closeness = [BELIEF_SCORES["decision_closeness"](result).value for result in results]
    assert sorted(closeness) == [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]


def test_nothing_of_the_second_pack_is_shaped_like_the_first() -> None:
    [result] = simulate_sync(pack="incident", offline=True, only="checkout-down")
    record = result.cognition
    assert record is not None
    assert {one.assessment.source for one in record.assessments} == {"tool", "extractor"}
    assert [one.assessment.value for one in record.assessments][-1] == "critical"
    assert record.assessments[-1].assessment.confidence == 0.8
    assert {reading.name for reading in record.readings} == {"error_rate", "users_hit"}
    assert [one.stored for one in record.lists["services"]] == ["checkout"]


async def test_the_same_seed_gives_the_same_record() -> None:
    one, two = [await simulate(pack="triage", offline=True, only="*torsion*", seed=4) for _ in range(2)]
    assert to_artifact(one[0])["trace"] == to_artifact(two[0])["trace"]


def test_a_pack_may_serve_other_cases_and_other_agents() -> None:
    own = find_pack("triage").cases(0)[:1]
    config = SimulationConfig.parse({"pack": "triage", "datapoints": own, "offline": True})
    assert cases_of(config).datapoints == own

    async def says_nothing(messages: object) -> str:
        return "I see."

    [result] = simulate_sync(pack="triage", target=says_nothing, offline=True, only="*tick*", max_turns=2)
    assert result.ended_by == "max_turns"
    with pytest.raises(Exception, match="never held a level"):
        BELIEF_SCORES["decision_correct"](result)


# ---------------------------------------------------------------- what must not come out


def test_neither_prompt_holds_anything_that_the_case_hides() -> None:
    case = find_pack("triage").cases(0)[0]
    prompt = nurse_instructions(Seat(case, "t", 0, 5))
    for text in (case.scenario.truth["why"], "low blood pressure"):  # type: ignore[index,call-overload]
        assert text not in prompt


async def test_the_agent_and_the_user_are_seated_without_the_truth() -> None:
    seen: list[Seat] = []

    def seated(seat: Seat) -> Target:
        seen.append(seat)
        return ScriptedTarget(["Yes."])

    await simulate(pack="triage", target=seated, offline=True, only="*tick*", max_turns=1)
    [seat] = seen
    assert seat.datapoint.scenario.truth is None
    assert seat.datapoint.scenario.setup is None
    assert seat.datapoint.scenario.cognition is not None


def test_a_case_that_tells_its_own_secret_is_refused_before_anything_runs() -> None:
    [case] = [one for one in find_pack("incident").cases(0) if one.id == "mail-late"]
    told = case.scenario.model_copy(
        update={"truth": {"severity": "major", "code": "SRV-2291"}, "context": "It is SRV-2291."}
    )
    with pytest.raises(CaseError, match="hides /code of its truth and tells it to its user"):
        simulate_sync(pack="incident", datapoints=[case.model_copy(update={"scenario": told})], offline=True)


def test_a_case_that_hides_what_its_truth_does_not_have_is_refused() -> None:
    [case] = [one for one in find_pack("incident").cases(0) if one.id == "mail-late"]
    for update, says in (
        ({"hidden": ["/severity", "/levle"]}, "hides /levle and has no /levle in its truth"),
        ({"truth": None, "hidden": [""]}, "hides all of it and has no truth"),
    ):
        one = case.model_copy(update={"scenario": case.scenario.model_copy(update=update)})
        with pytest.raises(CaseError, match=says):
            simulate_sync(pack="incident", datapoints=[one], offline=True)


def test_a_leak_is_found_and_what_a_tool_read_out_is_none(triage: SimulationResults) -> None:
    assert not any(result.cognition.secrecy.leaks for result in triage)  # type: ignore[union-attr]
    [case] = [one for one in find_pack("incident").cases(0) if one.id == "mail-late"]
    hiding = case.scenario.model_copy(update={"truth": {"severity": "major", "code": "SRV-2291"}, "script": None})

    async def guesses(messages: object) -> str:
        return "Is it SRV-2291?"

    one = case.model_copy(update={"scenario": hiding})
    [result] = simulate_sync(target=guesses, datapoints=[one], offline=True, max_turns=1)
    secrecy = result.cognition.secrecy  # type: ignore[union-attr]
    assert [(leak.pointer, leak.said_by) for leak in secrecy.leaks] == [("/code", "agent")]  # type: ignore[union-attr]
    assert secrecy.not_distinctive == ("/severity",)  # type: ignore[union-attr]


# ---------------------------------------------------------------- personal data


def test_a_pack_takes_personal_data_out_of_what_is_written_unless_told_otherwise(tmp_path: Path) -> None:
    async def careless(messages: object) -> str:
        return "Born 14.02.1961, MRN 4471 2290, mail ann@example.org?"

    saved = []
    for number, rules in enumerate((None, ["iban"])):
        report = tmp_path / f"{number}.json"
        options = {} if rules is None else {"redact": rules}
        simulate_sync(
            pack="triage", target=careless, offline=True, only="*tick*", max_turns=1, report_path=report, **options
        )  # type: ignore[arg-type]
        saved.append(report.read_text(encoding="utf-8"))
    assert "14.02.1961" not in saved[0]
    assert "4471 2290" not in saved[0]
    assert "ann@example.org" not in saved[0]
    assert "14.02.1961" in saved[1]
