"""Accept policies, the belief graph and detectors: pure functions over what was said and called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evaluatorq.model.belief import BeliefUpdate
from evaluatorq.model.cognition import FIVE_A_CALL, AcceptPolicy, Cognition, Detector
from evaluatorq.model.messages import assistant, user
from evaluatorq.records.accept import Acceptance, accept, normal_form
from evaluatorq.records.belief import flat_view, graph_of
from evaluatorq.records.detectors import detect

# ---------------------------------------------------------------- accept policies


def reasons(policy: AcceptPolicy, *calls: list[object]) -> list[list[str | None]]:
    return [[one.refused for one in verdicts] for verdicts in accept(policy, calls)]  # type: ignore[arg-type]


def test_the_preset_keeps_the_first_spelling_and_refuses_repeats_and_blanks() -> None:
    [first, second] = accept(FIVE_A_CALL, [["Chest  Pain", "", "  ", "chest pain"], [" CHEST PAIN ", "syncope"]])
    assert [one.stored for one in first] == ["Chest  Pain", None, None, None]
    assert [one.refused for one in first] == [None, "blank", "blank", "duplicate"]
    assert [one.refused for one in second] == ["duplicate", None]


def test_a_policy_that_there_is_not_is_told_with_those_there_are() -> None:
    rule = {"tool": "log", "argument": "flags", "policy": "five_a_cal"}
    with pytest.raises(
        ValidationError, match="no policy is called 'five_a_cal'; there is five_a_call, or give its keys"
    ):
        Cognition.model_validate({"lists": {"flags": rule}})


def test_the_cap_is_for_each_call_so_that_two_calls_may_add_nine() -> None:
    six, four = [f"flag {n}" for n in range(6)], [f"other {n}" for n in range(4)]
    assert reasons(FIVE_A_CALL, six, four) == [[None] * 5 + ["cap"], [None] * 4]


def test_a_cap_may_hold_for_a_turn_or_the_run() -> None:
    by_turn = Acceptance(AcceptPolicy(cap=2, per="turn"))
    assert [one.refused for one in by_turn.propose(["a", "b"], turn=1)] == [None, None]
    assert [one.refused for one in by_turn.propose(["c"], turn=1)] == ["cap"]
    assert [one.refused for one in by_turn.propose(["c"], turn=2)] == [None]
    assert reasons(AcceptPolicy(cap=1, per="run"), ["a"], ["b"]) == [[None], ["cap"]]


def test_uniqueness_may_be_asked_of_a_call_only_and_spelling_may_be_normalised() -> None:
    assert reasons(AcceptPolicy(unique="call"), ["a", "A"], ["a"]) == [[None, "duplicate"], [None]]
    assert reasons(AcceptPolicy(unique=None), ["a", "a"]) == [[None, None]]
    [[verdict]] = accept(AcceptPolicy(keep="normalised"), [["  Big   RED "]])
    assert verdict.stored == "big red"


def test_what_is_no_text_is_refused_by_name() -> None:
    assert reasons(FIVE_A_CALL, [3, None, "x"]) == [["not_text", "not_text", None]]


@given(st.lists(st.lists(st.text(max_size=6), max_size=9), max_size=5))
def test_nothing_is_accepted_twice_and_every_item_is_decided(calls: list[list[str]]) -> None:
    decided = accept(FIVE_A_CALL, calls)  # type: ignore[arg-type]
    stored = [one.stored for verdicts in decided for one in verdicts if one.stored is not None]
    assert len({normal_form(item) for item in stored}) == len(stored)
    assert [len(verdicts) for verdicts in decided] == [len(call) for call in calls]
    assert all((one.stored is None) != (one.refused is None) for verdicts in decided for one in verdicts)
    assert all(sum(one.stored is not None for one in verdicts) <= 5 for verdicts in decided)


# ---------------------------------------------------------------- the graph


def test_competing_values_are_kept_with_source_turn_and_words() -> None:
    graph = graph_of(
        [
            BeliefUpdate(slot="onset", value="two hours", turn=0, evidence="It began two hours ago.", row=1),
            BeliefUpdate(slot="onset", value="yesterday", turn=2, evidence="Or was it yesterday?", row=5),
            BeliefUpdate(slot="onset", value="yesterday", turn=2, source="agent", row=6),
            BeliefUpdate(slot="onset", value="two hours", turn=3, evidence="No, two hours.", row=7),
        ]
    )
    assert [(item.value, item.source, item.turn) for item in graph.slots["onset"]] == [
        ("two hours", "user", 0),
        ("yesterday", "user", 2),
        ("yesterday", "agent", 2),
    ]
    assert [one.text for one in graph.evidence_for("onset", 0)] == ["It began two hours ago.", "No, two hours."]
    assert graph.edges["onset"][2] == ()
    assert list(graph.evidence) == ["e000001", "e000002", "e000003"]


def test_what_names_no_slot_or_no_value_is_no_belief() -> None:
    empty = [BeliefUpdate(slot=" ", value="x"), BeliefUpdate(slot="a", value="  "), BeliefUpdate(slot="a", value=None)]
    assert graph_of(empty).slots == {}


def test_the_flat_view_joins_slots_that_come_to_one_name() -> None:
    graph = graph_of(
        [
            BeliefUpdate(slot="red_flags", value="syncope", certainty="suspected"),
            BeliefUpdate(slot="red_flag", value="syncope", source="agent"),
            BeliefUpdate(slot="vitals_known", value="odd"),
        ]
    )
    view = flat_view(graph, sources={"user": "patient", "agent": "nurse"}, reserved=("vitals_known",))
    assert [row["source"] for row in view["red_flags"]] == ["patient", "nurse"]
    assert "red_flag" not in view
    assert view["vitals_known_"][0]["value"] == "odd"


@given(st.lists(st.tuples(st.sampled_from(["red_flag", "red_flags", "x"]), st.sampled_from("abc")), max_size=12))
def test_no_value_is_lost_on_the_way_to_the_view(pairs: list[tuple[str, str]]) -> None:
    view = flat_view(graph_of(BeliefUpdate(slot=slot, value=value) for slot, value in pairs))
    for slot, value in pairs:
        name = {"red_flag": "red_flags"}.get(slot, slot)
        assert value in [row["value"] for row in view[name]]


# ---------------------------------------------------------------- detectors

SYMPTOMS = Detector(slot="symptom", words={"fever": ("fever", "temperature"), "nausea": ("feel sick",)})


def test_words_are_found_whole_with_their_sentence_as_evidence() -> None:
    found = list(detect([SYMPTOMS], [user("I feel sick. The fever came first."), assistant("You have a fever?")]))
    assert [(one.value, one.evidence, one.turn, one.row) for one in found] == [
        ("nausea", "I feel sick.", 0, 0),
        ("fever", "The fever came first.", 0, 0),
    ]
    assert list(detect([SYMPTOMS], [user("feverish thoughts")])) == []


def test_what_is_denied_is_not_found_but_what_follows_a_but_is() -> None:
    assert list(detect([SYMPTOMS], [user("I have no fever"), user("I don\u2019t feel sick")])) == []
    assert [one.value for one in detect([SYMPTOMS], [user("No fever, but I feel sick")])] == ["nausea"]


def test_a_pattern_gives_its_group_and_the_turn_counts_what_was_said_before() -> None:
    pain = Detector(slot="pain", pattern=r"(?P<value>\d+) out of 10", certainty="inferred")
    [found] = detect([pain], [user("hello"), assistant("how bad?"), user("It is 7 out of 10.")])
    assert (found.value, found.turn, found.certainty) == ("7", 1, "inferred")
