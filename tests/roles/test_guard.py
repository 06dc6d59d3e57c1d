"""A labelled set of lines, good and bad, holds the guard to its precision; single rows say what a user relies on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluatorq.roles.guard import Line, distinctive_values, find_breach

LABELLED = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "simulator_lines.jsonl").read_text("utf-8").splitlines()
]
OPENING = "Hi, I ordered a blue kettle last week and a toaster came instead."


def line_of(row: dict) -> Line:
    return Line(row["text"], tuple(row.get("said", ())), frozenset(row.get("hidden", ())))


def test_the_guard_is_precise_and_finds_most_breaches_in_the_labelled_lines(capsys: pytest.CaptureFixture[str]):
    found = [(row, find_breach(line_of(row))) for row in LABELLED]
    hits = sum(1 for row, breach in found if breach and row["label"] == breach.kind)
    alarms = [row["text"] for row, breach in found if breach and row["label"] != breach.kind]
    missed = [row["text"] for row, breach in found if breach is None and row["label"] != "ok"]
    precision = hits / (hits + len(alarms))
    recall = hits / (hits + len(missed))
    with capsys.disabled():
        print(f"\n{len(LABELLED)} lines of simulated users: precision {precision:.3f}, recall {recall:.3f}")
    assert len(LABELLED) >= 100
    assert sum(row["label"] == "ok" for row in LABELLED) >= 50
    assert precision >= 0.95, alarms
    assert recall >= 0.8, missed


@pytest.mark.parametrize("kind", ["speaks_as_agent", "leaves_the_role", "restarts", "reveals", "endless_goodbyes"])
def test_every_kind_of_breach_is_found_at_least_once(kind: str):
    assert any((breach := find_breach(line_of(row))) and breach.kind == kind for row in LABELLED)


def test_words_that_a_user_quotes_from_the_agent_are_not_held_against_the_user():
    assert find_breach(Line('It just says "How can I help you?" again and again.')) is None
    assert find_breach(Line("It just says \u201cHow can I help you?\u201d again and again.")) is None


def test_saying_the_same_line_every_time_is_repetition_and_no_restart():
    assert find_breach(Line(OPENING, [OPENING, OPENING])) is None


def test_a_repetitive_user_may_come_back_to_the_opening():
    said = [OPENING, "It is order A1042."]
    assert find_breach(Line(OPENING, said, may_repeat=True)) is None
    assert find_breach(Line(OPENING, said)) is not None


def test_distinctive_values_are_codes_and_not_words_or_short_numbers():
    text = "Refund RF-20417 within 14 days to dana77@example.com, not to the neighbour at number 12."
    assert distinctive_values([text]) == {"rf-20417", "dana77@example.com"}


def test_a_value_that_everybody_may_know_is_not_searched_for():
    assert find_breach(Line("my order is A-10427", hidden=frozenset({"rma-88213"}))) is None


def test_typographic_apostrophes_do_not_hide_a_breach():
    assert find_breach(Line("I\u2019d be happy to help you with that.")) is not None


@pytest.mark.timeout(20)
def test_long_and_odd_lines_are_read_to_their_end_and_not_for_ever():
    hidden = frozenset({"rma-88213"})
    for text in ("bye " * 5000 + "x", "you have a nice day " * 3000 + "?", '"' * 20001, "a-" * 20000, "'" * 9999):
        assert find_breach(Line(f"{text} RMA-88213", ["bye", "bye"], hidden)) is not None
