"""One conversation as a document, ``evaluatorq.trace/1``: audit log, replay source and training row at once.

Within the version only optional additions whose absence keeps the old meaning are allowed; anything else is a new
version with a converter (``evaluatorq.records.trace_versions``). What is not known is absent, never ``null``: dump with
``Trace.document``. Keys that this version does not know are kept, so that reading and writing loses nothing.

A step belongs to the ``event`` it was made from (its place among the conversation's events, from 0). ``row`` is a place
in the transcript. ``loss_mask`` is ``True`` for everything that must not be trained on, as it was set when it happened.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, PlainSerializer, TypeAdapter, WithJsonSchema

from evaluatorq.errors import Component
from evaluatorq.model.assessments import Assessment
from evaluatorq.model.events import EndedBy, FaultCode, LineSource, TerminatedByName
from evaluatorq.model.judgments import Judgment
from evaluatorq.model.messages import Message
from evaluatorq.model.observation import CallOutcome, TurnReport
from evaluatorq.model.runs import Limits, RunMode, TargetKind
from evaluatorq.model.usage import Usage

TRACE_SCHEMA: Final = "evaluatorq.trace/1"
Hash = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Only = Literal[True]
"""A flag whose absence is the ordinary case."""

_REPEATED = {"prompt_tokens", "completion_tokens", "cost_usd"}


def _spent(usage: Usage) -> dict[str, float]:
    return usage.model_dump(mode="json", exclude_defaults=True, exclude=_REPEATED)


Spent = Annotated[
    Usage,
    PlainSerializer(_spent),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "number", "minimum": 0}}),
]
"""Tokens and money; a count that is absent is zero, a cost that is absent is unknown."""


class Part(BaseModel):
    """A frozen piece of a trace."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True, protected_namespaces=())


# ---------------------------------------------------------------- facts


class Provenance(Part):
    """Who says so: a check, a judge, a tool, somebody outside, a store, a rule; and where it shows."""

    source: Literal["check", "judge", "tool", "outside", "store", "target", "rule", "harness"]
    message: int | None = None
    calls: tuple[str, ...] | None = None
    evidence: str | None = None
    evidence_verified: bool | None = None
    model: str | None = None
    confidence: float | None = None


class Fact(Part):
    """Something asserted: about a criterion, the goal, the ending, or a place in the state (a JSON pointer).

    For a place in the state ``before`` is what stood there; without ``value`` nothing stands there now.
    """

    about: str
    value: JsonValue = None
    before: JsonValue = None
    provenance: Provenance


class Precondition(Part):
    """What had to be so before a tool could run, and whether it was."""

    what: str
    held: bool


class Loser(Part):
    """What a rule did not conclude, and why something else went before it."""

    rule: str
    conclusion: str
    why: str


class Failure(Part):
    """A call that brought no usable answer. Not ``final``: the same question was asked again after ``retry_in_s``."""

    component: Component
    code: FaultCode
    message: str
    attempt: int
    final: bool
    retry_in_s: float | None = None
    raw: str | None = None


# ---------------------------------------------------------------- steps


class _Step(Part):
    kind: str
    event: int
    turn: int
    at: datetime
    loss_mask: bool
    abandoned: Only | None = None


class _Answer(_Step):
    accepted: bool
    model: str | None = None
    request_digest: str | None = None
    latency_ms: float | None = None
    usage: Spent | None = None
    usage_unknown: Only | None = None
    error: Failure | None = None


class UserStep(_Answer):
    """The simulated user's turn, or an attempt at it that failed."""

    kind: Literal["user"] = "user"
    text: str | None = None
    stop: Only | None = None
    source: LineSource | None = None
    reasoning: str | None = None
    row: int | None = None


class TargetStep(_Answer):
    """A row that the agent wrote, or an attempt that failed. An answer during which the agent ran tools has several;
    what it cost and which ids it carried stand on the last of them.
    """

    kind: Literal["target"] = "target"
    message: Message | None = None
    row: int | None = None
    response_id: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    report: TurnReport | None = None
    assessment: Assessment | None = None
    reports_tools: Only | None = None


class ToolStep(_Answer):
    """One tool call: proposed by the agent, run by the environment or by the agent itself.

    ``arguments`` are absent where the agent's text is no JSON object. ``changed`` says whether the state did,
    ``read_only`` that the call cannot change it; neither is there where nobody told. ``idempotent`` is absent where the
    tool did not say. An outcome of ``awaiting`` without a message is a call that nobody answered.
    """

    kind: Literal["tool"] = "tool"
    tool: str
    call_id: str
    ran_by: Literal["environment", "target"]
    outcome: CallOutcome
    reason: str | None = None
    arguments: dict[str, JsonValue] | None = None
    idempotent: bool | None = None
    changed: bool | None = None
    read_only: Only | None = None
    preconditions: tuple[Precondition, ...] | None = None
    effects: tuple[Fact, ...] | None = None
    message: Message | None = None
    row: int | None = None


class JudgeStep(_Answer):
    """A verdict, or an attempt at one that failed. ``refused`` maps criteria to why their verdict does not count,
    ``unknown_scores`` scores to why their number is none.
    """

    kind: Literal["judge"] = "judge"
    judgment: Judgment | None = None
    final: Only | None = None
    lenient_quotes: Only | None = None
    goal_unknown: Only | None = None
    refused: dict[str, str] | None = None
    unknown_scores: dict[str, str] | None = None
    confidence: float | None = None
    threshold: float | None = None


class RuleStep(_Step):
    """Code that concluded something: which rule, from which rows, what, why, and what it passed over.

    ``observed`` and ``threshold`` are the two numbers that a limit compares.
    """

    kind: Literal["rule"] = "rule"
    rule: Literal["criteria_fold", "accept_policy", "tool_limits", "stop_rule", "goal"]
    rows: tuple[int, ...] | None = None
    derived: tuple[Fact, ...]
    why: str
    observed: float | None = None
    threshold: float | None = None
    suppressed: tuple[Loser, ...] | None = None


class NoteStep(_Step):
    """Something else that happened: an outside change, an observation, a resumption, a score, a fault of ours."""

    kind: Literal["note"] = "note"
    what: str
    data: dict[str, JsonValue] | None = None
    effects: tuple[Fact, ...] | None = None
    error: Failure | None = None
    usage: Spent | None = None
    usage_unknown: Only | None = None
    latency_ms: float | None = None
    request_digest: str | None = None


Step = Annotated[UserStep | TargetStep | ToolStep | JudgeStep | RuleStep | NoteStep, Field(discriminator="kind")]


# ---------------------------------------------------------------- header


class TargetRef(Part):
    """The agent under test."""

    kind: TargetKind
    name: str | None = None
    type: str | None = None
    model: str | None = None


class RunRef(Part):
    """The run that the conversation belongs to, and what it was asked to be. ``pack`` names the domain whose own user
    spoke where no model did.
    """

    id: str
    name: str
    created_at: datetime
    mode: RunMode
    target: TargetRef
    limits: Limits
    seed: int
    offline: bool
    config_hash: Hash
    models: dict[str, str] | None = None
    versions: dict[str, str] | None = None
    replayed_from: str | None = None
    pack: str | None = None
    own_user: Only | None = None
    own_judge: Only | None = None
    own_scoring: Only | None = None


class DatapointRef(Part):
    """The case: its id, and the fingerprint that equal cases share."""

    id: str
    fingerprint: str


class EnvironmentRef(Part):
    """The world behind the tools: a hash over what the case says of it, and its tools with whether they may be
    repeated.
    """

    hash: Hash
    name: str | None = None
    tools: dict[str, bool] | None = None


class Caveat(Part):
    """Something that keeps the trace from its strict meaning; a trace without caveats has it."""

    code: str
    detail: str | None = None


class Start(Part):
    """How the conversation began. Absent for one that never did."""

    at: datetime
    attempt: int
    has_environment: bool


# ---------------------------------------------------------------- what it came to


class Decision(Part):
    """Whether the goal was reached and who decided it; ``facts`` are the values that a stated goal reads."""

    by: Literal["state", "check", "judge", "fault"]
    goal_reached: bool
    facts: tuple[Fact, ...] | None = None


class Labels(Part):
    """What code computed, never a model; a label is absent where it could not be computed."""

    workflow_completed: bool
    fallback_taken: bool | None = None
    errors: int | None = None
    goal_state_reached: bool | None = None
    checks_held: bool | None = None
    expectations_met: bool | None = None
    claims_backed: bool | None = None


class Outcome(Part):
    """How the conversation ended; without ``terminal`` it did not. ``goal_reached`` is absent when never tested."""

    labels: Labels
    terminal: TerminatedByName | None = None
    ended_by: EndedBy | None = None
    ended_at: datetime | None = None
    reason: str | None = None
    failed_component: Component | None = None
    error_type: str | None = None
    lost: Component | None = None
    time_limit_s: float | None = None
    state_error: str | None = None
    goal_reached: bool | None = None
    decision: Decision | None = None


class Criterion(Part):
    """One criterion's standing. ``unknown`` is what nobody audited."""

    id: str
    description: str
    type: Literal["must_happen", "must_not_happen"]
    state: Literal["pass", "fail", "unknown"]
    decided_by: Literal["check", "judge"] | None = None
    occurred: bool
    evidence: str | None = None
    message: int | None = None
    evidence_verified: bool | None = None
    refused: str | None = None


class Verdicts(Part):
    """What a judge had to say, and what evaluators made of it; kept away from the labels."""

    verdict: Literal["passed", "failed", "unknown", "errored"]
    criteria: tuple[Criterion, ...] | None = None
    goal_achieved: bool | None = None
    goal_completion_score: float | None = None
    scores: dict[str, float] | None = None


class Totals(Part):
    """Sums over the conversation. ``cost_usd`` is absent when no call was priced, ``usage_unknown`` says that the sums
    are a least. ``calls`` and ``retries`` are absent where nobody counted them.
    """

    turns: int
    calls: dict[str, int] | None = None
    retries: int | None = None
    usage: Spent
    usage_by_role: dict[str, Spent] | None = None
    usage_unknown: Only | None = None
    duration_ms: float | None = None
    cost_usd: float | None = None
    trainable_rows: int
    masked_rows: int


class Replayed(Part):
    """How a replayed trace came about: of which conversation, and how each of its recorded steps was had."""

    of: str
    modes: dict[str, Literal["reexecuted", "substituted", "live", "skipped"]]
    start_at: int | None = None
    live_tools: Only | None = None


class Trace(Part):
    """One conversation. ``snapshots`` maps ``s<n>``, the state before step ``n``, to its hash in ``states``; there is
    one wherever a conversation can be taken up.
    """

    schema_tag: Literal["evaluatorq.trace/1"] = Field(TRACE_SCHEMA, alias="schema")
    thread_id: str
    row: int
    run: RunRef
    datapoint: DatapointRef
    environment: EnvironmentRef | None = None
    caveats: tuple[Caveat, ...] | None = None
    started: Start | None = None
    input: dict[str, JsonValue]
    steps: tuple[Step, ...]
    outcome: Outcome
    verdicts: Verdicts
    totals: Totals
    snapshots: dict[str, Hash] | None = None
    states: dict[str, JsonValue] | None = None
    replayed: Replayed | None = None

    @property
    def at(self) -> datetime:
        """When the conversation began; of one that never did, when its run was made."""
        return self.run.created_at if self.started is None else self.started.at

    def document(self) -> dict[str, JsonValue]:
        """The trace as JSON, without what is absent."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    def line(self) -> bytes:
        """The trace as one line of JSON."""
        return self.model_dump_json(by_alias=True, exclude_none=True).encode() + b"\n"


STEP: TypeAdapter[Step] = TypeAdapter(Step)
