"""A comparison as text: the headline first, then what it rests on, then the conversations that show it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from evaluatorq.records.compare import Comparison, Flip, RunLabel, Side, p_text
from evaluatorq.records.measures import Measure, Word
from evaluatorq.reports.terminal import Page, columns, percent, styled
from evaluatorq.reports.text import by_lines, one_line, plural

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

MARKS: dict[Word, str] = {"better": "✓", "worse": "✗", "more": "▲", "less": "▼", "no difference shown": "=",
                          "could not measure": "?"}  # fmt: skip
STYLES: dict[Word, str] = {"better": "green", "worse": "bold red", "could not measure": "yellow"}
_MOST_FLIPS, _MOST_NAMES = 12, 5


def render_comparison(found: Comparison, *, width: int = 80, color: bool = False) -> str:
    """The comparison for a reader at a terminal."""
    page = Page(width, color)
    page.add(columns([["A", _run(found.a)], ["B", _run(found.b)]], indent=0))
    if found.control:
        page.add(columns([["C", f"{_run(found.control)} · the control"]], indent=0))
    page.add("", columns([[styled(f"{MARKS[found.word]} {found.headline}", STYLES.get(found.word, "bold"))]], indent=0))
    page.add(*(columns([["!", styled(one_line(warning), "yellow")]], indent=0) for warning in found.warnings))
    page.add("", columns([[line] for line in _basis(found)]))
    page.add("", columns(_table(found), wrap=1), *_criteria(found), *_flips(found.flips))
    return page.text()


def _run(run: RunLabel) -> str:
    target = f"target {run.target}" if run.target else "target not recorded"
    model = f" ({run.target_model})" if run.target_model else ""
    errors = f", {run.errored} errored ({run.errored_by_agent} by the agent)" if run.errored else ""
    return one_line(f"{run.label} · {target}{model} · {plural(run.conversations, 'conversation')}{errors}")


def _basis(found: Comparison) -> Iterable[str]:
    """What was compared, and what was not."""
    yield f"{plural(found.datapoints, 'datapoint')} compared in {plural(found.conversations, 'pair')} of conversations"
    if found.conversations > found.datapoints:
        yield "samples of a datapoint are averaged: the unit of every test is the datapoint"
    if found.subset:
        yield f"{one_line(found.subset)}: nothing is said of the other {len(found.not_asked)}"
    if found.left_out:
        yield "left out: " + ", ".join(f"{why}: {count}" for why, count in found.left_out.items())
    for case in found.changed[:_MOST_NAMES]:
        yield f"changed, so left out: {one_line(f'{case.persona} · {case.scenario}')} ({', '.join(case.parts)})"
    for names, where in ((found.only_a, "only in A"), (found.only_b, "only in B"), (found.not_asked, "not asked")):
        if names:
            more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
            yield f"{where}: {one_line('; '.join(names[:_MOST_NAMES]))}{more}"
    if found.unpaired_samples:
        yield f"{plural(found.unpaired_samples, 'sample')} without a partner"


def _table(found: Comparison) -> list[list[str | Text]]:
    rows: list[list[str | Text]] = [["", "", "A", "B", "B - A (95 %)"]]
    for measure in found.measures:
        if measure.kind != "criterion":
            word = styled(f"{MARKS[measure.word]} {measure.word}", STYLES.get(measure.word, ""))
            rows.append([word, f"{one_line(measure.label)}\n{_tested(measure)}", *_numbers(measure)])
    return rows


def _numbers(measure: Measure) -> tuple[str, str, str]:
    if measure.a is None or measure.b is None or measure.difference is None:
        return "-", "-", "-"
    if measure.kind in ("evaluator", "resource"):
        text = [f"{value:.4g}" for value in (measure.a, measure.b)]
        change, low, high = (_signed(value, "{:+.3g}") for value in (measure.difference, measure.low, measure.high))
    else:
        text = [percent(value) for value in (measure.a, measure.b)]
        points = (None if v is None else v * 100 for v in (measure.difference, measure.low, measure.high))
        change, low, high = (_signed(value, "{:+.0f}") for value in points)
    return text[0], text[1], f"{change}\n({low} to {high})" if low and high else change


def _signed(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value + 0.0 if round(value, 6) else 0.0)


def _tested(measure: Measure) -> str:
    if measure.difference is None:
        return measure.why
    p_value = measure.p_value if measure.kind == "conversations" else measure.adjusted
    text = f"{measure.down} fell, {measure.up} rose"
    return f"{text}, {p_text(p_value)}" if p_value is not None else text


def _criteria(found: Comparison) -> list[RenderableType]:
    """Criteria that changed anywhere, worst first; the others are only counted."""
    criteria = found.of("criterion")
    changed = sorted((m for m in criteria if m.up or m.down), key=lambda m: (m.up - m.down, m.label))
    parts: list[RenderableType] = ["", styled("Criteria", "bold")] if criteria else []
    rows: list[list[str | Text]] = [
        [
            styled(f"{MARKS[m.word]} {m.word}", STYLES.get(m.word, "")),
            f"{m.down} lost, {m.up} gained of {m.datapoints}",
            one_line(m.label, 200),
        ]
        for m in changed
    ]
    if rows:
        parts.append(columns(rows))
    unmeasured = sum(m.difference is None for m in criteria)
    same = len(criteria) - len(changed) - unmeasured
    parts += [
        f"  {same} of {plural(len(criteria), 'criterion').replace('criterions', 'criteria')} did not change"
    ] * bool(same)
    parts += [f"  {unmeasured} could not be compared: not decided on both sides"] * bool(unmeasured)
    return parts


def _flips(flips: Sequence[Flip]) -> list[RenderableType]:
    """One example of each thing that flipped, with what both sides have to show, and where else it did."""
    groups: dict[tuple[str, str, str], list[Flip]] = {}
    for flip in flips:
        groups.setdefault((flip.change, flip.scenario, flip.rule), []).append(flip)
    parts: list[RenderableType] = ["", styled("Flips", "bold")] if groups else []
    for (change, scenario, rule), found in list(groups.items())[:_MOST_FLIPS]:
        style = "bold red" if change == "lost" else "green"
        first = found[0]
        parts.append(
            columns([[styled(f"{'✗' if change == 'lost' else '✓'} {change}", style), one_line(f"{scenario}: {rule}")]])
        )
        parts.append(columns([_side("A", first.a, first), _side("B", first.b, first)], indent=6))
        if len(found) > 1:
            others = " ".join(f"[{flip.b.row}]" for flip in found[1:13]) + (" …" if len(found) > 13 else "")
            parts.append(columns([[styled(f"the same in {len(found) - 1} more: {others}", "dim")]], indent=6))
    if len(groups) > _MOST_FLIPS:
        parts.append(f"  and {len(groups) - _MOST_FLIPS} more")
    return parts


def _side(name: str, side: Side, flip: Flip) -> list[str | Text]:
    return [f"{name} [{side.row}]", f"{'held' if side.held else 'broken'}: {shown_evidence(side, flip.kind)}"]


def shown_evidence(side: Side, kind: str) -> str:
    """The words, call or state that one side rests on."""
    if kind == "goal":
        return one_line(side.evidence, 200)
    if not side.evidence:
        return "never happened"
    place = f" (turn {side.turn})" if side.turn else ""
    return (by_lines(side.evidence, 300) if side.by_check else f"“{one_line(side.evidence, 200)}”") + place
