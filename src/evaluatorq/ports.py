"""The seams to the outside: protocols of one to three methods. Fakes that keep them ship in ``evaluatorq.testing``.

Participants return plain *replies*; only the driver makes events. A participant that fails raises ``CallError``;
anything else it raises is a fault of that participant, recorded as such.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pydantic import JsonValue

from evaluatorq.conversation.machine import Conversation
from evaluatorq.model.assessments import Assessment
from evaluatorq.model.belief import BeliefUpdate
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.events import CallFailed, Event
from evaluatorq.model.findings import FoundClaim
from evaluatorq.model.judgments import Judgment
from evaluatorq.model.messages import Message, ToolCall
from evaluatorq.model.observation import TurnReport
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import Analysis, RunPlan
from evaluatorq.model.usage import Usage
from evaluatorq.model.worlds import OutsideEvent

if TYPE_CHECKING:
    from evaluatorq.model.trace import Trace  # not needed to run conversations

# ---------------------------------------------------------------- replies


@dataclass(frozen=True, slots=True)
class UserReply:
    """One turn of the simulated user: words, a wish to stop, or both. ``usage`` of ``None`` means unknown."""

    text: str
    stop: bool = False
    usage: Usage | None = None
    model: str | None = None
    reasoning: str | None = None


@dataclass(frozen=True, slots=True)
class TargetReply:
    """One answer of the agent: transcript rows. Calls without a result are run by the environment, if there is one.

    ``reports_tools`` says that the agent shows every tool call it makes, so that their absence is a fact. ``report`` is
    what the agent tells of the turn besides: how it understood the message, the blocks of its reply, cards, its phase.
    ``usage_known`` is ``False`` for a metered agent whose answer did not say what it cost. ``assessment`` is what the
    agent holds as it gives this answer, returned beside its words or calls.
    """

    messages: tuple[Message, ...]
    usage: Usage | None = None
    usage_known: bool = True
    model: str | None = None
    response_id: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    reports_tools: bool = False
    report: TurnReport | None = None
    assessment: Assessment | None = None


@dataclass(frozen=True, slots=True)
class ToolsReply:
    """One result row for each call, in order. A tool that fails answers with ``{"error": ...}``; it does not raise.

    ``effects`` says of calls (by id) that may change the state whether they did; calls that only read are left out,
    and ``None`` means that this environment does not tell.
    """

    messages: tuple[Message, ...]
    effects: Mapping[str, bool] | None = None


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """A verdict. ``strict`` holds occurrences to their quotes; ``refused`` names criteria whose verdict did not hold.

    ``goal_known`` is ``False`` when this judge could not decide the goal (an offline judge without a goal check).
    ``unknown_scores`` says of numbers in the judgment that they stand for nothing, and why.
    """

    judgment: Judgment
    usage: Usage | None = None
    model: str | None = None
    strict: bool = True
    goal_known: bool = True
    refused: dict[str, str] = field(default_factory=dict)
    unknown_scores: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Score:
    """An evaluator's number, with an optional structure that explains it."""

    value: float
    details: dict[str, JsonValue] | None = None


# ---------------------------------------------------------------- participants: one fresh instance per conversation


class Target(Protocol):
    """The agent under test. ``stateful`` keeps its own memory, so it is restarted instead of resumed mid-way.

    A target may also have ``manages_own_timeout = True``; then the driver sets no time limit on its calls.
    """

    stateful: bool

    async def respond(self, messages: Sequence[Message], *, thread_id: str) -> TargetReply:
        """Answers the transcript so far; ``messages`` is empty when the agent opens."""
        ...


class UserSimulator(Protocol):
    """The simulated user."""

    async def speak(self, messages: Sequence[Message]) -> UserReply:
        """The next user turn, given what both sides said."""
        ...


class Judge(Protocol):
    """The auditor of a conversation."""

    async def judge(self, messages: Sequence[Message], open_criteria: Sequence[str], *, final: bool) -> JudgeReply:
        """A verdict on the transcript; ``open_criteria`` are the ids still to be audited."""
        ...


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it: name, description, JSON schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, JsonValue]
    idempotent: bool = False


class Environment(Protocol):
    """Tools and the state behind them."""

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """What can be called."""
        ...

    async def run(self, calls: Sequence[ToolCall]) -> ToolsReply:
        """Carries the calls out in order, one result row each."""
        ...

    def snapshot(self) -> JsonValue:
        """The state as JSON."""
        ...

    def restore(self, state: JsonValue) -> None:
        """Puts a snapshot back."""
        ...


@runtime_checkable
class Attentive(Protocol):
    """An environment that counts calls: it is shown the transcript before each question to the agent."""

    def attend(self, messages: Sequence[Message]) -> None:
        """What was said and called so far."""
        ...


@runtime_checkable
class Changeable(Protocol):
    """An environment that carries out by itself what other people do to it."""

    async def apply(self, event: OutsideEvent) -> None:
        """Does it; ``CallError`` when it cannot be done."""
        ...


@runtime_checkable
class Forgetful(Protocol):
    """A participant that gives up after so many unusable answers to one question, and may begin in the middle of it."""

    def remind(self, failures: Sequence[CallFailed]) -> None:
        """The unusable answers that an earlier process already got to the question that is asked first, in order."""
        ...


@runtime_checkable
class Closeable(Protocol):
    """A participant that holds something to give back when its conversation ends."""

    async def aclose(self) -> None:
        """Gives it back."""
        ...


# ---------------------------------------------------------------- how participants are made


@dataclass(frozen=True, slots=True)
class Seat:
    """What a factory is told about the conversation it makes a participant for.

    ``environment`` records every call a target makes through it; ``None`` where the scenario has none. ``tools_url`` is
    where its tools are served over MCP, where they are. ``answer_s`` is how many seconds one answer of the agent may
    take, for targets that keep that time themselves.
    """

    datapoint: SimulationDatapoint
    thread_id: str
    seed: int
    max_turns: int
    environment: Environment | None = None
    tools_url: str | None = None
    answer_s: float | None = None


# ---------------------------------------------------------------- a store of one's own


@dataclass(frozen=True, slots=True)
class ObservedTurn:
    """The turn that a store is asked about: conversation, number, rows, and the id that the agent gave its reply."""

    thread_id: str
    number: int
    messages: tuple[Message, ...]
    response_id: str | None = None


@dataclass(frozen=True, slots=True)
class LedgerEvent:
    """One event of a store's ledger; ``belongs`` says that this turn committed it."""

    type: str
    belongs: bool = True


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events after a cursor, oldest first, and the cursor of the next page. A page without events is the end."""

    events: tuple[LedgerEvent, ...]
    cursor: str | None = None


@runtime_checkable
class ObservationSource(Protocol):
    """The store behind an agent, asked after each of its turns what the turn left. The ledger is paged to its end."""

    async def collect(self, turn: ObservedTurn) -> TurnReport:
        """Everything but the events; what is not known stays ``None``."""
        ...

    async def page(self, turn: ObservedTurn, after: str | None) -> EventPage:
        """The ledger's next events, from its start where ``after`` is ``None``."""
        ...


@dataclass(frozen=True, slots=True)
class BeliefReply:
    """Values that somebody put forward for slots. ``usage`` of ``None`` means unknown."""

    updates: tuple[BeliefUpdate, ...]
    usage: Usage | None = None
    model: str | None = None


class BeliefDetector(Protocol):
    """Notes what can be known from what the user says. What it raises is noted and ends nothing."""

    async def detect(self, messages: Sequence[Message]) -> BeliefReply:
        """The values that the last message of the user gives."""
        ...


@dataclass(frozen=True, slots=True)
class ClaimReply:
    """What an agent said that it did. ``usage`` of ``None`` means unknown."""

    claims: tuple[FoundClaim, ...]
    usage: Usage | None = None
    model: str | None = None


class ClaimFinder(Protocol):
    """Finds in the agent's words, once at the end, what it says that it did. What it raises is noted, no more."""

    async def find(self, messages: Sequence[Message]) -> ClaimReply:
        """The statements, each with its words."""
        ...


TargetFactory = Callable[[Seat], Target]
UserFactory = Callable[[Seat], UserSimulator]
JudgeFactory = Callable[[Seat], Judge]
EnvironmentFactory = Callable[[SimulationDatapoint, int], Environment | None]
SourceFactory = Callable[[Seat], ObservationSource]
DetectorFactory = Callable[[Seat], BeliefDetector | None]
FinderFactory = Callable[[Seat], ClaimFinder]


# ---------------------------------------------------------------- models


@dataclass(frozen=True, slots=True)
class AnswerSpec:
    """A structured answer: the name and description of the object wanted, and its JSON schema (no ``$ref``)."""

    name: str
    description: str
    schema: dict[str, JsonValue]


@dataclass(frozen=True, eq=False)
class ChatPrefix:
    """What stays the same for all calls of one conversation; encoded once, so keep one instance and reuse it."""

    system: str
    tools: tuple[ToolSpec, ...] = ()
    answer: AnswerSpec | None = None


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a model: prefix, transcript lines, and the one volatile instruction at the end.

    ``lines`` are chat-completions messages already encoded as JSON (``evaluatorq.llm.encode``): each is encoded once
    and a request is a join. Append only: a later request of the same conversation starts with the same lines.
    """

    prefix: ChatPrefix
    lines: Sequence[bytes]
    tail: str | None = None


@dataclass(frozen=True)
class ChatReply:
    """A model's answer. ``answer`` is the object asked for by ``AnswerSpec``; ``text`` has no reasoning in it.

    ``lenient`` says that the object had to be dug out of ``raw``: fences, comments, prose around it.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    answer: dict[str, JsonValue] | None = None
    reasoning: str | None = None
    refusal: str | None = None
    usage: Usage | None = None
    model: str | None = None
    response_id: str | None = None
    finish_reason: str | None = None
    raw: str = ""
    lenient: bool = False


class ChatModel(Protocol):
    """One model at one endpoint. One request per call: whoever asks decides whether to ask again."""

    name: str

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The answer, or ``CallError`` with its kind, what it cost, and whether asking again may help."""
        ...


# ---------------------------------------------------------------- around conversations


class Evaluator(Protocol):
    """Turns a finished conversation into a number."""

    name: str
    version: str

    def evaluate(self, result: SimulationResult) -> Score | Awaitable[Score]:
        """The score, or an exception that says why there is none."""
        ...


class Sink(Protocol):
    """Watches a run: progress, live view, tracing. Called after the event is on disk."""

    def append(self, thread_id: str, event: Event) -> None:
        """One event of one conversation."""
        ...

    def finished(self, result: SimulationResult) -> None:
        """The record of a conversation that ended and was scored."""
        ...


@runtime_checkable
class Briefed(Protocol):
    """A sink that also sees the plan before anything is written or asked; what it raises calls the run off."""

    def begun(self, plan: RunPlan) -> None:
        """The run is about to start, or to go on."""
        ...


@runtime_checkable
class Attendant(Protocol):
    """A sink that is waited for, and that sees what is known rather than what was added.

    A run waits for it before it starts, and each conversation at its start, after each of its answers, and when its
    record is made.
    """

    async def opened(self, plan: RunPlan) -> None:
        """The run is about to start, or to go on; what this raises calls it off."""
        ...

    async def followed(self, thread_id: str, conversation: Conversation) -> None:
        """A conversation is at this point; what this raises ends it with an error."""
        ...

    async def closed(self, result: SimulationResult) -> None:
        """A conversation of this process has ended and was scored; what this raises ends the run."""
        ...


@dataclass(frozen=True, slots=True)
class CaseOrder:
    """Cases that are to be made: how many of each, by which model, and the plan so far, still without datapoints."""

    plan: RunPlan
    personas: int
    scenarios: int
    model: str

    @property
    def conversations(self) -> int:
        """How many pairs that makes."""
        return self.personas * self.scenarios


@runtime_checkable
class Commissioned(Protocol):
    """A sink that also sees cases being made, before there is a plan of conversations."""

    async def ordered(self, order: CaseOrder) -> None:
        """Models are about to be asked; what this raises calls it off before anything is spent."""
        ...

    async def delivered(self, personas: int, scenarios: int, plan: RunPlan) -> None:
        """The cases are made: so many personas and scenarios, paired in the plan."""
        ...


ReadResult = Callable[[int], SimulationResult]


class Analyst(Protocol):
    """Reads a run once, after its last conversation."""

    async def conclude(self, rows: Sequence[int], read: ReadResult) -> Analysis:
        """What the rows add up to; ``read`` gets a row's result. Raises nothing that would end a paid run."""
        ...


# ---------------------------------------------------------------- traces


@dataclass(frozen=True, slots=True)
class TraceQuery:
    """Which traces are wanted: all that fit everything that is given.

    ``labels`` must be there and equal (``True`` is not ``1``). A trace's time is when its conversation began; ``since``
    counts, ``until`` does not. ``schema`` is the tag under which a trace was stored.
    """

    run: str | None = None
    labels: Mapping[str, JsonValue] = field(default_factory=dict)
    since: datetime | None = None
    until: datetime | None = None
    schema: str | None = None


class TraceStore(Protocol):
    """Traces by the id of their conversation. Hold yours to ``evaluatorq.testing.check_trace_store``."""

    def append(self, trace: Trace) -> bool:
        """Keeps a trace: ``False`` where the same is there already, ``StoreError`` where another one has its id."""
        ...

    def get(self, thread_id: str) -> Trace | None:
        """The trace of a conversation."""
        ...

    def query(self, wanted: TraceQuery) -> Iterator[Trace]:
        """The traces that fit, by time and then by id. ``SchemaError`` for one that a newer version wrote."""
        ...
