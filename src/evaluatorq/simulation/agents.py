"""Simulated users and judges as objects of the published interface, to be configured, subclassed and handed in.

What ``simulate`` uses by itself needs none of this. Each question opens its connection and closes it, so that an agent
may be copied for each conversation and need not be closed; retries are the caller's, who asks again when a call failed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import anyio

from evaluatorq.errors import CallError
from evaluatorq.llm.encode import encode_row
from evaluatorq.model.calls import LLMCallConfig
from evaluatorq.model.cases import (
    CommunicationStyle,
    Criterion,
    Persona,
    Scenario,
    SimulationDatapoint,
    criterion_id_for,
)
from evaluatorq.model.judgments import Judgment
from evaluatorq.model.messages import Message
from evaluatorq.model.usage import NO_USAGE, Usage
from evaluatorq.ports import ChatModel, ChatPrefix, ChatRequest, Seat
from evaluatorq.roles.judge import model_judge
from evaluatorq.roles.prompts_judge import judge_system
from evaluatorq.roles.prompts_user import OPENING
from evaluatorq.simulation.models import fast_name, opened_models, smart_name

_USER = """\
You play one person who writes to an agent. Write only what this person would type next, as short as people write in a \
chat: no narration, no labels, no comments. Stay this person; never mention instructions, a persona or a test."""


_NOBODY = Persona(
    name="", patience=0.5, assertiveness=0.5, politeness=0.5, technical_level=0.5,
    communication_style=CommunicationStyle.CASUAL, background="",
)  # fmt: skip
"""A judge is told nothing of the persona."""


class BaseAgent(ABC):
    """A model with a system prompt that counts what it spends. ``config`` says which model, and how it is called."""

    def __init__(self, config: LLMCallConfig | None = None) -> None:
        self.config = config or LLMCallConfig()
        self._spent = NO_USAGE

    @property
    @abstractmethod
    def name(self) -> str:
        """What the agent is called."""

    @property
    @abstractmethod
    def system_prompt(self) -> str:
        """What the agent is told before the conversation."""

    @property
    def model(self) -> str:
        """The model that is asked."""
        return self.config.model or fast_name()

    async def respond_async(
        self,
        messages: Sequence[Message],
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  the published name
        llm_purpose: str | None = None,
        volatile_tail: int = 0,
    ) -> str:
        """The model's next words after ``messages``. ``timeout`` is in seconds; the last two change nothing.

        Raises ``RuntimeError`` (a ``CallError`` says which kind) when the call failed or nothing was said.
        """
        del llm_purpose, volatile_tail
        given = {"temperature": temperature, "max_tokens": max_tokens}
        config = self.config.model_copy(update={name: value for name, value in given.items() if value is not None})
        lines = [encode_row(message) for message in messages] or [OPENING]
        with anyio.fail_after(timeout):
            async with opened_models(config, 1) as models:
                reply = await models.ours(self.model).complete(ChatRequest(ChatPrefix(self.system_prompt), lines))
        self._spend(reply.usage)
        if not reply.text.strip():
            raise CallError("empty_reply", f"{self.name} said nothing", usage=reply.usage)
        return reply.text.strip()

    def get_usage(self) -> Usage:
        """Everything spent since it was made or reset."""
        return self._spent

    def reset_usage(self) -> None:
        """Counts from zero."""
        self._spent = NO_USAGE

    async def close(self) -> None:
        """Nothing is held open."""
        return

    def _spend(self, usage: Usage | None) -> None:
        self._spent = self._spent + (usage or NO_USAGE)


class UserSimulatorAgent(BaseAgent):
    """A simulated user. ``system_prompt`` replaces the preamble; persona and scenario are added to either."""

    def __init__(self, config: LLMCallConfig | None = None, *, system_prompt: str | None = None) -> None:
        super().__init__(config)
        self._preamble = _USER if system_prompt is None else system_prompt
        self._context: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """``user_simulator``."""
        return "user_simulator"

    @property
    def system_prompt(self) -> str:
        """The preamble, then who the user is and what the user wants."""
        return "\n\n".join((self._preamble, *self._context))

    def update_context(self, persona_context: str | None = None, scenario_context: str | None = None) -> None:
        """Whom to play, and in which situation."""
        self._context = tuple(part for part in (persona_context, scenario_context) if part)

    async def generate_first_message(self, messages: Sequence[Message] | None = None) -> str:
        """The words that open the conversation (after ``messages``, if any), without quotation marks around them."""
        text = await self.respond_async(messages or ())
        return text[1:-1].strip() if len(text) > 2 and text[0] == text[-1] == '"' else text


class JudgeAgent(BaseAgent):
    """A judge of a goal and criteria. Settled criteria are not asked about again."""

    def __init__(
        self,
        config: LLMCallConfig | None = None,
        *,
        goal: str | None = None,
        criteria: Sequence[Criterion] | None = None,
        ground_truth: str | None = None,
    ) -> None:
        super().__init__(config)
        self._settled: frozenset[str] = frozenset()
        self.update_context(goal, criteria, ground_truth)

    @property
    def name(self) -> str:
        """``judge``."""
        return "judge"

    @property
    def system_prompt(self) -> str:
        """What the judge is told of goal and criteria."""
        return judge_system(self._scenario)

    @property
    def model(self) -> str:
        """The model that is asked."""
        return self.config.model or smart_name()

    def update_context(
        self, goal: str | None = None, criteria: Sequence[Criterion] | None = None, ground_truth: str | None = None
    ) -> None:
        """What is to be judged."""
        listed = None if criteria is None else list(criteria)
        self._scenario = Scenario(name="", goal=goal or "", criteria=listed, ground_truth=ground_truth)

    def mark_settled(self, ids: Iterable[str]) -> None:
        """Criteria whose occurrence is known."""
        self._settled = frozenset(ids)

    async def evaluate(self, messages: Sequence[Message]) -> Judgment:
        """The verdict on the transcript. An answer that cannot be used is asked for again before that is an error."""
        wanted = [criterion_id_for(i) for i in range(len(self._scenario.criterion_list))]
        async with opened_models(self.config, 1) as models:
            return await self._judged(models.ours(self.model), messages, [i for i in wanted if i not in self._settled])

    async def _judged(self, model: ChatModel, messages: Sequence[Message], open_ids: Sequence[str]) -> Judgment:
        datapoint = SimulationDatapoint(id="", persona=_NOBODY, scenario=self._scenario)
        judge = model_judge(model)(Seat(datapoint, "", 0, 1))
        while True:
            try:
                reply = await judge.judge(messages, open_ids, final=False)
            except CallError as error:
                self._spend(error.usage)
                if not error.reask:
                    raise
            else:
                self._spend(reply.usage)
                return reply.judgment
