"""One model behind an OpenAI-compatible chat-completions endpoint.

A call of ``complete`` is one question. It takes more than one request only while the endpoint still refuses parts of
it, which is learned (``evaluatorq.llm.abilities``); whether to ask again after a failure is for the caller to decide.
"""

from __future__ import annotations

import re
from typing import Protocol
from weakref import WeakKeyDictionary

from evaluatorq.errors import CallError
from evaluatorq.llm.abilities import Abilities, AnswerForm
from evaluatorq.llm.body import Head, make_body, make_head, role_at
from evaluatorq.llm.doubts import FORM
from evaluatorq.llm.encode import decode_json, encode_json
from evaluatorq.llm.endpoint import Endpoint, Sampling
from evaluatorq.llm.errors import ApiError, api_call_error, clean_raw, read_api_error
from evaluatorq.llm.exchange import Answer, Call
from evaluatorq.llm.pricing import priced
from evaluatorq.llm.reading import MOST_BYTES
from evaluatorq.llm.reply import is_event_stream, read_events, read_reply
from evaluatorq.llm.structured import read_answer
from evaluatorq.model.replacing import replace
from evaluatorq.model.usage import Usage
from evaluatorq.pacing.limits import EndpointLimiter
from evaluatorq.ports import ChatPrefix, ChatReply, ChatRequest

MOST_LESSONS = 16
"""So many refusals are learned within one call; then it fails with the last."""
_NO_SUCH_MODEL = {"model_not_found", "not_found_error"}
_MESSAGE_ROLE = re.compile(r"messages[.\[](\d+)\]?\.role")


class Sender(Protocol):
    """Carries a request to its endpoint and back."""

    async def send(self, call: Call, timeout_s: float | None = None) -> Answer:
        """The whole answer, or ``CallError`` for a failure of the network."""
        ...


class OpenAIChat:
    """A ``ChatModel``. Instances for the same endpoint and model share ``abilities`` and ``limiter``."""

    def __init__(
        self,
        name: str,
        endpoint: Endpoint,
        *,
        sender: Sender,
        limiter: EndpointLimiter,
        abilities: Abilities | None = None,
        sampling: Sampling | None = None,
        timeout_s: float | None = None,
    ) -> None:
        self.name = name
        self.endpoint = endpoint
        self.sampling = sampling or Sampling()
        self.abilities = abilities or Abilities()
        self._sender = sender
        self._limiter = limiter
        self._timeout_s = timeout_s
        self._heads: WeakKeyDictionary[ChatPrefix, Head] = WeakKeyDictionary()
        self._url = endpoint.chat_url
        self._headers = endpoint.request_headers()
        self._where = f"model {name!r} at {endpoint.host}"

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The answer, or ``CallError``. The time limit of a request does not run while it waits for its slot."""
        wanted = request.prefix.answer
        if wanted is None:
            reply, _ = await self._ask(request, None)
            return reply
        reply, form = await self._ask(request, self.abilities.form)
        try:
            found = read_answer(reply, wanted)
        except CallError as exc:
            if exc.code == "malformed_response":
                if self._ran_out(reply):
                    read_answer(replace(reply, finish_reason="length"), wanted)
                if form is not None:
                    self.abilities.answered(form, with_object=False)
            raise
        if form is not None:
            self.abilities.answered(form, with_object=True)
        return replace(reply, answer=found.value, lenient=found.lenient, raw=found.raw)

    async def _ask(self, request: ChatRequest, form: AnswerForm | None) -> tuple[ChatReply, AnswerForm | None]:
        """Asks until the endpoint refuses nothing any more. Returns the answer and the form in which it was asked."""
        unnamed: CallError | None = None
        for _ in range(MOST_LESSONS):
            trial = self.abilities.trial(request.prefix)
            asked = AnswerForm.PROMPT if form is not None and FORM in trial.left_out else form
            head = self._head(request.prefix, asked, self.abilities.roles_in(trial))
            body = make_body(head, request)
            call = Call(self._url, self._headers, body, self._where)
            async with self._limiter.slot():
                answer = await self._sender.send(call, self._timeout_s)
                if 200 <= answer.status < 300:
                    reply = self._read(answer)
                    self.abilities.got_through(request.prefix, trial, asked, body)
                    break
                error = read_api_error(answer)
                failure = api_call_error(error, self._where, answer.body, self.endpoint.secrets)
                if self._learns(error, head, request):
                    form = None if form is None else min(form, self.abilities.form)
                elif asked and _may_mean_the_form(error, failure) and not self.abilities.form_settled:
                    unnamed = unnamed or failure
                    form = asked.below
                else:
                    if error.status == 500 and error.retry_after is None:
                        self.abilities.broke_down(request.prefix, trial, asked, body)
                    raise failure if unnamed is None else self._not_the_form(unnamed)
        else:
            raise failure
        if form is not None and unnamed is not None:
            self.abilities.take_form(form)
        if reply.usage is not None:
            self._limiter.spend(reply.usage.total_tokens)
        return reply, asked

    def _ran_out(self, reply: ChatReply) -> bool:
        """The answer used up its tokens; of a tool call that was cut some endpoints say that it ended as it should."""
        most = self.sampling.max_tokens
        return most is not None and reply.usage is not None and reply.usage.output_tokens >= most

    def _not_the_form(self, refusal: CallError) -> CallError:
        """The first refusal, after the question was refused in every form: later ones are not asked so often."""
        self.abilities.refused_in_every_form = True
        refusal.message += " (and in every other form of asking for an object)"
        return refusal

    def _learns(self, error: ApiError, head: Head, request: ChatRequest) -> bool:
        """Whether the same question may go on without what was refused."""
        if error.status not in (400, 404, 422, 501) or error.param is None:
            return False
        at = _MESSAGE_ROLE.match(error.param)
        if at:
            role = role_at(head, request, int(at.group(1)))
            return role is not None and self.abilities.learn_role(role)
        return self.abilities.learn(error, head.fields, head.form)

    def _head(self, prefix: ChatPrefix, form: AnswerForm | None, roles: dict[str, str]) -> Head:
        head = self._heads.get(prefix)
        version = self.abilities.version
        if head is None or head.version != version or head.form is not form or head.roles != roles:
            head = make_head(self.name, prefix, self.sampling, self.abilities, form, roles)
            self._heads[prefix] = head
        return head

    def _read(self, answer: Answer) -> ChatReply:
        """The completion in an answer. Raises ``CallError`` with its cost where that is known."""
        body = answer.body
        if not answer.whole:
            raise self._unreadable("malformed_response", f"answered more than {MOST_BYTES:,} bytes", body)
        try:
            doc, whole = read_events(body) if is_event_stream(body) else (decode_json(body), True)
        except ValueError as exc:
            raise self._unreadable("malformed_response", "answered with something that is not JSON", body) from exc
        if not whole:
            raise self._unreadable("truncated_response", "broke off in the middle of its answer", body)
        if isinstance(doc, dict):
            if doc.get("error") and not doc.get("choices"):
                error = read_api_error(answer._replace(body=encode_json(doc)))
                status = int(error.code) if error.code and error.code.isdigit() else 502
                raise api_call_error(replace(error, status=status), self._where, body, self.endpoint.secrets)
            reply = read_reply(doc)
            if reply is not None:
                return self._priced(reply)
        usage = Usage.extract(doc) if isinstance(doc, dict) else None
        raise self._unreadable("malformed_response", "answered without a message", body, usage)

    def _priced(self, reply: ChatReply) -> ChatReply:
        if reply.usage is None:
            return reply
        usage = priced(reply.usage, self.name, self.endpoint.base_url, answered_by=reply.model)
        return reply if usage is reply.usage else replace(reply, usage=usage)

    def _unreadable(self, code: str, what: str, body: bytes, usage: Usage | None = None) -> CallError:
        raw = clean_raw(body, self.endpoint.secrets)
        return CallError(code, f"{self._where} {what}", retryable=True, usage=usage, raw=raw, model=self.name)


def _may_mean_the_form(error: ApiError, failure: CallError) -> bool:
    """A refusal that names nothing may be of the form in which an object was asked for."""
    return error.param is None and failure.code in ("bad_request", "not_found") and not error.names & _NO_SUCH_MODEL
