"""What went wrong with a call, told once for everybody: HTTP answers and network exceptions become ``CallError``.

Classified by status, by exception type and by the machine-readable ``error.code``, ``type`` and ``param``; error prose
is quoted for people, cut short and without credentials or query strings, and never decides anything.
"""

from __future__ import annotations

import errno
import math
import re
import socket
import ssl
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import lru_cache

from pydantic import JsonValue

from evaluatorq.errors import CallError
from evaluatorq.llm.encode import decode_json
from evaluatorq.llm.exchange import Answer
from evaluatorq.llm.tags import beginning, ending
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.records.known_secrets import KnownSecrets

MESSAGE_LENGTH = 300
_ENDING = 100
RAW_LENGTH = 4000

_QUOTA = {
    "insufficient_quota", "quota_exceeded", "insufficient_user_quota", "insufficient_credits", "insufficient_balance",
    "billing_hard_limit_reached", "billing_not_active", "billing_error",
}  # fmt: skip
_CONTEXT = {"context_length_exceeded", "string_above_max_length", "exceed_context_size_error", "request_too_large"}
_FILTER = {"content_filter", "content_policy_violation", "responsibleaipolicyviolation"}
_BY_STATUS = {
    401: "auth", 402: "quota", 403: "auth", 404: "not_found", 410: "not_found", 413: "context_length",
    429: "rate_limit",
}  # fmt: skip
_SECRET = re.compile(r"\b(?:sk|pk|rk|key|api[_-]?key|bearer|basic|token)[-_:=\s]+[\w.+/=*-]{6,}", re.IGNORECASE)
_NO_CONNECTION = {("httpx", "ConnectError")}
_URL_EXTRAS = re.compile(r"(https?://)(?:[^\s/@]*@)?([^\s?#'\"]*)[?#]?[^\s'\"]*", re.IGNORECASE)


@dataclass(frozen=True)
class ApiError:
    """An endpoint's refusal in its own words: HTTP status and the members of ``error``, ``None`` where not given."""

    status: int
    code: str | None = None
    kind: str | None = None
    param: str | None = None
    message: str = ""
    retry_after: float | None = None

    @property
    def names(self) -> frozenset[str]:
        """Its code and its type in lower case."""
        return frozenset(name.lower() for name in (self.code, self.kind) if name)


def read_api_error(answer: Answer) -> ApiError:
    """The error that an answer carries, in the shapes of OpenAI, FastAPI and their imitations."""
    status, retry_after = answer.status, read_retry_after(answer.headers)
    try:
        doc = decode_json(answer.body)
    except ValueError:
        return ApiError(status, retry_after=retry_after)
    if isinstance(doc, list) and doc:
        doc = doc[0]
    if not isinstance(doc, dict):
        return ApiError(status, retry_after=retry_after)
    error = doc.get("error")
    if isinstance(error, dict):
        inner = error.get("innererror")
        code = inner.get("code") if isinstance(inner, dict) and _text(inner.get("code")) else error.get("code")
        return ApiError(
            status,
            _text(code),
            _text(error.get("type")),
            _text(error.get("param")),
            _text(error.get("message")) or "",
            retry_after,
        )
    if isinstance(doc.get("detail"), list):
        return _validation_error(status, doc["detail"], retry_after)
    message = error if isinstance(error, str) else _text(doc.get("message")) or _text(doc.get("detail"))
    kinds = (_text(doc.get("code")), _text(doc.get("type")), _text(doc.get("param")))
    return ApiError(status, *kinds, message or "", retry_after)


def _validation_error(status: int, detail: JsonValue, retry_after: float | None) -> ApiError:
    """FastAPI's list of ``{"type", "loc": ["body", field, …], "msg"}``: the first entry speaks for all."""
    first = detail[0] if isinstance(detail, list) and detail else None
    if not isinstance(first, dict):
        return ApiError(status, retry_after=retry_after)
    loc = first.get("loc")
    path = [str(part) for part in loc if part != "body"] if isinstance(loc, list) else []
    code = "unsupported_parameter" if first.get("type") == "extra_forbidden" else _text(first.get("type"))
    return ApiError(status, code, None, ".".join(path) or None, _text(first.get("msg")) or "", retry_after)


def status_error(answer: Answer, where: str, secrets: Collection[str] = ()) -> CallError:
    """The ``CallError`` for an HTTP answer that is no success.

    ``where`` names who was asked, without credentials; ``secrets`` are not to appear in what is said and kept.
    """
    return api_call_error(read_api_error(answer), where, answer.body, secrets)


def api_call_error(error: ApiError, where: str, body: bytes = b"", secrets: Collection[str] = ()) -> CallError:
    """The ``CallError`` for an endpoint's refusal."""
    code, retryable = _classify(error)
    says = f" ({error.code or error.kind})" if error.code or error.kind else ""
    text = f"{where} answered {error.status}{says}"
    if 300 <= error.status < 400:
        text += ": redirects are not followed, so give the address it points to"
    elif code != "auth" and error.message:
        text += f": {error.message}"
    elif code == "auth":
        text += ": the credentials were not accepted"
    return CallError(
        code,
        clean_message(text, secrets),
        retryable=retryable,
        retry_after=error.retry_after if retryable else None,
        raw=clean_raw(body, secrets),
    )


def _classify(error: ApiError) -> tuple[str, bool]:
    """The fault's code, and whether asking again may help. A quota comes as a rate limit and does not pass."""
    names, status = error.names, error.status
    if status in (403, 429) and (names & _QUOTA or any(name.startswith("billing") for name in names)):
        return "quota", False
    if status in (408, 425) or (status >= 500 and status != 501):
        return "server_error", True
    if names & _FILTER:
        return "content_filter", False
    if names & _CONTEXT:
        return "context_length", False
    code = _BY_STATUS.get(status, "bad_request")
    return code, code == "rate_limit"


def read_retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds to wait from ``retry-after-ms`` or ``retry-after`` (seconds or an HTTP date); ``None`` if not said.

    A date is read against the answer's own ``date``, so a wrong local clock does no harm.
    """
    seconds = _seconds(headers.get("retry-after-ms"))
    if seconds is not None:
        return seconds / 1000
    given = headers.get("retry-after")
    seconds = _seconds(given)
    if seconds is not None or not given:
        return seconds
    until, since = _timestamp(given), _timestamp(headers.get("date"))
    if until is None:
        return None
    return max(0.0, until - (since if since is not None else time.time() if now is None else now))


def _seconds(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None


def _timestamp(text: str | None) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp() if text else None
    except (ValueError, OverflowError):
        return None


def network_error(exc: BaseException, where: str, *, asked: bool = True, reading: bool = False) -> CallError:
    """The ``CallError`` for an exception of httpx or the socket.

    ``asked`` says that there was a connection to ask on, where the caller knows; ``reading`` that the answer had begun:
    what breaks then is a cut answer. What it cost is unknown, but for a connection that was never made: nothing was
    asked, so nothing was spent.
    """
    if any(getattr(cause, "errno", None) in (errno.EMFILE, errno.ENFILE) for cause in _causes(exc)):
        text = f"{where}: no file handle left for a connection; lower the parallelism or raise the limit (ulimit -n)"
        return CallError("file_handles", text, component="infrastructure", usage=NO_USAGE)
    usage = NO_USAGE if not asked or _never_connected(exc) else None
    if _is_timeout(exc):
        what = "did not answer in time" if asked else "took no connection in time"
        return CallError("timeout", f"{where} {what}", retryable=True, usage=usage)
    if reading:
        return CallError("truncated_response", f"{where} broke off in the middle of its answer", retryable=True)
    causes = list(_causes(exc))
    lasting = any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes)
    told = next((told for cause in causes if (told := _told(cause))), None)
    text = clean_message(f"{where}: {told or _as_it_is(exc, causes)}")
    return CallError("network_error", text, retryable=not lasting, usage=usage)


def _told(cause: BaseException) -> str | None:
    """What is wrong and what to do, where the kind of an exception says so."""
    told: str | None = None
    match cause:
        case ssl.SSLCertVerificationError():
            advice = "SSL_CERT_FILE can name a file of authorities that you trust"
            told = f"its certificate is not accepted: {cause.verify_message.rstrip('.')}; {advice}"
        case ssl.SSLError(reason="WRONG_VERSION_NUMBER" | "RECORD_LAYER_FAILURE" | "PACKET_LENGTH_TOO_LONG"):
            told = "it speaks no TLS there; an address of plain HTTP begins with http://"
        case socket.gaierror(errno=socket.EAI_NONAME):
            told = "there is no host of that name; correct the address"
        case socket.gaierror():
            told = f"its name cannot be looked up now ({cause.strerror}); is there a network?"
        case ConnectionRefusedError():
            told = "nobody listens there; start the server or correct the address"
        case ConnectionResetError():
            told = "the connection was reset"
    return told


def _as_it_is(exc: BaseException, causes: Sequence[BaseException]) -> str:
    reason = next((str(cause) for cause in causes if str(cause)), "")
    return reason if type(exc) is ConnectionError else f"{type(exc).__name__}: {reason}"


def _never_connected(exc: BaseException) -> bool:
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(exc).__mro__}
    return isinstance(exc, ConnectionRefusedError | socket.gaierror) or bool(kinds & _NO_CONNECTION)


def _is_timeout(exc: BaseException) -> bool:
    if isinstance(exc, TimeoutError):
        return True
    return any(
        kind.__name__ == "TimeoutException" and kind.__module__.startswith("httpx") for kind in type(exc).__mro__
    )


def _causes(exc: BaseException) -> Iterator[BaseException]:
    """The exception, what it was raised from, and the members of groups among them."""
    pending, seen = [exc], 0
    while pending and seen < 32:
        current = pending.pop(0)
        seen += 1
        yield current
        if isinstance(current, BaseExceptionGroup):
            pending.extend(current.exceptions)
        os_error = getattr(current, "os_error", None)
        pending.extend(c for c in (current.__cause__ or current.__context__, os_error) if isinstance(c, BaseException))


def clean_message(text: str, secrets: Collection[str] = ()) -> str:
    """One line of at most 300 characters without credentials, and without user names and query strings in URLs.

    What is too long loses its middle: some say who they are first and what is wrong last.
    """
    line = _hidden(_URL_EXTRAS.sub(r"\1\2", " ".join(text.split())), secrets)
    if len(line) <= MESSAGE_LENGTH:
        return line
    return f"{beginning(line, MESSAGE_LENGTH - _ENDING - 1)}…{ending(line, _ENDING)}"


def clean_raw(body: bytes, secrets: Collection[str] = ()) -> str | None:
    """The start of an answer for the record, without credentials; ``None`` for an empty one."""
    searched = body[: 16 * RAW_LENGTH].decode("utf-8", "replace")  # what is hidden gets shorter
    return beginning(_hidden(searched, secrets), RAW_LENGTH) or None


def _hidden(text: str, secrets: Collection[str]) -> str:
    return _SECRET.sub("[hidden]", _known(tuple(secrets)).hidden(text, "[hidden]"))


@lru_cache(maxsize=64)
def _known(secrets: tuple[str, ...]) -> KnownSecrets:
    return KnownSecrets(secrets)


def _text(value: JsonValue) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value) or None
