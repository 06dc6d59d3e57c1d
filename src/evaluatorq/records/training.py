"""What of a trace is training data: a conversation as the agent saw it, in pieces that are trainable or masked.

Only what the agent itself wrote is trainable: what it said, what it thought, the calls it made. Words of simulated
users and answers of tools are context. Judges, rules, failed attempts, and what a restart abandoned are not part of
what an agent sees, so they are left out; a turn that the agent broke is kept as context and not trained on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from pydantic import JsonValue

from evaluatorq.conversation.checks import same_json
from evaluatorq.errors import ConfigError
from evaluatorq.model.messages import Message
from evaluatorq.model.rules import near_and_known
from evaluatorq.model.trace import Labels, TargetStep, ToolStep, Trace, UserStep
from evaluatorq.records.redaction import PLACEHOLDER
from evaluatorq.records.verdicts import Verdict

PieceKind = Literal["user", "reasoning", "said", "call", "result"]
Row = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text, the step that it comes from, and whether it may be trained on."""

    kind: PieceKind
    text: str
    step: int
    trainable: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the transcript with the step it comes from; ``redacted`` when something in it was taken out."""

    message: Message
    step: int
    trainable: bool
    reasoning: str | None = None
    redacted: bool = False


def lines_of(trace: Trace) -> list[Line]:
    """The conversation as the agent saw it, row by row."""
    broken = trace.totals.turns + 1 if trace.outcome.failed_component == "target" else None
    redacted = is_redacted(trace)
    thoughts: dict[int, str] = {}
    for step in trace.steps:
        if isinstance(step, TargetStep) and step.reasoning and step.accepted:
            thoughts[step.event] = step.reasoning
    found = []
    for number, step in enumerate(trace.steps):
        message = None if step.abandoned else _message(step)
        if message is not None:
            trainable = not step.loss_mask and step.turn != broken
            thought = thoughts.pop(step.event, None) if trainable else None
            hidden = redacted and PLACEHOLDER.search(message.model_dump_json() + (thought or "")) is not None
            found.append(Line(message, number, trainable, thought, hidden))
    return found


def _message(step: object) -> Message | None:
    match step:
        case UserStep(text=str() as text) if step.row is not None:
            return Message(role="user", content=text)
        case TargetStep() if step.accepted and step.row is not None:
            return step.message
        case ToolStep() if step.row is not None:
            return step.message
    return None


def pieces_of(trace: Trace) -> Iterator[Piece]:
    """The conversation in pieces: for each row of the agent what it thought, what it said, and each call."""
    for line in lines_of(trace):
        message = line.message
        if message.role == "user":
            yield Piece("user", message.text, line.step, trainable=False)
        elif message.role == "tool":
            yield Piece("result", message.text, line.step, trainable=False)
        else:
            if line.reasoning:
                yield Piece("reasoning", line.reasoning, line.step, line.trainable)
            if message.text:
                yield Piece("said", message.text, line.step, line.trainable)
            for call in message.tool_calls or ():
                words = f"{call.function.name} {call.function.arguments}"
                yield Piece("call", words, line.step, line.trainable)


def is_redacted(trace: Trace) -> bool:
    """Something was taken out of the conversation before it was written."""
    return any(caveat.code == "redacted" for caveat in trace.caveats or ())


# ---------------------------------------------------------------- which traces


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which traces become rows. ``labels`` must be there and equal; ``verdicts`` are the ones allowed, any where empty;
    ``scores`` are least values of evaluators; ``simulator_faults`` is how many calls of the simulated user may have
    failed; ``complete`` asks for an ending and an undamaged recording; traces with one of the ``caveats`` stay out.

    ``ConfigError`` for a verdict or a label that there is not.
    """

    labels: Mapping[str, JsonValue] = field(default_factory=dict)
    verdicts: Sequence[str] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    simulator_faults: int | None = None
    complete: bool = True
    caveats: Sequence[str] = ()

    def __post_init__(self) -> None:
        known = get_args(Verdict)
        for verdict in self.verdicts:
            if verdict not in known:
                raise ConfigError(f"no conversation has the verdict {verdict!r}; there is {', '.join(known)}")
        for name in self.labels:
            if name not in Labels.model_fields:
                raise ConfigError(f"no label is called {name!r}; {near_and_known(name, Labels.model_fields)}")

    def refusal(self, trace: Trace) -> str | None:
        """Why a trace is left out, ``None`` for one that is wanted."""
        return self.unfit(trace) or self.falls_short(trace)

    def unfit(self, trace: Trace) -> str | None:
        """Why a trace is no data at all, whatever came of its conversation."""
        found = {caveat.code for caveat in trace.caveats or ()}
        if self.complete and (trace.outcome.terminal is None or "journal_damaged" in found):
            return "incomplete"
        for code in self.caveats:
            if code in found:
                return f"caveat {code}"
        if self.simulator_faults is None:
            return None
        if trace.totals.retries is None:
            return "simulator faults unknown"
        faults = sum(isinstance(step, UserStep) and step.error is not None for step in trace.steps)
        return "simulator faults" if faults > self.simulator_faults else None

    def falls_short(self, trace: Trace) -> str | None:
        """What a trace's outcome lacks, the first of it."""
        labels = trace.outcome.labels.model_dump(mode="json", exclude_none=True)
        for name, value in self.labels.items():
            if name not in labels:
                return f"label {name} absent"
            if not same_json(labels[name], value):
                return f"label {name}"
        if self.verdicts and trace.verdicts.verdict not in self.verdicts:
            return f"verdict {trace.verdicts.verdict}"
        scores = trace.verdicts.scores or {}
        for name, least in self.scores.items():
            if name not in scores:
                return f"score {name} absent"
            if scores[name] < least:
                return f"score {name}"
        return None

    def described(self) -> Row:
        """The filters as a dataset card lists them."""
        said: Row = {"complete": self.complete}
        named: Row = {
            "labels": dict(self.labels),
            "verdicts": list(self.verdicts),
            "scores": dict(self.scores),
            "without_caveats": list(self.caveats),
        }
        said.update({name: value for name, value in named.items() if value})
        if self.simulator_faults is not None:
            said["simulator_faults"] = self.simulator_faults
        return said


def source_of(trace: Trace) -> Row:
    """Where a row comes from, and what came of that conversation."""
    return {
        "thread_id": trace.thread_id,
        "datapoint": trace.datapoint.fingerprint,
        "schema": trace.schema_tag,
        "labels": trace.outcome.labels.model_dump(mode="json", exclude_none=True),
        "verdict": trace.verdicts.verdict,
    }
