"""Objects in the published shapes, and the AI SDK route in both of its protocols."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from pydantic import JsonValue
from talking import Answered, ask, endpoint, failure, seat

from evaluatorq.errors import CallError, ConfigError
from evaluatorq.model.messages import Message, assistant, tool_call, tool_result, user
from evaluatorq.model.responses import AgentResponse
from evaluatorq.model.usage import Usage
from evaluatorq.ports import TargetReply
from evaluatorq.targets.conformance import BrokenTarget, check_target
from evaluatorq.targets.published import AgentTarget, CallableTarget, ObjectTarget, from_chat_completions
from evaluatorq.targets.resolve import resolve_target
from evaluatorq.targets.vercel import VercelAISdkTarget


class Desk(AgentTarget):
    """A published agent that notes what becomes of it."""

    made = 0
    closed: list[int]

    def __init__(self) -> None:
        self.closed = []
        self.number = 0

    def new(self) -> Desk:
        clone = Desk()
        clone.closed = self.closed
        Desk.made += 1
        clone.number = Desk.made
        return clone

    async def respond(self, messages: list[Message]) -> AgentResponse:
        if messages[-1].text == "break":
            raise KeyError("tariff")
        return AgentResponse.of(f"{len(messages)} rows", usage=Usage(total_tokens=4, calls=1))

    def map_error(self, error: Exception) -> tuple[str, str] | None:
        return ("rate_limit", "the tariff service is busy") if isinstance(error, KeyError) else None

    async def close(self) -> None:
        self.closed.append(self.number)


def first(spec: object) -> ObjectTarget:
    target = resolve_target(spec).factory(seat())
    assert isinstance(target, ObjectTarget)
    return target


async def test_a_published_agent_answers_is_closed_and_keeps_the_port() -> None:
    desk = Desk()
    replies = await check_target(resolve_target(desk, parallelism=4).factory)
    assert [reply.messages[0].text for reply in replies] == ["1 rows", "3 rows"]
    assert replies[0].usage == Usage(total_tokens=4, calls=1)
    assert sorted(set(desk.closed)) == [Desk.made - 1, Desk.made]


async def test_an_agents_own_reading_of_its_errors_is_used() -> None:
    error = await failure(first(Desk()), "break")
    assert (error.code, error.message, error.retryable) == ("rate_limit", "the tariff service is busy", True)


async def test_our_own_shape_gets_the_thread_id_and_may_return_rows() -> None:
    class Ours:
        stateful = False

        async def respond(self, messages: list[Message], *, thread_id: str) -> TargetReply:
            return TargetReply((assistant(thread_id),), reports_tools=True)

    target = first(Ours)
    assert not target.stateful
    assert (await ask(target, "hi", thread_id="run:3")).messages[0].text == "run:3"


def test_an_object_that_may_remember_counts_as_stateful() -> None:
    class Silent:
        def respond(self, messages: list[Message]) -> str:
            return "x"

    class Shared(Silent):
        shareable = True

    class Declared(Silent):
        stateful = False

    assert first(Silent).stateful
    assert first(Desk()).stateful
    assert not first(Shared()).stateful
    assert not first(Declared).stateful
    assert not first(CallableTarget(lambda messages: "x")).stateful


async def test_a_shared_object_is_not_closed_and_a_failing_close_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    class Shared:
        shareable = True
        closed = False

        def respond(self, messages: list[Message]) -> str:
            return "x"

        def close(self) -> None:
            self.closed = True

    class Unclosable:
        async def respond(self, messages: list[Message]) -> str:
            return "x"

        async def aclose(self) -> None:
            raise RuntimeError("no")

    shared = Shared()
    await first(shared).aclose()
    assert not shared.closed
    await first(Unclosable).aclose()
    assert "Unclosable could not be closed: RuntimeError: no" in caplog.text


# ---------------------------------------------------------------- helpers


async def test_a_callable_target_says_what_a_text_answer_cost_and_is_reset() -> None:
    resets: list[int] = []
    made = CallableTarget(
        lambda messages: "four words are here",
        reset_fn=lambda: resets.append(1),
        usage_fn=lambda messages, text: Usage(output_tokens=len(text.split())),
    )
    reply = await ask(first(made), "hi")
    assert reply.usage == Usage(output_tokens=4)
    assert resets == [1]

    def broken(messages: list[Message], text: str) -> Usage:
        raise ValueError

    assert (await ask(first(CallableTarget(lambda messages: "x", usage_fn=broken)), "hi")).usage is None
    assert (await failure(first(CallableTarget(lambda messages: None)))).code == "empty_reply"
    assert (await failure(first(CallableTarget(lambda messages: 5)))).code == "target_protocol"


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_chat_completions_function_sees_tool_traffic_as_text(is_async: bool) -> None:
    seen: list[list[dict[str, str]]] = []

    def plain(rows: list[dict[str, str]]) -> str:
        seen.append(rows)
        return "ok"

    async def waiting(rows: list[dict[str, str]]) -> str:
        return plain(rows)

    agent = from_chat_completions(waiting if is_async else plain)
    resolved = resolve_target(agent)
    assert (resolved.kind, resolved.name) == ("callback", "waiting" if is_async else "plain")
    rows = [user("hi"), assistant(None, [tool_call("c", "look", {"order": "A1"})]), tool_result("c", "sent", "look")]
    assert (await ask(resolved.factory(seat()), *rows)).messages[0].text == "ok"
    assert seen == [[
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": '[called look({"order": "A1"})]'},
        {"role": "assistant", "content": "[look returned sent]"},
    ]]  # fmt: skip


# ---------------------------------------------------------------- the conformance check itself


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ("text", "returned str, not a TargetReply"),
        (TargetReply(()), "at least one row"),
        (TargetReply((user("x"),)), "row 0 has the role user"),
        (TargetReply((tool_result("x", "1"), assistant("x"))), "unknown call 'x'"),
        (TargetReply((assistant(" "),)), "ends in words"),
    ],
)
async def test_the_check_names_how_a_target_breaks_the_port(reply: object, says: str) -> None:
    class Raw:
        stateful = False

        async def respond(self, messages: object, *, thread_id: str) -> object:
            return reply

    with pytest.raises(BrokenTarget, match=says):
        await check_target(lambda seat: Raw())  # type: ignore[arg-type,return-value]  # broken on purpose
    shared = Raw()
    with pytest.raises(BrokenTarget, match="same object"):
        await check_target(lambda seat: shared)  # type: ignore[arg-type,return-value]  # broken on purpose


# ---------------------------------------------------------------- the AI SDK route


def sse(*parts: JsonValue, end: str = "data: [DONE]\n\n") -> Answered:
    body = "".join(f"data: {json.dumps(part)}\n\n" for part in parts)
    return Answered(body + end, headers={"content-type": "text/event-stream", "x-vercel-ai-ui-message-stream": "v1"})


def lines(*frames: str) -> Answered:
    return Answered("".join(f"{frame}\n" for frame in frames), headers={"content-type": "text/plain; charset=utf-8"})


async def route(answer: Answered, *messages: Message | str) -> TargetReply:
    with endpoint(answer) as there:
        resolved = resolve_target(VercelAISdkTarget(f"{there.url}/api/chat"), parallelism=4)
        try:
            return await ask(resolved.factory(seat()), *(messages or ("hi",)))
        finally:
            await resolved.aclose()


async def route_failure(answer: Answered) -> CallError:
    with pytest.raises(CallError) as caught:
        await route(answer)
    return caught.value


async def test_a_version_5_stream_is_put_together() -> None:
    reply = await route(
        sse(
            {"type": "start", "messageId": "m1"},
            {"type": "start-step"},
            {"type": "reasoning-start", "id": "r"},
            {"type": "reasoning-delta", "id": "r", "delta": "think"},
            {"type": "tool-input-available", "toolCallId": "c1", "toolName": "look", "input": {"order": "A1"}},
            {"type": "tool-output-available", "toolCallId": "c1", "output": {"status": "sent"}},
            {"type": "text-start", "id": "t"},
            {"type": "text-delta", "id": "t", "delta": "It is "},
            {"type": "text-delta", "id": "t", "delta": "on its way."},
            {"type": "text-end", "id": "t"},
            {"type": "text-start", "id": "u"},
            {"type": "text-delta", "id": "u", "delta": "Anything else?"},
            {"type": "text-end", "id": "u"},
            {"type": "data-weather", "data": {"x": 1}},
            {"type": "finish", "messageMetadata": {"totalUsage": {"inputTokens": 3, "outputTokens": 4}}},
        )
    )
    assert reply.messages == (
        assistant(None, [tool_call("c1", "look", {"order": "A1"})]),
        tool_result("c1", '{"status":"sent"}', "look"),
        assistant("It is on its way.\n\nAnything else?"),
    )
    assert reply.reasoning == "think"
    assert reply.response_id == "m1"
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (3, 4)


async def test_a_version_4_stream_is_put_together() -> None:
    reply = await route(
        lines(
            'f:{"messageId":"m1"}',
            'g:"think"',
            '9:{"toolCallId":"c1","toolName":"look","args":{"order":"A1"}}',
            'a:{"toolCallId":"c1","result":{"status":"sent"}}',
            '0:"It is "',
            '0:"on its way.\\u2028"',
            '2:[{"any":"data"}]',
            'e:{"finishReason":"stop","usage":{"promptTokens":3,"completionTokens":4},"isContinued":false}',
            'd:{"finishReason":"stop","usage":{"promptTokens":3,"completionTokens":4}}',
        )
    )
    assert [row.role for row in reply.messages] == ["assistant", "tool", "assistant"]
    assert reply.messages[-1].text == "It is on its way.\u2028"
    assert (reply.reasoning, reply.response_id, reply.finish_reason) == ("think", "m1", "stop")
    assert reply.usage is not None
    assert reply.usage.total_tokens == 7


@pytest.mark.parametrize(
    ("answer", "code", "says"),
    [
        (sse({"type": "error", "errorText": "model overloaded"}), "target_error", "model overloaded"),
        (lines('0:"Hel"', '3:"model overloaded"'), "target_error", "model overloaded"),
        (lines('0:"Hel"', 'd:{"finishReason":"error"}'), "target_error", "finished with an error"),
        (Answered({"error": {"message": "no such bot", "code": "x"}}), "target_error", "no such bot"),
        (Answered({"message": {"content": None}}), "empty_reply", "message.content is null"),
        (sse({"type": "text-start", "id": "t"}, {"type": "text-delta", "id": "t", "delta": "He"}, end=""),
         "truncated_response", "broke off"),
        (sse({"type": "abort"}), "truncated_response", "broke off"),
        (sse({"type": "tool-output-available", "toolCallId": "c9", "output": 1}), "target_protocol", "'c9'"),
        (lines('0:"Hel"', "lo there"), "target_protocol", "no part of a data stream: 'lo there'"),
        (sse({"type": "start"}, {"type": "finish"}), "empty_reply", "without words"),
        (Answered("", status=503), "server_error", "503"),
        (Answered("<html></html>", headers={"content-type": "text/html"}), "target_protocol", "HTML"),
        (Answered("  "), "empty_reply", "empty body"),
    ],
)  # fmt: skip
async def test_errors_of_a_route_are_errors_never_replies(answer: Answered, code: str, says: str) -> None:
    error = await route_failure(answer)
    assert error.code == code
    assert says in error.message


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Answered("Plain text.\n1:30 is fine."), "Plain text.\n1:30 is fine."),
        (Answered("1: first\n2: second"), "1: first\n2: second"),
        (Answered({"choices": [{"message": {"content": "From a completion."}}]}), "From a completion."),
        (Answered({"message": {"content": "From a message."}}), "From a message."),
        (Answered('"A JSON string."', headers={"content-type": "application/json"}), "A JSON string."),
        (sse({"choices": [{"delta": {"content": "chunks"}}]}), "chunks"),
    ],
)
async def test_other_answers_of_a_route_are_read_as_what_they_are(answer: Answered, text: str) -> None:
    assert (await route(answer)).messages[-1].text == text


@pytest.mark.parametrize("form", ["v5", "v4"])
async def test_tool_traffic_is_written_as_the_version_wants_it(form: str) -> None:
    rows = (user("hi"), assistant("Wait.", [tool_call("c", "look", {"order": "A1"})]), tool_result("c", "sent", "look"))
    with endpoint(Answered("ok")) as there:
        spec = VercelAISdkTarget(there.url, extra_body={"id": "x"}, headers={"X-Key": "k"}, message_format=form)  # type: ignore[arg-type]  # parametrized
        resolved = resolve_target(spec)
        await ask(resolved.factory(seat()), *rows)
        await resolved.aclose()
    asked = there.seen[0]
    assert asked.headers["x-key"] == "k"
    output = {"output": {"type": "text", "value": "sent"}} if form == "v5" else {"result": "sent"}
    assert asked.body == {
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [
                {"type": "text", "text": "Wait."},
                {"type": "tool-call", "toolCallId": "c", "toolName": "look",
                 ("input" if form == "v5" else "args"): {"order": "A1"}},
            ]},
            {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c", "toolName": "look", **output}]},
        ],
        "id": "x",
    }  # fmt: skip


async def test_a_route_keeps_the_port_and_may_be_used_again_after_it_was_closed() -> None:
    with endpoint(lines('0:"ok"')) as there:
        resolved = resolve_target(VercelAISdkTarget(there.url), parallelism=4)
        for _ in range(2):
            assert len(await check_target(resolved.factory)) == 2
            await resolved.aclose()


@pytest.mark.parametrize("url", ["/api/chat", "ftp://me:hunter22@h/", "http://[::1", "http://h:99999/", "http://"])
def test_a_route_without_a_host_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="starts with http") as caught:
        VercelAISdkTarget(url)
    assert "hunter22" not in str(caught.value)


async def test_an_account_in_the_url_of_a_route_is_a_header_and_a_secret() -> None:
    with endpoint(lines('0:"ok"')) as there:
        url = there.url.replace("http://", "http://me:pass%20word@")
        resolved = resolve_target(VercelAISdkTarget(url), parallelism=4)
        await ask(resolved.factory(seat()))
        await resolved.aclose()
    assert there.seen[0].headers["authorization"] == "Basic bWU6cGFzcyB3b3Jk"
    assert {"pass word", "bWU6cGFzcyB3b3Jk"} <= set(resolved.factory.secrets)
    assert "pass" not in resolved.name


def test_a_route_may_be_asked_in_one_event_loop_after_another() -> None:
    with endpoint(lines('0:"ok"')) as there:
        route = VercelAISdkTarget(there.url)
        texts = [asyncio.run(route.respond([user("hi")])).text for _ in range(3)]
    assert texts == ["ok"] * 3


async def test_an_async_generator_is_no_reply() -> None:
    async def agent(messages: list[Message]) -> AsyncIterator[str]:
        yield "token"

    error = await failure(resolve_target(agent).factory(seat()))
    assert (error.code, "async_generator" in error.message) == ("target_protocol", True)


async def test_a_code_of_the_agents_own_is_a_target_error_and_what_would_not_help_is_not_retried() -> None:
    class Own(Desk):
        def new(self) -> Desk:
            return Own()

        def map_error(self, error: Exception) -> tuple[str, str]:
            return ("tariff_down", "no tariff") if isinstance(error, KeyError) else ("auth", "key refused")

    error = await failure(first(Own()), "break")
    assert (error.code, error.message, error.retryable) == ("target_error", "no tariff", True)
