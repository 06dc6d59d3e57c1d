from __future__ import annotations

import errno
import json
import socket

import httpx
import pytest

from evaluatorq.llm.errors import network_error, read_api_error, read_retry_after, status_error
from evaluatorq.llm.exchange import Answer
from evaluatorq.model.usage import NO_USAGE

WHERE = "model 'm' at api.example.test"


def answer(status: int, error: object = None, headers: dict[str, str] | None = None) -> Answer:
    return Answer(status, headers or {}, b"" if error is None else json.dumps(error).encode())


def error(**members: object) -> dict[str, object]:
    return {"error": {"message": "m", "type": None, "param": None, "code": None, **members}}


@pytest.mark.parametrize(
    ("status", "body", "code", "retryable"),
    [
        (429, error(type="rate_limit_exceeded"), "rate_limit", True),
        (429, None, "rate_limit", True),
        (429, error(code="insufficient_quota"), "quota", False),
        (429, error(type="insufficient_quota"), "quota", False),
        (429, error(code="billing_hard_limit_reached"), "quota", False),
        (402, None, "quota", False),
        (403, error(code="billing_not_active"), "quota", False),
        (401, error(code="invalid_api_key"), "auth", False),
        (403, None, "auth", False),
        (404, error(code="model_not_found"), "not_found", False),
        (400, error(code="invalid_value"), "bad_request", False),
        (400, error(code="context_length_exceeded"), "context_length", False),
        (400, error(type="exceed_context_size_error"), "context_length", False),
        (413, None, "context_length", False),
        (400, error(code="content_filter"), "content_filter", False),
        (400, error(code="400", innererror={"code": "ResponsibleAIPolicyViolation"}), "content_filter", False),
        (422, {"detail": [{"type": "missing", "loc": ["body", "messages"], "msg": "x"}]}, "bad_request", False),
        (408, None, "server_error", True),
        (500, None, "server_error", True),
        (503, error(code="overloaded"), "server_error", True),
        (529, None, "server_error", True),
        (501, None, "bad_request", False),
        (301, None, "bad_request", False),
        (418, None, "bad_request", False),
    ],
)
def test_an_answer_is_classified_by_status_and_machine_readable_fields(
    status: int, body: object, code: str, retryable: bool
) -> None:
    failure = status_error(answer(status, body), WHERE)
    assert (failure.code, failure.retryable, failure.reask) == (code, retryable, False)
    assert failure.usage is None
    assert WHERE in failure.message
    assert str(status) in failure.message


@pytest.mark.parametrize("text", ["rate limit", "insufficient_quota", "context length exceeded", "content_filter"])
def test_error_prose_decides_nothing(text: str) -> None:
    assert status_error(answer(400, error(message=text)), WHERE).code == "bad_request"
    assert status_error(answer(500, error(message=text)), WHERE).code == "server_error"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Sat, 31 Jan 2026 09:00:30 GMT", "date": "Sat, 31 Jan 2026 09:00:00 GMT"}, 30.0),
        ({"retry-after": "Sat, 31 Jan 2026 09:00:30 GMT"}, 20.0),
        ({"retry-after": "Sat, 31 Jan 2026 08:00:00 GMT", "date": "Sat, 31 Jan 2026 09:00:00 GMT"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_seconds_milliseconds_and_dates(headers: dict[str, str], seconds: float | None) -> None:
    local_clock = 1769850010.0  # 2026-01-31T09:00:10Z
    assert read_retry_after(httpx.Headers(headers), local_clock) == seconds


def test_the_wait_is_handed_on_only_where_asking_again_may_help() -> None:
    headers = {"retry-after": "7"}
    assert status_error(answer(429, None, headers), WHERE).retry_after == 7.0
    assert status_error(answer(503, None, headers), WHERE).retry_after == 7.0
    assert status_error(answer(429, error(code="insufficient_quota"), headers), WHERE).retry_after is None


@pytest.mark.parametrize(
    "body",
    [
        error(message="Bad", code="c", type="t", param="p"),
        [error(message="Bad", code="c", type="t", param="p")],
        {"message": "Bad", "code": "c", "type": "t", "param": "p"},
    ],
)
def test_the_error_object_is_found_in_every_envelope(body: object) -> None:
    read = read_api_error(answer(400, body))
    assert (read.message, read.code, read.kind, read.param) == ("Bad", "c", "t", "p")


def test_a_validation_list_names_the_field_that_was_refused() -> None:
    detail = [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]
    read = read_api_error(answer(422, {"detail": detail}))
    assert (read.code, read.param) == ("unsupported_parameter", "seed")


@pytest.mark.parametrize(
    "body", [b"", b"<html>oops</html>", b"null", b"[]", b'"x"', b'{"error": null}', b'{"error": "x"}']
)
def test_an_error_page_of_any_kind_still_has_its_status(body: bytes) -> None:
    assert status_error(Answer(502, {}, body), WHERE).code == "server_error"


def test_messages_hold_no_credentials_and_no_query_and_stay_short() -> None:
    said = (
        "key sk-abcdefgh12345678 refused, see https://user:pass@example.test/docs?token=abc123#x; "
        "Authorization: Bearer abcdefghijk; my-own-secret " + "x" * 500
    )
    failure = status_error(answer(400, error(message=said)), WHERE, secrets=["my-own-secret"])
    for secret in ("sk-abcdefgh12345678", "user:pass", "abc123", "abcdefghijk", "my-own-secret"):
        assert secret not in failure.message
        if secret != "user:pass" and secret != "abc123":
            assert secret not in (failure.raw or "")
    assert "https://example.test/docs" in failure.message
    assert len(failure.message) <= 300


def test_a_refused_key_is_never_quoted() -> None:
    failure = status_error(answer(401, error(message="Incorrect API key provided: verysecret", code="bad")), WHERE)
    assert "verysecret" not in failure.message


def test_running_out_of_file_handles_is_a_fault_of_the_machine_not_of_the_endpoint() -> None:
    cause = OSError(errno.EMFILE, "Too many open files")
    for exc in (cause, _raised_from(httpx.ConnectError("x"), cause), ExceptionGroup("many", [cause])):
        failure = network_error(exc, WHERE)
        assert (failure.code, failure.component, failure.retryable) == ("file_handles", "infrastructure", False)


def test_timeouts_lost_connections_and_cut_answers_are_told_apart() -> None:
    assert network_error(httpx.ReadTimeout("x"), WHERE).code == "timeout"
    assert network_error(TimeoutError(), WHERE).code == "timeout"
    assert network_error(TimeoutError(), WHERE, reading=True).code == "timeout"
    assert network_error(httpx.ConnectError("x"), WHERE).code == "network_error"
    assert network_error(httpx.RemoteProtocolError("x"), WHERE).code == "network_error"
    assert network_error(httpx.ReadError("x"), WHERE, reading=True).code == "truncated_response"
    assert network_error(ConnectionResetError(), WHERE).retryable


def test_only_a_connection_that_was_never_made_is_known_to_have_cost_nothing() -> None:
    for exc in (httpx.ConnectError("x"), ConnectionRefusedError(), socket.gaierror()):
        assert network_error(exc, WHERE).usage == NO_USAGE
    for exc in (httpx.RemoteProtocolError("x"), ConnectionResetError(), TimeoutError()):
        assert network_error(exc, WHERE).usage is None


def _raised_from(exc: Exception, cause: BaseException) -> Exception:
    exc.__cause__ = cause
    return exc


@pytest.mark.parametrize(
    ("exc", "told"),
    [
        (ConnectionRefusedError(111, "Connect call failed"), "it: nobody listens there"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "it: there is no host of that name"),
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure"), "it: its name cannot be looked up now"),
        (ConnectionResetError(104, "Connection reset by peer"), "it: the connection was reset"),
        (ConnectionError("the connection was closed without an answer"), "it: the connection was closed without"),
    ],
)
def test_what_went_wrong_is_one_sentence_whichever_library_says_so(exc: Exception, told: str) -> None:
    givens = (exc,) if type(exc) is ConnectionError else (exc, _raised_from(httpx.ConnectError("failed"), exc))
    for given in givens:
        text = network_error(given, "it").message
        assert text.startswith(told)


def test_a_connection_that_was_not_made_in_time_cost_nothing() -> None:
    failure = network_error(TimeoutError(), WHERE, asked=False)
    assert (failure.code, failure.retryable, failure.usage) == ("timeout", True, NO_USAGE)
