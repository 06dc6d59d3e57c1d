"""What an agent's own code raised, as a ``CallError``: by type and status along its causes, never by its text.

An exception is worth another attempt unless it says otherwise: by a 4xx status that stays (all but 408, 425 and 429),
or by being a ``NonRetryableTargetError``. Libraries are not imported to be asked about: their errors are known by name.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType

from evaluatorq.errors import CallError, EvaluatorqError
from evaluatorq.llm.errors import ApiError, api_call_error, clean_message, network_error, read_retry_after
from evaluatorq.llm.tags import beginning

_DEPTH = 5
_NOT_THE_AGENT = (str(Path(__file__).parent), str(Path(os.__file__).parent), "<frozen ")
_NETWORK = {("httpx", "TransportError"), ("requests", "ConnectionError"), ("aiohttp", "ClientConnectionError")}
_TIMEOUTS = {("requests", "Timeout"), ("aiohttp", "ServerTimeoutError")}
_ERRNOS = {
    errno.EMFILE, errno.ENFILE, errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ETIMEDOUT,
}  # fmt: skip


class NonRetryableTargetError(EvaluatorqError, RuntimeError):
    """Raised by an agent that knows that asking again would not help."""


def fault_of(error: BaseException) -> CallError:
    """The failure of the agent that raised ``error``."""
    for link in _causes(error):
        if isinstance(link, CallError):
            link.component = link.component or "target"
            return link
        found = _decisive(link)
        if found is not None:
            break
    else:
        found = CallError("target_error", "", retryable=not isinstance(error, SystemExit))
    return CallError(
        found.code,
        described(error),
        retryable=found.retryable,
        retry_after=found.retry_after,
        component=found.component or "target",
    )


def is_stray_cancellation(error: BaseException) -> bool:
    """A cancellation of something inside the agent that came out of it, while nobody cancels the conversation."""
    if not isinstance(error, asyncio.CancelledError):
        return False
    task = asyncio.current_task()
    return task is not None and not task.cancelling()


def described(error: BaseException) -> str:
    """Type, text and place of an exception, on one line without credentials."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  a broken __str__ must not hide the error
        text = "(its text cannot be read)"
    place = _place(error.__traceback__)
    kind = type(error).__name__
    return clean_message(f"{kind}: {beginning(text, 2000)}" if text else kind) + (f" ({place})" if place else "")


def _place(trace: TracebackType | None) -> str:
    """File and line, of the innermost frame in the file where the agent's own code begins."""
    own: str | None = None
    place = ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if own is None and not code.co_filename.startswith(_NOT_THE_AGENT):
            own = code.co_filename
        if code.co_filename == own:
            place = f"{Path(own).name}:{trace.tb_lineno} in {code.co_name}"
        trace = trace.tb_next
    return place


# ---------------------------------------------------------------- what decides


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The exception and what caused it, outermost first; the first of a group stands for the group."""
    link: BaseException | None = error
    for _ in range(_DEPTH):
        if link is None:
            return
        yield link
        if isinstance(link, BaseExceptionGroup):
            link = link.exceptions[0]
        else:
            link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _decisive(link: BaseException) -> CallError | None:
    if isinstance(link, NonRetryableTargetError):
        return CallError("target_error", "")
    if (status := _status(link)) is not None:
        error = ApiError(status, _text(link, "code"), _text(link, "type"), retry_after=_retry_after(link))
        return api_call_error(error, "the agent")
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(link).__mro__}
    if kinds & _TIMEOUTS:
        return CallError("timeout", "", retryable=True)
    if isinstance(link, TimeoutError | ConnectionError | socket.gaierror) or kinds & _NETWORK:
        return network_error(link, "the agent")
    if isinstance(link, OSError) and link.errno in _ERRNOS:
        return network_error(link, "the agent")
    return None


def _member(holder: object, *path: str) -> object:
    for name in path:
        holder = getattr(holder, name, None)
    return holder


def _text(holder: object, name: str) -> str | None:
    value = _member(holder, name)
    return value if isinstance(value, str) else None


def _status(link: BaseException) -> int | None:
    paths = (("status_code",), ("status",), ("response", "status_code"), ("response", "status"), ("code",))
    for path in paths:
        value = _member(link, *path)
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:
            return int(value)
    return None


def _retry_after(link: BaseException) -> float | None:
    headers = _member(link, "response", "headers") or _member(link, "headers")
    return read_retry_after(headers) if isinstance(headers, Mapping) else None
