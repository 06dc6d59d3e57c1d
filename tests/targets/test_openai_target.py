from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from evaluatorq.errors import CallError
from evaluatorq.model.cases import Persona, Scenario, SimulationDatapoint
from evaluatorq.model.messages import FunctionCall, Message, ToolCall, assistant, tool_call, tool_result, user
from evaluatorq.model.usage import Usage
from evaluatorq.ports import ChatReply, ChatRequest, Seat, ToolSpec, ToolsReply
from evaluatorq.targets.openai import START_SIGNAL, OpenAITarget, openai_target

USAGE = Usage(input_tokens=3, output_tokens=4, total_tokens=7, calls=1)
TRACK = ToolSpec("track", "Finds a parcel.", {"type": "object"})


class Model:
    """A ``ChatModel`` that gives its replies in turn and keeps what it was asked."""

    name = "m"

    def __init__(self, *replies: ChatReply) -> None:
        self.replies = list(replies)
        self.asked: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        return self.replies.pop(0)

    @property
    def rows(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.asked[-1].lines]


class Shelf:
    """An environment with one tool."""

    tools = (TRACK,)

    async def run(self, calls: Sequence[ToolCall]) -> ToolsReply:
        raise NotImplementedError

    def snapshot(self) -> None:
        return None

    def restore(self, state: object) -> None:
        raise NotImplementedError


def seat(environment: Shelf | None = None) -> Seat:
    traits = {"patience": 0.5, "assertiveness": 0.5, "politeness": 0.5, "technical_level": 0.5}
    persona = Persona.model_validate({"name": "p", "communication_style": "casual", "background": "b", **traits})
    point = SimulationDatapoint(id="d", persona=persona, scenario=Scenario(name="s", goal="g"))
    return Seat(point, "t", 0, 5, environment)


def target(model: Model, *, system_prompt: str | None = None, environment: Shelf | None = None) -> OpenAITarget:
    made = openai_target(model, system_prompt=system_prompt)(seat(environment))
    assert isinstance(made, OpenAITarget)
    return made


async def test_the_whole_transcript_with_its_tool_rows_is_sent_and_the_answer_is_one_row() -> None:
    model = Model(ChatReply(text="At the depot.", usage=USAGE, model="m-1", response_id="r", finish_reason="stop"))
    call = tool_call("t1", "track", {"id": "P1"})
    rows = [user("Where is P1?"), assistant(None, [call]), tool_result("t1", "at depot", "track")]
    reply = await target(model, system_prompt="You help.").respond(rows, thread_id="t")
    assert model.rows == [row.to_chat_completion() for row in rows]
    assert model.asked[0].prefix.system == "You help."
    assert reply.messages == (Message(role="assistant", content="At the depot."),)
    assert (reply.usage, reply.model, reply.response_id, reply.finish_reason) == (USAGE, "m-1", "r", "stop")
    assert reply.reports_tools


async def test_tools_are_offered_where_there_is_an_environment() -> None:
    with_tools, without = Model(ChatReply(text="x")), Model(ChatReply(text="x"))
    await target(with_tools, environment=Shelf()).respond([user("hi")], thread_id="t")
    await target(without).respond([user("hi")], thread_id="t")
    assert with_tools.asked[0].prefix.tools == (TRACK,)
    assert without.asked[0].prefix.tools == ()


async def test_calls_become_a_row_that_the_environment_can_answer() -> None:
    call = ToolCall(id="t1", function=FunctionCall(name="track", arguments="{}"))
    for text, content in (("", None), ("One moment.", "One moment.")):
        reply = await target(Model(ChatReply(text=text, tool_calls=(call,)))).respond([user("hi")], thread_id="t")
        assert reply.messages == (Message(role="assistant", content=content, tool_calls=[call]),)


async def test_a_call_id_that_was_used_before_is_replaced_so_that_the_call_is_run() -> None:
    call = ToolCall(id="call_0", function=FunctionCall(name="track", arguments="{}"))
    rows = [user("a"), assistant(None, [call]), tool_result("call_0", "x"), assistant("x"), user("b")]
    reply = await target(Model(ChatReply(tool_calls=(call,)))).respond(rows, thread_id="t")
    (again,) = reply.messages[0].tool_calls or []
    assert again.id not in ("", "call_0")
    assert again.function == call.function


async def test_an_agent_that_opens_is_told_to_and_never_gets_an_empty_user_message() -> None:
    model = Model(ChatReply(text="Welcome."), ChatReply(text="Sure."))
    agent = target(model)
    await agent.respond([], thread_id="t")
    assert (list(model.asked[0].lines), model.asked[0].tail) == ([], START_SIGNAL)
    await agent.respond([assistant("Welcome."), user("I need help")], thread_id="t")
    assert model.asked[1].tail is None


async def test_a_refusal_is_what_the_agent_said() -> None:
    reply = await target(Model(ChatReply(refusal="I cannot."))).respond([user("hi")], thread_id="t")
    assert reply.messages[0].text == "I cannot."


@pytest.mark.parametrize(
    ("answer", "code", "retryable"),
    [
        (ChatReply(usage=USAGE), "empty_reply", True),
        (ChatReply(text=" \n", usage=USAGE), "empty_reply", True),
        (ChatReply(usage=USAGE, finish_reason="content_filter"), "content_filter", False),
    ],
)
async def test_an_answer_with_neither_words_nor_calls_is_a_failure_with_its_cost(
    answer: ChatReply, code: str, retryable: bool
) -> None:
    with pytest.raises(CallError) as caught:
        await target(Model(answer)).respond([user("hi")], thread_id="t")
    assert (caught.value.code, caught.value.retryable, caught.value.usage) == (code, retryable, USAGE)
    assert not caught.value.reask, "an agent gets as many attempts as it was promised, whatever is wrong"


CALL = tool_call("call_1", "f", {})


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        ([assistant(None, [CALL]), tool_result("call_1", "a"), tool_result("call_1", "b")], "message 2"),
        ([assistant(None, [CALL]), tool_result("call_1", "a"), tool_result("ghost", "c")], "message 2"),
        ([user("x"), tool_result("ghost", "c")], "message 1"),
        ([assistant(None, [CALL]), user("x")], "message 1"),
        ([user("x"), assistant(None, [CALL])], "message 1"),
        ([assistant(None, [CALL, CALL])], "message 0"),
    ],
)
async def test_tool_rows_that_do_not_fit_are_named_before_anything_is_sent(rows: list[Message], place: str) -> None:
    model = Model(ChatReply(text="x"))
    with pytest.raises(CallError, match=place) as caught:
        await target(model).respond(rows, thread_id="t")
    assert (caught.value.code, caught.value.retryable) == ("target_protocol", False)
    assert model.asked == []


async def test_results_in_another_order_and_several_rounds_fit() -> None:
    first, second = tool_call("a", "f", {}), tool_call("b", "f", {})
    rows = [user("x"), assistant(None, [first, second]), tool_result("b", "1"), tool_result("a", "2"), assistant("y")]
    model = Model(ChatReply(text="z"))
    reply = await target(model).respond(rows, thread_id="t")
    assert reply.messages[-1].text == "z"
    assert [row["role"] for row in model.rows] == ["user", "assistant", "tool", "tool", "assistant"]
