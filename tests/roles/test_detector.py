"""A model that notes what users tell: its word counts as far as it quotes, and its faults end nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from evaluatorq.errors import CallError
from evaluatorq.model.messages import Message, assistant, user
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.usage import Usage
from evaluatorq.ports import BeliefReply, ChatReply, ChatRequest, Seat
from evaluatorq.roles.detector import DetectorRole, model_detector
from evaluatorq.testing import a_datapoint, a_scenario, converse, crew_of, verdict

USAGE = Usage(calls=1, input_tokens=9, output_tokens=1, total_tokens=10)
CASE = a_datapoint(a_scenario(cognition={"slots": ["onset", "mood"]}))


class Model:
    """Answers with the beliefs it was given."""

    name = "m"

    def __init__(self, *beliefs: dict[str, str], error: CallError | None = None) -> None:
        self.beliefs, self.error = beliefs, error
        self.asked: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        if self.error is not None:
            raise self.error
        return ChatReply(answer={"beliefs": list(self.beliefs)}, usage=USAGE)


async def detected(*beliefs: dict[str, str]) -> BeliefReply:
    rows = [user("Hi"), assistant("Since when?"), user("It began two  hours ago.")]
    return await DetectorRole(Model(*beliefs), ("onset", "mood")).detect(rows)


async def test_a_value_with_a_quote_from_the_message_is_kept_with_it() -> None:
    said = {"slot": "onset", "value": "2 h", "quote": "two hours ago", "certainty": "explicit"}
    [one] = (await detected(said)).updates
    assert (one.value, one.certainty, one.evidence, one.row) == ("2 h", "explicit", "two hours ago", 2)


async def test_a_value_whose_quote_does_not_hold_is_only_suspected() -> None:
    said = {"slot": "mood", "value": "calm", "quote": "I am calm", "certainty": "explicit"}
    [one] = (await detected(said)).updates
    assert (one.certainty, one.evidence) == ("suspected", None)


@pytest.mark.parametrize(
    ("said", "quote", "holds"),
    [
        ("I can't breathe.", "can", False),
        ("It cost 1,000 euros.", "1", False),
        ("It cost 1,000 euros.", "1,000", True),
        ("A non-smoker.", "smoker", False),
        ("I can\u2019t breathe.", "can't breathe", True),
        ("From the cafe\u0301.", "caf\u00e9", True),
        ("From the cafe\u0301.", "cafe", False),
        ("Since two  hours.", "\u201csince two hours\u201d", True),
        ("Yes.", "...", False),
    ],
)
async def test_a_quote_of_a_user_holds_by_the_rule_for_quotes_in_verdicts(said: str, quote: str, holds: bool) -> None:
    belief = {"slot": "onset", "value": "x", "quote": quote, "certainty": "explicit"}
    [one] = (await DetectorRole(Model(belief), ("onset",)).detect([user(said)])).updates
    assert (one.certainty, one.evidence) == (("explicit", quote) if holds else ("suspected", None))


async def test_slots_that_the_case_does_not_name_are_left_out() -> None:
    assert (await detected({"slot": "age", "value": "3", "quote": "two", "certainty": "explicit"})).updates == ()


def test_a_case_without_slots_has_no_detector() -> None:
    assert model_detector(Model())(Seat(a_datapoint(), "t", 0, 1)) is None


# ---------------------------------------------------------------- in a conversation


async def talk(model: Model) -> SimulationResult:
    crew = crew_of(
        target=["Hm.", "I see."],
        user=["It began today.", "I am calm."],
        judge=[verdict(), verdict(stop=True)],
        detector=model_detector(model),
    )
    return await converse(CASE, crew)


async def test_each_message_is_noted_once_and_what_that_cost_is_booked() -> None:
    model = Model({"slot": "onset", "value": "today", "quote": "began today", "certainty": "inferred"})
    result = await talk(model)
    assert result.turn_count == len(model.asked) == 2
    assert result.usage_by_role["beliefs"].total_tokens == result.token_usage.total_tokens == 20
    graph = result.cognition.belief  # type: ignore[union-attr]
    assert [(item.value, item.certainty, item.turn) for item in graph.slots["onset"]] == [
        ("today", "inferred", 0),
        ("today", "suspected", 1),
    ]
    assert [one.text for one in graph.evidence_for("onset", 0)] == ["began today"]


@pytest.mark.parametrize(
    "error", [CallError("server_error", "HTTP 500"), CallError("truncated_response", "cut", usage=USAGE)]
)
async def test_a_question_that_fails_is_noted_and_ends_nothing(error: CallError) -> None:
    result = await talk(Model(error=error))
    assert (result.ended_by, result.turn_count, result.token_usage_known) == ("judge", 2, True)
    assert result.cognition.belief.slots == {}  # type: ignore[union-attr]


async def test_a_detector_that_breaks_makes_the_cost_unknown() -> None:
    class Broken:
        async def detect(self, messages: Sequence[Message]) -> BeliefReply:
            raise ZeroDivisionError

    result = await converse(CASE, crew_of(judge=[verdict(stop=True)], detector=lambda _seat: Broken()))
    assert (result.ended_by, result.token_usage_known) == ("judge", False)
