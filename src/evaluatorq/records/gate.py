"""Whether a run is good enough: thresholds that hold, are broken, or could not be measured, and where to look.

What nobody decided could be either, so every rate has a worst and a best case. A threshold holds when the worst case
reaches it and is broken when the best case does not; in between it could not be measured, which is never green. Without
any threshold the gate decides as the snippet of the published output reference does (``reference_gate``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from evaluatorq.errors import ConfigError
from evaluatorq.records.compare import Comparison, run_label
from evaluatorq.records.facts import ConversationFacts, Quoted, RunFacts
from evaluatorq.records.gate_baseline import against, as_bad, uncompared
from evaluatorq.records.gate_rules import Allowed, Evidence, GateReport, GateRules, RuleResult, State
from evaluatorq.records.samples import SampleReport, sample_report
from evaluatorq.records.scores import ScoreTally
from evaluatorq.records.verdicts import UNCOUNTED, Rate, outcome_of

_MOST_NAMED = 5
_REFERENCE = "every conversation ended by itself and reached its goal, every criterion was audited and held"
_STRICT = f"{_REFERENCE}, claims and expectations too"


def gate(facts: RunFacts, rules: GateRules, comparison: Comparison | None = None) -> GateReport:
    """Decides. ``comparison`` is the run compared with the baseline, where there is one.

    ``ConfigError`` for a criterion or evaluator that the run does not have.
    """
    if comparison is None and rules.max_lost is not None:
        raise ConfigError("max_lost counts what was lost against a baseline; give baseline (--baseline RUN)")
    results = list(_judge(facts, rules))
    if comparison is not None:
        results += against(comparison, rules)
    if rules.strict or not results:
        results.append(_reference(facts, strict=rules.strict))
        note = ""
    else:
        note = f"Only these rules were asked; --strict adds: {_STRICT}"
    states = {result.state for result in results}
    order: tuple[State, ...] = ("broken", "could not measure", "holds")
    report = GateReport(
        run=run_label(facts),
        baseline=comparison.a if comparison else None,
        subset=comparison.subset if comparison else "",
        state=next(state for state in order if state in states),
        rules=tuple(results),
        note=note,
        warnings=(*_unseen(facts, rules), *((*uncompared(comparison), *comparison.warnings) if comparison else ())),
    )
    return report.model_copy(update={"warnings": (*as_bad(report, rules), *report.warnings)})


# ---------------------------------------------------------------- the rules


def _reference(facts: RunFacts, *, strict: bool) -> RuleResult:
    """What the snippet decides. ``strict`` reads verdicts too: claims and expectations that failed break it, and what
    nobody decided could not be measured.
    """
    talks = [talk for talk in facts.conversations if talk.objections or (strict and _is_unread(talk))]
    undecided = strict and all(talk.verdict in ("passed", "unknown") for talk in talks)
    result = RuleResult(
        rule=_STRICT if strict else _REFERENCE,
        state="holds" if not talks else "could not measure" if undecided else "broken",
        found=f"{len(talks)} of {len(facts.conversations)} conversations do not" if talks else "all do",
        conversations=tuple(_case(talk, why) for talk in talks for why in talk.objections or (_why(talk),)),
    )
    return _of_all(result, facts) if strict else result


def _of_all(result: RuleResult, facts: RunFacts) -> RuleResult:
    """The rule as it stands for the whole run: nothing holds for cases that have no result."""
    if result.state != "holds" or (facts.conversations and not facts.missing):
        return result
    missing = f"{len(facts.missing)} cases have no result" if facts.missing else "the run has no conversation"
    return result.model_copy(update={"state": "could not measure", "found": f"{result.found}; {missing}"})


def _is_unread(talk: ConversationFacts) -> bool:
    """It failed, by claims or expectations, which the snippet knows nothing of."""
    return talk.verdict == "failed" and not talk.objections


def _reads_verdicts(rules: GateRules) -> bool:
    """Some rule of the gate asks for more than the snippet does, so a failed verdict counts."""
    shares = (rules.min_pass_rate, rules.min_criteria_rate, rules.min_pass_hat_k, rules.baseline)
    return rules.strict or any(share is not None for share in shares)


def _unseen(facts: RunFacts, rules: GateRules) -> Iterator[str]:
    """What failed or never happened and no rule reads, with what to type."""
    if _reads_verdicts(rules):
        return
    if facts.missing:
        all_cases = len(facts.conversations) + len(facts.missing)
        yield f"{len(facts.missing)} of {all_cases} cases have no result, which this gate does not ask; add --strict"
    talks = [talk for talk in facts.conversations if _is_unread(talk)]
    if talks:
        named = "; ".join(talk.name for talk in talks[:_MOST_NAMED])
        more = f" and {len(talks) - _MOST_NAMED} more" if len(talks) > _MOST_NAMED else ""
        yield (
            f"{len(talks)} of {len(facts.conversations)} conversations failed by claims or expectations, which this "
            f"gate does not read: {named}{more}. To have them decide as well, add --min-pass-rate 1"
        )


def _judge(facts: RunFacts, rules: GateRules) -> Iterator[RuleResult]:
    talks = facts.conversations
    if rules.min_pass_rate is not None:
        yield _least("conversations passed", rules.min_pass_rate, [(t, _outcome(t), _why(t)) for t in talks], facts)
    if rules.min_goal_rate is not None:
        goals = [(talk, talk.goal, f"goal not achieved: {talk.reason}") for talk in talks]
        yield _least("goals achieved", rules.min_goal_rate, goals, facts)
    if rules.min_criteria_rate is not None:
        yield _of_all(_least_held("criteria held", rules.min_criteria_rate, _all_criteria(talks)), facts)
    for pattern, least in rules.min_criterion.items():
        yield _of_all(_least_held(f"criterion {pattern!r} held", least, _matching(pattern, talks)), facts)
    for name, least in rules.min_evaluator.items():
        yield _least_mean(name, least, facts)
    yield from _most(facts, rules)
    for result in _spent(facts, rules):
        yield _of_all(result, facts)
    if rules.min_pass_hat_k is not None or rules.max_flaky is not None:
        yield from _sampled(facts, rules)


_Decided = tuple[ConversationFacts, bool | None, str]


def _least(what: str, least: float, decided: Sequence[_Decided], facts: RunFacts) -> RuleResult:
    """A share of conversations; a case without a result is undecided."""
    rate = Rate(unknown=len(facts.missing))
    for _, outcome, _ in decided:
        rate = rate.plus(outcome)
    cases = [_case(talk, why) for talk, outcome, why in decided if outcome is False]
    unknown = [_case(talk, "undecided") for talk, outcome, _ in decided if outcome is None]
    return _ruled(f"{what}: at least {_percent(least)}", rate, least, cases, unknown)


def _least_held(what: str, least: float, criteria: Iterable[tuple[ConversationFacts, Quoted]]) -> RuleResult:
    rate: Rate = UNCOUNTED
    cases: list[Evidence] = []
    unknown: list[Evidence] = []
    for talk, criterion in criteria:
        rate = rate.plus(criterion.held)
        if criterion.held is False:
            cases.append(_quoted(talk, criterion))
        elif criterion.held is None:
            unknown.append(_case(talk, f"not audited: {criterion.description}"))
    return _ruled(f"{what}: at least {_percent(least)}", rate, least, cases, unknown)


def _ruled(rule: str, rate: Rate, least: float, cases: Sequence[Evidence], unknown: Sequence[Evidence]) -> RuleResult:
    """Holds in the worst case, broken in the best case, else nobody can tell."""
    if rate.worst is None or rate.best is None:
        return RuleResult(rule=rule, state="could not measure", found="there is nothing to count")
    state: State = "holds" if rate.worst >= least else "broken" if rate.best < least else "could not measure"
    found = f"{rate.yes} of {rate.decided}" + (f" ({_percent(rate.share)})" if rate.share is not None else "")
    if rate.unknown:
        found += f", {rate.unknown} undecided: {_percent(rate.worst)} to {_percent(rate.best)} of {rate.total}"
    shown: dict[State, Sequence[Evidence]] = {"holds": (), "broken": cases, "could not measure": [*cases, *unknown]}
    return RuleResult(rule=rule, state=state, found=found, conversations=tuple(shown[state]))


def _least_mean(name: str, least: float, facts: RunFacts) -> RuleResult:
    if name not in facts.evaluators:
        raise ConfigError(f"no evaluator of this run is called {name!r}; {_known(name, facts.evaluators)}")
    tally = ScoreTally()
    low: list[Evidence] = []
    missing: list[Evidence] = []
    for talk in facts.conversations:
        score = talk.scores.get(name, "missing")
        tally.add(score)
        if isinstance(score, str):
            missing.append(_case(talk, f"no score: {score}"))
        elif score < least:
            low.append(_case(talk, f"{name} {score:g}"))
    for _ in facts.missing:
        tally.add("missing")
    rule = f"mean of {name}: at least {least:g}"
    if tally.bounds is None:
        return RuleResult(rule=rule, state="could not measure", found="there is nothing to average")
    _, best = tally.bounds
    state: State = "broken" if best < least else "could not measure" if tally.missing else "holds"
    found = "no valid score" if tally.mean is None else f"{tally.mean:.3g} of {tally.valid}"
    found += "".join(f", {why}: {count}" for why, count in tally.left_out.items())
    shown: dict[State, list[Evidence]] = {"holds": [], "broken": low, "could not measure": missing}
    return RuleResult(rule=rule, state=state, found=found, conversations=tuple(shown[state]))


def _most(facts: RunFacts, rules: GateRules) -> Iterator[RuleResult]:
    talks, total = facts.conversations, len(facts.conversations) + len(facts.missing)
    if rules.max_errors is not None:
        cases = [_case(talk, f"{talk.component or 'somebody'} failed: {talk.reason}") for talk in talks if talk.errored]
        yield _at_most("conversations that errored", rules.max_errors, cases, total, len(facts.missing))
    if rules.max_unknown is not None:
        cases = [_case(talk, _why(talk)) for talk in talks if talk.verdict == "unknown"]
        yield _at_most("conversations that nobody could decide", rules.max_unknown, cases, total, len(facts.missing))
    if rules.max_unaudited is not None:
        cases = [_case(t, f"not audited: {c.description}") for t, c in _all_criteria(talks) if c.held is None]
        yield _of_all(_at_most("criteria not audited", Allowed(count=rules.max_unaudited), cases, total), facts)
    if rules.max_unverified is not None:
        cases = [_quoted(talk, criterion) for talk, criterion in _all_criteria(talks) if criterion.unverified]
        most = Allowed(count=rules.max_unverified)
        yield _of_all(_at_most("verdicts whose quote nobody said", most, cases, total), facts)


def _at_most(what: str, most: Allowed, cases: Sequence[Evidence], total: int, extra: int = 0) -> RuleResult:
    """``extra`` are conversations without a result, which count as well."""
    if not total:
        return RuleResult(rule=f"{what}: at most {most}", state="could not measure", found="there is nothing to count")
    count, allowed = len(cases) + extra, most.most(total)
    found = f"{count} of {total}" if most.share is not None or extra else str(count)
    state: State = "holds" if count <= allowed else "broken"
    shown = () if state == "holds" else tuple(cases)
    return RuleResult(rule=f"{what}: at most {most}", state=state, found=found, conversations=shown)


def _spent(facts: RunFacts, rules: GateRules) -> Iterator[RuleResult]:
    talks = facts.conversations
    usage = facts.header.token_usage_total
    if rules.max_tokens is not None:
        tokens = [talk.tokens for talk in talks]
        yield _spending("tokens", rules.max_tokens, tokens, usage.total_tokens if usage else 0)
    if rules.max_cost is not None:
        cost = usage.total_cost if usage else None
        yield _spending("cost in USD", rules.max_cost, [talk.cost for talk in talks], cost or 0.0)
    if rules.max_mean_turns is not None:
        ended = [talk for talk in talks if not talk.errored]
        rule = f"exchanges of a conversation, on average: at most {rules.max_mean_turns:g}"
        if not ended:
            yield RuleResult(rule=rule, state="could not measure", found="no conversation came to its end")
            return
        mean = sum(talk.turns for talk in ended) / len(ended)
        long = [_case(talk, f"{talk.turns} exchanges") for talk in ended if talk.turns > rules.max_mean_turns]
        broken = mean > rules.max_mean_turns
        state: State = "broken" if broken else "holds"
        yield RuleResult(rule=rule, state=state, found=f"{mean:.3g}", conversations=tuple(long) if broken else ())


def _spending(what: str, most: float, amounts: Sequence[float | None], whole_run: float) -> RuleResult:
    """What the run spent at least; conversations that did not tell all leave it open."""
    known = [amount for amount in amounts if amount is not None]
    spent, untold = max(sum(known), whole_run), len(amounts) - len(known)
    state: State = "broken" if spent > most else "could not measure" if untold else "holds"
    found = f"{spent:,.6g}" + (f" and more: {untold} conversations did not tell all" if untold else "")
    return RuleResult(rule=f"{what}: at most {most:,g}", state=state, found=found)


def _sampled(facts: RunFacts, rules: GateRules) -> Iterator[RuleResult]:
    report = sample_report(facts)
    rows = {talk.row: talk for talk in facts.conversations}
    if rules.min_pass_hat_k is not None:
        rule = f"all {report.k} samples of a datapoint pass: at least {_percent(rules.min_pass_hat_k)}"
        found = report.run.pass_hat_k
        least_measured = min((cell.measured for cell in report.datapoints), default=0)
        if found is None:
            why = f"a datapoint has only {least_measured} of {report.k} samples measured"
            yield RuleResult(rule=rule, state="could not measure", found=why)
        else:
            short = [cell for cell in report.datapoints if cell.passed < cell.measured]
            state: State = "holds" if found >= rules.min_pass_hat_k else "broken"
            cases = [_case(rows[cell.rows[0]], f"{cell.passed} of {cell.measured} samples passed") for cell in short]
            yield RuleResult(
                rule=rule, state=state, found=_percent(found), conversations=tuple(cases) if state == "broken" else ()
            )
    if rules.max_flaky is not None:
        yield _flaky(report, rules.max_flaky, rows)


def _flaky(report: SampleReport, most: Allowed, rows: Mapping[int, ConversationFacts]) -> RuleResult:
    """Datapoints of which nobody knows may be flaky too, and where they could be too many the gate cannot tell."""
    flaky = [cell for cell in report.datapoints if cell.flaky_verdict]
    unknown = [cell for cell in report.datapoints if cell.unknown_verdict]
    cases = [_case(rows[cell.rows[0]], f"{cell.passed} of {cell.measured} samples passed") for cell in flaky]
    total = len(report.datapoints)
    told = _at_most("datapoints that pass in some samples only", most, cases, total)
    if not unknown or told.state == "broken":
        return told
    found = f"{len(flaky)} of {total}, {len(unknown)} not known: "
    found += "they have one sample only, repeat with --samples" if report.k < 2 else "not all samples were measured"
    if len(flaky) + len(unknown) <= most.most(total):
        return told.model_copy(update={"found": found})
    cases += [
        _case(rows[cell.rows[0]], f"{cell.measured} of {cell.samples} samples measured")
        for cell in unknown
        if cell.rows
    ]
    return told.model_copy(update={"state": "could not measure", "found": found, "conversations": tuple(cases)})


# ---------------------------------------------------------------- conversations and criteria


def _outcome(talk: ConversationFacts) -> bool | None:
    return outcome_of(talk.verdict, talk.component)


def _why(talk: ConversationFacts) -> str:
    if talk.errored:
        return f"{talk.component or 'somebody'} failed: {talk.reason}"
    broken = [criterion.rule for criterion in talk.criteria if criterion.held is False]
    if broken:
        return "; ".join(broken)
    if talk.goal is False:
        return f"goal not achieved: {talk.reason}"
    parts = ["nobody could decide the goal"] if talk.goal is None else []
    return "; ".join([*parts, *(f"not audited: {c.description}" for c in talk.criteria if c.held is None)])


def _case(talk: ConversationFacts, why: str) -> Evidence:
    """The conversation, with the words of the first broken criterion that ``why`` speaks of."""
    named = (c for c in talk.criteria if c.held is False and (c.rule in why or why.startswith(f"failed {c.id} ")))
    broken = next(named, None)
    if broken is None:
        return Evidence(row=talk.row, name=talk.name, why=why)
    return Evidence(row=talk.row, name=talk.name, why=why, quote=broken.evidence, turn=broken.turn)


def _quoted(talk: ConversationFacts, criterion: Quoted) -> Evidence:
    return Evidence(row=talk.row, name=talk.name, why=criterion.rule, quote=criterion.evidence, turn=criterion.turn)


def _all_criteria(talks: Iterable[ConversationFacts]) -> Iterator[tuple[ConversationFacts, Quoted]]:
    return ((talk, criterion) for talk in talks for criterion in talk.criteria)


def _matching(pattern: str, talks: Iterable[ConversationFacts]) -> list[tuple[ConversationFacts, Quoted]]:
    wanted = pattern.strip().casefold()
    every = list(_all_criteria(talks))
    found = [
        (talk, criterion)
        for talk, criterion in every
        if wanted in f"{talk.case.scenario}: {criterion.description}".casefold()
        or fnmatchcase(criterion.description.casefold(), wanted)
    ]
    if not found or not wanted:
        known = {criterion.description: None for _, criterion in every}
        raise ConfigError(f"no criterion of this run matches {pattern!r}; {_known(pattern, list(known))}")
    return found


def _known(word: str, names: Sequence[str]) -> str:
    near = get_close_matches(word, names, n=3, cutoff=0.4) or list(names)[:5]
    return f"it has {', '.join(repr(name) for name in near)}" if near else "it has none"


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{share * 100:.4g} %"
