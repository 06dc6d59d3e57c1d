"""Any HTTP endpoint as an agent: a request template, where the reply is, and one sentence for each way it does not fit.

Redirects are not followed and no cookies are kept: a conversation's memory on the other side goes by its session id.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, NamedTuple
from urllib.parse import quote, unquote, urlsplit, urlunsplit
from uuid import uuid4

from pydantic import Field, JsonValue, field_validator

from evaluatorq.errors import CallError
from evaluatorq.llm.credentials import account_credentials, basic, header_credentials, query_credentials
from evaluatorq.llm.encode import encode_json
from evaluatorq.llm.endpoint import bare_url, is_http_url
from evaluatorq.llm.errors import status_error
from evaluatorq.llm.exchange import Answer, Call
from evaluatorq.llm.reading import MOST_BYTES
from evaluatorq.llm.reply import is_event_stream
from evaluatorq.model.messages import Message
from evaluatorq.model.rules import Misfit
from evaluatorq.ports import Seat, TargetReply, ToolSpec
from evaluatorq.targets.bodies import Places, parsed, reply_from_json
from evaluatorq.targets.parts import empty, unfit
from evaluatorq.targets.paths import JsonPath, PathMissing
from evaluatorq.targets.propagation import trace_context
from evaluatorq.targets.replies import reply_of
from evaluatorq.targets.streams import reply_from_events
from evaluatorq.targets.templates import (
    TargetSpec,
    Values,
    check_placeholders,
    expanded,
    placeholders_in,
    rendered,
    rendered_text,
    request_values,
)
from evaluatorq.targets.wire import SharedWire

Format = Literal["auto", "json", "text", "sse"]
DEFAULT_BODY: JsonValue = {"messages": "{{messages}}"}
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")


class HttpTargetSpec(TargetSpec):
    """How to ask an endpoint and how to read it. Only ``url`` is needed.

    ``url``, ``headers`` and ``body`` may hold ``{{messages}}``, ``{{last_message}}``, ``{{thread_id}}``,
    ``{{session_id}}``, ``{{tools}}`` and ``{{tools_url}}``; ``url`` and ``headers`` also ``${VARIABLES}`` of the
    environment. ``reply``, ``tool_calls``, ``usage``, ``session_id``, ``report`` (a ``TurnReport``) and
    ``assessment`` are paths in the answer. An endpoint that remembers the conversation is asked with ``history: last``.
    """

    noun: ClassVar[str] = "an endpoint"

    url: str
    method: Literal["POST", "PUT", "PATCH", "GET"] = "POST"
    headers: dict[str, str] = Field(default_factory=dict)
    body: JsonValue = None
    reply: str | None = None
    tool_calls: str | None = None
    usage: str | None = None
    session_id: str | None = None
    report: str | None = None
    assessment: str | None = None
    trace_headers: tuple[str, ...] = ("x-trace-id", "traceparent")
    history: Literal["messages", "last"] = "messages"
    format: Format = "auto"
    stateful: bool | None = None
    timeout_s: float | None = Field(None, gt=0)

    @field_validator("url", "headers", "body")
    @classmethod
    def _fillable(cls, template: JsonValue) -> JsonValue:
        check_placeholders(template)
        return template

    @field_validator("reply", "tool_calls", "usage", "session_id", "report", "assessment")
    @classmethod
    def _a_path(cls, path: str | None) -> str | None:
        _path(path)
        return path

    def make_targets(self, parallelism: int = 1) -> HttpTargets:
        """The factory of targets for this endpoint. Raises ``ConfigError`` for a description that cannot be right."""
        return HttpTargets(self, parallelism=parallelism)

    @property
    def remembers(self) -> bool:
        """The endpoint keeps the conversation itself, as far as one can tell."""
        if self.stateful is not None:
            return self.stateful
        uses_session = "session_id" in placeholders_in([self.url, self.body, *self.headers.values()])
        return self.history == "last" or self.session_id is not None or uses_session


class _Endpoint(NamedTuple):
    """A description made ready: environment filled in, paths parsed."""

    url: str
    headers: dict[str, str]
    body: JsonValue
    places: Places
    session: JsonPath | None
    secrets: tuple[str, ...]
    where: str


class HttpTargets:
    """Makes a target for each conversation with one endpoint; they share its connections until ``aclose``."""

    type = "HttpTarget"

    def __init__(self, spec: HttpTargetSpec, *, parallelism: int = 1) -> None:
        self.spec = spec
        self.name = bare_url(spec.url)
        self.metered = spec.usage is not None
        self._endpoint = _ready(spec)
        self._wire = SharedWire(parallelism, spec.timeout_s)

    def __call__(self, seat: Seat) -> HttpTarget:
        """The target of one conversation."""
        tools = () if seat.environment is None else seat.environment.tools
        limit_s = self.spec.timeout_s or seat.answer_s
        return HttpTarget(self.spec, self._endpoint, self._wire, tools, tools_url=seat.tools_url, timeout_s=limit_s)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The credentials that it holds: what must not be written anywhere."""
        return self._endpoint.secrets

    async def aclose(self) -> None:
        """Closes the connections; the next conversation opens new ones."""
        await self._wire.aclose()


def _ready(spec: HttpTargetSpec) -> _Endpoint:
    url, secrets = expanded(spec.url, "the target's url", "url")
    if not is_http_url(url):
        raise Misfit.at(
            f"a target's url starts with http:// or https:// and names a host, not {bare_url(spec.url)!r}", "url"
        )
    parts = urlsplit(url)
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream, text/plain"}
    secrets += query_credentials(parts.query)
    for name, template in spec.headers.items():
        headers[name.lower()], values = expanded(template, f"the header {name!r}", "headers", name)
        secrets += (*values, *header_credentials(name, headers[name.lower()]))
    if parts.username:
        user, password = unquote(parts.username), unquote(parts.password or "")
        headers.setdefault("authorization", f"Basic {basic(user, password)}")
        secrets += (*account_credentials(user, password), *((parts.password,) if parts.password else ()))
        url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    paths = (spec.reply, spec.tool_calls, spec.usage, spec.report, spec.assessment)
    places = Places(*map(_path, paths))
    body = DEFAULT_BODY if spec.body is None and spec.method != "GET" else spec.body
    return _Endpoint(url, headers, body, places, _path(spec.session_id), secrets, bare_url(spec.url))


def _path(text: str | None) -> JsonPath | None:
    return None if text is None else JsonPath.parse(text)


class HttpTarget:
    """One conversation with an endpoint. Its time runs from when a request is sent, not while it waits for its turn."""

    manages_own_timeout = True

    def __init__(
        self,
        spec: HttpTargetSpec,
        endpoint: _Endpoint,
        wire: SharedWire,
        tools: Sequence[ToolSpec] = (),
        *,
        tools_url: str | None = None,
        timeout_s: float | None = None,
    ) -> None:
        self.stateful = spec.remembers
        self._spec = spec
        self._endpoint = endpoint
        self._wire = wire
        self._tools = tools
        self._tools_url = tools_url
        self._timeout_s = timeout_s
        self._session_id = None if spec.session_id else uuid4().hex

    async def respond(self, messages: Sequence[Message], *, thread_id: str) -> TargetReply:
        """The endpoint's answer to the transcript, or to its last user message with ``history: last``."""
        values = request_values(
            messages,
            thread_id=thread_id,
            session_id=self._session_id,
            tools=self._tools,
            tools_url=self._tools_url,
            only_last=self._spec.history == "last",
        )
        try:
            answer = await self._wire.send(self._request(values), self._timeout_s)
            return reply_of(self._read(answer), messages)
        except CallError as error:
            raise _without(error, self._endpoint.secrets) from error

    def _request(self, values: Values) -> Call:
        endpoint = self._endpoint
        quoted = {
            name: quote(rendered_text(f"{{{{{name}}}}}", values), safe="") for name in placeholders_in(endpoint.url)
        }
        body = endpoint.body
        return Call(
            rendered_text(endpoint.url, quoted),
            {
                **trace_context(),
                **{name: _one_line(rendered_text(value, values)) for name, value in endpoint.headers.items()},
            },
            None if body is None else encode_json(rendered(body, values)),
            endpoint.where,
            self._spec.method,
        )

    # ---------------------------------------------------------------- reading

    def _read(self, answer: Answer) -> TargetReply:
        where = self._endpoint.where
        if not 200 <= answer.status < 300:
            raise status_error(answer, where, self._endpoint.secrets)
        if not answer.whole:
            raise unfit(f"{where} answered more than {MOST_BYTES:,} bytes; that is not read.")
        if not answer.body.strip():
            raise empty(f"{where} answered {answer.status} with an empty body.")
        reply, documents = self._reply(answer)
        self._keep_session(documents)
        return _traced(reply, answer.headers, self._spec.trace_headers)

    def _reply(self, answer: Answer) -> tuple[TargetReply, list[JsonValue]]:
        where, places = self._endpoint.where, self._endpoint.places
        match self._format(answer):
            case "sse":
                reply, chunks = reply_from_events(_text(answer), places, where)
                return reply, list(chunks)
            case "text":
                return TargetReply((Message(role="assistant", content=_text(answer)),)), []
        document = parsed(answer.body, where)
        return reply_from_json(document, places, where), [document]

    def _format(self, answer: Answer) -> Format:
        """How to read the body: as told, else by its content type; text that is a JSON object is read as one."""
        if self._spec.format != "auto":
            return self._spec.format
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream":
            return "sse"
        if kind.endswith(("/json", "+json")) or self._endpoint.places.text is not None:
            return "json"
        if kind == "text/html":
            raise unfit(f"{self._endpoint.where} answered an HTML page, not JSON or text.")
        if kind and not kind.startswith("text/"):
            raise unfit(f"{self._endpoint.where} answered {kind}, not JSON, text or server-sent events.")
        if is_event_stream(answer.body):
            return "sse"
        return "json" if _is_object(answer.body) else "text"

    def _keep_session(self, documents: list[JsonValue]) -> None:
        path = self._endpoint.session
        if path is None:
            return
        for document in documents:
            try:
                value = path.find(document)
            except PathMissing:
                continue
            if isinstance(value, str | int) and not isinstance(value, bool):
                self._session_id = str(value)
                return
        if self._session_id is None:
            raise unfit(f"{self._endpoint.where} answered without a session id at {path.text}.")


def _one_line(text: str) -> str:
    return " ".join(re.sub(r"[\x00-\x1f]", " ", text).split())


def _text(answer: Answer) -> str:
    charset = re.search(r"charset=\"?([\w.:-]+)", answer.headers.get("content-type", ""), re.IGNORECASE)
    try:
        return answer.body.decode(charset[1] if charset else "utf-8", "replace")
    except (LookupError, UnicodeError):  # unknown, or one of those that read nothing at all
        return answer.body.decode("utf-8", "replace")


def _is_object(body: bytes) -> bool:
    if not body.lstrip().startswith(b"{"):
        return False
    try:
        return isinstance(parsed(body, ""), dict)
    except CallError:
        return False


def _traced(reply: TargetReply, headers: Mapping[str, str], names: Sequence[str]) -> TargetReply:
    for name in names:
        value = headers.get(name.lower())
        if value:
            parent = _TRACEPARENT.fullmatch(value.strip())
            return replace(
                reply, trace_id=parent[1] if parent else value.strip(), span_id=parent[2] if parent else None
            )
    return reply


def _without(error: CallError, secrets: Sequence[str]) -> CallError:
    """The same error with what came from the environment taken out of its text."""
    message, raw = error.message, error.raw
    for secret in secrets:
        message = message.replace(secret, "[hidden]")
        raw = raw and raw.replace(secret, "[hidden]")
    return CallError(
        error.code,
        message,
        retryable=error.retryable,
        reask=error.reask,
        retry_after=error.retry_after,
        usage=error.usage,
        component=error.component or "target",
        raw=raw,
    )
