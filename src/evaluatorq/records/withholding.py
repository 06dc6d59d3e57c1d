"""Whole texts that are kept back by whose they are: of the user, of the agent, of tools or of one tool.

What stands in their place has a keyed digest and the length, ``[withheld:<16 hex digits>:<characters>]``, so that equal
texts can still be told to be equal. What a judge or a check quotes is kept back with them, whoever said it, because a
quote is the text again. Typed facts stay: states, outcomes, codes, counts, what was believed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Collection, Sequence

from pydantic import JsonValue

from evaluatorq.errors import Component
from evaluatorq.model.events import (
    BELIEFS,
    CLAIMS,
    CallFailed,
    Ended,
    Event,
    Noted,
    Observed,
    Scored,
    TargetReplied,
    ToolsReturned,
    TurnJudged,
    UserSpoke,
)
from evaluatorq.model.judgments import Judgment
from evaluatorq.model.messages import Message, ToolCall
from evaluatorq.model.observation import TurnReport
from evaluatorq.model.results import SimulationResult

SCOPE = re.compile(r"user|agent|tools|tool:\S+")
"""What may be named: ``user``, ``agent``, ``tools``, or ``tool:NAME``."""
WITHHELD = re.compile(r"\[withheld:[0-9a-f]{16}:\d+\]")
_STRETCH = 8
"""From so many characters on, a piece of a text counts as a quote of it."""
_FACTS = frozenset(
    {"messages", "metadata", "final_state", "states", "outside", "thread_id", "terminated_by", "ended_by"}
)
_SCOPE_OF: dict[Component, str] = {"user_simulator": "user", "target": "agent", "environment": "tools"}


class Withholding:
    """Keeps back the texts of ``scopes``. ``key`` makes the digests, so that short texts cannot be found by trying."""

    def __init__(self, scopes: Collection[str], key: bytes) -> None:
        self._scopes = frozenset(scopes)
        self._key = key

    def text(self, text: str) -> str:
        """What stands for a text; for nothing, and for what stands for something already, itself."""
        if not text or WITHHELD.fullmatch(text):
            return text
        digest = hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:16]
        return f"[withheld:{digest}:{len(text)}]"

    def event(self, event: Event, said: Sequence[Message] = ()) -> Event:
        """The event without those texts; the same object where it holds none. ``said`` is the conversation before it,
        of which notes and scores may quote.
        """
        if not self._scopes:
            return event
        clean = self._event(event, said)
        return event if clean == event else clean

    def _event(self, event: Event, said: Sequence[Message]) -> Event:  # noqa: PLR0911  one kind of event per case
        match event:
            case UserSpoke() if "user" in self._scopes:
                return event.model_copy(
                    update={"text": self.text(event.text), "reasoning": self._maybe(event.reasoning)}
                )
            case TargetReplied():
                return event.model_copy(update={"messages": self._rows(event.messages), **self._about(event)})
            case ToolsReturned():
                return event.model_copy(update={"messages": self._rows(event.messages)})
            case TurnJudged():
                return event.model_copy(update={"judgment": self._judgment(event.judgment)})
            case CallFailed() if self._speaks(event.component):
                return event.model_copy(update={"message": self.text(event.message), "raw": self._maybe(event.raw)})
            case Ended():
                reason = self.text(event.reason) if self._speaks(event.failed_component) else event.reason
                return event.model_copy(update={"called": self._rows(event.called), "reason": reason})
            case Observed():
                return event.model_copy(update={"report": self._report(event.report)})
            case Noted(data=list() | dict()):
                return event.model_copy(update={"data": self._unquoted(self._quotes(event), self._gone(said))})
            case Scored():
                error = self._unquoted(event.error, self._gone(said))
                return event.model_copy(update={"details": self._texts(event.details), "error": error})
        return event

    def result(self, result: SimulationResult) -> SimulationResult:
        """A conversation's record without those texts, and without what is quoted of them anywhere in it."""
        if not self._scopes:
            return result
        rows, gone = self._rows(tuple(result.messages)), self._gone(result.messages)
        document: dict[str, JsonValue] = result.model_dump(mode="json", by_alias=True)
        for name in document.keys() - _FACTS:
            document[name] = self._unquoted(document[name], gone)
        document["messages"] = [row.model_dump(mode="json") for row in rows]
        document["evaluator_details"] = self._texts(document["evaluator_details"])
        self._hide_words(document)
        for turn in _objects(document["turn_metrics"]):
            turn["judge_reason"] = self._texts(turn["judge_reason"])
        metadata = document["metadata"]
        if isinstance(metadata, dict):
            for meta in _objects(metadata.get("criteria_meta")):
                meta["evidence"] = self._texts(meta.get("evidence"))
            if self._speaks(result.failed_component):
                metadata["error"] = self._texts(metadata.get("error"))
                document["reason"] = self.text(result.reason)
        return SimulationResult.model_validate(document)

    def _hide_words(self, document: dict[str, JsonValue]) -> None:
        """Takes out of a record what sides said that is no row of the transcript: reasons, readings, short quotes."""
        for claim in _objects(document["prose_claims"]) if "agent" in self._scopes else ():
            claim["quote"] = self._texts(claim["quote"])
        observed = document["observations"]
        for seen in _objects(observed):
            kept = self._report(TurnReport.model_validate(seen)).model_dump(mode="json")
            seen |= {name: kept[name] for name in ("understanding", "discarded_answers") if name in kept}
        cognition = document["cognition"]
        if not isinstance(cognition, dict):
            return
        for step in _objects(cognition["assessments"]) if "agent" in self._scopes else ():
            for held in _objects([step["assessment"]]):
                held["rationale"] = self._texts(held["rationale"])
        belief = cognition["belief"]
        evidence = belief["evidence"] if isinstance(belief, dict) else None
        for one in _objects([*evidence.values()] if isinstance(evidence, dict) else None):
            if one["source"] in self._scopes:
                one["text"] = self._texts(one["text"])

    def _gone(self, rows: Sequence[Message]) -> list[str]:
        """The texts of those rows that are kept back."""
        pairs = zip(rows, self._rows(rows), strict=True)
        return [old.text for old, new in pairs if old.text != new.text]

    def _quotes(self, event: Noted) -> JsonValue:
        """What a note puts forward, without the quotes that it goes by, however short."""
        side, name = {BELIEFS: ("user", "evidence"), CLAIMS: ("agent", "quote")}.get(event.what, ("", ""))
        if side not in self._scopes or not isinstance(event.data, list):
            return event.data
        return [{**one, name: self._texts(one.get(name))} for one in _objects(event.data)]

    def _unquoted(self, value: JsonValue, gone: Sequence[str]) -> JsonValue:
        """A value in which no text holds one that is kept back, nor a stretch of one."""
        if isinstance(value, str):
            long = len(value) >= _STRETCH
            quoted = any((long and value in text) or (len(text) >= _STRETCH and text in value) for text in gone)
            return self.text(value) if quoted else value
        if isinstance(value, list):
            return [self._unquoted(item, gone) for item in value]
        if isinstance(value, dict):
            return {key: item if key in _FACTS else self._unquoted(item, gone) for key, item in value.items()}
        return value

    # ---------------------------------------------------------------- pieces

    def _speaks(self, component: Component | None) -> bool:
        """A failure's words may hold what is kept back: its own side's, or, of a judge, anybody's."""
        return component == "judge" or (component is not None and _SCOPE_OF.get(component) in self._scopes)

    def _about(self, event: TargetReplied) -> dict[str, object]:
        """What an answer carries beside its rows: thoughts and reasons are the agent's words, and what it understood
        are the user's.
        """
        found: dict[str, object] = {}
        if "agent" in self._scopes:
            found["reasoning"] = self._maybe(event.reasoning)
            if event.assessment is not None:
                reason = self._maybe(event.assessment.rationale)
                found["assessment"] = event.assessment.model_copy(update={"rationale": reason})
        if event.report is not None:
            found["report"] = self._report(event.report)
        return found

    def _report(self, report: TurnReport) -> TurnReport:
        """What was understood are the user's words, why an answer was thrown away may be the agent's."""
        update: dict[str, object] = {}
        if "user" in self._scopes:
            update["understanding"] = self._texts(report.understanding)
        if "agent" in self._scopes:
            update["discarded_answers"] = tuple(
                lost.model_copy(update={"reason": self._maybe(lost.reason)}) for lost in report.discarded_answers
            )
        return report.model_copy(update=update) if update else report

    def _maybe(self, text: str | None) -> str | None:
        return None if text is None else self.text(text)

    def _rows(self, rows: Sequence[Message]) -> tuple[Message, ...]:
        names = {call.id: call.function.name for row in rows for call in row.tool_calls or ()}
        return tuple(self._row(row, names.get(row.tool_call_id or "") or row.name or "") for row in rows)

    def _row(self, row: Message, tool: str) -> Message:
        if row.role == "tool":
            return row.model_copy(update={"content": self._answer(row.text)}) if self._keeps_tool(tool) else row
        side = {"user": "user", "assistant": "agent"}.get(row.role)
        content: object = row.content
        if side in self._scopes and row.content is not None:
            content = self.text(row.text)
        calls = None if row.tool_calls is None else [self._call(call) for call in row.tool_calls]
        return row.model_copy(update={"content": content, "tool_calls": calls})

    def _keeps_tool(self, name: str) -> bool:
        return "tools" in self._scopes or f"tool:{name}" in self._scopes

    def _call(self, call: ToolCall) -> ToolCall:
        """The arguments are the agent's words, and the tool's."""
        if "agent" not in self._scopes and not self._keeps_tool(call.function.name):
            return call
        given = call.parsed_arguments()
        if given == {} or (given is not None and "withheld" in given):
            return call
        arguments = json.dumps({"withheld": self.text(call.function.arguments)})
        return call.model_copy(update={"function": call.function.model_copy(update={"arguments": arguments})})

    def _answer(self, text: str) -> str:
        """What a tool answered; how the call went can still be told."""
        try:
            value: JsonValue = json.loads(text)
        except (ValueError, RecursionError):
            return self.text(text)
        if not isinstance(value, dict) or "withheld" in value:
            return text if isinstance(value, dict) else self.text(text)
        error, kept = value.get("error"), {"withheld": self.text(text)}
        if error:
            code = error.get("code") if isinstance(error, dict) else None
            return json.dumps({"error": {"code": code or "refused"}, **kept})
        return json.dumps({"outcome": value["outcome"], **kept} if "outcome" in value else kept)

    def _judgment(self, judgment: Judgment) -> Judgment:
        verdicts = judgment.criteria_verdicts
        return judgment.model_copy(
            update={
                "reason": self.text(judgment.reason),
                "criteria_verdicts": verdicts
                and [one.model_copy(update={"evidence": self.text(one.evidence)}) for one in verdicts],
            }
        )

    def _texts(self, value: JsonValue) -> JsonValue:
        """Every text in a value."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._texts(item) for item in value]
        return {key: self._texts(item) for key, item in value.items()} if isinstance(value, dict) else value


def _objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


__all__ = ["SCOPE", "WITHHELD", "Withholding"]
