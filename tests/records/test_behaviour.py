"""What samples of a case did, and where conversations got stuck."""

from __future__ import annotations

import pytest

from evaluatorq.model.observation import Act, Change, Interaction, Observation, ObservedCall
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.records.behaviour import behaviours_of, flow_of


def a_result(*turns: Observation, goal: bool = True, case: str = "dp", **fields: object) -> SimulationResult:
    values: dict[str, object] = {
        "messages": [], "terminated_by": "judge", "reason": "r", "goal_achieved": goal, "turn_count": 1,
        "goal_completion_score": 1.0, "rules_broken": [], "token_usage": NO_USAGE, "turn_metrics": [],
        "observations": turns, "metadata": {"datapoint_id": case}, "goal_known": True,
    }  # fmt: skip
    return SimulationResult.model_validate({**values, **fields})


def used(*names: str, answer: str = "Done.") -> Observation:
    calls = tuple(ObservedCall(id=f"c{i}", name=name, digest="d", outcome="accepted") for i, name in enumerate(names))
    return Observation(turn=1, tool_calls=calls, answer=answer)


def test_samples_are_grouped_by_what_they_did_and_not_by_their_words() -> None:
    (case,) = behaviours_of([
        a_result(used("refund")),
        a_result(used("refund", answer="It is paid.")),
        a_result(used(), goal=False),
        a_result(terminated_by="error", failed_component="user_simulator"),
    ])  # fmt: skip
    assert [(found.count, found.verdicts) for found in case.behaviours] == [(2, ("passed", "passed")), (1, ("failed",))]
    assert (case.measured, case.unmeasured, case.flaky_behaviour, case.flaky_result) == (3, 1, True, True)
    assert len({found.hash for found in case.behaviours}) == 2


def test_flaky_by_result_and_flaky_by_behaviour_can_each_be_alone() -> None:
    same, other = behaviours_of([
        a_result(used("refund"), case="a"), a_result(used("refund"), case="a", goal=False),
        a_result(used("refund"), case="b"), a_result(used("look", "refund"), case="b"),
    ])  # fmt: skip
    assert (same.flaky_behaviour, same.flaky_result) == (False, True)
    assert (other.flaky_behaviour, other.flaky_result) == (True, False)


def test_a_sample_that_the_agent_broke_is_a_behaviour_and_a_failure() -> None:
    broken = a_result(
        Observation(turn=1, error_code="timeout"), terminated_by="timeout", failed_component="target", goal=False
    )
    (case,) = behaviours_of([a_result(used("refund")), broken])
    assert (case.measured, case.unmeasured, case.flaky_result) == (2, 0, True)


def a_card(status: str) -> Interaction:
    return Interaction(id="k", kind="confirm_command", status=status)


LAST = Observation(turn=9, answer="Goodbye.")


@pytest.mark.parametrize(
    ("seen", "dead"),
    [
        (Observation(turn=1, answer="I see."), True),
        (Observation(turn=1, answer="I see. Which order is it?”"), False),
        (Observation(turn=1, answer="Done.", states={"/a": Change(before=1, after=2)}), False),
        (Observation(turn=1, answer="Choose.", offers=("refund",)), False),
        (Observation(turn=1, answer="Tell me.", asks=("order",)), False),
        (Observation(turn=1, answer="See below.", interactions=(a_card("active"),)), False),
        (Observation(turn=1, answer="See below.", interactions=(a_card("expired"),)), True),
        (Observation(turn=1, error_code="timeout"), False),
    ],
)  # fmt: skip
def test_a_dead_end_is_an_answer_without_a_way_on(seen: Observation, dead: bool) -> None:
    assert flow_of(a_result(seen, LAST)).dead_ends == ((1,) if dead else ())
    assert flow_of(a_result(seen)).dead_ends == (), "the last turn may be one"


def test_the_same_question_again_is_a_loop() -> None:
    turns = [Observation(turn=i, answer=text) for i, text in enumerate(
        ["Hello. Which order?", "Sorry, which  ORDER?", "Which order?", "Which order? And why?"], 1
    )]  # fmt: skip
    assert flow_of(a_result(*turns)).loops == ()
    turns[1] = Observation(turn=2, answer="Hm. Which  ORDER?")
    assert flow_of(a_result(*turns)).loops == (2, 3)


def test_an_offer_that_is_refused_when_taken_up_is_told_beside_other_refusals() -> None:
    offered = Observation(turn=1, answer="Shall I?", offers=("refund",))
    rejected = ObservedCall(id="c", name="refund", digest="d", outcome="rejected", reason="late")
    refused = Observation(turn=2, tool_calls=(rejected,), acts=(Act(kind="a", operation="mail", outcome="rejected"),))
    flow = flow_of(a_result(offered, refused))
    assert (flow.refused_offers, flow.refused, flow.violations) == ((2,), ("refund", "mail"), 1)
