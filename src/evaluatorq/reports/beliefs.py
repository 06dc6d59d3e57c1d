"""What a run's agents believed, as text: one line a number, with its interval, its count and what was left out."""

from __future__ import annotations

from collections.abc import Iterator

from evaluatorq.records.metrics_summary import Calibration, Estimate, MetricsSummary
from evaluatorq.records.secrecy_summary import SecrecySummary
from evaluatorq.reports.text import plural

_WIDTH = 32


def beliefs_text(summary: MetricsSummary, secrecy: SecrecySummary) -> str:
    """The whole page."""
    return "\n".join(
        (*_decisions(summary), *_lists(summary), *_calibration(summary.calibration), *_secrecy(secrecy), "")
    )


def _decisions(summary: MetricsSummary) -> Iterator[str]:
    count = plural(summary.conversations, "conversation")
    yield f"Beliefs of {count} (95 % intervals; samples of one case count as one cluster)"
    yield _line("Right level", summary.correct, percent=True)
    yield _line("Absolute error", summary.absolute_error)
    yield _line("Too grave", summary.over, percent=True)
    yield _line("Too slight", summary.under, percent=True)
    yield _line("First right turn", summary.first_correct_turn)
    yield _line("Changes of level", summary.flips)
    yield _line("Time at a wrong level", summary.wrong_share, percent=True)
    yield _line("Slots covered", summary.slots, percent=True)
    yield _line("Steps with reasons", summary.rationale, percent=True)
    yield _line("Words of reasons", summary.rationale_words)


def _lists(summary: MetricsSummary) -> Iterator[str]:
    for name, one in summary.lists.items():
        yield f"List {name}: {one.hits} right, {one.lacking} lacking, {one.surplus} too many"
        yield _line("  Precision", one.precision, percent=True)
        yield _line("  Recall", one.recall, percent=True)
        yield _line("  F1", one.f1)


def _calibration(calibration: Calibration) -> Iterator[str]:
    for one in calibration.bins:
        stated = "" if one.stated is None else f", stated {one.stated:.0%}".replace("%", " %")
        yield _line(f"Right when {one.confidence}{stated}", one.right, percent=True)
    if calibration.brier.value is not None:
        yield _line("Brier score", calibration.brier)


def _secrecy(secrecy: SecrecySummary) -> Iterator[str]:
    if not secrecy.conversations:
        return
    yield (
        f"Hidden truth: {secrecy.proven} of {secrecy.cases} user prompts proven not to depend on it; "
        f"{secrecy.searched} distinctive values searched for, {secrecy.not_distinctive} kept by construction alone, "
        f"{secrecy.released} read out by tools; {len(secrecy.leaks)} leaks"
    )
    for found in secrecy.leaks:
        yield f"  {found.case}: {found.leak.pointer} in row {found.leak.row}, said by the {found.leak.said_by}"


def _line(name: str, estimate: Estimate, *, percent: bool = False) -> str:
    def shown(value: float) -> str:
        return f"{100 * value:.0f} %" if percent else f"{value:.2f}"

    if estimate.value is None:
        reasons = ", ".join(estimate.left_out) or "nothing to measure"
        return f"  {name:<{_WIDTH}}-  ({reasons})"
    spread = (
        "" if estimate.low is None or estimate.high is None else f"  {shown(estimate.low)} to {shown(estimate.high)}"
    )
    left = "".join(f"; {count} without: {reason}" for reason, count in estimate.left_out.items())
    return f"  {name:<{_WIDTH}}{shown(estimate.value)}{spread}  (n={estimate.n}{left})"
