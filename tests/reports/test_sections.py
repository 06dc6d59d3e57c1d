"""Section data for other people's renderers: kinds, keys and numbers as published."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sample_results import HELD, MISSED, OPEN, SEEN, dead, result

from evaluatorq.model.runs import SimulationRecommendation
from evaluatorq.model.usage import Usage
from evaluatorq.simulation.reports import build_report_sections
from evaluatorq.store.runs import read_run

PUBLISHED = sorted((Path(__file__).parents[1] / "data" / "published_runs").glob("*_*-*.json"))
ALWAYS = [
    "summary", "overview", "failures_first", "failure_mode", "persona_scenario_heatmap", "score_distribution",
    "turn_quality_timeline", "persona_breakdown", "scenario_breakdown", "judge_verdicts", "turn_metrics",
    "token_usage", "individual_results",
]  # fmt: skip


def data_of(kind: str, *results, **more) -> dict:
    return next(section.data for section in build_report_sections(results, **more) if section.kind == kind)


def some() -> list:
    broken = dead("target", persona="Bo")
    broken.metadata["error"] = "boom"
    return [result(HELD), result(SEEN, MISSED, goal=False), result(HELD, OPEN, persona="Bo"), broken]


def test_sections_come_in_the_published_order_and_empty_ones_are_left_out() -> None:
    assert [section.kind for section in build_report_sections([result(HELD)])] == ALWAYS
    advice = [SimulationRecommendation(result_index=1, persona="p", scenario="s", triggers=["rule_broken: x"])]
    kinds = [section.kind for section in build_report_sections(some(), recommendations=advice)]
    assert kinds.index("recommendations") == 4
    assert kinds.index("errors") == kinds.index("token_usage") - 1


def test_the_summary_counts_broken_off_conversations_in_its_rate() -> None:
    found = data_of("summary", *some(), executive_summary="words")
    told = {key: found[key] for key in ("total_conversations", "goals_achieved", "goals_failed", "errors")}
    assert told == {"total_conversations": 4, "goals_achieved": 2, "goals_failed": 1, "errors": 1}
    assert (found["success_rate"], found["confidence"], found["verdict"]) == (0.5, "MEDIUM", "warn")
    assert found["narrative"] == "words"


def test_failures_name_what_was_violated_and_modes_leave_out_what_nobody_audited() -> None:
    (row,) = data_of("failures_first", *some())["rows"]
    assert (row["index"], row["violated"], row["has_safety"]) == (2, ["behaviour 2", "behaviour 1"], True)
    assert row["criteria"][0] == {"description": "behaviour 2", "passed": False, "safety": True, "state": "fail"}
    assert data_of("failure_mode", *some()) == {"Late parcel: behaviour 2": 1, "Late parcel: behaviour 1": 1}


def test_personas_of_the_same_name_stay_apart() -> None:
    other = result(HELD)
    other.metadata["persona_traits"] = {"patience": 0.1}
    found = data_of("persona_scenario_heatmap", result(HELD), other)
    assert found["personas"] == ["Ann", "Ann (2)"]
    assert [cell["n"] for cell in found["cells"]] == [1, 1]


def test_breakdowns_are_worst_first() -> None:
    rows = data_of("persona_breakdown", result(HELD), result(MISSED, goal=False, persona="Bo"))["rows"]
    assert [(row["name"], row["success_rate"]) for row in rows] == [("Bo", 0), ("Ann", 1)]


def test_tokens_of_the_whole_run_stand_beside_those_of_the_conversations() -> None:
    found = data_of("token_usage", result(HELD), run_token_usage_total=Usage(total_tokens=90))
    assert (found["total_tokens"], found["run_total_tokens"], found["unknown_usage_conversations"]) == (30, 90, 0)


def test_evaluators_tell_what_they_could_not_score() -> None:
    scored, failed = result(HELD), result(HELD)
    scored.metadata["evaluator_scores"] = {"mine": 0.5}
    failed.metadata["evaluator_errors"] = {"mine": "no key"}
    (row,) = data_of("evaluator_scores", scored, failed)["rows"]
    assert row == {
        "evaluator": "mine", "runs": 1, "dropped": 1, "mean": 0.5, "min": 0.5, "max": 0.5, "first_error": "no key",
    }  # fmt: skip


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_published_runs_have_sections_that_are_plain_json(path: Path) -> None:
    run = read_run(path)
    sections = build_report_sections(run.results, run_token_usage_total=run.token_usage_total)
    json.dumps([section.data for section in sections], allow_nan=False)
    assert {section.kind for section in sections} >= set(ALWAYS)


def test_no_results_are_sections_too() -> None:
    assert data_of("summary")["total_conversations"] == 0
