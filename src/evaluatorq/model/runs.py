"""What was asked for (``RunPlan``, a journal's first line), what came out (``SimulationRun``), and a run's status."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, Field, JsonValue, field_validator

from evaluatorq.model.base import Published, Record
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.results import Origin, SimulationResult
from evaluatorq.model.spending import NO_SPENDING, Spending
from evaluatorq.model.usage import Usage

TargetKind = Literal["orq_agent", "orq_deployment", "vercel", "openai_model", "callback"]
RunMode = Literal["run", "simulate", "generate"]
DEFAULT_EVALUATOR_NAMES = ("goal_achieved", "criteria_met")
DEFAULT_MAX_TURNS = 10
DEFAULT_RUN_NAME = "sim"
JOURNAL_VERSION = 1
REPLAY_VERSION = 1


def _name_only(run_id: str) -> str:
    if run_id in (".", "..") or any(mark in run_id for mark in "/\\\0"):
        raise ValueError("a run's id is a name and no path")
    return run_id


RunId = Annotated[str, AfterValidator(_name_only)]
"""What a run's files are called, in journals and runs from elsewhere as well."""


class Learned(Record):
    """What models turned out to take, by model and endpoint.

    ``param_dropped`` is what was refused, so that calls went on without it or with it under another name;
    ``answer_forms`` how structured answers are asked for where that worked.
    """

    param_dropped: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    answer_forms: dict[str, str] = Field(default_factory=dict)

    def __or__(self, later: Learned) -> Learned:
        """Both together; what is learned later about a form of asking takes the earlier one's place."""
        dropped = {
            model: tuple(dict.fromkeys((*self.param_dropped.get(model, ()), *later.param_dropped.get(model, ()))))
            for model in {**self.param_dropped, **later.param_dropped}
        }
        return Learned(param_dropped=dropped, answer_forms={**self.answer_forms, **later.answer_forms})


NOTHING_LEARNED = Learned()


class Limits(Record):
    """When a conversation ends by itself, and how often it is judged.

    ``judge_every`` counts exchanges; 0 asks for one verdict, at the end. ``repetition_limit`` identical exchanges in a
    row end the conversation. ``tool_rounds`` caps the model-to-tools loops inside one turn.
    """

    max_turns: int = Field(DEFAULT_MAX_TURNS, ge=1)
    tool_rounds: int = Field(8, ge=1)
    repetition_limit: int = Field(3, ge=2)
    judge_every: int = Field(1, ge=0)
    stop_on_violation: bool = False


class CasesFile(Record):
    """A file that the cases of a run go to once they are made; ``replaces`` allows one that was there before."""

    path: str
    replaces: bool = False


class RunPlan(Record):
    """The first line of a journal: enough to resume the run in another process without any other file.

    ``config`` is what the user asked for, without credentials; the rest says what was resolved. ``evaluation_name`` is
    the label that was given, where ``run_name`` may be made up. ``redacted`` says that the datapoints are not as they
    were given, so that whoever goes on has to give them again. ``spent`` is what making the datapoints cost, and
    ``problems`` what could not be made; ``cases_file`` is where they are wanted as well. ``origin`` names the run whose
    conversations these are made from, and ``source_rows`` which of them.
    """

    journal_version: int = JOURNAL_VERSION
    run_id: RunId
    run_name: str
    evaluation_name: str | None = None
    created_at: AwareDatetime
    mode: RunMode = "simulate"
    target_kind: TargetKind = "callback"
    target: str | None = None
    target_type: str | None = None
    target_model: str | None = None
    evaluator_names: tuple[str, ...] = DEFAULT_EVALUATOR_NAMES
    limits: Limits = Limits()
    seed: int = 0
    offline: bool = False
    config: dict[str, JsonValue] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    models: dict[str, str] = Field(default_factory=dict)
    replayed_from: str | None = None
    origin: Origin | None = None
    source_rows: tuple[int, ...] = ()
    spent: Spending = NO_SPENDING
    problems: tuple[str, ...] = ()
    redacted: bool = False
    cases_file: CasesFile | None = None
    datapoints: tuple[SimulationDatapoint, ...]

    def thread_id(self, row: int) -> str:
        """The identity of the conversation of datapoint ``row``."""
        return f"{self.run_id}:{row}"

    def origin_of(self, row: int) -> Origin | None:
        """What conversation ``row`` is made from, where it is not had anew."""
        if self.origin is None or row >= len(self.source_rows):
            return self.origin
        return self.origin.model_copy(update={"thread_id": f"{self.origin.run}:{self.source_rows[row]}"})


class SimulationRecommendation(Record):
    """Suggested fixes for one failed conversation; ``result_index`` counts from 0."""

    result_index: int
    datapoint_id: str | None = None
    persona: str
    scenario: str
    triggers: list[str] = Field(default_factory=list)
    suggestions: list[str] = Field(default_factory=list)

    @property
    def recommendations(self) -> list[str]:
        """The suggestions."""
        return self.suggestions


class Analysis(Record):
    """What reading all conversations of a run brought, and what that cost. ``None`` is what was not asked for."""

    executive_summary: str | None = None
    recommendations: list[SimulationRecommendation] | None = None
    spent: Spending = NO_SPENDING


NO_ANALYSIS = Analysis()


class ScoreCount(Record):
    """Beside an average: how many conversations it is the mean of, and how many were left out.

    ``undecided`` of those that it is of rest on a goal that nobody could decide, which the published formulas count as
    not achieved.
    """

    scored: int
    left_out: int
    undecided: int = 0


class SimulationRun(Published):
    """A finished run as saved under ``.evaluatorq/sim-runs``. Ours beside the published fields: ``score_counts``,
    ``target_type``, ``usage_by_role``, ``usage_by_model`` (of everything, so that it sums up to
    ``token_usage_total``), ``seed``, ``offline``, ``attempts``, ``duration_s``,
    ``versions``, ``models``, ``replayed_from``, ``origin``, ``config``, ``usage_by_category`` (its sum is
    ``token_usage_total``), ``unread_by_category`` (answers beside the conversations whose cost nobody knows),
    ``generation_problems``, ``param_dropped`` (options that a model refused and that calls went on without),
    ``answer_forms`` (how structured answers were asked for).
    """

    run_name: str
    created_at: datetime
    mode: RunMode
    target_kind: TargetKind
    target: str | None = None
    target_model: str | None = None
    max_turns: int | None = None
    agent_info: dict[str, JsonValue] | None = None
    orq_base_url: str | None = None
    evaluator_names: list[str]
    total_results: int
    scorer_averages: dict[str, float]
    results: list[SimulationResult]
    datapoints: list[SimulationDatapoint] | None = None
    replay_version: int | None = None
    executive_summary: str | None = None
    token_usage_total: Usage | None = None
    run_id: RunId | None = None
    experiment_url: str | None = None
    recommendations: list[SimulationRecommendation] | None = None
    applied_suggestions: list[str] = Field(default_factory=list)

    target_type: str | None = None
    score_counts: dict[str, ScoreCount] = Field(default_factory=dict)
    usage_by_role: dict[str, Usage] = Field(default_factory=dict)
    usage_by_model: dict[str, Usage] = Field(default_factory=dict)
    seed: int | None = None
    offline: bool | None = None
    attempts: int | None = None
    duration_s: float | None = None
    versions: dict[str, str] = Field(default_factory=dict)
    models: dict[str, str] = Field(default_factory=dict)
    replayed_from: str | None = None
    origin: Origin | None = None
    config: dict[str, JsonValue] = Field(default_factory=dict)
    usage_by_category: dict[str, Usage] = Field(default_factory=dict)
    unread_by_category: dict[str, int] = Field(default_factory=dict)
    generation_problems: list[str] = Field(default_factory=list)
    param_dropped: dict[str, list[str]] = Field(default_factory=dict)
    answer_forms: dict[str, str] = Field(default_factory=dict)

    @field_validator("created_at")
    @classmethod
    def _utc(cls, value: datetime) -> datetime:
        """A time without a zone is an old file's and means UTC; every time is kept in UTC."""
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)

    def manifest_summary(self) -> dict[str, JsonValue]:
        """The four values that a listing shows."""
        return {
            "mode": self.mode,
            "target_kind": self.target_kind,
            "total_results": self.total_results,
            "scorer_averages": dict(self.scorer_averages),
        }


class StageRecord(Record):
    """One stage of a run in its manifest."""

    name: str
    target: str | None = None
    status: Literal["running", "completed", "error", "cancelled"] = "running"
    started_at: AwareDatetime | None = None
    ended_at: AwareDatetime | None = None
    completed: int | None = None
    total: int | None = None


class RunManifest(Record):
    """The status of a run, readable while it runs. Ours: ``target``, ``mode``, ``undecided`` (see ``ScoreCount``),
    ``verdicts`` (how many conversations of a finished run came to which), ``pid``, ``host`` and ``heartbeat_at``.
    """

    run_id: RunId
    surface: Literal["sim", "redteam", "insights"] = "sim"
    run_name: str
    status: Literal["running", "completed", "error", "cancelled"] = "running"
    stage: str | None = None
    stages: list[StageRecord] = Field(default_factory=list)
    planned_stages: list[str] = Field(default_factory=list)
    stage_labels: dict[str, str] = Field(default_factory=dict)
    started_at: AwareDatetime
    updated_at: AwareDatetime
    ended_at: AwareDatetime | None = None
    error: str | None = None
    report_path: str | None = None
    parallelism: int | None = None
    summary: dict[str, JsonValue] | None = None
    summary_version: int | None = None
    target: str | None = None
    mode: RunMode | None = None
    undecided: dict[str, int] = Field(default_factory=dict)
    verdicts: dict[str, int] = Field(default_factory=dict)
    pid: int | None = None
    host: str | None = None
    heartbeat_at: AwareDatetime | None = None

    @property
    def duration_seconds(self) -> float | None:
        """Seconds from start to end, ``None`` while it runs."""
        return None if self.ended_at is None else (self.ended_at - self.started_at).total_seconds()


__all__ = [
    "DEFAULT_EVALUATOR_NAMES", "DEFAULT_MAX_TURNS", "DEFAULT_RUN_NAME", "JOURNAL_VERSION", "NOTHING_LEARNED",
    "NO_ANALYSIS", "REPLAY_VERSION", "Analysis", "Learned", "Limits", "RunManifest", "RunMode", "RunPlan", "ScoreCount",
    "SimulationRecommendation", "SimulationRun", "StageRecord", "TargetKind",
]  # fmt: skip
