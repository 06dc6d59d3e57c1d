"""Each known fault of the published package is answered by tests that exist; those without another place are here.

``SHOWN`` names, for each row of the table in docs/conformance.md, the tests that would fail if the row were not true.
"""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from evaluatorq.errors import CaseError, SimulationDroppedError
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.usage import Usage
from evaluatorq.simulation import SimulationDatapoint, simulate
from evaluatorq.simulation.api import run_simulation
from evaluatorq.simulation.config import SimulationConfig
from evaluatorq.simulation.reports import export_html, export_markdown
from evaluatorq.store.cases import load_datapoints, validate_paths
from evaluatorq.store.paths import get_sim_runs_dir
from evaluatorq.store.runs import find_run, list_runs, read_run
from evaluatorq.testing import a_persona, a_scenario

TESTS = Path(__file__).parents[1]
SHOWN = """
W1 here test_one_dead_conversation_costs_no_other_one
W1 cli/test_simulate.py test_dead_conversations_are_printed_saved_and_exit_1
W2 journeys/test_kill_and_resume.py test_a_run_killed_anywhere_is_resumed_to_the_same_results
W3 journeys/test_storage_faults.py test_another_terminal_sees_a_run_live_and_die_and_cannot_write_into_it
W4 here test_a_reason_is_never_blank
W4 journeys/test_fault_matrix.py test_a_fault_that_passes_changes_nothing_but_the_bill
W5 here test_an_average_says_of_how_many_it_is_and_the_agents_death_is_no_gap
W6 conversation/test_contract.py test_every_ending_means_what_the_contract_says
W7 conversation/test_contract.py test_every_ending_means_what_the_contract_says
W8 here test_nothing_is_made_up_where_a_row_says_nothing
W8 store/test_datapoints.py test_flat_rows_are_read_only_when_asked_for
W9 here test_what_is_checked_is_what_is_loaded
W10 roles/test_judge.py test_prose_refusals_and_cut_answers_are_re_asked_three_times_then_a_judge_fault
W11 journeys/test_fault_matrix.py test_a_fault_that_stays_ends_as_the_contract_says_and_is_booked_on_who_failed
W11 here test_words_in_a_message_decide_nothing
W12 targets/test_published_targets.py test_errors_of_a_route_are_errors_never_replies
W12 targets/test_published_targets.py test_a_version_5_stream_is_put_together
W13 here test_an_agent_of_ones_own_is_no_agent_of_a_platform
W14 here test_a_path_given_is_a_path_written
W15 pacing/test_retry.py test_every_failed_attempt_is_counted_and_told_before_its_wait
W15 pacing/test_retry.py test_what_would_fail_again_is_not_asked_again
W16 journeys/test_kill_and_resume.py test_ctrl_c_while_the_run_file_is_written_leaves_it_whole_and_listed_once
W16 cli/test_simulate.py test_a_file_that_is_there_is_replaced_only_with_force
W17 here test_files_are_written_beside_the_event_loop
W18 here test_results_leave_memory_while_a_run_goes_on
W19 targets/test_published_targets.py test_a_published_agent_answers_is_closed_and_keeps_the_port
W19 here test_what_a_conversation_opened_is_closed_with_it
W20 llm/test_encode.py test_a_growing_transcript_is_encoded_row_by_row_once
W21 journeys/test_conversation_policies.py test_the_judge_is_asked_as_often_as_said_and_always_at_the_end
W22 cli/test_commands.py test_help_imports_nothing_heavy
W22 simulation/test_front_door.py test_importing_loads_nothing_heavy
W23 cli/test_simulate.py test_offline_runs_the_bundled_cases_without_any_other_flag
W23 journeys/test_canaries.py test_the_same_seed_gives_the_same_bytes_and_another_seed_other_words
W24 journeys/test_budgets_and_quotas.py test_past_its_tokens_a_run_stops_and_with_more_it_ends
W24 pacing/test_limits.py test_requests_per_minute_are_spaced_evenly
W25 store/test_datapoints.py test_ids_of_datapoints_built_in_python_are_unique
W26 journeys/test_mock_counts.py test_tokens_are_the_endpoints_for_every_role_and_every_conversation
W26 simulation/test_generation.py test_the_run_is_the_product_of_what_was_made_and_its_total_holds_every_token
W27 here test_a_store_that_was_moved_is_whole
W28 here test_the_latest_run_is_a_run
W29 simulation/test_analysis.py test_the_number_of_suggested_conversations_is_bounded_worst_first
W29 records/test_triggers.py test_the_excerpt_is_around_the_quote_and_not_the_beginning
W29 simulation/test_analysis.py test_a_run_is_analysed_only_where_it_goes_somewhere
W30 simulation/test_analysis.py test_facts_name_scenarios_and_describe_criteria_and_hold_no_id
W31 roles/test_prompts.py test_the_simulated_user_never_sees_how_the_conversation_is_judged_nor_what_is_behind_it
W32 targets/test_callables.py test_blocking_functions_that_hang_do_not_starve_the_others
W33 generate/test_making.py test_no_job_waits_for_the_slowest_of_a_batch
W34 here test_nothing_leaves_the_machine
W35 records/test_gate.py test_exit_codes_say_holds_broken_and_could_not_measure
W35 reference/test_page_snippets.py test_the_gate_says_what_broke_and_fails
W36 simulation/test_same_cases.py test_samples_share_the_id_and_are_numbered_each_with_a_seed_of_its_own
W36 records/test_statistics.py test_the_wilson_interval_is_scipys
W37 records/test_compare.py test_repeats_of_four_datapoints_are_four_observations_and_not_twelve
W38 here test_one_dead_conversation_costs_no_other_one
W39 simulation/test_generation.py test_hooks_confirm_before_anything_is_spent_and_hear_of_both_stages
W40 here test_a_report_names_the_agent_and_what_the_whole_run_cost
W41 reference/test_what_results_say.py test_the_model_that_plays_the_user_is_named
W42 conversation/test_contract.py test_every_ending_means_what_the_contract_says
W42 conversation/test_contract.py test_nobody_could_decide_the_goal_is_unknown_not_missed
W43 reference/test_published_files.py test_a_published_run_is_written_back_byte_for_byte_except_for_our_additions
W44 simulation/test_config.py test_the_keyword_arguments_of_simulate_are_the_fields_and_their_second_names
W44 simulation/test_config.py test_no_flag_is_spelled_like_another
W45 reference/test_published_options.py test_a_mistake_raises_the_published_kind_before_anything_runs
W45 simulation/test_runner.py test_limits_that_cannot_be_right_are_refused
W46 reference/test_old_files.py test_total_turns_is_kept
W46 reference/test_published_files.py test_every_published_property_is_ours_with_its_type_and_default
W47 simulation/test_front_door.py test_star_import_works_on_a_plain_install
W48 run/test_engine.py test_the_manifest_tells_progress_while_the_run_is_under_way
W49 reports/test_terminal.py test_a_share_comes_with_its_denominator_and_its_worst_and_best_case
"""


def test_every_fault_is_answered_by_tests_that_exist():
    rows = [line.split() for line in SHOWN.split("\n") if line]
    assert list(dict.fromkeys(fault for fault, _, _ in rows)) == [f"W{number}" for number in range(1, 50)]
    missing = []
    for fault, file, name in rows:
        text = (Path(__file__) if file == "here" else TESTS / file).read_text(encoding="utf-8")
        missing += [] if re.search(rf"^(async )?def {name}\(", text, re.MULTILINE) else [f"{fault} {file} {name}"]
    assert missing == []


# ---------------------------------------------------------------- what has no other place

OFFLINE: dict[str, object] = {"offline": True, "max_turns": 1}


def points(count: int, **scenario: object) -> list[SimulationDatapoint]:
    persona = a_persona(background="new")
    return [
        SimulationDatapoint(id=f"d{n}", persona=persona, scenario=a_scenario(**scenario), first_message=f"case {n}")
        for n in range(count)
    ]


def polite(messages: list[object]) -> str:
    return "Good day to you."


def breaks_on_one(messages: list[object]) -> str:
    if messages[0].text == "case 1":
        raise RuntimeError
    return "Good day to you."


SURE: dict[str, object] = {"target": breaks_on_one, "max_target_retries": 0, **OFFLINE}


async def test_one_dead_conversation_costs_no_other_one():
    with pytest.raises(SimulationDroppedError) as dropped:
        await simulate(datapoints=points(3), save=True, **SURE)
    error = dropped.value
    assert [result.terminated_by.value for result in error.partial_results] == ["max_turns", "error", "max_turns"]
    assert read_run(error.path).results == list(error.partial_results)
    results = await simulate(datapoints=points(3), save=True, raise_on_execution_failure=False, **SURE)
    assert (results.run.total_results, read_run(results.path).run_id) == (3, results.run.run_id)


async def test_a_reason_is_never_blank():
    results = await simulate(datapoints=points(3), raise_on_execution_failure=False, **SURE)
    assert [bool(result.reason.strip()) for result in results] == [True] * 3
    assert results[1].metadata["error"].strip()


async def test_words_in_a_message_decide_nothing():
    def unlucky(messages: list[object]) -> str:
        raise ValueError("the timeout of rate limit 429 timed out with status 500")

    options = {**SURE, "target": unlucky, "raise_on_execution_failure": False}
    [result] = await simulate(datapoints=points(1), **options)
    assert (result.terminated_by, result.metadata["error_type"]) == ("error", "target_error")
    assert result.failed_component == "target"


async def test_an_average_says_of_how_many_it_is_and_the_agents_death_is_no_gap():
    class Silent:
        async def generate_first_message(self) -> str:
            raise RuntimeError("no user today")

        async def respond_async(self, messages: list[object], **options: object) -> str:
            raise RuntimeError("no user today")

        def update_context(self, *args: object, **options: object) -> None:
            pass

    agents = await simulate(datapoints=points(2, criteria=[]), raise_on_execution_failure=False, **SURE)
    assert agents.run.scorer_averages["criteria_met"] == 0.5
    assert agents.run.score_counts["criteria_met"].scored == 2
    options = {**SURE, "target": polite, "user_simulator": Silent(), "raise_on_execution_failure": False}
    others = [point.model_copy(update={"first_message": ""}) for point in points(1)]
    users = await simulate(datapoints=[*points(1, criteria=[]), others[0].model_copy(update={"id": "x"})], **options)
    assert users.run.scorer_averages["criteria_met"] == 1.0
    counts = users.run.score_counts["criteria_met"]
    assert (counts.scored, counts.left_out) == (1, 1)


def test_nothing_is_made_up_where_a_row_says_nothing(tmp_path: Path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"a": 1}\nnot JSON\n', encoding="utf-8")
    for legacy in (False, True):
        with pytest.raises(CaseError, match=r"rows\.jsonl:1: "):
            load_datapoints(rows, legacy=legacy)
    assert [error.line for error in validate_paths([rows]).errors] == [1, 2]


ROW = points(1)[0].model_dump(mode="json", exclude_none=True)
PACKED = {"inputs": {"persona": json.dumps(ROW["persona"]), "scenario": json.dumps(ROW["scenario"])}}
FILES = {
    "empty": [],
    "raw": [ROW],
    "rows of a data set": [PACKED],
    "one id twice": [ROW, {**ROW, "first_message": "again"}],
    "a trait beyond": [{**ROW, "persona": {**ROW["persona"], "patience": 5.0}}],
    "flat": [{"persona_name": "Ann", "goal": "g"}],
    "no criteria": [{**ROW, "scenario": {**ROW["scenario"], "criteria": []}}],
}


@pytest.mark.parametrize("rows", FILES.values(), ids=list(FILES))
def test_what_is_checked_is_what_is_loaded(rows: list[object], tmp_path: Path):
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    report = validate_paths([file])
    if rows in ([ROW], [PACKED]):
        assert (len(load_datapoints(file)), report.valid, report.errors) == (1, 1, [])
        return
    with pytest.raises(CaseError) as refused:
        load_datapoints(file)
    assert str(refused.value) == str(report.errors[0])


class Mine:
    """An agent whose class says nothing of a platform."""

    opened = 0
    most = 0

    def new(self) -> Mine:
        Mine.opened += 1
        Mine.most = max(Mine.most, Mine.opened)
        return Mine()

    async def respond(self, messages: list[object]) -> str:
        return "Good day to you."

    async def close(self) -> None:
        Mine.opened -= 1


async def test_an_agent_of_ones_own_is_no_agent_of_a_platform():
    results = await simulate(target=Mine(), datapoints=points(1), **OFFLINE)
    assert (results.run.target_kind, results.run.orq_base_url, results.run.agent_info) == ("callback", None, None)
    assert results.run.target == "Mine"


async def test_what_a_conversation_opened_is_closed_with_it():
    Mine.opened = Mine.most = 0
    await simulate(target=Mine(), datapoints=points(12), datapoint_parallelism=2, **OFFLINE)
    assert Mine.opened == 0
    assert Mine.most <= 2


async def test_a_path_given_is_a_path_written(tmp_path: Path):
    path = tmp_path / "there" / "run.json"
    results = await simulate(target=polite, datapoints=points(1), report_path=path, **OFFLINE)
    assert read_run(path).run_id == results.run.run_id
    assert list(get_sim_runs_dir().glob("*.json")) == []


WATCHED = """
import asyncio, sys, threading
from evaluatorq.simulation import simulate

seen = {}
def watch(event, args):
    if event == "open" and isinstance(args[0], str) and args[0].endswith(".tmp"):
        name = args[0].rpartition("/")[2].split(".")[1]
        seen[name] = threading.current_thread() is threading.main_thread()
    elif event == "socket.connect" and args[0].family.name.startswith("AF_INET"):
        seen["sockets"] = args[1]
sys.addaudithook(watch)
options = dict(offline=True, only="Refund within*", save=True, run_name="kept")
asyncio.run(simulate(results="rows.jsonl", report_md="page.md", report_path="copy.json", **options))
print({name: str(found) for name, found in seen.items()})
"""


@pytest.fixture
def watched(tmp_path: Path) -> dict[str, str]:
    """Who opens files to write, and where connections go, in a run with the credentials of a platform."""
    secret = {"ORQ_API_KEY": "a-key-of-a-platform-0001", "OPENAI_API_KEY": "sk-not-used-000000001"}
    done = subprocess.run(
        [sys.executable, "-c", WATCHED], cwd=tmp_path, env={**os.environ, **secret, "EVALUATORQ_DIR": ""},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    found: dict[str, str] = json.loads(done.stdout.replace("'", '"'))
    return found


def test_files_are_written_beside_the_event_loop(watched: dict[str, str]):
    [run_file] = [name for name in watched if name.startswith("kept_")]
    for name in (run_file, "copy", "rows", "page"):
        assert watched[name] == "False", f"{name} was written by the thread of the event loop"


def test_nothing_leaves_the_machine(watched: dict[str, str]):
    assert "sockets" not in watched


async def test_results_leave_memory_while_a_run_goes_on(tmp_path: Path):
    class Watch:
        def __init__(self) -> None:
            self.alive: list[weakref.ref[SimulationResult]] = []
            self.most = 0

        def append(self, thread_id: str, event: object) -> None:
            pass

        def finished(self, result: SimulationResult) -> None:
            self.alive.append(weakref.ref(result))
            gc.collect()
            self.most = max(self.most, sum(one() is not None for one in self.alive))

    watch = Watch()
    options = {"target": polite, "datapoints": points(30), "datapoint_parallelism": 2, **OFFLINE}
    config = SimulationConfig.parse({**options, "report_path": tmp_path / "run.json"})
    outcome = await run_simulation(config, sinks=[watch])
    assert (len(watch.alive), outcome.total) == (30, 30)
    assert watch.most <= 4


async def test_a_store_that_was_moved_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EVALUATORQ_DIR", str(tmp_path / "before"))
    results = await simulate(target=polite, datapoints=points(1), save=True, run_name="moving", **OFFLINE)
    shutil.move(tmp_path / "before", tmp_path / "after")
    monkeypatch.setenv("EVALUATORQ_DIR", str(tmp_path / "after"))
    [row] = list_runs()
    assert (row.run_name, row.status) == ("moving", "completed")
    assert Path(row.file or "").is_file()
    assert row.run_id is not None
    for reference in (row.run_id, "moving", "latest"):
        assert read_run(find_run(reference)).run_id == results.run.run_id
    again = await simulate(target=polite, previous_run=row.run_id, **OFFLINE)
    assert [result.metadata["datapoint_id"] for result in again] == ["d0"]


async def test_the_latest_run_is_a_run():
    results = await simulate(target=polite, datapoints=points(1), save=True, run_name="real", **OFFLINE)
    assert results.path is not None
    newer = results.path.stat().st_mtime_ns + 10**9
    for name, text in (("notes.json", '{"a": 1}'), ("broken.json", "{"), ("list.json", "[]")):
        stray = get_sim_runs_dir() / name
        stray.write_text(text, encoding="utf-8")
        os.utime(stray, ns=(newer, newer))
    assert find_run("latest") == results.path


async def test_a_report_names_the_agent_and_what_the_whole_run_cost():
    results = await simulate(target=Mine(), datapoints=points(1), **OFFLINE)
    made = Usage(input_tokens=70, output_tokens=7, total_tokens=77, calls=1)
    run = results.run.model_copy(update={"usage_by_category": {"generation": made}})
    for page in (export_markdown(run), export_html(run)):
        assert "Mine" in page
        told = re.search(r"generation.*?total", re.sub(r"<[^>]*>", " ", page), re.DOTALL)
        assert told is not None
        assert "77" in told[0].split()
    assert "None reported by the agent." in export_markdown(results.run)
    asked = results.run.model_copy(update={"models": {"judge": "m"}})
    for page in (export_markdown(asked), export_html(asked)):
        assert "None: no model gave an answer." in page
