"""What a report for reading holds, folded from a run's results one at a time; HTML and Markdown are drawn from it.

The whole transcripts of only the ``most`` worst conversations are kept, so a run of any length fits into memory and its
report stays a file that opens. Every conversation counts in the numbers.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from evaluatorq.model.results import SimulationResult, TurnMetrics
from evaluatorq.model.runs import SimulationRecommendation, SimulationRun
from evaluatorq.model.usage import Usage
from evaluatorq.records.statistics import Interval, clustered_wilson, wilson
from evaluatorq.records.verdicts import UNCOUNTED, Rate, criteria_of, outcome_of
from evaluatorq.reports.terminal import About, percent, refusals
from evaluatorq.reports.text import plural
from evaluatorq.reports.transcript import ConversationView, conversation_view
from evaluatorq.reports.view import ConversationLine, Mean, Summary

QUALITY = {
    "response_quality": "response quality",
    "tone_appropriateness": "tone",
    "factual_accuracy": "factual accuracy",
    "hallucination_risk": "hallucination risk (lower is better)",
}
BINS = 10
MOST_TRANSCRIPTS = 200


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """Conversations that broke off in the same way: what kind, whose fault, and one example's words."""

    kind: str
    fault: str
    example: str
    count: int


@dataclass(slots=True)
class Clusters:
    """What a rate came to in each datapoint, (held, decided): samples of one are not taken for independent ones."""

    counts: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, datapoint: str, held: int, decided: int) -> None:
        """Counts what one more conversation came to."""
        if decided:
            before = self.counts.get(datapoint, (0, 0))
            self.counts[datapoint] = (before[0] + held, before[1] + decided)

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the rate."""
        return clustered_wilson([*self.counts.values()])


@dataclass(slots=True)
class Document:
    """A run for a reader. ``conversations`` are whole and worst first; ``summary.lines`` has them all.

    ``clusters`` are those of the summary's rates by their names, and of each criterion by ``criterion_key``.
    """

    about: About
    run: SimulationRun | None = None
    recommendations: Sequence[SimulationRecommendation] = ()
    summary: Summary = field(default_factory=Summary)
    cells: dict[tuple[str, str], Rate] = field(default_factory=dict)
    clusters: dict[str, Clusters] = field(default_factory=dict)
    quality: dict[str, dict[int, Mean]] = field(default_factory=dict)
    score_bins: Counter[int] = field(default_factory=Counter)
    turn_counts: Counter[int] = field(default_factory=Counter)
    conversations: list[ConversationView] = field(default_factory=list)
    errors: list[ErrorKind] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        results: Iterable[SimulationResult],
        about: About,
        run: SimulationRun | None = None,
        recommendations: Sequence[SimulationRecommendation] | None = None,
        most: int = MOST_TRANSCRIPTS,
    ) -> Document:
        """The document of ``results``; ``run`` is what is known of the run as a whole, its own results are not read."""
        given = recommendations if recommendations is not None else (run.recommendations if run else None)
        document = cls(about, run, given or ())
        kept: list[tuple[tuple[float, float, int], int, SimulationResult]] = []
        errors: dict[tuple[str, str], ErrorKind] = {}
        for number, result in enumerate(results):
            line = document._add(result)
            if line.verdict == "errored":
                _count_error(errors, line, result)
            # The heap's least is the mildest; the number makes every entry different.
            mildness = (-float(line.severity[0]), -line.severity[1], -number)
            add = heapq.heappush if len(kept) < most else heapq.heappushpop
            add(kept, (mildness, line.index, result))
        document.conversations = [conversation_view(result, index) for _, index, result in sorted(kept, reverse=True)]
        document.errors = sorted(errors.values(), key=lambda error: -error.count)
        document.summary.lines.sort(key=lambda line: line.index)
        return document

    def _add(self, result: SimulationResult) -> ConversationLine:
        before = _rates(self.summary)
        line = self.summary.add(result)
        datapoint = line.datapoint or f"{line.persona}/{line.scenario}"
        for name, rate in _rates(self.summary).items():
            was = before[name]
            self._cluster(name, datapoint, rate.yes - was.yes, rate.decided - was.decided)
        for criterion in criteria_of(result):
            for name in ("audits", criterion_key(line.scenario, criterion.type, criterion.description)):
                self._cluster(name, datapoint, criterion.state == "pass", criterion.state != "unknown")
        place = (line.persona, line.scenario)
        self.cells[place] = self.cells.get(place, UNCOUNTED).plus(outcome_of(line.verdict, line.fault))
        self.turn_counts[result.turn_count] += 1
        if not result.errored and result.completion is not None:
            self.score_bins[max(0, min(BINS - 1, int(result.completion * BINS)))] += 1
        for turn in result.turn_metrics:
            self._measure(turn)
        return line

    def _cluster(self, name: str, datapoint: str, held: int, decided: int) -> None:
        self.clusters.setdefault(name, Clusters()).add(datapoint, held, decided)

    def _measure(self, turn: TurnMetrics) -> None:
        values = (turn.response_quality, turn.tone_appropriateness, turn.factual_accuracy, turn.hallucination_risk)
        for name, value in zip(QUALITY, values, strict=True):
            if value is not None:
                means = self.quality.setdefault(name, {})
                means[turn.turn_number] = means.get(turn.turn_number, Mean()).plus(value)

    # ---------------------------------------------------------------- what is drawn

    @property
    def personas(self) -> list[str]:
        """The personas in the order of the conversations."""
        return list(dict.fromkeys(line.persona for line in self.summary.lines))

    @property
    def scenarios(self) -> list[str]:
        """The scenarios in the order of the conversations."""
        return list(dict.fromkeys(line.scenario for line in self.summary.lines))

    @property
    def scored_turns(self) -> list[int]:
        """The turns that a judge scored."""
        return sorted({turn for means in self.quality.values() for turn in means})

    @property
    def score_rows(self) -> list[tuple[str, int]]:
        """How many unbroken conversations have a goal completion score from each tenth on; the last holds 1 as well."""
        if not self.score_bins:
            return []
        return [(f"{number / BINS:.1f}{'+' * (number == BINS - 1)}", self.score_bins[number]) for number in range(BINS)]

    @property
    def turn_rows(self) -> list[tuple[str, int]]:
        """How many conversations have how many turns."""
        return [(str(turns), self.turn_counts[turns]) for turns in sorted(self.turn_counts)]

    @property
    def left_out(self) -> int:
        """Conversations whose transcript is not in the document."""
        return self.summary.total - len(self.conversations)

    @property
    def applied(self) -> frozenset[str]:
        """Suggestions that were carried out."""
        return frozenset(self.run.applied_suggestions if self.run else ())

    @property
    def spending(self) -> dict[str, Usage]:
        """Tokens and cost by who spent them, the work beside the conversations included."""
        beside = {category.replace("_", " "): usage for category, usage in self.about.spent.items()}
        return {**self.summary.usage_by_role, **beside}

    @property
    def models(self) -> dict[str, Usage]:
        """The same by model, where there are several."""
        models = dict(self.about.models or self.summary.usage_by_model)
        return models if len(models) > 1 else {}

    @property
    def spent(self) -> Usage:
        """Everything that was spent."""
        return sum(self.about.spent.values(), self.summary.usage)

    @property
    def headline(self) -> str:
        """The one sentence that a reader takes along."""
        agent = self.summary.agent
        if not self.summary.total:
            return "No conversation was had."
        if agent.share is None:
            return f"None of {plural(agent.total, 'conversation')} was decided."
        text = f"{agent.yes} of {agent.decided} decided conversations passed ({percent(agent.share)}"
        text += f"{interval(agent, self.clusters.get('agent'))})"
        return text + (f"; {agent.unknown} undecided." if agent.unknown else ".")

    def caveats(self) -> Iterator[str]:
        """What a reader must know before believing the numbers."""
        summary = self.summary
        if self.about.offline:
            yield "Offline: users and checks were simulated without a model, so free-text criteria were not judged."
        if self.about.planned is not None and self.about.planned > summary.total:
            yield f"Only {summary.total} of {self.about.planned} planned conversations are in this report."
        if summary.audits.unknown:
            yield f"{summary.audits.unknown} of {summary.audits.total} verdicts on criteria were not audited."
        if summary.agent.unknown:
            yield (
                f"{plural(summary.agent.unknown, 'conversation')} could not be decided or broke off by no fault of the "
                "agent; pass rates leave them out."
            )
        if summary.usage_unknown:
            yield f"{plural(summary.usage_unknown, 'conversation')} did not tell all tokens; true usage is higher."
        if self.spent.cost_is_partial:
            yield f"Cost is that of {self.spent.priced_calls} of {self.spent.calls} calls; the others have no price."
        yield from (
            f"{name}: the mean is of {mean.count} conversations, {summary.total - mean.count} were not scored."
            for name, mean in summary.scores.items()
            if mean.count < summary.total
        )
        yield from (
            f"While cases were made: {problem}" for problem in (self.run.generation_problems if self.run else ())
        )
        yield from refusals(self.run) if self.run else ()
        if self.left_out and self.conversations:
            yield (
                f"Transcripts of {len(self.conversations)} conversations are shown, the worst first; "
                f"{self.left_out} are left out. Every conversation counts in the numbers."
            )


def criterion_key(scenario: str, kind: str, description: str) -> str:
    """Under which name ``Document.clusters`` has a criterion."""
    return f"{scenario}/{kind}/{description}"


def _rates(summary: Summary) -> dict[str, Rate]:
    rates = {"agent": summary.agent, "goal": summary.goal, "expectations": summary.expectations}
    return {**rates, "claims": summary.claims}


def bounds(rate: Rate, clusters: Clusters | None = None) -> str:
    """The 95 % interval of a share, "none" where nothing was decided; every outcome is its own without ``clusters``."""
    if not rate.decided:
        return "none"
    low, high = clusters.interval if clusters is not None else wilson(rate.yes, rate.decided)
    return f"{percent(low)} to {percent(high)}"


def interval(rate: Rate, clusters: Clusters | None = None) -> str:
    """The 95 % interval of a share in words, empty where nothing was decided."""
    return f", 95 % interval {bounds(rate, clusters)}" if rate.decided else ""


def _count_error(errors: dict[tuple[str, str], ErrorKind], line: ConversationLine, result: SimulationResult) -> None:
    kind = str(result.metadata.get("error_type") or result.terminated_by.value)
    key = (kind, line.fault or "not recorded")
    seen = errors.get(key, ErrorKind(*key, example=result.reason, count=0))
    errors[key] = replace(seen, count=seen.count + 1)
