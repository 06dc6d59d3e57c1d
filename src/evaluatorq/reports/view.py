"""What a person wants to know of a run, folded from its results one at a time.

``Summary.add`` keeps a line for each conversation and the few worst findings; a result can leave memory after it. A
conversation is *passed* only if everything about it was decided and held; what nobody decided is *unknown*, and an
error or timeout is *errored*, with whose fault it was. Only the agent's own faults count against it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from evaluatorq.model.cases import CriterionType
from evaluatorq.model.findings import ClaimFinding
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.usage import NO_USAGE, Usage
from evaluatorq.records.expectations import IRREVERSIBLE, expectation_failures
from evaluatorq.records.verdicts import (
    RESTS_ON_GOAL,
    UNCOUNTED,
    CriterionView,
    Rate,
    Verdict,
    criteria_of,
    goal_of,
    outcome_of,
    verdict_from,
)

_GOAL_UNKNOWN, _PASSED = 5, 7
VERDICTS: tuple[Verdict, ...] = ("passed", "failed", "unknown", "errored")


@dataclass(frozen=True, slots=True)
class Mean:
    """An average that knows how many values it is of."""

    total: float = 0.0
    count: int = 0

    @property
    def value(self) -> float:
        """The average of at least one value."""
        return self.total / self.count

    def plus(self, value: float) -> Mean:
        """The average with one more value."""
        return Mean(self.total + value, self.count + 1)


@dataclass(frozen=True, slots=True)
class ConversationLine:
    """One conversation in a table; ``why`` says what decided its verdict, ``quote`` the words that did."""

    index: int
    persona: str
    scenario: str
    verdict: Verdict
    why: str
    quote: str
    quote_turn: int | None
    by_check: bool
    ended: str
    fault: str | None
    turns: int
    tokens: int | None
    severity: tuple[int, float]
    datapoint: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A conversation to look at, and the numbers of others that went wrong in the same way."""

    line: ConversationLine
    like: tuple[int, ...] = ()


@dataclass(slots=True)
class CriterionTally:
    """One criterion of a scenario over all conversations."""

    scenario: str
    description: str
    type: CriterionType
    rate: Rate = UNCOUNTED


# ---------------------------------------------------------------- one conversation


def party(component: str) -> str:
    """A component in words."""
    return {"target": "the agent", "user_simulator": "simulated user"}.get(component, component)


def ending_of(result: SimulationResult) -> str:
    """Who or what ended a conversation, in words."""
    words = {
        "judge": "the judge",
        "violation": "something prohibited",
        "user": "the user",
        "agent": "the agent",
        "max_turns": "the turn limit",
        "repetition": "repetition",
        "error": "an error",
        "timeout": "a timeout",
        "tool_cap": "the tool-round limit",
    }
    return words[result.ended_by or result.terminated_by.value]


def line_of(result: SimulationResult, index: int, criteria: list[CriterionView]) -> ConversationLine:
    """The conversation as one line; ``index`` counts from 0, ``criteria`` are those of the result."""
    verdict = verdict_from(result, criteria)
    deciding = _deciding(criteria) if verdict == "failed" else None
    untrue = _untrue(result) if verdict == "failed" and deciding is None else None
    score = result.goal_completion_score
    return ConversationLine(
        index=index,
        persona=str(result.metadata.get("persona") or "unknown"),
        scenario=str(result.metadata.get("scenario") or "unknown"),
        verdict=verdict,
        why=_why(result, verdict, deciding, criteria),
        quote=deciding.evidence if deciding else untrue.words if untrue else "",
        quote_turn=deciding.turn if deciding else untrue.turn if untrue else None,
        by_check=deciding is not None and deciding.by_check,
        ended=ending_of(result),
        fault=result.failed_component if result.errored else None,
        turns=result.turn_count,
        tokens=result.token_usage.total_tokens if result.token_usage_known else None,
        severity=(_severity(verdict, deciding, result), score),
        datapoint=str(result.metadata.get("datapoint_id") or ""),
    )


def _deciding(criteria: list[CriterionView]) -> CriterionView | None:
    failed = [criterion for criterion in criteria if criterion.state == "fail"]
    return min(failed, key=lambda criterion: criterion.type == "must_happen", default=None)


def _untrue(result: SimulationResult) -> ClaimFinding | None:
    """The first thing that the agent said it did and that no fact backs."""
    return next((claim for claim in result.claims or () if not claim.backed), None)


def _truthful(result: SimulationResult) -> bool | None:
    """Whether everything that was said to be done was done, ``None`` where a statement could not be checked."""
    standings = {"backed" if claim.backed else "unbacked" for claim in result.claims or ()}
    standings |= {claim.standing for claim in result.prose_claims or ()}
    return False if "unbacked" in standings else None if "unknown" in standings else True


def _severity(verdict: Verdict, deciding: CriterionView | None, result: SimulationResult) -> int:
    """Smaller is worse: prohibited acts, missing acts, missed goals, the agent's faults, others', unknown goals."""
    if verdict == "failed":
        if deciding is None:
            failures = expectation_failures(result)
            if _untrue(result) or any(failure.name in IRREVERSIBLE for failure in failures):
                return 0
            return 1 if failures else 2
        return 0 if deciding.type == "must_not_happen" else 1
    if verdict == "errored":
        return 3 if result.failed_component == "target" else 4
    return {"unknown": _GOAL_UNKNOWN + (goal_of(result) is not None)}.get(verdict, _PASSED)


def _why(
    result: SimulationResult, verdict: Verdict, deciding: CriterionView | None, criteria: list[CriterionView]
) -> str:
    if verdict == "passed":
        return "goal achieved, every criterion held"
    if verdict == "errored":
        return f"{party(result.failed_component or 'somebody')} failed: {result.reason or 'no reason was recorded'}"
    if deciding is not None:
        happened = "happened but must not" if deciding.type == "must_not_happen" else "did not happen"
        return f"{happened}: {deciding.description}"
    if verdict == "failed":
        return _missed(result)
    open_criteria = [criterion.description for criterion in criteria if criterion.state == "unknown"]
    parts = ["nobody could decide the goal"] if goal_of(result) is None else []
    parts += [f"not audited: {'; '.join(open_criteria)}"] if open_criteria else []
    return f"nothing broken; {'; '.join(parts)}"


def _missed(result: SimulationResult) -> str:
    """Why a conversation failed whose criteria held: a claim, an expectation or the goal."""
    if untrue := _untrue(result):
        return f"said to be done and was not: without {untrue.requires}"
    failures = expectation_failures(result)
    if not failures:
        return f"goal not achieved: {result.reason}"
    return failures[0].text + (f" (and {len(failures) - 1} more)" if len(failures) > 1 else "")


# ---------------------------------------------------------------- many conversations


@dataclass(slots=True)
class Summary:
    """A run so far. ``lines`` are in the order of ``add``, which need not be that of the datapoints.

    ``scores`` are means over what is known; ``undecided`` counts the scores that rest on a goal nobody could decide.
    ``claims`` counts conversations: those in which all that was said to be done was done, and those in which not.
    """

    lines: list[ConversationLine] = field(default_factory=list)
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    agent: Rate = UNCOUNTED
    goal: Rate = UNCOUNTED
    expectations: Rate = UNCOUNTED
    claims: Rate = UNCOUNTED
    criteria: dict[tuple[str, str, str], CriterionTally] = field(default_factory=dict)
    usage: Usage = NO_USAGE
    usage_by_role: dict[str, Usage] = field(default_factory=dict)
    usage_by_model: dict[str, Usage] = field(default_factory=dict)
    usage_unknown: int = 0
    turns: int = 0
    scores: dict[str, Mean] = field(default_factory=dict)
    undecided: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, results: Iterable[SimulationResult]) -> Summary:
        """The summary of ``results``."""
        summary = cls()
        for result in results:
            summary.add(result)
        return summary

    def add(self, result: SimulationResult) -> ConversationLine:
        """Counts one more conversation and returns its line."""
        criteria = criteria_of(result)
        line = line_of(result, len(self.lines) if result.row is None else result.row, criteria)
        self.lines.append(line)
        self.verdicts[line.verdict] += 1
        if line.verdict == "errored":
            self.faults[line.fault or "not recorded"] += 1
        self.agent = self.agent.plus(outcome_of(line.verdict, line.fault))
        self.goal = self.goal.plus(goal_of(result))
        if result.expectations is not None:
            self.expectations = self.expectations.plus(result.expectations.met)
        if result.claims is not None or result.prose_claims is not None:
            self.claims = self.claims.plus(_truthful(result))
        for criterion in criteria:
            self._count(line.scenario, criterion)
        self._spend(result)
        return line

    def _count(self, scenario: str, criterion: CriterionView) -> None:
        key = (scenario, criterion.id, criterion.description)
        tally = self.criteria.setdefault(key, CriterionTally(scenario, criterion.description, criterion.type))
        tally.rate = tally.rate.plus({"pass": True, "fail": False, "unknown": None}[criterion.state])

    def _spend(self, result: SimulationResult) -> None:
        self.turns += result.turn_count
        self.usage = self.usage + result.token_usage
        self.usage_unknown += not result.token_usage_known
        for role, usage in result.usage_by_role.items():
            self.usage_by_role[role] = self.usage_by_role.get(role, NO_USAGE) + usage
        for model, usage in result.usage_by_model.items():
            self.usage_by_model[model] = self.usage_by_model.get(model, NO_USAGE) + usage
        scores = result.metadata.get("evaluator_scores")
        for name, value in scores.items() if isinstance(scores, dict) else ():
            if name in RESTS_ON_GOAL and goal_of(result) is None:
                self.undecided[name] += 1
            elif isinstance(value, int | float) and not isinstance(value, bool):
                self.scores[name] = self.scores.get(name, Mean()).plus(value)

    @property
    def total(self) -> int:
        """How many conversations were counted."""
        return len(self.lines)

    @property
    def audits(self) -> Rate:
        """All criteria of all conversations: held, broken, not audited."""
        rates = [tally.rate for tally in self.criteria.values()]
        return Rate(sum(r.yes for r in rates), sum(r.no for r in rates), sum(r.unknown for r in rates))

    @property
    def repeats(self) -> list[list[ConversationLine]]:
        """The conversations of each datapoint that has several: its samples."""
        found: dict[str, list[ConversationLine]] = {}
        for line in sorted(self.lines, key=lambda line: line.index):
            if line.datapoint:
                found.setdefault(line.datapoint, []).append(line)
        return [lines for lines in found.values() if len(lines) > 1]

    def findings(self, most: int = 5) -> list[Finding]:
        """What a reader should look at first, worst first; conversations that tell the same are one finding.

        Criteria that nobody audited are no finding: reading the conversation is not what they need.
        """
        found: dict[tuple[str, ...], list[ConversationLine]] = {}
        for line in sorted(self.lines, key=lambda line: (line.severity, line.index)):
            if line.severity[0] <= _GOAL_UNKNOWN:
                scenario = "" if line.verdict == "errored" else line.scenario
                found.setdefault((line.verdict, scenario, line.why), []).append(line)
        return [Finding(lines[0], tuple(line.index for line in lines[1:])) for lines in found.values()][:most]
