"""Any HTTP endpoint as an agent: what is sent, what is read, and a sentence for each answer that does not fit."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import pytest
from pydantic import JsonValue
from talking import Answered, Asked, ask, endpoint, failure, seat, shop

from evaluatorq.errors import CallError, ConfigError
from evaluatorq.model.assessments import Assessment
from evaluatorq.model.messages import Message, assistant, tool_call, tool_result, user
from evaluatorq.model.observation import TurnReport
from evaluatorq.ports import TargetReply
from evaluatorq.targets.conformance import check_target
from evaluatorq.targets.http import HttpTargets, HttpTargetSpec
from evaluatorq.targets.resolve import resolve_target


async def reply_to(answer: Answered, *messages: Message | str, **options: object) -> tuple[TargetReply, Asked]:
    with endpoint(answer) as there:
        targets = HttpTargets(HttpTargetSpec.parse({"url": f"{there.url}/chat", **options}))
        try:
            reply = await ask(targets(seat()), *(messages or ("hi",)))
        finally:
            await targets.aclose()
    return reply, there.seen[0]


async def words_of(answer: Answered, **options: object) -> str:
    reply, _ = await reply_to(answer, **options)
    return reply.messages[-1].text


async def failure_of(answer: Answered, **options: object) -> CallError:
    with endpoint(answer) as there:
        targets = HttpTargets(HttpTargetSpec.parse({"url": f"{there.url}/chat", **options}))
        try:
            return await failure(targets(seat()))
        finally:
            await targets.aclose()


def sse(*events: str, **headers: str) -> Answered:
    return Answered(
        "".join(f"{event}\n\n" for event in events), headers={"content-type": "text/event-stream", **headers}
    )


def chunk(**delta: JsonValue) -> str:
    return "data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]})


# ---------------------------------------------------------------- what is sent


async def test_a_bare_url_is_asked_with_all_messages() -> None:
    rows = (user("hi"), assistant(None, [tool_call("c", "look", {"order": "A1"})]), tool_result("c", "sent", "look"))
    reply, asked = await reply_to(Answered({"message": "hello"}), *rows)
    assert reply.messages == (assistant("hello"),)
    assert asked.path == "/chat"
    assert asked.headers["content-type"] == "application/json"
    assert asked.body == {"messages": [row.to_chat_completion() for row in rows]}


async def test_a_template_says_what_is_sent_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_KEY", "k-12345")
    body: JsonValue = {
        "inputs": {"query": "{{last_message}}", "history": "{{messages}}", "greeting": "Dear {{ last_message }}!"},
        "user": "eval",
        "stream": False,
        "tools": "{{tools}}",
        "{{thread_id}}": [1, None],
    }
    with endpoint(Answered("ok")) as there:
        spec = HttpTargetSpec(
            url=there.url + "/threads/{{thread_id}}/messages?q={{last_message}}",
            headers={"X-Key": "Bearer ${DESK_KEY}", "X-Thread": "{{thread_id}}"},
            body=body,
        )
        targets = HttpTargets(spec)
        await ask(targets(seat(shop())), "grüße & co", thread_id="run:0")
        await targets.aclose()
    asked = there.seen[0]
    assert asked.path.replace("%3A", ":") == "/threads/run:0/messages?q=gr%C3%BC%C3%9Fe%20%26%20co"
    assert (asked.headers["x-key"], asked.headers["x-thread"]) == ("Bearer k-12345", "run:0")
    assert isinstance(asked.body, dict)
    tools = asked.body.pop("tools")
    assert isinstance(tools, list)
    assert [tool["function"]["name"] for tool in tools] == ["refund", "look"]  # type: ignore[index,call-overload]  # JSON
    assert asked.body == {
        "inputs": {
            "query": "grüße & co",
            "history": [{"role": "user", "content": "grüße & co"}],
            "greeting": "Dear grüße & co!",
        },
        "user": "eval",
        "stream": False,
        "run:0": [1, None],
    }


async def test_get_sends_no_body() -> None:
    _, asked = await reply_to(Answered("ok"), method="GET")
    assert asked.body is None


async def test_an_agent_that_opens_is_asked_with_nothing_said() -> None:
    with endpoint(Answered("welcome")) as there:
        targets = HttpTargets(HttpTargetSpec(url=there.url, body={"m": "{{messages}}", "last": "{{last_message}}"}))
        await ask(targets(seat()))
        await targets.aclose()
    assert there.seen[0].body == {"m": [], "last": ""}


async def test_user_and_password_in_the_url_are_sent_and_never_shown() -> None:
    with endpoint(Answered({"message": "bad"}, status=500)) as there:
        url = there.url.replace("http://", "http://me:pass%20word@") + "/chat?key=hidden1"
        targets = HttpTargets(HttpTargetSpec(url=url))
        error = await failure(targets(seat()))
        await targets.aclose()
    assert there.seen[0].headers["authorization"] == "Basic bWU6cGFzcyB3b3Jk"
    assert "hidden1" not in error.message
    assert targets.name == f"{there.url}/chat"


async def test_what_came_from_the_environment_does_not_come_back_in_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_KEY", "swordfish")

    def echoing(asked: Asked) -> Answered:
        return Answered({"error": {"message": f"the key {asked.headers['x-key']} is unknown"}}, status=400)

    with endpoint(echoing) as there:
        targets = HttpTargets(HttpTargetSpec(url=there.url, headers={"X-Key": "${DESK_KEY}"}))
        error = await failure(targets(seat()))
        await targets.aclose()
    assert "is unknown" in error.message
    assert "swordfish" not in error.message + (error.raw or "")
    assert "swordfish" not in str(targets.spec)


# ---------------------------------------------------------------- conversations with a memory


async def test_an_endpoint_that_remembers_gets_the_last_message_and_its_own_session_id() -> None:
    sessions: dict[str, int] = {}

    def remembering(asked: Asked) -> Answered:
        assert isinstance(asked.body, dict)
        session = asked.body["session"] or f"s{len(sessions) + 1}"
        assert isinstance(session, str)
        sessions[session] = sessions.get(session, 0) + 1
        return Answered({"text": f"{session}: {sessions[session]} {asked.body['text']}", "meta": {"session": session}})

    spec = {
        "body": {"text": "{{last_message}}", "session": "{{session_id}}"},
        "session_id": "meta.session", "history": "last",
    }  # fmt: skip
    with endpoint(remembering) as there:
        targets = HttpTargets(HttpTargetSpec.parse({"url": there.url, **spec}))
        one, two = targets(seat()), targets(seat(thread_id="run:1"))
        assert one.stateful
        said = [(await ask(target, text)).messages[0].text for target, text in ((one, "a"), (two, "b"), (one, "c"))]
        await targets.aclose()
    assert said == ["s1: 1 a", "s2: 1 b", "s1: 2 c"]


async def test_without_a_session_path_each_conversation_has_a_fresh_id_of_ours() -> None:
    with endpoint(Answered("ok")) as there:
        targets = HttpTargets(
            HttpTargetSpec(url=there.url, body={"s": "{{session_id}}", "m": "{{messages}}"}, history="last")
        )
        for target in (targets(seat()), targets(seat())):
            for _ in range(2):
                await ask(target, "one", assistant("x"), "two")
        await targets.aclose()
    ids = [asked.body["s"] for asked in there.seen if isinstance(asked.body, dict)]
    assert ids[0] == ids[1] != ids[2] == ids[3]
    assert there.seen[0].body == {"s": ids[0], "m": [{"role": "user", "content": "two"}]}


async def test_a_missing_session_id_is_named() -> None:
    error = await failure_of(Answered({"text": "x"}), session_id="meta.session")
    assert error.code == "target_protocol"
    assert "without a session id at meta.session" in error.message


def test_what_remembers_counts_as_stateful_unless_told_otherwise() -> None:
    def remembers(**options: object) -> bool:
        return HttpTargetSpec.parse({"url": "http://h/", **options}).remembers

    assert not remembers()
    assert remembers(history="last")
    assert remembers(session_id="id")
    assert remembers(headers={"X-Session": "{{session_id}}"})
    assert not remembers(history="last", stateful=False)


# ---------------------------------------------------------------- what is read


@pytest.mark.parametrize(
    "body",
    [
        "hello", {"message": {"role": "assistant", "content": "hello"}}, {"message": "hello"}, {"text": "hello"},
        {"content": "hello"}, {"response": "hello"}, {"output": "hello"}, {"reply": "hello"}, {"answer": "hello"},
        {"choices": [{"message": {"content": "hello"}}]},
        {"content": [{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}]},
        {"message": None, "text": "hello"}, {"error": None, "text": "hello"},
    ],
)  # fmt: skip
async def test_the_usual_places_are_tried(body: JsonValue) -> None:
    assert await words_of(Answered(body)) == "hello"


async def test_a_json_string_is_the_reply() -> None:
    assert await words_of(Answered(b'"hello"', headers={"content-type": "application/json"})) == "hello"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("data.turns[-1].text", {"data": {"turns": [{"text": "no"}, {"text": "yes"}]}}),
        ("/data/a~1b/0", {"data": {"a/b": ["yes"]}}),
        ("", "yes"),
        ("[1]", ["no", "yes"]),
    ],
)
async def test_a_path_says_where_the_reply_is(path: str, body: JsonValue) -> None:
    answer = Answered(json.dumps(body), headers={"content-type": "application/json"})
    assert await words_of(answer, reply=path) == "yes"


async def test_usage_model_ids_and_traces_are_read() -> None:
    answer = Answered(
        {"text": "x", "tokens": {"prompt_tokens": 3, "completion_tokens": 4}, "model": "m", "id": "r1"},
        headers={"TraceParent": f"00-{'a' * 32}-{'b' * 16}-01"},
    )
    reply, _ = await reply_to(answer, usage="tokens")
    assert reply.usage is not None
    assert (reply.usage.total_tokens, reply.usage_known, reply.model, reply.response_id) == (7, True, "m", "r1")
    assert (reply.trace_id, reply.span_id) == ("a" * 32, "b" * 16)
    reply, _ = await reply_to(Answered({"text": "x"}, headers={"X-Run": "t9"}), usage="tokens", trace_headers=["x-run"])
    assert (reply.usage, reply.usage_known, reply.trace_id) == (None, False, "t9")
    reply, _ = await reply_to(Answered("x"))
    assert reply.usage_known


REPORT = {"acts": [{"kind": "apply_operation", "operation": "refund", "outcome": "needs_value"}], "phase": "delivered"}
HELD = {"value": 2, "confidence": "low", "rationale": "it hurts"}


@pytest.mark.parametrize(
    "answer",
    [
        Answered({"text": "Which one?", "meta": {"turn": REPORT, "level": HELD}}),
        sse('data: {"text": "Which "}', 'data: {"text": "one?"}',
            "data: " + json.dumps({"meta": {"turn": REPORT, "level": HELD}})),
    ],
    ids=["json", "events"],
)  # fmt: skip
async def test_what_the_agent_understood_and_held_is_read_where_paths_say_so(answer: Answered) -> None:
    reply, _ = await reply_to(answer, report="meta.turn", assessment="/meta/level")
    assert reply.messages[-1].text == "Which one?"
    assert reply.report == TurnReport.model_validate(REPORT)
    assert reply.assessment == Assessment(value=2, confidence="low", rationale="it hurts")
    reply, _ = await reply_to(Answered({"text": "x", "report": REPORT, "assessment": HELD}))
    assert (reply.report, reply.assessment) == (None, None)
    reply, _ = await reply_to(Answered({"text": "x"}), report="report", assessment="level")
    assert (reply.report, reply.assessment) == (None, None)


async def test_a_report_or_an_assessment_that_does_not_fit_is_one_sentence() -> None:
    error = await failure_of(Answered({"text": "x", "r": {"acts": "refund"}}), report="r")
    assert (error.code, error.retryable) == ("target_protocol", False)
    assert error.message == "The agent's report does not fit: report.acts: Input should be a valid tuple."
    error = await failure_of(Answered({"text": "x", "level": 3}), assessment="level")
    assert error.message == "The agent's assessment does not fit: assessment: it is no object."


async def test_tool_calls_with_results_are_rows_and_those_without_wait() -> None:
    calls: list[JsonValue] = [
        {"name": "look", "arguments": {"order": "A1"}, "result": {"status": "sent"}},
        {"id": "c2", "type": "function", "function": {"name": "note", "arguments": "{}"}, "output": "ok"},
    ]
    reply, _ = await reply_to(Answered({"text": "Done.", "steps": calls}), tool_calls="steps")
    assert reply.messages == (
        assistant(None, [tool_call("call_1", "look", {"order": "A1"}), tool_call("c2", "note", {})]),
        tool_result("call_1", '{"status":"sent"}', "look"),
        tool_result("c2", "ok", "note"),
        assistant("Done."),
    )
    assert reply.reports_tools
    waiting = {"choices": [{"message": {"content": None, "tool_calls": [{"id": "c", "function": {"name": "look"}}]}}]}
    reply, _ = await reply_to(Answered(waiting))
    assert reply.messages == (assistant(None, [tool_call("c", "look", {})]),)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (sse("data: Hello", "data:  world", ": comment", "data: 42", "data: [DONE]", "data: not this"),
         "Hello world42"),
        (sse("data: two\ndata: lines"), "two\nlines"),
        (sse('data: "Hel"', 'data: "lo"'), "Hello"),
        (sse(chunk(role="assistant"), chunk(content="Hel"), chunk(content="lo"), "data: [DONE]"), "Hello"),
        (sse('data: {"type":"x.delta","delta":"Hel"}', 'data: {"type":"x.delta","delta":"lo"}',
             'data: {"type":"x.done","text":"Hello"}'), "Hello"),
        (sse('event: message\ndata: {"token": "Hel"}', 'data: {"token": "lo"}'), "Hello"),
        (Answered("\ufeffdata: a\r\n\r\ndata: b\r\n\r\n", headers={"content-type": "text/event-stream"}), "ab"),
        (Answered("data: a\n\n"), "a"),
    ],
)  # fmt: skip
async def test_server_sent_events_are_put_together(answer: Answered, text: str) -> None:
    assert await words_of(answer) == text


async def test_events_are_read_by_path_with_session_usage_and_tool_calls() -> None:
    answer = sse(
        'data: {"d": {"t": "Hel"}, "sid": "s1"}',
        'data: {"ping": 1}',
        'data: {"calls": [{"name": "look", "result": "sent"}]}',
        'data: {"d": {"t": "lo"}, "usage": {"input_tokens": 1, "output_tokens": 2}}',
    )
    reply, _ = await reply_to(answer, reply="d.t", session_id="sid", tool_calls="calls")
    assert [row.text for row in reply.messages] == ["", "sent", "Hello"]
    assert reply.usage is not None
    assert reply.usage.total_tokens == 3


async def test_streamed_tool_calls_are_put_together() -> None:
    first = chunk(tool_calls=[{"index": 0, "id": "c", "function": {"name": "look", "arguments": '{"or'}}])
    second = chunk(tool_calls=[{"index": 0, "function": {"arguments": 'der": "A1"}'}}])
    reply, _ = await reply_to(sse(first, second, "data: [DONE]"))
    assert reply.messages == (assistant(None, [tool_call("c", "look", {"order": "A1"})]),)


async def test_text_in_another_charset_is_decoded() -> None:
    answer = Answered("grüße".encode("latin-1"), headers={"content-type": "text/plain; charset=ISO-8859-1"})
    assert await words_of(answer) == "grüße"
    assert await words_of(Answered(b"\xff ok", headers={"content-type": "text/plain; charset=nonsense"})) == "\ufffd ok"


@pytest.mark.parametrize("charset", ["idna", "undefined", "punycode", "base64"])
async def test_a_charset_that_reads_nothing_is_not_a_raw_error(charset: str) -> None:
    answer = Answered("grüße".encode(), headers={"content-type": f"text/plain; charset={charset}"})
    assert await words_of(answer)


async def test_half_a_surrogate_pair_in_json_becomes_the_replacement_character() -> None:
    answer = Answered(b'{"text": "price \\ud83d only"}', headers={"content-type": "application/json"})
    assert await words_of(answer) == "price \ufffd only"


# ---------------------------------------------------------------- what does not fit

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("answer", "options", "code", "says"),
    [
        (Answered(""), {}, "empty_reply", "answered 200 with an empty body"),
        (Answered("", status=204, headers={"content-length": ""}), {}, "empty_reply", "answered 204"),
        (Answered({"text": ""}), {}, "empty_reply", "text is empty"),
        (Answered({"text": None}), {}, "empty_reply", "text is null"),
        (Answered({"a": {"b": None}}), {"reply": "a.b"}, "empty_reply", "a.b is null"),
        (Answered({"a": {"b": 5}}), {"reply": "a.b"}, "target_protocol", "a.b is a number, not a string"),
        (Answered({"a": {"b": {}}}), {"reply": "a.b"}, "target_protocol", "a.b is an object, not a string"),
        (Answered({"a": {"c": 1}}), {"reply": "a.b"}, "target_protocol", "a has no 'b' (it has 'c')"),
        (Answered({"a": []}), {"reply": "a[0]"}, "target_protocol", "a has no '0' (it is a list of 0)"),
        (Answered({"status": "ok"}), {}, "target_protocol", "an object with 'status', which holds no reply"),
        (Answered([1]), {}, "target_protocol", "a list, which holds no reply"),
        (Answered("{oops", headers=JSON), {}, "malformed_response", "began to answer JSON and broke off: '{oops'"),
        (Answered("plain"), {"reply": "text"}, "target_protocol", "did not answer JSON but 'plain'"),
        (Answered("[" * 100_000, headers=JSON), {}, "target_protocol", "nested too deeply|did not answer JSON"),
        (Answered("<html>", headers={"content-type": "text/html"}), {}, "target_protocol", "an HTML page"),
        (Answered(b"\x89PNG", headers={"content-type": "image/png"}), {}, "target_protocol", "answered image/png"),
        (Answered("x" * 8_000_001), {}, "target_protocol", "more than 8,000,000 bytes"),
        (Answered("x" * 3_000_000), {}, "target_protocol", "3,000,000 characters; at most 2,000,000"),
        (
            Answered({"answer": {"text": "", "tool_calls": [{"name": "f"}]}}),
            {"reply": "answer.text", "tool_calls": "answer.calls"},
            "empty_reply",
            "answer.text is empty, and there are no tool calls at answer.calls: answer has no 'calls' (it has 'text', ",
        ),
        (Answered({"text": "x", "c": 5}), {"tool_calls": "c"}, "target_protocol", "c is a number, not a list"),
        (Answered({"text": "x", "c": [{}]}), {"tool_calls": "c"}, "target_protocol", "Tool call 0 of the reply has no"),
        (sse('data: {"ping": 1}'), {"reply": "d.t"}, "target_protocol", "no event of the stream holds a reply"),
        (sse('data: {"ping": 1}'), {}, "empty_reply", "streamed no words"),
        (sse(": nothing"), {}, "empty_reply", "streamed no words"),
        (sse(chunk(content="Hel")), {}, "truncated_response", "broke off in the middle of its stream"),
        (sse(chunk(content="Hel"), "data: {oops"), {}, "target_protocol", "an event that is not JSON"),
        (Answered({"text": "cut short"}, cut_at=5), {}, "truncated_response", "broke off"),
    ],
)  # fmt: skip
async def test_each_answer_that_does_not_fit_is_one_sentence(
    answer: Answered, options: dict[str, object], code: str, says: str
) -> None:
    error = await failure_of(answer, **options)
    assert (error.code, error.component) == (code, "target")
    assert any(part in error.message for part in says.split("|")), error.message
    assert "\n" not in error.message


@pytest.mark.parametrize(
    ("answer", "code", "retryable"),
    [
        (Answered({"error": {"message": "boom"}}), "target_error", True),
        (Answered({"error": "boom", "text": "sorry"}), "target_error", True),
        (Answered('{"error": "boom"}'), "target_error", True),
        (Answered({"error": {"message": "boom", "code": "content_filter"}}), "content_filter", False),
        (sse("data: Hel", "event: error\ndata: boom"), "target_error", True),
        (sse('data: {"delta": "Hel"}', 'event: error\ndata: {"message": "boom"}'), "target_error", True),
        (sse('data: {"delta": "Hel"}', 'data: {"type": "error", "message": "boom"}'), "target_error", True),
        (sse(chunk(content="Hel"), 'data: {"error": {"message": "boom"}}'), "target_error", True),
    ],
)
async def test_an_error_in_a_good_answer_is_an_error_never_a_reply(
    answer: Answered, code: str, retryable: bool
) -> None:
    error = await failure_of(answer)
    assert (error.code, error.retryable) == (code, retryable)
    assert "boom" in error.message


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [(400, "bad_request", False), (401, "auth", False), (404, "not_found", False), (429, "rate_limit", True),
     (500, "server_error", True), (503, "server_error", True), (302, "bad_request", False)],
)  # fmt: skip
async def test_a_status_that_is_no_success_is_told_by_its_code(status: int, code: str, retryable: bool) -> None:
    error = await failure_of(Answered({"text": "sorry"}, status=status, headers={"Retry-After": "3"}))
    assert (error.code, error.retryable, error.component) == (code, retryable, "target")
    assert error.retry_after == (3 if retryable else None)
    assert f"answered {status}" in error.message


async def test_a_port_where_nobody_listens_is_a_network_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        targets = HttpTargets(HttpTargetSpec(url=f"http://127.0.0.1:{taken.getsockname()[1]}/"))
        error = await failure(targets(seat()))
        await targets.aclose()
    assert (error.code, error.retryable, error.component) == ("network_error", True, "target")


@contextmanager
def silent_server() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"


async def test_an_endpoint_that_hangs_is_a_timeout() -> None:
    with silent_server() as url:
        targets = HttpTargets(HttpTargetSpec(url=url, timeout_s=0.05))
        error = await failure(targets(seat()))
        await targets.aclose()
    assert (error.code, error.retryable) == ("timeout", True)


# ---------------------------------------------------------------- descriptions that cannot be right


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"url": "ftp://host/x"}, "starts with http:// or https:// and names a host, not 'ftp://host/x'"),
        ({"url": "http://h/", "headers": {"X-Key": "${NO_SUCH_VARIABLE}"}},
         "the header 'X-Key' needs the environment variable NO_SUCH_VARIABLE, which is not set"),
        ({"url": "http://h/", "body": {"x": "{{mesages}}"}}, "nothing fills {{mesages}}; there is {{messages}}"),
        ({"url": "http://h/", "reply": "a..b"}, "target: reply: 'a..b' is no path"),
        ({"url": "http://h/", "headers": {"X": 5}, "timeout_s": "soon"},
         "is 5; write text, in quotes where it looks like something else; timeout_s: is 'soon'; write a number"),
        ({"url": "http://h/", "method": "FETCH"}, "target: method: is 'FETCH'; allowed are POST, PUT, PATCH, GET"),
        ({"url": "http://h/", "timeout_s": 0}, "target: timeout_s: is 0; it must be greater than 0"),
    ],
)  # fmt: skip
def test_a_description_that_cannot_be_right_is_refused_before_the_run(options: dict[object, object], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        HttpTargets(HttpTargetSpec.parse(options))
    assert says in str(caught.value)


# ---------------------------------------------------------------- many conversations


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_an_endpoint_keeps_the_port_on_every_backend(backend: str) -> None:
    async def run(url: str) -> int:
        resolved = resolve_target(url, parallelism=4)
        try:
            return len(await check_target(resolved.factory))
        finally:
            await resolved.aclose()

    with endpoint(Answered({"text": "ok"})) as there:
        for _ in range(2):
            assert anyio.run(run, there.url, backend=backend) == 2


async def test_cookies_of_one_conversation_do_not_reach_another() -> None:
    with endpoint(Answered({"text": "ok"}, headers={"Set-Cookie": "sid=1; Path=/"})) as there:
        targets = HttpTargets(HttpTargetSpec(url=there.url), parallelism=4)
        await asyncio.gather(*(ask(targets(seat()), "hi") for _ in range(4)))
        await ask(targets(seat()), "hi")
        await targets.aclose()
    assert not any("cookie" in asked.headers for asked in there.seen)


async def test_an_endpoint_that_remembers_gets_tool_results_without_the_question_again() -> None:
    rows = (user("hi"), assistant(None, [tool_call("c", "look", {})]), tool_result("c", "sent", "look"))
    _, asked = await reply_to(Answered("ok"), *rows, history="last")
    assert asked.body == {"messages": [rows[-1].to_chat_completion()]}
