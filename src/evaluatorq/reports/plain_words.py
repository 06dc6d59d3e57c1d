"""The statistics of a comparison in sentences, for people who do not read p-values."""

from __future__ import annotations

from evaluatorq.records.compare import p_text
from evaluatorq.records.measures import Kind, Measure, Word
from evaluatorq.reports.terminal import percent
from evaluatorq.reports.text import plural

_OPENINGS: dict[Kind, str] = {
    "conversations": "Everything that both runs decided held in",
    "goal": "The goal was achieved in",
    "criterion": "It held in",
    "evaluator": "The mean score was",
    "resource": "The mean was",
}
_VERDICTS: dict[Word, str] = {
    "better": "B is better here.",
    "worse": "B is worse here.",
    "more": "B takes more.",
    "less": "B takes less.",
    "no difference shown": "That shows no difference.",
}


def in_words(measure: Measure) -> str:
    """What one measure says: both sides, the difference, how sure that is, and the verdict."""
    if measure.a is None or measure.b is None or measure.difference is None:
        return f"It could not be measured: {measure.why or 'nothing was decided on both sides'}."
    sentences = (_sides(measure), _moved(measure), _chance(measure), _verdict(measure))
    return " ".join(sentence for sentence in sentences if sentence)


def _is_share(measure: Measure) -> bool:
    return measure.kind not in ("evaluator", "resource")


def _sides(measure: Measure) -> str:
    a, b = measure.a or 0.0, measure.b or 0.0
    if _is_share(measure):
        sides = f"{percent(a)} of the datapoints in A and {percent(b)} in B"
    else:
        sides = f"{a:.4g} in A and {b:.4g} in B"
    return f"{_OPENINGS[measure.kind]} {sides}{_difference(measure)}."


def _difference(measure: Measure) -> str:
    difference = measure.difference or 0.0
    if not difference:
        return ", the same"
    direction = "higher" if difference > 0 else "lower"
    text = f": {_amount(measure, abs(difference))} {direction}"
    if measure.low is None or measure.high is None:
        return text
    return f"{text}, with 95 % confidence between {_signed(measure, measure.low)} and {_signed(measure, measure.high)}"


def _amount(measure: Measure, value: float) -> str:
    return f"{value * 100:.0f} percentage points" if _is_share(measure) else f"{value:.3g}"


def _signed(measure: Measure, value: float) -> str:
    return f"{value * 100 + 0.0:+.0f} points" if _is_share(measure) else f"{value + 0.0:+.3g}"


def _moved(measure: Measure) -> str:
    if not (measure.up or measure.down):
        return f"None of {plural(measure.datapoints, 'datapoint')} moved."
    return f"Of {plural(measure.datapoints, 'datapoint')}, {measure.down} went down and {measure.up} went up."


def _chance(measure: Measure) -> str:
    p_value = measure.p_value
    if p_value is None or not (measure.up or measure.down):
        return ""
    if p_value >= 0.995:
        return f"Chance alone looks just like that ({p_text(p_value)})."
    often = "less than once in 1,000 times" if p_value < 0.001 else f"about {_often(p_value)}"
    text = f"If nothing had changed, chance alone would differ at least this much {often} ({p_text(p_value)})"
    if measure.kind == "conversations":
        return f"{text}."
    if measure.adjusted is None:
        return f"{text}; too few datapoints moved to show more."
    return f"{text}; corrected for everything that was measured, {p_text(measure.adjusted)}."


def _often(p_value: float) -> str:
    return f"{p_value * 1000:.0f} times in 1,000" if p_value < 0.01 else f"{p_value * 100:.0f} times in 100"


def _verdict(measure: Measure) -> str:
    if measure.word == "could not measure":
        return f"No verdict: {measure.why}." if measure.why else "No verdict."
    text = _VERDICTS[measure.word]
    if measure.word != "no difference shown":
        return text
    if measure.why:
        text = f"{text[:-1]}: {measure.why}."
    if measure.smallest is not None:
        text += f" A change of {_amount(measure, measure.smallest)} would have shown four times in five."
    return text
