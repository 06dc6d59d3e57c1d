"""Two runs of the same cases: what got better or worse, with the words that show it, and what could not be measured.

The headline asks one question: in how many datapoints does everything hold that both runs decided? An item that one
side left undecided is left out on both, and a conversation that errored on either side is neither a gain nor a loss.
When more than a tenth of the conversations had to be left out (those of cases that B does not have, too) there is no
headline. All other measures are corrected together for how many they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Literal

from evaluatorq.model.base import Record
from evaluatorq.records.chosen import selection_of
from evaluatorq.records.facts import ConversationFacts, Quoted, RunFacts
from evaluatorq.records.measures import CaseKey, Column, Kind, Measure, Word, judged, worded
from evaluatorq.records.pairing import Pair, Pairing, paired
from evaluatorq.records.verdicts import outcome_of

COMPARISON_VERSION = 1
MOST_LEFT_OUT = 0.1
LEAST_LATENCY_S = 0.01
"""Answers that take less come from code beside us, and their times say nothing about an agent."""
UNPAIRED = "sample without a partner"
"""Its mean is not compared with that of another number of samples: where most pass, the mean of few is skewed more, and
the paired test would call the same agent worse or better far more often than it may.
"""
SEED = 0
Change = Literal["gained", "lost"]
_ORDER: tuple[Kind, ...] = ("conversations", "goal", "evaluator", "criterion", "resource")
_Key = tuple[Kind, str, str | None, str]
_OVERALL: _Key = ("conversations", "all that both decided", None, "")


class RunLabel(Record):
    """One of the compared runs. ``failed`` counts conversations that did not pass by the agent's own fault."""

    run_name: str
    run_id: str | None = None
    target: str | None = None
    target_model: str | None = None
    created_at: datetime | None = None
    conversations: int = 0
    errored: int = 0
    errored_by_agent: int = 0
    failed: int = 0
    file: str | None = None

    @property
    def label(self) -> str:
        """What to call it."""
        return f"{self.run_name} {self.run_id[:8]}" if self.run_id else self.run_name


class Side(Record):
    """What one run has to show for a flip: the conversation, and the words, call or state that decided it."""

    row: int
    thread_id: str | None = None
    held: bool
    evidence: str = ""
    turn: int | None = None
    by_check: bool = False


class Flip(Record):
    """One criterion or goal of one datapoint that held on one side only; ``samples`` says how often, of how many."""

    change: Change
    kind: Literal["criterion", "goal"]
    rule: str
    datapoint_id: str
    persona: str
    scenario: str
    samples: str
    a: Side
    b: Side


class ChangedCase(Record):
    """A case that is not the same in both runs, with the parts in which it differs."""

    datapoint_id: str
    persona: str
    scenario: str
    parts: tuple[str, ...]


class Comparison(Record):
    """B compared with A. ``unit`` is what counts as one independent observation; ``left_out`` says why pairs of
    conversations do not count. ``withheld`` says why there is no headline, where there is none. ``judges_differ``: two
    judges read different conversations, so no difference is the agents' for sure. ``subset`` says in words of how many
    of A's cases B was started with a selection, ``not_asked`` names the others, which nothing is decided over.
    ``unread`` counts criteria and goals that held in A and that B left undecided, ``may_be_lost`` the datapoints that
    would be lost, beside those that are, had none of them held.
    """

    comparison_version: int = COMPARISON_VERSION
    unit: str = "datapoint"
    a: RunLabel
    b: RunLabel
    control: RunLabel | None = None
    word: Word
    headline: str
    withheld: str | None = None
    datapoints: int
    conversations: int
    left_out: dict[str, int]
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    not_asked: tuple[str, ...] = ()
    subset: str = ""
    changed: tuple[ChangedCase, ...] = ()
    unpaired_samples: int = 0
    unread: int = 0
    may_be_lost: int = 0
    judges_differ: bool = False
    measures: tuple[Measure, ...]
    flips: tuple[Flip, ...]
    warnings: tuple[str, ...] = ()

    @property
    def overall(self) -> Measure:
        """The measure of the headline."""
        return self.measures[0]

    def of(self, kind: Kind, word: Word | None = None) -> list[Measure]:
        """The measures of a kind, and with a word where one is given."""
        return [m for m in self.measures if m.kind == kind and word in (None, m.word)]


def compare_facts(a: RunFacts, b: RunFacts, control: RunFacts | None = None) -> Comparison:
    """Compares run B with run A. ``control`` is a second run of A's agent: what differs there is noise. One of another
    agent is named in the warnings and not used.
    """
    pairing = paired(a, b)
    table = _Table(pairing.pairs)
    noise = _Table(paired(a, control).pairs) if control is not None and _same_agent(a, control) else None
    columns = [(column, noise.columns.get(key) if noise else None) for key, column in table.columns.items()]
    overall = columns[0][0].measure(columns[0][1], SEED)
    overall = worded(overall, overall.p_value)
    left_out = _left_out(pairing, overall)
    compared = len(pairing.pairs) - sum(pair.errored for pair in pairing.pairs) - overall.left_out
    judges = _two_judges(a, b, pairing)
    withheld = _withheld(left_out, compared, overall) or judges
    subset = _subset(pairing, selection_of(b))
    measures = [overall, *sorted(judged(columns[1:], SEED), key=lambda measure: _ORDER.index(measure.kind))]
    return Comparison(
        a=run_label(a),
        b=run_label(b),
        control=run_label(control) if control else None,
        word="could not measure" if withheld else overall.word,
        headline=_headline(measures, withheld) + (f"; {subset}" if subset else ""),
        withheld=withheld,
        datapoints=overall.datapoints,
        conversations=compared,
        left_out=left_out,
        only_a=tuple(case.name for case in pairing.only_a),
        only_b=tuple(case.name for case in pairing.only_b),
        not_asked=tuple(case.name for case in pairing.not_asked),
        subset=subset,
        changed=tuple(
            ChangedCase(datapoint_id=c.b.id, persona=c.b.persona, scenario=c.b.scenario, parts=c.parts)
            for c in pairing.changed
        ),
        unpaired_samples=pairing.unpaired,
        unread=sum(pair.unread for pair in pairing.pairs if not pair.errored),
        may_be_lost=table.worst.down - table.columns[_OVERALL].down,
        judges_differ=judges is not None,
        measures=tuple(measures),
        flips=tuple(table.flips()),
        warnings=tuple(_warnings(a, b, control, pairing)),
    )


# ---------------------------------------------------------------- the table of measures


class _Table:
    """Every measure of the pairs that did not error, filled in one pass; the headline's comes first."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self.columns: dict[_Key, Column] = {}
        self.worst = Column("conversations", "had nothing held that B left undecided")
        self._pairs: dict[CaseKey, list[Pair]] = {}
        self._column(*_OVERALL)
        self._column("goal", "goal achieved")
        for pair in pairs:
            if not pair.errored:
                self._pairs.setdefault(pair.a.case.key, []).append(pair)
                self._add(pair)

    def _add(self, pair: Pair) -> None:
        a, b, case = pair.a, pair.b, pair.a.case.key
        before, now = _held(pair)
        self._column(*_OVERALL).add(case, before, now)
        self.worst.add(case, before, now and not pair.unread)
        self._column("goal", "goal achieved").add(case, a.goal, b.goal)
        for name in a.scores.keys() | b.scores.keys():
            values = (talk.scores.get(name) for talk in (a, b))
            self._column("evaluator", name).add(case, *(None if isinstance(v, str) else v for v in values))
        for left, right in _criteria(pair):
            self._column("criterion", left.rule, a.case.scenario, left.id).add(case, left.held, right.held)
        self._column("resource", "turns").add(case, a.turns, b.turns)
        if (a.tokens, b.tokens) != (0, 0):
            self._column("resource", "tokens").add(case, a.tokens, b.tokens)
        if a.cost or b.cost:
            self._column("resource", "cost in USD").add(case, a.cost, b.cost)
        if max(a.latency_s or 0, b.latency_s or 0) > LEAST_LATENCY_S:
            self._column("resource", "seconds to an answer").add(case, a.latency_s, b.latency_s)

    def _column(self, kind: Kind, name: str, scenario: str | None = None, identity: str = "") -> Column:
        key = (kind, name, scenario, identity)
        return self.columns.get(key) or self.columns.setdefault(key, Column(kind, name, scenario))

    def flips(self) -> Iterator[Flip]:
        """Every goal and criterion of a datapoint that changed over its samples, losses first."""
        found = [flip for key, column in self.columns.items() for flip in self._flips_of(key, column)]
        return iter(sorted(found, key=lambda flip: (flip.change == "gained", flip.kind, flip.b.row)))

    def _flips_of(self, key: _Key, column: Column) -> Iterator[Flip]:
        kind, name, _, identity = key
        if kind not in ("goal", "criterion"):
            return
        for case, difference in column.changes().items():
            sides = [(pair, *_sides(pair, kind, identity)) for pair in self._pairs[case]]
            changed = [(pair, a, b) for pair, a, b in sides if a and b and (b.held - a.held) * difference > 0]
            pair, a, b = changed[0]
            if a is not None and b is not None:
                yield Flip(
                    change="gained" if difference > 0 else "lost",
                    kind="goal" if kind == "goal" else "criterion",
                    rule=name,
                    datapoint_id=pair.b.case.id,
                    persona=pair.b.case.persona,
                    scenario=pair.b.case.scenario,
                    samples=f"{len(changed)} of {len(sides)}",
                    a=a,
                    b=b,
                )


def _criteria(pair: Pair) -> Iterator[tuple[Quoted, Quoted]]:
    others = {criterion.id: criterion for criterion in pair.b.criteria}
    return ((one, others[one.id]) for one in pair.a.criteria if one.id in others)


def _held(pair: Pair) -> tuple[bool | None, bool | None]:
    """Whether everything holds on each side, of what both sides decided; ``None`` where they decided nothing."""
    items = [(left.held, right.held) for left, right in _criteria(pair)]
    items.append((pair.a.goal, pair.b.goal))
    decided = [(left, right) for left, right in items if left is not None and right is not None]
    if not decided:
        return None, None
    return all(left for left, _ in decided), all(right for _, right in decided)


def _sides(pair: Pair, kind: Kind, identity: str) -> tuple[Side | None, Side | None]:
    if kind == "goal":
        return _goal_side(pair.a), _goal_side(pair.b)
    found = next(((left, right) for left, right in _criteria(pair) if left.id == identity), None)
    return (None, None) if found is None else (_side(pair.a, found[0]), _side(pair.b, found[1]))


def _goal_side(talk: ConversationFacts) -> Side | None:
    if talk.goal is None:
        return None
    return Side(row=talk.row, thread_id=talk.thread_id, held=talk.goal, evidence=talk.reason)


def _side(talk: ConversationFacts, criterion: Quoted) -> Side | None:
    if criterion.held is None:
        return None
    return Side(
        row=talk.row,
        thread_id=talk.thread_id,
        held=criterion.held,
        evidence=criterion.evidence,
        turn=criterion.turn,
        by_check=criterion.by_check,
    )


# ---------------------------------------------------------------- what is said of it


def _left_out(pairing: Pairing, overall: Measure) -> dict[str, int]:
    errors: Counter[str] = Counter()
    for pair in pairing.pairs:
        if pair.errored:
            where = "both runs" if pair.a.errored and pair.b.errored else "A" if pair.a.errored else "B"
            errors[f"errored in {where}"] += 1
    counts = {
        **errors,
        "only in A": pairing.gone,
        "case changed": len(pairing.changed),
        "no result": pairing.missing,
        UNPAIRED: pairing.unpaired,
        "not decided on both sides": overall.left_out,
    }
    return {why: count for why, count in counts.items() if count}


def _withheld(left_out: Mapping[str, int], compared: int, overall: Measure) -> str | None:
    total = sum(left_out.values())
    reasons = ", ".join(f"{why}: {count}" for why, count in left_out.items())
    if not compared:
        return f"no conversation could be compared ({reasons or 'the runs have no case in common'})"
    if total > MOST_LEFT_OUT * (total + compared):
        again = "; repeat both equally often (--samples)" if UNPAIRED in left_out else ""
        return f"{total} of {total + compared} conversations had to be left out ({reasons}{again})"
    return overall.why if overall.word == "could not measure" else None


def _headline(measures: list[Measure], withheld: str | None) -> str:
    overall = measures[0]
    worse = [m for m in measures[1:] if m.word == "worse"]
    also = f"; worse in {_counted(worse)}" if worse else ""
    if withheld:
        return f"could not measure: {withheld}{also}"
    counts = f"{overall.down} of {overall.datapoints} datapoints lost, {overall.up} gained"
    text = f"{overall.word}: {counts} ({p_text(overall.p_value)}"
    if overall.word == "no difference shown":
        text += f"; {overall.why}" if overall.why else ""
        text += f"; {_could_have_shown(overall)}"
    return f"{text}){also if overall.word != 'worse' else ''}"


def _subset(pairing: Pairing, only: str | None) -> str:
    asked = pairing.of - len(pairing.not_asked)
    return f"subset of {asked} of {pairing.of} cases, chosen by only {only!r}" if pairing.not_asked else ""


def _counted(measures: list[Measure]) -> str:
    first = measures[0].label
    return first if len(measures) == 1 else f"{first} and {len(measures) - 1} more"


def _could_have_shown(measure: Measure) -> str:
    if measure.smallest is None:
        return "with this much noise they could have shown no difference at all"
    return f"a change of {measure.smallest * 100:.0f} percentage points or more would have shown four times in five"


def p_text(p_value: float | None) -> str:
    """A p-value as people write it."""
    if p_value is None:
        return "no test"
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"


def run_label(facts: RunFacts) -> RunLabel:
    """What a report says of a run."""
    header, talks = facts.header, facts.conversations
    return RunLabel(
        run_name=header.run_name,
        run_id=header.run_id,
        target=header.target,
        target_model=header.target_model,
        created_at=header.created_at,
        conversations=len(talks),
        errored=sum(talk.errored for talk in talks),
        errored_by_agent=sum(talk.errored and talk.component == "target" for talk in talks),
        failed=sum(outcome_of(talk.verdict, talk.component) is False for talk in talks),
        file=facts.source or None,
    )


def _warnings(a: RunFacts, b: RunFacts, control: RunFacts | None, pairing: Pairing) -> Iterator[str]:
    left, right = a.header, b.header
    if left.run_id is not None and left.run_id == right.run_id:
        yield "A and B are the same run"
    same = _same_words(pairing)
    users = (left.models.get("user_simulator"), right.models.get("user_simulator"))
    if users[0] != users[1] and not same and (left.models or right.models):
        yield f"the simulated users differ: {users[0] or 'offline'} in A, {users[1] or 'offline'} in B"
    if left.max_turns != right.max_turns:
        yield f"the turn limits differ: {left.max_turns} in A, {right.max_turns} in B"
    if left.versions.get("prompts") != right.versions.get("prompts") and left.versions and right.versions:
        yield "the simulation's own prompts changed between A and B"
    if pairing.unverified:
        yield f"{pairing.unverified} cases were paired by name, because a file does not hold the cases themselves"
    if control is not None and not _same_agent(a, control):
        yield f"the control run's agent is {control.header.target}, not A's {left.target}, so it is not taken for noise"


def _two_judges(a: RunFacts, b: RunFacts, pairing: Pairing) -> str | None:
    """Why verdicts of two judges on different conversations tell nothing of the agent; ``None`` where they may."""
    judges = (_judge(a), _judge(b))
    if None in judges or judges[0] == judges[1] or _same_words(pairing):
        return None
    return (
        f"A was judged by {judges[0]} and B by {judges[1]}, on different conversations: the difference may be the "
        "judges'; judge A's conversations again with 'evaluatorq sim rejudge' and compare with that"
    )


def _same_words(pairing: Pairing) -> bool:
    return all(pair.a.transcript == pair.b.transcript for pair in pairing.pairs)


def _same_agent(a: RunFacts, b: RunFacts) -> bool:
    return (a.header.target, a.header.target_model) == (b.header.target, b.header.target_model)


def _judge(facts: RunFacts) -> str | None:
    """Who judged, as far as the file says."""
    return facts.header.models.get("judge") or ("checks" if facts.header.offline else None)
