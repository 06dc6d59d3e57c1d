"""Functions as agents: what they may take, what they may return, how they fail, and that none disturbs another."""

from __future__ import annotations

import asyncio
import contextvars
import errno
import functools
import gc
import re
import subprocess
import sys
import textwrap
import threading
import weakref
from collections.abc import Callable

import anyio
import anyio.lowlevel
import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from talking import ask, failure, seat, shop

from evaluatorq.conversation.checks import was_rejected
from evaluatorq.errors import CallError, ConfigError
from evaluatorq.model.assessments import Assessment
from evaluatorq.model.messages import Message, assistant, tool_call, tool_result, user
from evaluatorq.model.observation import Act, TurnReport
from evaluatorq.model.responses import (
    AgentResponse,
    AgentResponseError,
    OutputFunctionCall,
    OutputReasoning,
    OutputText,
)
from evaluatorq.model.usage import Usage
from evaluatorq.ports import TargetReply
from evaluatorq.targets.callables import FunctionTarget, FunctionTargets, inline
from evaluatorq.targets.conformance import check_target
from evaluatorq.targets.faults import NonRetryableTargetError
from evaluatorq.toolset import Recorder, ToolRefused, Toolset


def target(function: Callable[..., object], environment: object = None) -> FunctionTarget:
    return FunctionTargets(function)(seat(environment))  # type: ignore[arg-type]  # tests pass what they like


def returning(value: object) -> FunctionTarget:
    return target(lambda messages: value)


# ---------------------------------------------------------------- what a function may be


def echo(messages: list[Message]) -> str:
    return f"You said: {messages[-1].text}"


async def async_echo(messages: list[Message]) -> str:
    await anyio.lowlevel.checkpoint()
    return echo(messages)


class Echo:
    async def __call__(self, messages: list[Message]) -> str:
        return echo(messages)


@pytest.mark.parametrize(
    "function",
    [
        echo,
        async_echo,
        Echo(),
        lambda messages, *, again=async_echo: again(messages),
        functools.partial(async_echo),
        inline(functools.partial(echo)),
    ],
    ids=["sync", "async", "object", "sync returning an awaitable", "partial", "inline"],
)
async def test_a_function_of_any_kind_answers_the_last_message(function: Callable[..., object]) -> None:
    assert (await ask(target(function), "hi")).messages == (assistant("You said: hi"),)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("function", [echo, async_echo])
def test_functions_keep_the_port_on_every_backend(backend: str, function: Callable[..., object]) -> None:
    replies = anyio.run(check_target, FunctionTargets(function), backend=backend)
    assert len(replies) == 2


def test_a_function_that_cannot_be_called_with_messages_is_refused() -> None:
    def nothing() -> str:
        return ""

    def needy(messages: list[Message], session: str) -> str:
        return ""

    with pytest.raises(ConfigError, match=r"nothing takes no messages; .* nothing\(messages\)"):
        FunctionTargets(nothing)
    with pytest.raises(ConfigError, match="asks for session; an agent gets messages, tools, thread_id and tools_url"):
        FunctionTargets(needy)


async def test_a_thread_id_is_given_to_a_function_that_asks_for_one() -> None:
    async def agent(messages: list[Message], *, thread_id: str, flavour: str = "plain") -> str:
        return f"{thread_id} {flavour}"

    assert (await ask(target(agent), "hi", thread_id="run:7")).messages[0].text == "run:7 plain"


async def test_a_function_cannot_change_the_transcript_through_its_list() -> None:
    def agent(messages: list[Message]) -> str:
        messages.clear()
        return "done"

    rows = [user("hi")]
    await target(agent).respond(rows, thread_id="t")
    assert rows == [user("hi")]


# ---------------------------------------------------------------- threads and loops


async def test_blocking_functions_that_hang_do_not_starve_the_others() -> None:
    release = threading.Event()
    try:
        for _ in range(60):
            with anyio.move_on_after(0.001):
                await ask(target(lambda messages: release.wait(60)), "hi")
        with anyio.fail_after(10):
            assert (await ask(target(echo), "hi")).messages[0].text == "You said: hi"
    finally:
        release.set()


def test_a_hanging_function_does_not_keep_the_process_alive() -> None:
    script = """
        import anyio, time
        from evaluatorq.targets.threads import in_thread

        async def main():
            with anyio.move_on_after(0.05):
                await in_thread(lambda portal: time.sleep(300))
            print("over", flush=True)

        anyio.run(main)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], timeout=60, check=True, capture_output=True, text=True
    )
    assert done.stdout == "over\n"
    assert done.stderr == ""


async def test_async_functions_run_on_the_callers_loop_and_may_keep_its_objects() -> None:
    lock = asyncio.Lock()
    loops = []

    async def agent(messages: list[Message]) -> str:
        async with lock:
            loops.append(asyncio.get_running_loop())
        return "ok"

    await asyncio.gather(*(ask(target(agent), "hi") for _ in range(5)))
    await ask(target(agent), "hi")
    assert set(loops) == {asyncio.get_running_loop()}


def test_two_runs_in_a_row_work_with_one_factory() -> None:
    factory = FunctionTargets(echo)
    for _ in range(2):
        assert len(asyncio.run(check_target(factory))) == 2


async def test_context_variables_reach_the_thread() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    variable.set("from the caller")
    assert (await ask(target(lambda messages: variable.get()), "hi")).messages[0].text == "from the caller"


async def test_an_inline_function_runs_on_the_loops_thread() -> None:
    agent = inline(lambda messages: str(threading.get_ident()))
    assert (await ask(target(agent), "hi")).messages[0].text == str(threading.get_ident())


# ---------------------------------------------------------------- what comes back


async def test_an_agent_response_becomes_rows_with_its_facts() -> None:
    response = AgentResponse(
        output=[
            OutputReasoning(text="hm"),
            OutputFunctionCall(id="a", name="look", arguments='{"order": "A1"}', result='{"status": "sent"}'),
            OutputText(text="It is on its way."),
        ],
        usage=Usage(input_tokens=3, output_tokens=2, total_tokens=5, calls=1),
        model="m",
        response_id="r",
        trace_id="t",
        span_id="s",
        finish_reason="stop",
    )
    reply = await ask(returning(response), "where is A1?")
    call = tool_call("a", "look", {"order": "A1"})
    assert reply.messages == (
        assistant(None, [call]),
        tool_result("a", '{"status": "sent"}', "look"),
        assistant("It is on its way."),
    )
    assert (reply.usage, reply.model, reply.response_id) == (response.usage, "m", "r")
    assert (reply.trace_id, reply.span_id, reply.finish_reason, reply.reasoning) == ("t", "s", "stop", "hm")
    assert not reply.reports_tools


async def test_what_an_agent_reports_of_its_turn_and_holds_goes_with_its_words() -> None:
    report, held = TurnReport(acts=(Act(kind="ask"),), phase="delivered"), Assessment(value=3, confidence=0.5)
    for value in (
        AgentResponse(text="Which one?", report=report, assessment=held),
        {"content": "Which one?", "report": {"acts": [{"kind": "ask"}], "phase": "delivered"},
         "assessment": {"value": 3, "confidence": 0.5}},
    ):  # fmt: skip
        reply = await ask(returning(value), "it broke")
        assert (reply.report, reply.assessment) == (report, held)


async def test_calls_without_a_result_stay_open_and_need_no_words() -> None:
    response = AgentResponse(output=[OutputFunctionCall(id="a", name="look")])
    assert (await ask(returning(response), "hi")).messages == (assistant(None, [tool_call("a", "look", {})]),)


async def test_null_content_beside_tool_calls_is_no_fault() -> None:
    calls = [{"id": "t1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    reply = await ask(returning({"role": "assistant", "content": None, "tool_calls": calls}), "hi")
    assert reply.messages == (assistant(None, [tool_call("t1", "f", {})]),)


@pytest.mark.parametrize("words", ["text", "content"])
async def test_a_dict_with_its_own_calls_and_their_results_is_read_like_the_same_json_of_an_endpoint(
    words: str,
) -> None:
    look = {"id": "t1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    calls = [{**look, "result": {"found": 2}}, {"name": "note", "arguments": {"what": "x"}, "output": "kept"}]
    reply = await ask(returning({words: "Two of them.", "tool_calls": calls}), "hi")
    assert [(row.role, row.text) for row in reply.messages] == [
        ("assistant", ""), ("tool", '{"found":2}'), ("tool", "kept"), ("assistant", "Two of them."),
    ]  # fmt: skip
    assert [call.function.name for call in reply.messages[0].tool_calls or ()] == ["look", "note"]


async def test_a_whole_chat_completion_may_be_returned() -> None:
    completion = {
        "id": "c1",
        "object": "chat.completion",
        "model": "m-1",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hello."}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    }
    reply = await ask(returning(completion), "hi")
    assert (reply.messages, reply.model, reply.response_id) == ((assistant("Hello."),), "m-1", "c1")
    assert reply.usage is not None
    assert reply.usage.total_tokens == 5


async def test_an_image_beside_the_words_of_a_dict_is_kept() -> None:
    parts = [{"type": "text", "text": "See:"}, {"type": "input_image", "image_url": "https://shop.example/a.png"}]
    reply = await ask(returning({"content": parts}), "hi")
    assert [type(part).__name__ for part in reply.messages[0].content or ()] == ["InputText", "InputImage"]


async def test_content_made_of_parts_is_read() -> None:
    reply = await ask(
        returning({"content": [{"type": "text", "text": "a"}, {"type": "output_text", "text": "b"}]}), "hi"
    )
    assert reply.messages[0].text == "a\nb"


async def test_rows_of_messages_are_taken_as_they_are() -> None:
    rows = [assistant(None, [tool_call("x", "look", {})]), tool_result("x", "ok"), assistant("Done.")]
    assert (await ask(returning(rows), "hi")).messages == tuple(rows)
    assert (await ask(returning(assistant("Done.")), "hi")).messages == (assistant("Done."),)
    assert (await ask(returning(TargetReply(tuple(rows), reports_tools=True)), "hi")).reports_tools


@pytest.mark.parametrize(
    "value", [None, "", " \n\t", AgentResponse(), AgentResponse(text=""), assistant(None), {"content": None}]
)
async def test_saying_nothing_is_an_empty_reply_and_no_words_are_invented(value: object) -> None:
    error = await failure(returning(value))
    assert (error.code, error.retryable, error.component) == ("empty_reply", True, "target")


class Completion:
    choices = ()


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b"bytes", "returned bytes|a bytes"),
        (
            {"colour": "x"},
            "an object with 'colour', which holds no reply in the usual places; return the agent",
        ),
        ({"content": object()}, "a dict that is no JSON"),
        ({"role": "user", "content": "x"}, "a user row"),
        ({}, "an empty object"),
        (["a", "b"], "a list of str"),
        ([], "an empty list"),
        (42, "an int"),
        (Completion(), r"a Completion, of which choices\[0\]\.message\.content would be the words"),
        ({"content": 5}, "content"),
        (iter(["a"]), "a list_iterator"),
    ],
)
async def test_what_is_no_reply_is_named_in_one_sentence(value: object, says: str) -> None:
    error = await failure(returning(value))
    assert (error.code, error.retryable) == ("target_protocol", False)

    assert re.search(says, error.message), error.message


async def test_fifty_megabytes_are_refused_by_size() -> None:
    error = await failure(returning("x" * 50_000_000))
    assert error.code == "target_protocol"
    assert "50,000,000 characters; at most 2,000,000" in error.message
    assert error.raw is None


async def test_half_a_surrogate_pair_becomes_the_replacement_character_and_nul_stays() -> None:
    reply = await ask(returning("price \ud83d only\0"), "hi")
    assert reply.messages[0].text == "price \ufffd only\0"
    reply.messages[0].model_dump_json()


@settings(max_examples=60)
@given(st.text(alphabet=st.characters(exclude_categories=()), min_size=1).filter(lambda text: text.strip()))
async def test_whatever_text_comes_back_can_be_written(text: str) -> None:
    reply = await ask(target(inline(lambda messages: text)), "hi")
    assert Message.model_validate_json(reply.messages[0].model_dump_json()) == reply.messages[0]


async def test_arguments_nested_too_deeply_are_no_object_and_break_nothing() -> None:
    deep = '{"a":' * 100_000
    reply = await ask(returning(AgentResponse(output=[OutputFunctionCall(id="a", name="f", arguments=deep)])), "hi")
    assert reply.messages[0].tool_calls is not None
    assert reply.messages[0].tool_calls[0].parsed_arguments() is None
    assert not was_rejected(tool_result("a", deep))


async def test_an_error_in_an_agent_response_is_an_error_never_a_reply() -> None:
    plain = await failure(returning(AgentResponse(text="sorry", error=AgentResponseError(message="down"))))
    assert (plain.code, plain.message, plain.retryable) == ("target_error", "down", True)
    coded = AgentResponseError(message="blocked", code="content_filter")
    filtered = await failure(returning(AgentResponse(error=coded, usage=Usage(total_tokens=7))))
    assert (filtered.code, filtered.retryable, filtered.usage) == ("content_filter", False, Usage(total_tokens=7))


# ---------------------------------------------------------------- ids of tool calls


async def test_tool_calls_without_ids_get_counted_ones_and_keep_their_results() -> None:
    rows = [
        Message.model_validate({"role": "assistant", "tool_calls": [
            {"id": "", "function": {"name": "f", "arguments": "{}"}},
            {"id": "", "function": {"name": "g", "arguments": "{}"}},
        ]}),
        Message(role="tool", content="from g", name="g"),
        Message(role="tool", content="from f", name="f"),
        assistant("Done."),
    ]  # fmt: skip
    reply = await ask(returning(rows), "hi")
    calls = reply.messages[0].tool_calls
    assert calls is not None
    assert [call.id for call in calls] == ["call_1", "call_2"]
    assert [row.tool_call_id for row in reply.messages[1:3]] == ["call_2", "call_1"]


async def test_an_id_that_the_transcript_already_holds_is_replaced_in_call_and_result() -> None:
    earlier = (user("hi"), assistant(None, [tool_call("call_1", "f", {})]), tool_result("call_1", "a"), assistant("ok"))
    rows = [assistant(None, [tool_call("call_1", "f", {})]), tool_result("call_1", "b"), assistant("ok")]
    reply = await ask(returning(rows), *earlier, "again")
    assert reply.messages[0].tool_calls == [tool_call("call_2", "f", {})]
    assert reply.messages[1].tool_call_id == "call_2"


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([assistant(None, [tool_call("a", "f", {})]), tool_result("a", "1"), tool_result("a", "2"), assistant("x")],
         "Row 2 of the reply is a second result for 'a'"),
        ([tool_result("ghost", "c"), assistant("x")],
         "Row 0 of the reply is a result for 'ghost', which the reply does not call"),
        ([assistant(None, [tool_call("a", "f", {}), tool_call("a", "g", {})])],
         "Row 0 of the reply repeats the tool call id 'a'"),
        ([user("x"), assistant("x")], "Row 0 of the reply is a user row"),
    ],
)  # fmt: skip
async def test_tool_rows_that_do_not_belong_together_are_named_by_index(rows: list[Message], says: str) -> None:
    error = await failure(returning(rows))
    assert error.code == "target_protocol"
    assert says in error.message


# ---------------------------------------------------------------- tools


async def refunder(messages: list[Message], tools: Toolset) -> str:
    await tools.look(order="A1")
    return f"Done: {await tools.refund(order='A1')}"


def sync_refunder(messages: list[Message], tools: Toolset) -> str:
    tools.sync.look(order="A1")
    return f"Done: {tools.sync.refund(order='A1')}"


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("function", [refunder, sync_refunder])
def test_calls_through_the_toolset_become_rows_before_the_words(backend: str, function: Callable[..., object]) -> None:
    world = shop()

    async def run() -> TargetReply:
        return await ask(target(function, world), "refund A1")

    reply = anyio.run(run, backend=backend)
    assert [row.role for row in reply.messages] == ["assistant", "tool", "assistant", "tool", "assistant"]
    assert reply.messages[2].tool_calls == [tool_call("call_2", "refund", {"order": "A1"})]
    assert reply.messages[3] == tool_result("call_2", "refunded A1", "refund")
    assert reply.messages[-1].text == "Done: refunded A1"
    assert reply.reports_tools
    assert world.snapshot() == {"refunds": ["A1"]}


async def test_a_toolset_is_recognised_by_its_annotation_and_numbers_on_after_the_transcript() -> None:
    async def agent(messages: list[Message], world: "Toolset | None" = None) -> str:
        assert world is not None
        return str(await world.refund(order="B2"))

    earlier = (
        user("hi"),
        assistant(None, [tool_call("call_1", "look", {})]),
        tool_result("call_1", "a"),
        assistant("ok"),
    )
    reply = await ask(target(agent, Recorder(shop())), *earlier, "refund B2")
    assert reply.messages[0].tool_calls == [tool_call("call_2", "refund", {"order": "B2"})]


async def test_calls_that_a_framework_lists_too_are_counted_once() -> None:
    async def agent(messages: list[Message], tools: Toolset) -> AgentResponse:
        result = await tools.refund(order="A1")
        listed = OutputFunctionCall(id="fw1", name="refund", arguments='{"order":"A1"}', result=str(result))
        unanswered = OutputFunctionCall(id="fw2", name="look", arguments='{"order":"A1"}')
        await tools.look(order="A1")
        own = OutputFunctionCall(id="fw3", name="search_web", arguments="{}", result="nothing")
        return AgentResponse(output=[listed, unanswered, own, OutputText(text="Done.")])

    world = shop()
    reply = await ask(target(agent, world), "refund")
    called = [call.function.name for row in reply.messages for call in row.tool_calls or ()]
    assert called == ["refund", "look", "search_web"]
    assert world.snapshot() == {"refunds": ["A1"]}


async def test_a_failed_call_leaves_no_trace_in_the_world() -> None:
    world = shop()

    async def agent(messages: list[Message], tools: Toolset) -> str:
        await tools.refund(order="A1")
        if len(asked) < 2:
            asked.append(1)
            raise ConnectionError("lost")
        return "Refunded."

    asked: list[int] = []
    one = target(agent, Recorder(world))
    for _ in range(2):
        assert (await failure(one)).code == "network_error"
        assert world.snapshot() == {"refunds": []}
    reply = await ask(one, "hello")
    assert world.snapshot() == {"refunds": ["A1"]}
    assert len([row for row in reply.messages if row.role == "tool"]) == 1


async def test_a_thread_left_behind_cannot_use_its_tools_any_more() -> None:
    world = shop()
    entered, release, refused = threading.Event(), threading.Event(), threading.Event()

    def agent(messages: list[Message], tools: Toolset) -> str:
        entered.set()
        release.wait(30)
        try:
            tools.sync.refund(order="A1")
        except RuntimeError:
            refused.set()
        return "late"

    with anyio.move_on_after(30) as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(ask, target(agent, world), "refund A1")
            await asyncio.to_thread(entered.wait, 30)
            scope.cancel()
    release.set()
    await asyncio.to_thread(refused.wait, 30)
    assert refused.is_set()
    assert world.snapshot() == {"refunds": []}


async def test_a_task_left_behind_cannot_use_its_tools_any_more() -> None:
    world = shop()
    kept: list[Toolset] = []

    async def agent(messages: list[Message], tools: Toolset) -> str:
        kept.append(tools)
        return "ok"

    await ask(target(agent, world), "hi")
    with pytest.raises(ToolRefused, match="is over"):
        await kept[0].refund(order="A1")
    assert world.snapshot() == {"refunds": []}


async def test_without_an_environment_there_are_no_tools_and_that_is_said() -> None:
    async def agent(messages: list[Message], tools: Toolset) -> str:
        return f"{len(tools)} tools"

    async def optional(messages: list[Message], tools: Toolset | None = None) -> str:
        return f"tools: {tools}"

    reply = await ask(target(agent), "hi")
    assert (reply.messages[0].text, reply.reports_tools) == ("0 tools", False)
    assert (await ask(target(optional), "hi")).messages[0].text == "tools: None"


async def test_what_the_environment_breaks_is_not_the_agents_fault() -> None:
    class Broken:
        tools = shop().tools

        async def run(self, calls: object) -> object:
            raise RuntimeError("the world fell over")

        def snapshot(self) -> None:
            return None

        def restore(self, state: object) -> None:
            return None

    error = await failure(target(refunder, Broken()))
    assert (error.code, error.component) == ("tool_error", "environment")


# ---------------------------------------------------------------- failures


def raising(error: BaseException) -> FunctionTarget:
    def agent(messages: list[Message]) -> str:
        raise error

    return target(agent)


class StatusError(Exception):
    def __init__(self, status: int, code: str | None = None, headers: dict[str, str] | None = None) -> None:
        super().__init__("timeout 429 quota")
        self.status_code = status
        self.code = code
        self.response = httpx.Response(status, headers=headers)


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        (KeyError("order"), "target_error", True),
        (RuntimeError("429 timeout rate limit"), "target_error", True),
        (NonRetryableTargetError("no"), "target_error", False),
        (SystemExit(2), "target_error", False),
        (TimeoutError(), "timeout", True),
        (httpx.ReadTimeout("x"), "timeout", True),
        (ConnectionResetError("x"), "network_error", True),
        (httpx.ConnectError("x"), "network_error", True),
        (OSError(errno.EMFILE, "too many open files"), "target_error", False),
        (FileNotFoundError("x"), "target_error", True),
        (StatusError(429), "rate_limit", True),
        (StatusError(429, "insufficient_quota"), "quota", False),
        (StatusError(500), "server_error", True),
        (StatusError(401), "auth", False),
        (StatusError(404), "not_found", False),
        (StatusError(400, "context_length_exceeded"), "context_length", False),
        (StatusError(422), "bad_request", False),
        (caused(RuntimeError("agent broke"), StatusError(503)), "server_error", True),
        (ExceptionGroup("several", [StatusError(429)]), "rate_limit", True),
        (CallError("refusal", "no"), "refusal", False),
        (StopIteration(), "target_error", True),
    ],
)
async def test_exceptions_are_told_apart_by_type_and_status_never_by_text(
    error: BaseException, code: str, retryable: bool
) -> None:
    found = await failure(raising(error))
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        code, component = "file_handles", "infrastructure"
    else:
        component = "target"
    assert (found.code, found.retryable, found.component) == (code, retryable, component)


async def test_a_retry_after_header_is_kept() -> None:
    assert (await failure(raising(StatusError(429, headers={"Retry-After": "7"})))).retry_after == 7


async def test_the_message_says_type_text_and_place() -> None:
    async def agent(messages: list[Message]) -> str:
        return {}["order"]  # type: ignore[misc]  # that is the mistake

    error = await failure(target(agent))
    assert error.message.startswith("KeyError: 'order' (test_callables.py:")
    assert error.message.endswith(" in agent)")


async def test_credentials_in_an_exceptions_text_are_masked() -> None:
    text = (
        "GET https://me:hunter22@host/x?api_key=abcdefgh failed with Bearer abcdefgh12345678 and sk-proj-abcdefgh1234"
    )
    message = (await failure(raising(RuntimeError(text)))).message
    for secret in ("hunter22", "abcdefgh", "sk-proj-abcdefgh1234"):
        assert secret not in message


async def test_an_exception_that_cannot_be_printed_is_still_named() -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert (await failure(raising(OddError()))).message.startswith("OddError: (its text cannot be read)")


async def test_a_cancellation_inside_the_agent_is_the_agents_failure() -> None:
    async def agent(messages: list[Message]) -> str:
        raise asyncio.CancelledError

    assert (await failure(target(agent))).code == "target_error"
    assert (await failure(raising(asyncio.CancelledError()))).code == "target_error"


async def test_a_cancellation_from_outside_passes_through() -> None:
    async def agent(messages: list[Message]) -> str:
        await anyio.sleep_forever()
        return ""

    with anyio.move_on_after(0.01) as scope:
        await ask(target(agent), "hi")
    assert scope.cancelled_caught


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_failed_attempt_holds_on_to_nothing(is_async: bool) -> None:
    class Big:
        pass

    held: list[weakref.ref[Big]] = []

    def work() -> str:
        big = Big()
        held.append(weakref.ref(big))
        raise RuntimeError("after a large answer")

    async def async_agent(messages: list[Message]) -> str:
        return work()

    def sync_agent(messages: list[Message]) -> str:
        return work()

    gc.disable()
    try:
        one = target(async_agent if is_async else sync_agent)
        for _ in range(5):
            code = (await failure(one)).code
            assert code == "target_error"
        assert sum(ref() is not None for ref in held) <= 1
    finally:
        gc.enable()
