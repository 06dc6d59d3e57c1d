"""Asks a model for something outside of conversations, where no driver does: waits, asks again, books what it cost.

Bad luck on the way is the retry policy's, as in a conversation. An answer that came and cannot be used (``reask``) is
raised at once: only whoever asked can ask better.
"""

from __future__ import annotations

from random import Random

from evaluatorq.errors import CallError
from evaluatorq.model.spending import Bill, Category
from evaluatorq.pacing.retry import RetryPolicy
from evaluatorq.ports import ChatModel, ChatReply, ChatRequest

DEFAULT_RETRY = RetryPolicy()


class Asker:
    """One model, how patiently it is asked, and the bill for it. Serves any number of questions at once."""

    def __init__(
        self, model: ChatModel, *, retry: RetryPolicy = DEFAULT_RETRY, bill: Bill | None = None, seed: int = 0
    ) -> None:
        self.bill = bill or Bill()
        self._model = model
        self._retry = retry
        self._random = Random(seed)  # noqa: S311  jitter, not secrets

    async def ask(self, request: ChatRequest, category: Category) -> ChatReply:
        """The reply, after as many attempts as the policy allows; else the last ``CallError``."""

        async def once() -> ChatReply | CallError:
            try:
                reply = await self._model.complete(request)
            except CallError as error:
                self.bill.failed(category, error)
                if error.reask:
                    return error
                raise
            self.bill.answered(category, reply.usage)
            return reply

        reply: ChatReply | CallError = await self._retry.retrying(self._random, lambda _error, _attempt, _pause: None)(
            once
        )
        if isinstance(reply, CallError):
            raise reply
        return reply
