"""A gate against a baseline: nothing may be worse, or only so much lost; what could not be compared is never green."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evaluatorq.records.compare import MOST_LEFT_OUT, Comparison
from evaluatorq.records.gate_rules import Allowed, Evidence, GateReport, GateRules, RuleResult, State
from evaluatorq.records.statistics import ALPHA


def against(found: Comparison, rules: GateRules) -> Iterator[RuleResult]:
    """What the rules for a baseline come to."""
    lost = [
        Evidence(
            row=flip.b.row,
            name=f"[{flip.b.row}] {flip.persona} · {flip.scenario}",
            why=f"lost: {flip.rule}",
            quote=flip.b.evidence,
            turn=flip.b.turn,
        )
        for flip in found.flips
        if flip.change == "lost"
    ]
    if rules.max_lost is not None:
        yield _lost(found, rules.max_lost, lost)
        return
    yield _not_worse(found, lost)


def _not_worse(found: Comparison, lost: Sequence[Evidence]) -> RuleResult:
    """More datapoints lost than gained, and too few to tell from chance, is not the same as nothing worse."""
    worse = [measure for measure in found.measures if measure.word == "worse" and not found.judges_differ]
    overall = found.overall
    unclear = overall.down > overall.up and not overall.within_noise
    unread = found.may_be_lost > MOST_LEFT_OUT * overall.datapoints
    state: State = "broken" if worse else "could not measure" if found.withheld or unclear or unread else "holds"
    text = found.headline
    if found.left_out and not found.withheld:
        text += f"; left out: {_counts(found.left_out)}"
    if worse and found.word != "worse":
        text += f"; worse: {', '.join(measure.label for measure in worse[:5])}"
    elif unclear and not worse and not found.withheld:
        text += "; so few losses may be chance: repeat with --samples, or allow some with --max-lost"
    if unread and not worse:
        text += f"; {found.may_be_lost} of {overall.datapoints} may be lost: what held was not audited again"
    return RuleResult(
        rule=f"nothing is worse than in {found.a.label}, by paired tests at {ALPHA * 100:g} %",
        state=state,
        found=text,
        conversations=() if state == "holds" else tuple(lost),
    )


def _lost(found: Comparison, most: Allowed, lost: Sequence[Evidence]) -> RuleResult:
    overall, left_out = found.overall, sum(found.left_out.values())
    allowed = most.most(overall.datapoints)
    most_lost = overall.down + found.may_be_lost + left_out
    unclear = found.judges_differ or most_lost > allowed or not overall.datapoints
    broken = overall.down > allowed and not found.judges_differ
    state: State = "broken" if broken else "could not measure" if unclear else "holds"
    text = f"{overall.down} of {overall.datapoints} datapoints lost"
    text += f", {found.may_be_lost} more may be: what held was not audited again" if found.may_be_lost else ""
    text += f"; {found.withheld}" if found.judges_differ else ""
    text += f", {left_out} conversations could not be compared ({_counts(found.left_out)})" if left_out else ""
    text += f"; {found.subset}" if found.subset else ""
    rule = f"datapoints lost since {found.a.label}: at most {most}"
    return RuleResult(rule=rule, state=state, found=text, conversations=tuple(lost) if state == "broken" else ())


def _counts(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{why}: {count}" for why, count in left_out.items())


def uncompared(found: Comparison) -> Iterator[str]:
    """What the run leaves open beside the pairs that are left out, which the rules count themselves."""
    if found.unread:
        yield (
            f"{found.unread} criteria or goals held in A and were not audited in B: whether they still hold is not "
            "known, and nothing that was compared says so"
        )
    if found.only_b:
        yield f"{len(found.only_b)} cases are only in B, so they were compared with nothing"


def as_bad(report: GateReport, rules: GateRules) -> Iterator[str]:
    """What fails now as it did before is no worse, and no success either."""
    now, before = report.run, report.baseline
    if report.state == "holds" and before is not None and now.failed and not rules.strict:
        yield (
            f"{now.failed} of {now.conversations} conversations failed, as did {before.failed} of "
            f"{before.conversations} in the baseline: that is not worse, and more a baseline does not ask. To ask "
            "whether the run is good as well, add --strict"
        )
