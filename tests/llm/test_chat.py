"""``OpenAIChat`` against an endpoint on a real socket."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import anyio
import pytest
from fake_endpoint import FakeEndpoint, Seen, Served, completion, refusal, tool_answer

from evaluatorq.errors import CallError, MissingLLMCredentialsError
from evaluatorq.llm.client import ModelPool, open_models
from evaluatorq.llm.doubts import SIGNS
from evaluatorq.llm.encode import encode_message
from evaluatorq.llm.endpoint import Endpoint, Sampling
from evaluatorq.ports import AnswerSpec, ChatPrefix, ChatRequest, ToolSpec

SCHEMA = {"type": "object", "properties": {"passed": {"type": "boolean"}}, "required": ["passed"]}
VERDICT = AnswerSpec("verdict", "What you found.", SCHEMA)  # type: ignore[arg-type]
LINES = (encode_message("user", "Hi"), encode_message("assistant", "Hello"))
ASK = ChatRequest(ChatPrefix("You help."), LINES)
JUDGE = ChatRequest(ChatPrefix("You judge.", answer=VERDICT), LINES, "Judge now.")


@pytest.fixture
async def pool() -> AsyncIterator[ModelPool]:
    async with open_models(8, 5.0) as models:
        yield models


def model(pool: ModelPool, fake: FakeEndpoint, sampling: Sampling | None = None, name: str = "m"):
    return pool.model(name, Endpoint(fake.base_url, "sk-test-key-1234"), sampling)


async def failure_of(pool: ModelPool, fake: FakeEndpoint, request: ChatRequest = ASK) -> CallError:
    with pytest.raises(CallError) as caught:
        await model(pool, fake).complete(request)
    return caught.value


# ---------------------------------------------------------------- what is sent


async def test_a_request_holds_prefix_transcript_and_instruction_and_nothing_that_was_not_asked_for(pool, fake) -> None:
    tool = ToolSpec("track", "Finds a parcel.", {"type": "object"})
    await model(pool, fake).complete(ChatRequest(ChatPrefix("You help.", (tool,)), LINES, "Be brief."))
    assert fake.bodies == [
        {
            "model": "m",
            "tools": [
                {
                    "type": "function",
                    "function": {"name": "track", "description": "Finds a parcel.", "parameters": {"type": "object"}},
                }
            ],
            "messages": [
                {"role": "system", "content": "You help."},
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "Hello"},
                {"role": "user", "content": "Be brief."},
            ],
        }
    ]
    assert fake.seen[0].path == "/v1/chat/completions"
    assert fake.seen[0].headers["authorization"] == "Bearer sk-test-key-1234"


@pytest.mark.parametrize(
    ("request_", "roles"),
    [
        (ChatRequest(ChatPrefix(""), LINES), ["user", "assistant"]),
        (ChatRequest(ChatPrefix(""), (), "Begin."), ["user"]),
        (ChatRequest(ChatPrefix("s"), (), "Begin."), ["system", "user"]),
        (ChatRequest(ChatPrefix("s"), ()), ["system"]),
        (ChatRequest(ChatPrefix(""), ()), []),
    ],
)
async def test_every_combination_of_pieces_is_json(pool, fake, request_: ChatRequest, roles: list[str]) -> None:
    await model(pool, fake).complete(request_)
    assert [message["role"] for message in fake.bodies[0]["messages"]] == roles


async def test_sampling_options_are_sent_when_set(pool, fake) -> None:
    sampling = Sampling(
        temperature=0.0, max_tokens=9, seed=0, reasoning_effort="low", extra_body={"top_p": 0.5, "seed": 4}
    )
    await model(pool, fake, sampling).complete(ASK)
    sent = {key: value for key, value in fake.bodies[0].items() if key not in ("model", "messages")}
    assert sent == {"temperature": 0.0, "max_tokens": 9, "seed": 4, "reasoning_effort": "low", "top_p": 0.5}


async def test_each_request_begins_with_the_one_before_it(pool, fake) -> None:
    prefix = ChatPrefix("You judge.", answer=VERDICT)
    fake.answers(tool_answer("verdict", '{"passed": true}'))
    for n in (1, 2):
        await model(pool, fake).complete(ChatRequest(prefix, LINES[:n], f"Judge turn {n}."))
    first, second = ([json.dumps(m) for m in body["messages"]] for body in fake.bodies)
    assert second[: len(first) - 1] == first[:-1]
    assert fake.bodies[0]["tools"] == fake.bodies[1]["tools"]


# ---------------------------------------------------------------- what comes back


async def test_an_answer_has_text_usage_model_and_ids(pool, fake) -> None:
    reply = await model(pool, fake).complete(ASK)
    assert (reply.text, reply.model, reply.response_id) == ("Hello.", "served-model", "chatcmpl-1")
    assert reply.finish_reason == "stop"
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.calls) == (10, 5, 1)


async def test_a_streamed_answer_is_the_same_answer(pool, fake) -> None:
    chunks = [
        {"id": "c", "model": "s", "choices": [{"delta": {"content": part}, "finish_reason": end}]}
        for part, end in (("Hel", None), ("lo.", None), ("", "stop"))
    ] + [{"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}}]
    events = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"
    fake.answers(Served(events, headers={"content-type": "text/event-stream"}))
    reply = await model(pool, fake, Sampling(stream=True)).complete(ASK)
    assert (reply.text, reply.finish_reason) == ("Hello.", "stop")
    assert reply.usage is not None
    assert fake.bodies[0]["stream"] is True
    assert fake.bodies[0]["stream_options"] == {"include_usage": True}


async def test_a_stream_that_breaks_off_is_a_cut_answer(pool, fake) -> None:
    fake.answers(Served(b'data: {"choices": [{"delta": {"content": "Hel"}}]}\n\n'))
    failure = await failure_of(pool, fake)
    assert (failure.code, failure.retryable, failure.usage) == ("truncated_response", True, None)


async def test_a_verdict_is_asked_for_by_a_forced_tool_call(pool, fake) -> None:
    fake.answers(tool_answer("verdict", '{"passed": false}'))
    reply = await model(pool, fake).complete(JUDGE)
    assert reply.answer == {"passed": False}
    assert not reply.lenient
    assert fake.bodies[0]["tool_choice"] == {"type": "function", "function": {"name": "verdict"}}
    assert pool.answer_forms() == {f"m @ {fake.base_url}": "tool"}


async def test_a_call_cut_at_the_token_limit_is_a_cut_answer_whatever_it_says_of_its_end(pool, fake) -> None:
    fake.answers(tool_answer("verdict", '{"passed": fal'))
    with pytest.raises(CallError) as raised:
        await model(pool, fake, Sampling(max_tokens=5)).complete(JUDGE)
    assert (raised.value.code, raised.value.reask) == ("truncated_response", True)
    fake.answers(tool_answer("verdict", '{"passed": false}'))
    reply = await model(pool, fake, Sampling(max_tokens=5)).complete(JUDGE)
    assert reply.answer == {"passed": False}, "whole just before the limit is whole"


async def test_a_verdict_in_dressing_is_read_and_marked(pool, fake) -> None:
    fake.answers(completion({"content": '<think>{"passed": true}?</think>```json\n{"passed": false}\n```'}))
    reply = await model(pool, fake).complete(JUDGE)
    assert (reply.answer, reply.lenient, reply.reasoning) == ({"passed": False}, True, '{"passed": true}?')


@pytest.mark.parametrize(
    ("served", "code", "reask", "usage_known"),
    [
        (Served(b"<html>"), "malformed_response", False, False),
        (Served(b""), "malformed_response", False, False),
        (Served(b'{"id": "x"}'), "malformed_response", False, False),
        (completion(choices=[]), "malformed_response", False, True),
        (Served(b'{"id": "x", "choices"', cut=True), "truncated_response", False, False),
        (Served(drop=True), "network_error", False, False),
        (completion({"content": "I will not say."}), "malformed_response", True, True),
        (completion({"content": ""}), "empty_reply", True, True),
        (completion({"content": None, "refusal": "No."}), "refusal", True, True),
        (completion({"content": '{"passed": tr'}, finish="length"), "truncated_response", True, True),
    ],
)
async def test_an_answer_that_cannot_be_used_says_why_and_what_it_cost(
    pool, fake, served: Served, code: str, reask: bool, usage_known: bool
) -> None:
    fake.answers(served)
    failure = await failure_of(pool, fake, JUDGE)
    assert (failure.code, failure.reask, failure.usage is not None) == (code, reask, usage_known)
    assert failure.retryable
    assert len(fake.seen) == 1


async def test_an_error_in_the_body_of_a_success_is_an_error(pool, fake) -> None:
    fake.answers(Served(b'{"error": {"code": 429, "message": "slow down"}}'))
    assert (await failure_of(pool, fake)).code == "rate_limit"


async def test_a_call_makes_one_request_however_it_fails(pool, fake) -> None:
    fake.answers(Served(b"{}", 500))
    assert (await failure_of(pool, fake)).code == "server_error"
    assert len(fake.seen) == 1


async def test_errors_name_host_model_and_status_but_never_the_key(pool, fake) -> None:
    echo = {"error": {"message": "no such key sk-test-key-1234 for sk-test-key-1234"}}
    for status in (400, 401, 429, 500):
        fake.answers(Served(json.dumps(echo).encode(), status))
        failure = await failure_of(pool, fake)
        assert "sk-test-key-1234" not in failure.message + (failure.raw or "")
        for part in ("'m'", "127.0.0.1", str(status)):
            assert part in failure.message


async def test_an_endpoint_that_hangs_is_a_timeout(fake) -> None:
    fake.answers(Served(hang=True))
    async with open_models(1, 0.05) as pool:
        assert (await failure_of(pool, fake)).code == "timeout"


async def test_nobody_listening_is_a_network_error(pool) -> None:
    with pytest.raises(CallError) as caught:
        await pool.model("m", Endpoint("http://127.0.0.1:9/v1")).complete(ASK)
    assert (caught.value.code, caught.value.retryable) == ("network_error", True)


# ---------------------------------------------------------------- what endpoints refuse


def refusing(*fields: str, code: str | None = "unsupported_parameter", served: Served | None = None):
    """Refuses requests that hold one of the fields, and answers the others."""

    def answer(seen: Seen) -> Served:
        for field in fields:
            kind = seen.body.get("response_format") or {}
            if field in seen.body or kind.get("type") == field:
                return refusal(field, code)
        return served or completion()

    return answer


EVERYTHING = Sampling(
    temperature=0.0, max_tokens=9, seed=1, reasoning_effort="low", extra_body={"top_k": 3}, stream=True
)


@pytest.mark.parametrize("field", ["temperature", "seed", "reasoning_effort", "top_k", "stream", "stream_options"])
@pytest.mark.parametrize("code", ["unsupported_parameter", "unsupported_value", None])
async def test_a_refused_option_is_left_out_once_and_for_all_and_noted(
    pool, fake, field: str, code: str | None
) -> None:
    fake.answer = refusing(field, code=code)
    for _ in range(2):
        assert (await model(pool, fake, EVERYTHING).complete(ASK)).text == "Hello."
    assert [field in body for body in fake.bodies] == [True, False, False]
    assert pool.dropped() == {f"m @ {fake.base_url}": [field]}


async def test_max_tokens_goes_out_under_its_other_name_where_that_is_taken(pool, fake) -> None:
    fake.answer = refusing("max_tokens")
    await model(pool, fake, Sampling(max_tokens=9)).complete(ASK)
    assert fake.bodies[1]["max_completion_tokens"] == 9
    assert pool.dropped() == {f"m @ {fake.base_url}": ["max_tokens (sent as max_completion_tokens)"]}
    fake.answer = refusing("max_tokens", "max_completion_tokens")
    await model(pool, fake, Sampling(max_tokens=9)).complete(ASK)
    assert not fake.bodies[-1].keys() & {"max_tokens", "max_completion_tokens"}


async def test_several_refusals_are_learned_in_one_call(pool, fake) -> None:
    fake.answer = refusing("temperature", "seed", "top_k", "max_tokens")
    assert (await model(pool, fake, EVERYTHING).complete(ASK)).text == "Hello."
    assert len(fake.seen) == 5


async def test_what_one_model_refuses_is_kept_from_it_for_all_roles_and_from_no_other_model(pool, fake) -> None:
    fake.answer = refusing("temperature")
    warm = Sampling(temperature=1.0)
    await model(pool, fake, warm).complete(ASK)
    fake.seen.clear()
    await model(pool, fake, warm).complete(ChatRequest(ChatPrefix("Another role."), LINES))
    assert ["temperature" in body for body in fake.bodies] == [False]
    await model(pool, fake, warm, name="other").complete(ASK)
    assert "temperature" in fake.bodies[1]


@pytest.mark.parametrize("code", ["decimal_above_max_value", "invalid_value", "invalid_type"])
async def test_a_value_out_of_range_is_the_users_mistake_and_is_not_dropped(pool, fake, code: str) -> None:
    fake.answer = refusing("temperature", code=code)
    with pytest.raises(CallError) as caught:
        await model(pool, fake, Sampling(temperature=99.0)).complete(ASK)
    assert (caught.value.code, caught.value.retryable) == ("bad_request", False)
    assert pool.dropped() == {}


async def test_the_tools_of_an_agent_are_never_dropped(pool, fake) -> None:
    fake.answer = refusing("tools")
    request = ChatRequest(ChatPrefix("", (ToolSpec("track", "", {"type": "object"}),)), LINES)
    assert (await failure_of(pool, fake, request)).code == "bad_request"
    assert len(fake.seen) == 1


@pytest.mark.parametrize(
    ("refused", "form"),
    [
        (["tool_choice"], "json_schema"),
        (["tools"], "json_schema"),
        (["tools", "json_schema"], "json_object"),
        (["tool_choice", "response_format"], "prompt"),
    ],
)
async def test_a_verdict_comes_down_the_ladder_to_a_form_that_is_taken(
    pool, fake, refused: list[str], form: str
) -> None:
    fake.answer = refusing(*refused, served=completion({"content": '{"passed": true}'}))
    for _ in range(2):
        assert (await model(pool, fake).complete(JUDGE)).answer == {"passed": True}
    assert pool.answer_forms() == {f"m @ {fake.base_url}": form}
    assert pool.dropped()
    last = fake.bodies[-1]
    assert not last.keys() & {"tools", "tool_choice"}
    told_in_words = "passed" in last["messages"][0]["content"]
    assert told_in_words == (form in ("json_object", "prompt"))
    assert fake.bodies[-2] == last


@pytest.mark.parametrize("refused", ["tool_choice", "json_schema"])
async def test_a_refusal_that_names_nothing_is_settled_by_trying_the_next_form(pool, fake, refused: str) -> None:
    asked = refusing(*{"tool_choice", refused}, served=completion({"content": '{"passed": true}'}))

    def answer(seen: Seen) -> Served:
        served = asked(seen)
        return served if served.status == 200 else refusal(None, None)

    fake.answer = answer
    for _ in range(2):
        assert (await model(pool, fake).complete(JUDGE)).answer == {"passed": True}
    tries = 2 if refused == "tool_choice" else 3
    assert len(fake.seen) == tries + 1


async def test_a_bad_request_for_another_reason_keeps_its_own_error_and_teaches_nothing(pool, fake) -> None:
    fake.answers(refusal(None, None))
    assert (await failure_of(pool, fake, JUDGE)).code == "bad_request"
    fake.answers(tool_answer("verdict", '{"passed": true}'))
    await model(pool, fake).complete(JUDGE)
    assert "tool_choice" in fake.bodies[-1]


@pytest.mark.parametrize(
    "served", [refusal(None, "model_not_found", 404), refusal("messages", None), refusal(None, None, 401)]
)
async def test_a_refusal_that_cannot_be_of_the_form_tries_no_other(pool, fake, served: Served) -> None:
    fake.answers(served)
    await failure_of(pool, fake, JUDGE)
    assert len(fake.seen) == 1


async def test_a_refusal_in_every_form_is_not_of_the_form_and_later_questions_are_asked_once(pool, fake) -> None:
    fake.answers(refusal(None, "invalid_request_error"))
    first = await failure_of(pool, fake, JUDGE)
    assert "every other form" in first.message
    asked = len(fake.seen)
    assert asked == 4
    await failure_of(pool, fake, JUDGE)
    assert len(fake.seen) == asked + 1


async def test_a_form_that_worked_is_kept_whatever_happens_later(pool, fake) -> None:
    fake.answers(tool_answer("verdict", '{"passed": true}'))
    await model(pool, fake).complete(JUDGE)
    fake.answers(refusal(None, None))
    await failure_of(pool, fake, JUDGE)
    assert len(fake.seen) == 2


async def test_a_form_that_is_taken_and_not_heeded_is_given_up(pool, fake) -> None:
    def answer(seen: Seen) -> Served:
        heeded = "response_format" in seen.body
        return completion({"content": '{"passed": true}' if heeded else "I would say yes."})

    fake.answer = answer
    for _ in range(2):
        assert (await failure_of(pool, fake, JUDGE)).code == "malformed_response"
    assert (await model(pool, fake).complete(JUDGE)).answer == {"passed": True}


async def test_an_overlong_context_is_not_a_refused_form(pool, fake) -> None:
    fake.answers(refusal("messages", "context_length_exceeded"))
    failure = await failure_of(pool, fake, JUDGE)
    assert (failure.code, failure.retryable, len(fake.seen)) == ("context_length", False, 1)


@pytest.mark.parametrize(
    ("refused", "sent"),
    [
        ({"developer"}, ["system", "system", "user"]),
        ({"system"}, ["developer", "developer", "user"]),
        ({"system", "developer"}, ["user", "user", "user"]),
    ],
)
async def test_a_role_that_is_refused_goes_out_under_another(pool, fake, refused: set[str], sent: list[str]) -> None:
    def answer(seen: Seen) -> Served:
        for index, message in enumerate(seen.body["messages"]):
            if message["role"] in refused:
                return refusal(f"messages[{index}].role", "unsupported_value")
        return completion()

    fake.answer = answer
    lines = (encode_message("developer", "Be brief."), encode_message("user", "Hi"))
    for _ in range(2):
        await model(pool, fake).complete(ChatRequest(ChatPrefix("You help."), lines))
    assert [message["role"] for message in fake.bodies[-1]["messages"]] == sent
    assert fake.bodies[-1] == fake.bodies[-2]


async def test_an_endpoint_that_refuses_everything_is_asked_only_so_often(pool, fake) -> None:
    fake.answer = lambda seen: refusal("temperature")
    with pytest.raises(CallError):
        await model(pool, fake, EVERYTHING).complete(ASK)
    assert len(fake.seen) < 5


async def test_a_model_without_credentials_says_so_when_it_is_named(pool) -> None:
    with pytest.raises(MissingLLMCredentialsError):
        pool.model("m")


# ---------------------------------------------------------------- what it cannot take and calls an error of its own


def uses(seen: Seen, part: str) -> bool:
    if part in ("system", "developer"):
        return any(message["role"] == part for message in seen.body["messages"])
    return part in (seen.body.get("response_format") or {"type": ""})["type"] or part in seen.body


def breaking_on(*parts: str):
    """An endpoint that answers status 500, in prose, to whatever holds one of the parts."""

    def answer(seen: Seen) -> Served:
        if any(uses(seen, part) for part in parts):
            return Served(b'{"error": {"message": "argument is not iterable", "type": "internal_server_error"}}', 500)
        if "tool_choice" in seen.body:
            return tool_answer("verdict", '{"passed": true}')
        return completion({"content": '{"passed": true}'})

    return answer


async def asked_often(pool: ModelPool, fake: FakeEndpoint, request: ChatRequest, times: int) -> list[bool | str]:
    """As a caller does who asks again after a failure that may pass: whether each attempt was answered."""
    answered: list[bool | str] = []
    for _ in range(times):
        try:
            await model(pool, fake).complete(request)
            answered.append(True)
        except CallError as error:
            answered.append(False if error.code == "server_error" and error.retryable else error.code)
    return answered


async def test_a_forced_tool_that_an_endpoint_breaks_on_is_given_up_after_some_signs(pool, fake) -> None:
    fake.answer = breaking_on("tool_choice")
    assert await asked_often(pool, fake, JUDGE, 2 * SIGNS + 2) == [False, True] * SIGNS + [True, True]
    assert len(fake.seen) == 2 * SIGNS + 2, "nothing was asked that the caller did not ask"
    assert [uses(seen, "json_schema") for seen in fake.seen] == [False] * 2 * SIGNS + [True] * 2
    assert pool.answer_forms() == {f"m @ {fake.base_url}": "json_schema"}
    assert pool.dropped() == {f"m @ {fake.base_url}": ["tool_choice (failed with status 500, worked without)"]}


async def test_every_form_that_it_breaks_on_is_given_up_in_turn(pool, fake) -> None:
    fake.answer = breaking_on("tool_choice", "json_schema")
    answered = await asked_often(pool, fake, JUDGE, 4 * SIGNS + 2)
    assert answered == [False, True] * 2 * SIGNS + [True, True]
    assert pool.answer_forms() == {f"m @ {fake.base_url}": "json_object"}
    assert len(pool.dropped()[f"m @ {fake.base_url}"]) == 2


@pytest.mark.parametrize(("broken", "sent"), [("developer", "system"), ("system", "developer")])
async def test_a_role_that_an_endpoint_breaks_on_goes_out_under_another(pool, fake, broken: str, sent: str) -> None:
    fake.answer = breaking_on(broken)
    lines = (encode_message(broken, "Be brief."), encode_message("user", "Hi"))  # type: ignore[arg-type]
    answered = await asked_often(pool, fake, ChatRequest(ChatPrefix(""), lines), 2 * SIGNS + 2)
    assert answered == [False, True] * SIGNS + [True, True]
    assert [message["role"] for message in fake.bodies[-1]["messages"]] == [sent, "user"]
    assert [message["role"] for message in fake.bodies[1]["messages"]] == ["user", "user"]
    assert pool.dropped() == {f"m @ {fake.base_url}": [f"role {broken} (sent as {sent})"]}


async def test_the_part_that_is_to_blame_is_found_among_several(pool, fake) -> None:
    fake.answer = breaking_on("system")
    answered = await asked_often(pool, fake, JUDGE, 3 * SIGNS + 4)
    assert answered[-4:] == [True] * 4
    assert pool.dropped() == {f"m @ {fake.base_url}": ["role system (sent as developer)"]}
    assert pool.answer_forms() == {f"m @ {fake.base_url}": "tool"}


@pytest.mark.parametrize(
    "answered", ["0001", "010001", "01010001", "0000000000001", "0011", "010101011", "010101010001010101"]
)
async def test_an_overload_that_passes_switches_nothing_off(pool, fake, answered: str) -> None:
    waiting = [kind == "1" for kind in answered]

    def answer(seen: Seen) -> Served:
        well = waiting.pop(0) if waiting else True
        return breaking_on()(seen) if well else Served(b"{}", 500)

    fake.answer = answer
    await asked_often(pool, fake, JUDGE, len(answered) + 3)
    assert pool.dropped() == {}
    assert "tool_choice" in fake.bodies[-1]


async def test_what_worked_once_is_never_doubted(pool, fake) -> None:
    fake.answer = breaking_on()
    await model(pool, fake).complete(JUDGE)
    fake.answer = breaking_on("tool_choice")
    assert await asked_often(pool, fake, JUDGE, 10) == [False] * 10
    assert pool.dropped() == {}


@pytest.mark.parametrize("served", [Served(b"{}", 503), Served(b"{}", 529), Served(b"{}", 500, {"retry-after": "1"})])
async def test_an_endpoint_that_says_it_is_overloaded_is_believed(pool, fake, served: Served) -> None:
    fake.answer = lambda seen: served if "tool_choice" in seen.body else completion({"content": '{"passed": true}'})
    assert await asked_often(pool, fake, JUDGE, 8) == [False] * 8
    assert all("tool_choice" in body for body in fake.bodies)


async def test_answers_that_come_in_together_are_one_proof(pool, fake) -> None:
    fake.answer = breaking_on("tool_choice")
    judges = [ChatRequest(ChatPrefix("You judge.", answer=VERDICT), LINES) for _ in range(8)]
    for round_ in range(1, SIGNS + 1):
        async with anyio.create_task_group() as group:
            for judge in judges:
                group.start_soon(asked_often, pool, fake, judge, 2)
        assert bool(pool.dropped()) == (round_ == SIGNS)


async def test_with_every_part_broken_a_question_gets_through_within_three_attempts(pool, fake) -> None:
    fake.answer = breaking_on("tool_choice", "json_schema", "system", "developer")
    answered = await asked_often(pool, fake, JUDGE, 14 * SIGNS)
    assert "False, False, False" not in str(answered)
    assert answered[-9:] == [True] * 9
    assert pool.answer_forms() == {f"m @ {fake.base_url}": "json_object"}
