"""The facts of a run that counting, comparing and gating need: a few hundred bytes a conversation.

Made in one pass, so that no two results are in memory at once. Results are joined to their cases by row, else by the
case's id. Samples of a case are numbered as recorded, else in the order in which they stand.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from evaluatorq.errors import Component
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.messages import Message
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import SimulationRun
from evaluatorq.records.fingerprint import case_parts
from evaluatorq.records.observation import conversation_signature
from evaluatorq.records.reference_gate import objections
from evaluatorq.records.scores import Unscored, scores_by_name
from evaluatorq.records.verdicts import CriterionView, Verdict, criteria_of, goal_of, verdict_from

LONGEST_QUOTE = 300
Signature = Callable[[SimulationResult], str | None]
"""What a conversation did, without its wording: two samples with one signature behaved the same."""
EXPECTATIONS, CLAIMS = "expectations", "claims"
"""The ids under which what a scenario expects and claims stands among the criteria of a conversation."""


def behaviour(result: SimulationResult) -> str | None:
    """The signature by what was observed of the agent's turns, ``None`` where nothing was."""
    return conversation_signature(result.observations) if result.observations else None


@dataclass(frozen=True, slots=True)
class Case:
    """A datapoint by what identifies it. ``parts`` are its ``case_parts``, empty where nobody kept the case."""

    id: str
    persona: str
    scenario: str
    parts: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        """The same for the same case in any run; by id and names where the case itself was not kept."""
        return self.parts or (self.id, self.persona, self.scenario)

    @property
    def name(self) -> str:
        """What to call it."""
        return f"{self.persona} · {self.scenario}"


@dataclass(frozen=True, slots=True)
class Quoted:
    """One criterion of one conversation: whether it held (``None``: nobody could tell), and the words that show it."""

    id: str
    description: str
    type: str
    held: bool | None
    evidence: str = ""
    turn: int | None = None
    by_check: bool = False
    unverified: bool = False

    @property
    def rule(self) -> str:
        """Type and description in words."""
        return f"{self.type.replace('_', ' ')}: {self.description}"


@dataclass(frozen=True, slots=True)
class ConversationFacts:
    """One conversation of a run, without what was said. ``latency_s`` is the agent's mean time to an answer."""

    row: int
    case: Case
    sample: int
    verdict: Verdict
    reason: str
    goal: bool | None
    criteria: tuple[Quoted, ...]
    scores: Mapping[str, float | Unscored]
    turns: int
    tokens: int | None
    cost: float | None
    transcript: str
    component: Component | None = None
    objections: tuple[str, ...] = ()
    signature: str | None = None
    thread_id: str | None = None
    latency_s: float | None = None

    @property
    def errored(self) -> bool:
        """It was cut short by an error or a timeout, so it says nothing for or against anybody."""
        return self.verdict == "errored"

    @property
    def measured(self) -> bool | None:
        """Passed or failed; ``None`` for what nobody decided and for what was cut short."""
        return {"passed": True, "failed": False}.get(self.verdict)

    @property
    def held(self) -> bool | None:
        """All that anybody decided held, which a failed verdict rules out; ``None`` where nothing was decided."""
        if self.verdict == "failed":
            return False
        decided = [held for held in (self.goal, *(criterion.held for criterion in self.criteria)) if held is not None]
        return all(decided) if decided else None

    @property
    def name(self) -> str:
        """What to call it: its number and its case."""
        again = f", sample {self.sample}" if self.sample else ""
        return f"[{self.row}] {self.case.name}{again}"


@dataclass(slots=True)
class RunFacts:
    """A run: what its header says (without results and datapoints), its conversations, and cases without a result."""

    header: SimulationRun
    conversations: list[ConversationFacts] = field(default_factory=list)
    missing: list[Case] = field(default_factory=list)
    source: str = ""

    @property
    def label(self) -> str:
        """What to call the run."""
        return f"{self.header.run_name} {self.header.run_id[:8]}" if self.header.run_id else self.header.run_name

    @property
    def evaluators(self) -> list[str]:
        """The names of all evaluators that scored, or should have."""
        names = dict.fromkeys(self.header.evaluator_names)
        return list(names | dict.fromkeys(name for talk in self.conversations for name in talk.scores))


def run_facts(
    header: SimulationRun,
    datapoints: Iterable[SimulationDatapoint],
    results: Iterable[SimulationResult],
    *,
    signature: Signature = behaviour,
    latency_s: Mapping[int, float] | None = None,
) -> RunFacts:
    """Reads a run once. ``signature`` tells what a conversation did, so that samples can be compared by it.

    ``latency_s`` are mean times of the agent's answers by row, which results do not keep.
    """
    reader = _Reader(header.evaluator_names, signature, latency_s or {})
    for datapoint in datapoints:
        reader.expect(datapoint)
    conversations = [reader.read(position, result) for position, result in enumerate(results)]
    return RunFacts(header, conversations, reader.unread())


def conversation_facts(result: SimulationResult) -> ConversationFacts:
    """The facts of one result on its own."""
    return _Reader((), behaviour, {}).read(0, result)


def case_of(datapoint: SimulationDatapoint) -> Case:
    """A datapoint by what identifies it."""
    return Case(datapoint.id, datapoint.persona.name, datapoint.scenario.name, case_parts(datapoint))


@dataclass(slots=True)
class _Slot:
    """A place in a run: which case, and which sample of it."""

    case: Case
    sample: int
    taken: bool = False


class _Reader:
    """Joins results to their cases. Texts that many conversations share are kept once."""

    def __init__(self, evaluators: Sequence[str], signature: Signature, latency_s: Mapping[int, float]) -> None:
        self._evaluators = evaluators
        self._signature = signature
        self._latency_s = latency_s
        self._slots: list[_Slot] = []
        self._by_id: dict[str, list[int]] = {}
        self._samples: Counter[tuple[str, ...]] = Counter()
        self._texts: dict[str, str] = {}

    def expect(self, datapoint: SimulationDatapoint) -> None:
        """Makes place for the result of the next row."""
        self._by_id.setdefault(datapoint.id, []).append(len(self._slots))
        case = case_of(datapoint)
        kept = Case(case.id, self._kept(case.persona), self._kept(case.scenario), tuple(map(self._kept, case.parts)))
        self._slots.append(self._slot(kept, datapoint.sample))

    def unread(self) -> list[Case]:
        """The cases that have no result."""
        return [slot.case for slot in self._slots if not slot.taken]

    def read(self, position: int, result: SimulationResult) -> ConversationFacts:
        """The facts of the next result."""
        slot = self._place(position, result)
        slot.taken = True
        row = position if result.row is None else result.row
        views = criteria_of(result)
        return ConversationFacts(
            row=row,
            case=slot.case,
            sample=slot.sample,
            verdict=verdict_from(result, views),
            reason=self._kept(result.reason[:LONGEST_QUOTE]),
            goal=goal_of(result),
            criteria=(*map(self._quoted, views), *_expected(result), *_claimed(result)),
            scores={self._kept(name): score for name, score in scores_by_name(result, self._evaluators).items()},
            turns=result.turn_count,
            tokens=result.token_usage.total_tokens if result.token_usage_known else None,
            cost=_cost(result),
            transcript=transcript_digest(result.messages),
            component=result.failed_component,
            objections=tuple(map(self._kept, objections(result))),
            signature=None if result.errored else self._signed(result),
            thread_id=result.thread_id,
            latency_s=self._latency_s.get(row),
        )

    def _place(self, position: int, result: SimulationResult) -> _Slot:
        identity = str(result.metadata.get("datapoint_id") or "")
        row = position if result.row is None else result.row
        if rows := self._by_id.get(identity):
            free = (other for other in rows if not self._slots[other].taken)
            return self._slots[row if row in rows else next(free, rows[0])]
        if not identity and row < len(self._slots):
            return self._slots[row]
        persona, scenario = (str(result.metadata.get(name) or "unknown") for name in ("persona", "scenario"))
        return self._slot(Case(identity, persona, scenario), None)

    def _slot(self, case: Case, sample: int | None) -> _Slot:
        number = self._samples[case.key] if sample is None else sample
        self._samples[case.key] += 1
        return _Slot(case, number)

    def _quoted(self, view: CriterionView) -> Quoted:
        return Quoted(
            id=self._kept(view.id),
            description=self._kept(view.description),
            type=view.type,
            held={"pass": True, "fail": False, "unknown": None}[view.state],
            evidence=self._kept(view.evidence[:LONGEST_QUOTE]),
            turn=view.turn,
            by_check=view.by_check,
            unverified=view.unverified,
        )

    def _signed(self, result: SimulationResult) -> str | None:
        text = self._signature(result)
        return None if text is None else hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    def _kept(self, text: str) -> str:
        return self._texts.setdefault(text, text)


def _cost(result: SimulationResult) -> float | None:
    """What the conversation cost; ``None`` unless every call told its price. Nothing asked is nothing paid."""
    usage = result.token_usage
    if not result.token_usage_known or usage.cost_is_partial:
        return None
    return 0.0 if usage.calls == 0 and not usage.total_tokens else usage.total_cost


def _expected(result: SimulationResult) -> Iterator[Quoted]:
    """What the scenario expects of the facts, as one more thing that held or did not."""
    report = result.expectations
    if report is None:
        return
    rule = "the facts are as the scenario expects"
    evidence = _each([failure.text for failure in report.failures]) or ("they are" if report.met else "")
    yield Quoted(EXPECTATIONS, rule, "expected", report.met, evidence=evidence, by_check=True)


def _claimed(result: SimulationResult) -> Iterator[Quoted]:
    """What the agent said that it did, as one more thing that held or did not."""
    if result.claims is None:
        return
    untrue = [claim for claim in result.claims if not claim.backed]
    said = [f"turn {claim.turn}: “{claim.words}”, without {claim.requires}" for claim in untrue]
    evidence = _each(said or [f"turn {claim.turn}: “{claim.words}”" for claim in result.claims])
    yield Quoted(CLAIMS, "the agent did what it says it did", "claimed", not untrue, evidence=evidence, by_check=True)


def _each(failures: Sequence[str]) -> str:
    """One failure a line, each cut by itself, as many as a quote may be long."""
    lines: list[str] = []
    for failure in failures:
        line = failure if len(failure) <= LONGEST_QUOTE else f"{failure[: LONGEST_QUOTE - 1]}…"
        if lines and sum(map(len, lines)) + len(line) > LONGEST_QUOTE:
            return "\n".join([*lines, f"and {len(failures) - len(lines)} more"])
        lines.append(line)
    return "\n".join(lines)


def transcript_digest(messages: Iterable[Message]) -> str:
    """The same for the same words and calls in the same order."""
    digest = hashlib.blake2b(digest_size=12)
    for message in messages:
        calls = [(call.function.name, call.function.arguments) for call in message.tool_calls or ()]
        digest.update(repr((message.role, message.text, calls)).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()
