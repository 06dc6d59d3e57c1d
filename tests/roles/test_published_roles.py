"""Simulators and judges that were written for the published interface take part as they are."""

from __future__ import annotations

import asyncio
import math
from types import SimpleNamespace

import pytest

from evaluatorq.errors import CallError
from evaluatorq.model.cases import CommunicationStyle, Persona, Scenario, SimulationDatapoint
from evaluatorq.model.judgments import CriterionVerdict, Judgment
from evaluatorq.model.messages import Message, assistant, tool_call, tool_result, user
from evaluatorq.model.usage import Usage
from evaluatorq.ports import Seat
from evaluatorq.roles.published import published_judge, published_user

SCENARIO = Scenario.model_validate(
    {
        "name": "late parcel",
        "goal": "get a delivery date",
        "ground_truth": "Friday",
        "criteria": [
            {"must_happen": "CRITERION-ZERO"},
            {"must_happen": "CRITERION-ONE", "check": {"agent_says": "x"}},
            {"must_not_happen": "CRITERION-TWO"},
        ],
    }
)
PERSONA = Persona(
    name="Dana",
    patience=0.2,
    assertiveness=0.8,
    politeness=0.5,
    technical_level=0.5,
    communication_style=CommunicationStyle.TERSE,
    background="baker",
)
SEAT = Seat(SimulationDatapoint(id="dp_1", persona=PERSONA, scenario=SCENARIO), "run:0", 1, 10)
JUDGMENT = Judgment(
    should_terminate=True,
    reason="done",
    goal_achieved=True,
    goal_completion_score=1.0,
    criteria_verdicts=[CriterionVerdict(criterion_id="criteria_0", occurred=True, evidence="paraphrased")],
)


class Counting:
    """Counts ten tokens a call, as the published agents do."""

    def __init__(self) -> None:
        self.usage = Usage(input_tokens=999, total_tokens=999, calls=9)

    def get_usage(self) -> Usage:
        return self.usage

    def reset_usage(self) -> None:
        self.usage = Usage()

    def spend(self) -> None:
        self.usage = self.usage + Usage(input_tokens=10, total_tokens=10, calls=1)


class Simulator(Counting):
    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Message] = []
        self.told = ("", "")

    def update_context(self, persona_context: str, scenario_context: str) -> None:
        self.told = (persona_context, scenario_context)

    async def generate_first_message(self) -> str:
        self.spend()
        return "Where is it?"

    async def respond_async(self, messages: list[Message]) -> str:
        self.spend()
        await asyncio.sleep(0)
        self.heard[:] = messages
        return f"{len(messages)} rows"


class Auditor(Counting):
    def __init__(self) -> None:
        super().__init__()
        self.settled: list[list[str]] = []
        self.told: dict[str, object] = {}
        self.answer: object = JUDGMENT

    def update_context(self, goal: str, criteria: object, ground_truth: str | None) -> None:
        self.told = {"goal": goal, "criteria": criteria, "ground_truth": ground_truth}

    def mark_settled(self, ids: list[str]) -> None:
        self.settled.append(list(ids))

    async def evaluate(self, messages: list[Message]) -> object:
        self.spend()
        return self.answer


async def test_an_injected_simulator_hears_the_agent_as_user_and_its_tokens_are_counted():
    simulator = Simulator()
    role = published_user(simulator)(SEAT)
    first = await role.speak(())
    assert (first.text, first.stop, first.usage and first.usage.input_tokens) == ("Where is it?", False, 10)
    rows = (
        user("Where is it?"),
        assistant(None, [tool_call("t1", "track", {})]),
        tool_result("t1", "at depot"),
        assistant("At the depot."),
    )
    second = await role.speak(rows)
    assert (second.text, second.usage and second.usage.input_tokens) == ("2 rows", 10)
    assert [(row.role, row.text) for row in simulator.heard] == [
        ("assistant", "Where is it?"),
        ("user", "At the depot."),
    ]


async def test_an_injected_simulator_is_told_who_it_is_and_nothing_of_criteria():
    told: list[str] = []
    simulator = Simulator()
    simulator.update_context = lambda persona_context, scenario_context: told.extend(  # type: ignore[method-assign]
        [persona_context, scenario_context]
    )
    published_user(simulator)(SEAT)
    assert "Dana" in told[0]
    assert "get a delivery date" in told[1]
    assert "CRITERION" not in "".join(told)
    assert "Friday" not in "".join(told)


async def test_each_conversation_gets_a_copy_of_the_injected_object():
    simulator, auditor = Simulator(), Auditor()
    published_user(simulator)(SEAT)
    published_judge(auditor)(SEAT)
    assert simulator.told == ("", "")
    assert auditor.told == {}
    assert simulator.usage.input_tokens == 999


async def test_an_injected_simulator_that_says_nothing_is_asked_once_more():
    class Silent(Simulator):
        async def generate_first_message(self) -> str:
            self.spend()
            return "  "

    role = published_user(Silent())(SEAT)
    faults = []
    for _ in range(2):
        with pytest.raises(CallError) as caught:
            await role.speak(())
        faults.append(caught.value)
    assert [(f.code, f.reask, f.usage and f.usage.calls) for f in faults] == [
        ("empty_reply", True, 1),
        ("empty_reply", False, 1),
    ]


@pytest.mark.parametrize("error", [CallError("timeout", "too slow", retryable=True), RuntimeError("the wire broke")])
async def test_what_an_injected_simulator_spent_before_it_raised_is_counted_with_the_error(error: Exception):
    class Breaks(Simulator):
        async def generate_first_message(self) -> str:
            self.spend()
            raise error

    with pytest.raises(CallError) as raised:
        await published_user(Breaks())(SEAT).speak(())
    assert raised.value.usage == Usage(input_tokens=10, total_tokens=10, calls=1)
    assert str(error) in raised.value.message


async def test_an_injected_simulator_that_returns_no_text_is_named():
    class Odd(Simulator):
        async def generate_first_message(self) -> str:
            return 7  # type: ignore[return-value]

    with pytest.raises(CallError, match="not int"):
        await published_user(Odd())(SEAT).speak(())


async def test_an_injected_judge_is_taken_at_its_word_and_not_held_to_quotes():
    reply = await published_judge(Auditor())(SEAT).judge((), ["criteria_0", "criteria_2"], final=False)
    assert reply.judgment == JUDGMENT
    assert (reply.strict, reply.refused, reply.goal_known) == (False, {}, True)
    assert reply.usage == Usage(input_tokens=10, total_tokens=10, calls=1)


async def test_an_injected_judge_is_told_goal_criteria_and_truth_and_later_what_is_settled():
    told: list[dict] = []
    auditor = Auditor()
    auditor.update_context = lambda **facts: told.append(facts)  # type: ignore[method-assign]
    role = published_judge(auditor)(SEAT)
    await role.judge((), ["criteria_0", "criteria_2"], final=False)
    await role.judge((), ["criteria_0", "criteria_2"], final=False)
    await role.judge((), ["criteria_2"], final=True)
    assert told == [{"goal": "get a delivery date", "criteria": SCENARIO.criteria, "ground_truth": "Friday"}]
    assert auditor.settled == [["criteria_1"], ["criteria_0", "criteria_1"]]


async def test_a_judge_needs_nothing_but_evaluate_which_may_be_a_plain_function():
    judge = SimpleNamespace(evaluate=lambda messages: JUDGMENT)
    reply = await published_judge(judge)(SEAT).judge((), ["criteria_0"], final=False)
    assert (reply.judgment, reply.usage) == (JUDGMENT, None)


@pytest.mark.parametrize("shape", [JUDGMENT.model_dump(), SimpleNamespace(**JUDGMENT.model_dump())])
async def test_a_judgment_may_be_a_mapping_or_any_object_with_its_fields(shape: object):
    judge = SimpleNamespace(evaluate=lambda messages: shape)
    assert (await published_judge(judge)(SEAT).judge((), [], final=False)).judgment == JUDGMENT


@pytest.mark.parametrize(
    "shape",
    [None, "yes", {"goal_achieved": True}, {**JUDGMENT.model_dump(), "goal_completion_score": math.nan},
     {**JUDGMENT.model_dump(), "factual_accuracy": math.inf}],
)  # fmt: skip
async def test_what_is_no_judgment_is_a_judge_fault_and_is_not_asked_again(shape: object):
    judge = SimpleNamespace(evaluate=lambda messages: shape)
    with pytest.raises(CallError) as caught:
        await published_judge(judge)(SEAT).judge((), [], final=False)
    assert (caught.value.code, caught.value.retryable) == ("bad_verdict", False)


async def test_a_counter_that_fails_makes_the_usage_unknown_and_nothing_else():
    auditor = Auditor()
    role = published_judge(auditor)(SEAT)
    auditor_copy = role._judge
    auditor_copy.get_usage = lambda: 1 / 0
    reply = await role.judge((), [], final=False)
    assert (reply.judgment, reply.usage) == (JUDGMENT, None)


def test_a_wrong_object_is_refused_by_the_names_of_the_methods_it_lacks():
    with pytest.raises(TypeError, match="SimpleNamespace has no respond_async, update_context"):
        published_user(SimpleNamespace(generate_first_message=print))
    with pytest.raises(TypeError, match="dict has no evaluate"):
        published_judge({})
