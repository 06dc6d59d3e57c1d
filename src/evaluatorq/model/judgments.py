"""What a judge said about one state of a conversation."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evaluatorq.model.base import Record, Strict
from evaluatorq.model.cases import CriterionId, CriterionType

Score = Annotated[float, Field(ge=0, le=1)]


class CriterionVerdict(Record):
    """One criterion as the judge saw it: whether the behaviour *occurred*, and the words that show it."""

    criterion_id: CriterionId
    occurred: bool
    evidence: str = ""

    @property
    def index(self) -> int:
        """Position of the criterion in its scenario, from 0."""
        return int(self.criterion_id.removeprefix("criteria_"))


class Judgment(Record):
    """A judge's answer. ``criteria_verdicts`` is ``None`` when it gave no audit; a score is ``None`` when not given."""

    should_terminate: bool
    reason: str
    goal_achieved: bool
    rules_broken: list[str] = Field(default_factory=list)
    goal_completion_score: float = 0.0
    criteria_verdicts: list[CriterionVerdict] | None = None
    response_quality: float | None = None
    hallucination_risk: float | None = None
    tone_appropriateness: float | None = None
    factual_accuracy: float | None = None


class CriteriaMeta(Strict):
    """One entry of ``metadata["criteria_meta"]``. Exactly these six keys: other readers refuse more."""

    id: str
    description: str
    type: CriterionType
    passed: bool
    audited: bool | None = None
    evidence: str | None = None

    @property
    def state(self) -> Literal["pass", "fail", "unknown"]:
        """What to show: ``unknown`` is a pass that nobody audited."""
        if self.passed and self.audited is False:
            return "unknown"
        return "pass" if self.passed else "fail"


class CriterionAudit(Record):
    """How a verdict came about; kept beside ``criteria_meta`` under ``criteria_audit``.

    ``source`` is ``judge`` or ``check``, ``None`` when nobody looked. ``message_index`` is the place of the quote in
    ``messages``. ``evidence_verified`` is ``False`` for an occurrence whose quote is not in the transcript, and
    ``None`` where there is nothing to verify. ``refused`` says why a judge's verdict was not accepted.
    """

    id: str
    occurred: bool
    source: Literal["judge", "check"] | None = None
    message_index: int | None = None
    evidence_verified: bool | None = None
    refused: str | None = None


def parse_criteria_meta(raw: object) -> tuple[list[CriteriaMeta], list[object]]:
    """Splits a ``criteria_meta`` list into valid entries and the rest."""
    valid: list[CriteriaMeta] = []
    invalid: list[object] = []
    for entry in raw if isinstance(raw, list) else [raw]:
        try:
            valid.append(CriteriaMeta.model_validate(entry, strict=True))
        except ValueError:
            invalid.append(entry)
    return valid, invalid
