"""What a case and a command say about the course of a conversation, held on the command line over real sockets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import SimulationRun
from mock_server.served import MockEndpoint, serving
from mock_server.shell import MODELS, evaluatorq, saved_run, write_cases

AGENT = ("-i", "cases.jsonl", "--openai-model", "mock-target", *MODELS, "-q")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[MockEndpoint]:
    with serving(finish_turn=99, quote="none", watched=["LIGHTHOUSE", "GROUND-TRUTH"]) as mock:
        yield mock


def conversation(folder: Path, endpoint: MockEndpoint, *words: str, **scenario: object) -> SimulationResult:
    """The one conversation of a run with these options and these fields of its scenario."""
    endpoint.reset()
    write_cases(folder / "cases.jsonl", 1, **scenario)
    done = evaluatorq(folder, "sim", "simulate", *AGENT, *words, endpoint=endpoint)
    assert (done.returncode, done.stderr) == (0, "")
    (result,) = SimulationRun.model_validate(saved_run(folder)).results
    return result


def asked(endpoint: MockEndpoint) -> dict[str, int]:
    """Requests by role."""
    roles = endpoint.stats()["roles"]
    assert isinstance(roles, dict)
    return {role: counted["requests"] for role, counted in roles.items()}


def said(result: SimulationResult, role: str) -> list[str]:
    return [message.text for message in result.messages if message.role == role]


# ---------------------------------------------------------------- the judge's cadence


@pytest.mark.parametrize(
    ("every", "judged"),
    [("1", [1, 2, 3, 4, 5]), ("2", [2, 4, 5]), ("3", [3, 5]), ("0", [5])],
    ids=["every turn", "every second", "every third", "at the end"],
)
def test_the_judge_is_asked_as_often_as_said_and_always_at_the_end(
    endpoint: MockEndpoint, tmp_path: Path, every: str, judged: list[int]
) -> None:
    result = conversation(tmp_path, endpoint, "--max-turns", "5", "--judge-every", every)
    assert asked(endpoint) == {"user": 5, "target": 5, "judge": len(judged)}
    rated = [turn.turn_number for turn in result.turn_metrics if turn.response_quality is not None]
    assert rated == judged
    others = {turn.judge_reason for turn in result.turn_metrics if turn.turn_number not in judged}
    assert others <= {"not judged"}
    assert (result.ended_by, result.turn_count, result.fully_audited) == ("max_turns", 5, True)


# ---------------------------------------------------------------- something prohibited was seen


def test_a_violation_ends_the_conversation_where_that_is_wanted_and_else_nothing(tmp_path: Path) -> None:
    with serving(finish_turn=3, quote="real") as mock:
        for word, ended in (("--stop-on-violation", ("violation", 1)), ("--no-stop-on-violation", ("judge", 3))):
            folder = tmp_path / word
            folder.mkdir()
            result = conversation(folder, mock, word)
            assert (result.ended_by, result.turn_count) == ended
            assert result.rules_broken == ["criteria_1"]


# ---------------------------------------------------------------- who speaks first, and what of


@pytest.mark.parametrize(
    ("opens", "first", "targets"),
    [({}, "user", 2), ({"opens": "user"}, "user", 2), ({"opens": "agent"}, "assistant", 3)],
)
def test_the_one_who_opens_speaks_first_and_an_opening_is_no_turn(
    endpoint: MockEndpoint, tmp_path: Path, opens: dict[str, str], first: str, targets: int
) -> None:
    result = conversation(tmp_path, endpoint, "--max-turns", "2", **opens)
    assert result.messages[0].role == first
    assert (result.turn_count, asked(endpoint)) == (2, {"user": 2, "target": targets, "judge": 2})


def test_what_the_user_knows_is_told_to_the_user_alone_and_the_truth_to_the_judge_alone(
    endpoint: MockEndpoint, tmp_path: Path
) -> None:
    conversation(
        tmp_path, endpoint, "--max-turns", "1", knows={"password": "LIGHTHOUSE 77"}, ground_truth="GROUND-TRUTH 12"
    )
    watched = endpoint.stats()["watched"]
    assert isinstance(watched, dict)
    assert {word: [role for role, met in roles.items() if met] for word, roles in watched.items()} == {
        "LIGHTHOUSE": ["user"],
        "GROUND-TRUTH": ["judge"],
    }


# ---------------------------------------------------------------- fixed lines, and what follows them

SCRIPT = ["Where is CASE-0000?", None, "  Then cancel it — now!  "]


@pytest.mark.parametrize(
    ("after", "turns", "users", "ended"),
    [
        ({}, 5, 3, "max_turns"),
        ({"after_script": "simulate"}, 5, 3, "max_turns"),
        ({"after_script": "stop"}, 3, 1, "user"),
    ],
    ids=["left out", "simulate", "stop"],
)
def test_fixed_lines_go_out_word_for_word_and_the_case_says_what_follows_them(
    endpoint: MockEndpoint, tmp_path: Path, after: dict[str, str], turns: int, users: int, ended: str
) -> None:
    result = conversation(tmp_path, endpoint, "--max-turns", "5", script=SCRIPT, **after)
    lines = said(result, "user")
    assert (lines[0], lines[2]) == (SCRIPT[0], SCRIPT[2])
    assert lines[1].startswith("CASE-0000 here, message 2")
    assert asked(endpoint) == {"user": users, "target": turns, "judge": turns}
    assert (result.ended_by, result.turn_count, result.fully_audited) == (ended, turns, True)


def test_a_script_that_is_used_up_is_judged_once_more_though_the_judge_is_asked_at_the_end_only(
    endpoint: MockEndpoint, tmp_path: Path
) -> None:
    words = ("--max-turns", "9", "--judge-every", "0")
    result = conversation(tmp_path, endpoint, *words, script=["One CASE-0000", "Two"], after_script="stop")
    assert asked(endpoint) == {"target": 2, "judge": 1}
    assert (result.terminated_by, result.reason) == ("judge", "The user's script was used up.")
    assert result.fully_audited


@pytest.mark.parametrize(
    ("scenario", "says"),
    [
        ({"after_script": "stop"}, "scenario.after_script: says what follows the script, and there is none"),
        ({"script": ["Hi"], "after_script": "end"}, "scenario.after_script: "),
    ],
)
def test_a_policy_that_means_nothing_is_refused_with_its_place(
    tmp_path: Path, scenario: dict[str, object], says: str
) -> None:
    write_cases(tmp_path / "cases.jsonl", 1, **scenario)
    done = evaluatorq(tmp_path, "sim", "validate", "cases.jsonl")
    assert done.returncode == 2
    assert says in done.stdout + done.stderr
