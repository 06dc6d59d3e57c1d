"""The analyst: words what code computed, and suggests how an agent could have avoided what went wrong.

It computes nothing. A summary that holds a number which is not among the facts is refused, asked for once more, and
then not had: no summary is better than a wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from evaluatorq.errors import CallError
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.usage import Usage
from evaluatorq.pacing.paid import PaidCalls
from evaluatorq.ports import ChatModel, ChatPrefix, ChatReply, ChatRequest
from evaluatorq.records.triggers import SimulationRecommendationConfig, excerpt, find_triggers
from evaluatorq.roles.asking import Asking, ask
from evaluatorq.roles.prompts_analyst import (
    SUGGEST_SYSTEM,
    SUMMARY_SYSTEM,
    suggest_tail,
    suggestions_spec,
    summary_tail,
)

SUMMARY_TOKENS = 400
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
_LAST_SENTENCE = re.compile(r".*[.!?](?=\s|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Written:
    """What an analyst wrote, and what it cost."""

    lines: tuple[str, ...]
    usage: Usage | None
    model: str | None = None


async def write_summary(model: ChatModel, calls: PaidCalls, facts: Sequence[str]) -> str:
    """A few sentences about a run. Raises ``CallError`` where the model cannot be brought to any that hold."""
    prefix, asking = ChatPrefix(SUMMARY_SYSTEM), Asking()
    known = set(_NUMBER.findall("\n".join(facts)))

    async def once() -> Written:
        complaint = asking.about("summary")
        reply = await model.complete(ChatRequest(prefix, (), summary_tail(facts, complaint)))
        text = _whole_sentences(reply)
        invented = [number for number in _NUMBER.findall(text) if number not in known]
        if not text:
            raise asking.refuse(_unusable("empty_reply", "the summary is empty", reply), "it was empty.", 1)
        if invented:
            wrong = f"{', '.join(invented)} is not among the facts' numbers."
            told = "the summary names numbers that are not among the facts"
            raise asking.refuse(_unusable("malformed_response", told, reply), wrong, 1)
        return Written((text,), reply.usage, reply.model or model.name)

    return (await calls.make("executive_summary", once, reask=True)).lines[0]


def _whole_sentences(reply: ChatReply) -> str:
    """The text; where it was cut at the limit, up to its last whole sentence."""
    text = "" if reply.refusal else reply.text.strip()
    if reply.finish_reason != "length":
        return text
    whole = _LAST_SENTENCE.match(text)
    return whole.group() if whole else ""


async def suggest(
    model: ChatModel, calls: PaidCalls, result: SimulationResult, config: SimulationRecommendationConfig
) -> list[str]:
    """Changes to the agent's instructions for one conversation that went wrong. Raises ``CallError``."""
    prefix, asking = ChatPrefix(SUGGEST_SYSTEM, answer=suggestions_spec(config.max_suggestions)), Asking()
    findings = [str(trigger) for trigger in find_triggers(result, config)]
    verdict = result.reason[: config.max_verdict_chars]
    transcript = excerpt(result, config)

    async def once() -> Written:
        complaint = asking.about("suggestions")
        tail = suggest_tail(findings, verdict, transcript, config.max_suggestions, complaint)
        reply, answer = await ask(model, ChatRequest(prefix, (), tail), asking, {})
        given = answer.get("suggestions")
        texts = [" ".join(text.split()) for text in given if isinstance(text, str)] if isinstance(given, list) else []
        kept = tuple(dict.fromkeys(text for text in texts if text))[: config.max_suggestions]
        if not kept:
            wrong = "suggestions must be a list of sentences."
            raise asking.refuse(_unusable("malformed_response", "there is no suggestion in the answer", reply), wrong)
        return Written(kept, reply.usage, reply.model or model.name)

    return list((await calls.make("recommendations", once, reask=True)).lines)


def _unusable(code: str, message: str, reply: ChatReply) -> CallError:
    return CallError(code, message, usage=reply.usage, raw=reply.raw or reply.text, model=reply.model)
