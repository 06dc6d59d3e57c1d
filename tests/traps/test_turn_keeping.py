"""Symptoms that people met in who speaks when: turns lost, added, rewritten or cut off, each as small as it can be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import BaseModel, JsonValue

from evaluatorq.environments.toolbox import Toolbox
from evaluatorq.model.events import Event, TargetReplied, UserSpoke
from evaluatorq.model.messages import Message, assistant, tool_call
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import Limits
from evaluatorq.model.usage import NO_USAGE, Usage
from evaluatorq.ports import ChatReply, ChatRequest, TargetReply, UserReply
from evaluatorq.roles.user import model_user
from evaluatorq.testing import ScriptedTarget, a_datapoint, a_scenario, converse, crew_of, verdict

TEN = Usage(input_tokens=10, total_tokens=10, calls=1)


class Shop(BaseModel):
    refunds: list[str] = []


def refund(state: Shop, order: str) -> str:
    """Refunds it."""
    state.refunds.append(order)
    return "done"


def said(result: SimulationResult) -> list[tuple[str, str]]:
    return [(row.role, row.text) for row in result.messages if row.role in ("user", "assistant") and row.text]


class UserModel:
    """Answers as the simulated user's model, in order, the last one for ever."""

    name = "user-model"

    def __init__(self, *lines: str | tuple[str, bool]) -> None:
        self.lines = [line if isinstance(line, tuple) else (line, False) for line in lines]
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        text, stop = self.lines[min(len(self.requests), len(self.lines) - 1)]
        self.requests.append(request)
        answer: dict[str, JsonValue] = {"reply": text, "end_conversation": stop}
        return ChatReply(answer=answer, usage=TEN, raw=text)


async def test_a_user_who_agrees_and_stops_in_one_breath_keeps_the_agent_from_doing_it() -> None:
    call = TargetReply((assistant(None, [tool_call("t1", "refund", {"order": "A1"})]),), usage=NO_USAGE)
    lines = ["Refund A1, is that right?", call, "It is refunded."]

    class Agent(ScriptedTarget):
        async def respond(self, messages: object, *, thread_id: str) -> TargetReply:
            self.asked.append(())
            return await ScriptedTarget([lines[len(self.asked) - 1]]).respond((), thread_id=thread_id)

    goal = a_scenario(environment="shop", goal_state=[{"pointer": "/refunds", "equals": ["A1"]}])
    crew = crew_of(
        user=["Please refund order A1", UserReply("Yes, go ahead.", stop=True, usage=NO_USAGE)],
        judge=[verdict()],
        environment=lambda: Toolbox(Shop(), [refund]),
    )
    result = await converse(a_datapoint(goal), replace(crew, target=lambda _seat: Agent(["unused"])))
    assert (result.ended_by, result.goal_achieved, result.turn_count) == ("user", True, 2)
    assert said(result)[-1] == ("assistant", "It is refunded.")


@pytest.mark.parametrize("blank", ["", "   ", "\n\t "])
async def test_an_empty_simulator_reply_is_handed_to_the_agent_as_a_turn(blank: str) -> None:
    model, target = UserModel("Hello there", blank), ScriptedTarget(["How can I help?"])
    crew = replace(crew_of(judge=[verdict()]), user=model_user(model), target=lambda _seat: target)
    result = await converse(a_datapoint(), crew, Limits(max_turns=3))
    assert all(row.text.strip() for asked in target.asked for row in asked if row.role == "user")
    assert (result.failed_component, result.metadata["error_type"]) == ("user_simulator", "empty_reply")
    assert len(model.requests) == 3, "the opening, the empty turn, and one new attempt"
    assert said(result) == [("user", "Hello there"), ("assistant", "How can I help?")]


async def test_words_beside_the_wish_to_stop_are_thrown_away() -> None:
    model = UserModel(("My code is 4471, that is all", True))
    crew = replace(crew_of(target=["Thank you, goodbye."], judge=[verdict()]), user=model_user(model))
    result = await converse(a_datapoint(), crew)
    assert said(result)[0] == ("user", "My code is 4471, that is all")
    assert result.ended_by == "user"


async def test_a_magic_stop_word_reaches_the_agent() -> None:
    model, target = UserModel("My code is 4471 ###STOP###", "My code is 4471"), ScriptedTarget(["Thank you."])
    crew = replace(crew_of(judge=[verdict(stop=True)]), user=model_user(model), target=lambda _seat: target)
    result = await converse(a_datapoint(), crew)
    assert said(result)[0] == ("user", "My code is 4471")


@pytest.mark.parametrize("line", ["Exact text: ORDER-77 / ß / 0,5", " \ttrailing  ", "###STOP###", "I am an AI"])
async def test_a_fixed_first_line_is_rewritten_by_the_simulators_model(line: str) -> None:
    model, events = UserModel("Hello, could you help me with an order?"), list[Event]()
    target = ScriptedTarget(["Certainly."])
    crew = replace(crew_of(judge=[verdict(stop=True)]), user=model_user(model), target=lambda _seat: target)
    result = await converse(a_datapoint(first_message=line), crew, events=events)
    assert [row.content for row in target.asked[0]] == [line]
    assert model.requests == []
    assert result.token_usage == NO_USAGE
    assert [event.source for event in events if isinstance(event, UserSpoke)] == ["first_message"]


@pytest.mark.parametrize("cap", [1, 2, 3])
@pytest.mark.parametrize("first", ["", "A fixed first line"])
async def test_the_turn_cap_is_off_by_one_where_the_user_speaks_twice(cap: int, first: str) -> None:
    crew = crew_of(user=["u1", "u2", "u3", "u4"], target=["a1", "a2", "a3", "a4"], judge=[verdict()])
    result = await converse(a_datapoint(first_message=first), crew, Limits(max_turns=cap))
    assert [role for role, _ in said(result)] == ["user", "assistant"] * cap
    assert (result.turn_count, result.terminated_by.value) == (cap, "max_turns")


async def test_an_agent_that_greets_first_is_waited_for_in_vain_or_sent_an_empty_line() -> None:
    target = ScriptedTarget(["Welcome, this is support.", "Sure."])
    crew = replace(crew_of(user=["I need help"], judge=[verdict()]), target=lambda _seat: target)
    result = await converse(a_datapoint(a_scenario(opens="agent")), crew, Limits(max_turns=1))
    assert said(result) == [("assistant", "Welcome, this is support."), ("user", "I need help"), ("assistant", "Sure.")]
    assert target.asked[0] == ()


async def test_the_simulators_prompt_holds_tool_rows_that_no_provider_accepts() -> None:
    model, events = UserModel("Where is parcel P1?", "Thanks, which depot?"), list[Event]()
    reply = TargetReply(
        (
            assistant(None, [tool_call("t1", "track", {"id": "P1"})]),
            Message(role="tool", tool_call_id="t1", content="at depot 12345"),
            assistant("It is at the depot."),
        ),
        usage=NO_USAGE,
    )
    crew = replace(crew_of(target=[reply], judge=[verdict()]), user=model_user(model))
    result = await converse(a_datapoint(), crew, Limits(max_turns=2), events=events)
    lines = b"".join(model.requests[1].lines).decode()
    assert "It is at the depot." in lines
    for hidden in ("tool_calls", '"tool"', "track", "depot 12345"):
        assert hidden not in lines
    assert [row.role for row in result.messages[:4]] == ["user", "assistant", "tool", "assistant"]
    assert sum(isinstance(event, TargetReplied) for event in events) == 2
