"""The analyst of a run: facts by code, words by a model, suggestions for the worst conversations. Never fatal.

Facts name scenarios and describe criteria; ids mean something else in each scenario. Memory holds the numbers of each
conversation; only those that get suggestions are read back.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio
import anyio.to_thread

from evaluatorq.errors import CallError
from evaluatorq.llm.tags import as_data
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import Analysis, SimulationRecommendation
from evaluatorq.model.spending import Bill
from evaluatorq.pacing.paid import PaidCalls
from evaluatorq.pacing.retry import RetryPolicy
from evaluatorq.pacing.window import work_through
from evaluatorq.ports import ChatModel, ReadResult
from evaluatorq.records.triggers import Severity, SimulationRecommendationConfig, find_triggers, severity
from evaluatorq.records.verdicts import Rate
from evaluatorq.reports.text import plural
from evaluatorq.reports.view import CriterionTally, Summary
from evaluatorq.roles.analyst import SUMMARY_TOKENS, suggest, write_summary
from evaluatorq.simulation.config import LLMCallConfig, SimulationConfig
from evaluatorq.simulation.models import Models, opened_models, smart_model, smart_name, smart_place

_log = logging.getLogger(__name__)
_MOST_CRITERIA, _MOST_EXAMPLES = 5, 3
_AT_ONCE = 10


# ---------------------------------------------------------------- the facts


def facts_of(summary: Summary) -> list[str]:
    """What a run came to, a sentence each, with every number that may be said of it."""
    counts = ", ".join(f"{number} {verdict}" for verdict, number in summary.verdicts.items() if number)
    facts = [f"{plural(summary.total, 'conversation')}: {counts}."]
    if summary.faults:
        faults = ", ".join(f"{who.replace('_', ' ')} {number}" for who, number in summary.faults.most_common())
        facts.append(f"Conversations that broke off, by whose fault: {faults}. They say little about the agent.")
    facts.append(f"The goal was achieved in {_share(summary.goal)}.")
    failing = sorted(summary.criteria.values(), key=lambda tally: -tally.rate.no)
    facts += [_criterion(tally) for tally in failing[:_MOST_CRITERIA] if tally.rate.no]
    examples = [finding.line for finding in summary.findings(_MOST_EXAMPLES) if finding.line.verdict == "failed"]
    facts += [
        f"Example, scenario {as_data('scenario_name', line.scenario)} with {as_data('persona_name', line.persona)}: "
        f"{as_data('test_finding', line.why)}"
        + (f", shown by {as_data('agent_said', line.quote)}" if line.quote else "")
        for line in examples
    ]
    return facts


def _criterion(tally: CriterionTally) -> str:
    what = "happened, and must not," if tally.type == "must_not_happen" else "did not happen, and must,"
    where = as_data("scenario_name", tally.scenario)
    return f"In scenario {where} this {what} in {_share(tally.rate, tally.rate.no)}: {_described(tally)}"


def _described(tally: CriterionTally) -> str:
    return as_data("criterion_text", tally.description)


def _share(rate: Rate, count: int | None = None) -> str:
    number = rate.yes if count is None else count
    percent = f" ({100 * number / rate.decided:.0f} %)" if rate.decided else ""
    unknown = f"; of {rate.unknown} more nobody could tell" if rate.unknown else ""
    return f"{number} of {rate.decided} decided{percent}{unknown}"


# ---------------------------------------------------------------- the analyst


class RunAnalyst:
    """An ``Analyst`` that asks models; what fails is logged and left out."""

    def __init__(self, config: SimulationConfig, models: Models) -> None:
        calls = config.llm_config or LLMCallConfig()
        self._bill = Bill()
        self._calls = PaidCalls(RetryPolicy(attempts=calls.retry_count + 1), self._bill, seed=config.seed)
        self._at_once = config.datapoint_parallelism
        wanted, name, place = config.recommendations, smart_model(config), smart_place(config)
        self._options = (
            wanted if isinstance(wanted, SimulationRecommendationConfig) else SimulationRecommendationConfig()
        )
        self._wording = models.ours(name, place, max_tokens=SUMMARY_TOKENS) if config.executive_summary else None
        self._suggesting = models.ours(name, place, max_tokens=self._options.max_tokens) if wanted else None

    async def conclude(self, rows: Sequence[int], read: ReadResult) -> Analysis:
        """The summary and the recommendations that were asked for."""
        made = _Conclusion()
        try:
            survey = await anyio.to_thread.run_sync(_survey, rows, read, self._options)
            async with anyio.create_task_group() as group:
                if self._wording is not None and survey.summary.total:
                    group.start_soon(self._sum_up, self._wording, survey.summary, made)
                if self._suggesting is not None:
                    worst = [(row, read(row)) for row in survey.worst(self._options.max_results)]
                    made.recommendations = []
                    group.start_soon(self._recommend, self._suggesting, worst, made)
        except Exception:  # noqa: BLE001  a run that was paid for is saved, whatever becomes of its analysis
            _log.exception("the run could not be analysed")
        return Analysis(executive_summary=made.summary, recommendations=made.recommendations, spent=self._bill.spending)

    async def _sum_up(self, model: ChatModel, summary: Summary, made: _Conclusion) -> None:
        try:
            made.summary = await write_summary(model, self._calls, facts_of(summary))
        except CallError as error:
            _log.warning("no executive summary: %s", error.message)

    async def _recommend(
        self, model: ChatModel, worst: Sequence[tuple[int, SimulationResult]], made: _Conclusion
    ) -> None:
        made.recommendations = await recommend(model, self._calls, worst, self._options, at_once=self._at_once)


@dataclass(slots=True)
class _Conclusion:
    summary: str | None = None
    recommendations: list[SimulationRecommendation] | None = None


@dataclass(slots=True)
class _Survey:
    """One pass over a run."""

    summary: Summary = field(default_factory=Summary)
    severities: dict[int, Severity] = field(default_factory=dict)

    def worst(self, most: int) -> list[int]:
        """The rows that call for suggestions, worst first, the earlier first where they are equal."""
        return sorted(self.severities, key=lambda row: self.severities[row], reverse=True)[:most]


def _survey(rows: Sequence[int], read: ReadResult, options: SimulationRecommendationConfig) -> _Survey:
    survey = _Survey()
    for row in rows:
        result = read(row)
        survey.summary.add(result)
        bad = severity(result, options)
        if bad is not None:
            survey.severities[row] = bad
    return survey


async def recommend(
    model: ChatModel,
    calls: PaidCalls,
    cases: Sequence[tuple[int, SimulationResult]],
    options: SimulationRecommendationConfig,
    *,
    at_once: int = 10,
) -> list[SimulationRecommendation]:
    """A recommendation for each case (its place in the run and its result), in their order; failures are logged."""
    found: dict[int, SimulationRecommendation] = {}

    async def one(case: tuple[int, SimulationResult]) -> None:
        row, result = case
        try:
            suggestions = await suggest(model, calls, result, options)
        except CallError as error:
            _log.warning("no recommendation for conversation %d: %s", row, error.message)
            return
        identity = result.metadata.get("datapoint_id")
        found[row] = SimulationRecommendation(
            result_index=row,
            datapoint_id=identity if isinstance(identity, str) else None,
            persona=str(result.metadata.get("persona") or "unknown"),
            scenario=str(result.metadata.get("scenario") or "unknown"),
            triggers=[str(trigger) for trigger in find_triggers(result, options)],
            suggestions=suggestions,
        )

    await work_through(cases, at_once, one)
    return [found[row] for row, _ in cases if row in found]


async def generate_recommendations(  # noqa: PLR0913  as published, and the bill
    results: Sequence[SimulationResult],
    llm_client: object = None,
    model: str | None = None,
    *,
    max_results: int | None = None,
    temperature: float | None = None,
    config: SimulationRecommendationConfig | None = None,
    llm_config: LLMCallConfig | None = None,
    bill: Bill | None = None,
) -> list[SimulationRecommendation]:
    """Suggested changes for the worst of ``results``, worst first; ``result_index`` is the place in them.

    Without ``llm_client`` the endpoint of the environment is asked, without ``model`` the judge's model. Conversations
    for which none could be had are logged and left out. ``bill`` is where the spend is written down.
    """
    options = config or SimulationRecommendationConfig()
    calls = llm_config or LLMCallConfig()
    if temperature is not None:
        calls = calls.model_copy(update={"temperature": temperature})
    worst = _survey(range(len(results)), results.__getitem__, options).worst(max_results or options.max_results)
    name = model or calls.model or smart_name()
    async with opened_models(calls, _AT_ONCE, llm_client) as models:
        asked = models.ours(name, max_tokens=options.max_tokens)
        paid = PaidCalls(RetryPolicy(attempts=calls.retry_count + 1), bill or Bill())
        return await recommend(asked, paid, [(row, results[row]) for row in worst], options, at_once=_AT_ONCE)
