"""``sim gate``: is this run good enough? The exit code says it: 0 holds, 1 broken, 2 asked wrongly, 3 not measured."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from evaluatorq.cli.console import emit, has_color, say, width_of
from evaluatorq.cli.layers import gate_layer
from evaluatorq.cli.parsing import Parser
from evaluatorq.cli.written import MORE, check_writable, refuse_to_replace
from evaluatorq.errors import ConfigError, ReplayError, RunNotFound, SchemaError
from evaluatorq.records.compare import Comparison, compare_facts
from evaluatorq.records.facts import RunFacts
from evaluatorq.records.gate import gate
from evaluatorq.records.gate_rules import UNMEASURED, GateReport, GateRules
from evaluatorq.reports.gate import render_gate
from evaluatorq.reports.junit import junit
from evaluatorq.reports.markdown import gate_markdown
from evaluatorq.store.atomic import replace_file
from evaluatorq.store.run_facts import find_facts

PAIRS = ("min_criterion", "min_evaluator")
METAVARS = {"min": "SHARE", "max": "N", "bas": "RUN"}


def configure(parser: Parser) -> None:
    """The options of ``sim gate``: the rules, and what is written."""
    parser.epilog = (
        "SHARE is 0.95 or 95%; N is a count, or a share. Without any rule the gate asks that every\n"
        "conversation ended by itself and reached its goal, and that every criterion was audited and held;\n"
        "claims and expectations that failed are then a warning. With any rule, --baseline too, only the rules\n"
        "that are given decide, unless --strict. Rules may stand in the table [gate] of\n"
        ".evaluatorq/config.toml as well; an option wins over it.\n"
        "With --baseline a paired significance test over datapoints decides: 'worse' breaks the gate, and\n"
        "more lost than gained that may still be chance could not be measured. --max-lost N counts instead.\n"
        "Exit codes: 0 every rule holds; 1 a rule is broken; 2 asked wrongly; 3 none is broken, but one\n"
        "could not be measured (undecided conversations, too few cases, a run that cannot be read)."
    )
    parser.add_argument("run", metavar="RUN", nargs="?", default="latest", help="the run (default: latest)")
    rules = parser.add_argument_group("Rules")
    for name, field in GateRules.model_fields.items():
        flag, about = f"--{name.replace('_', '-')}", (field.description or "").replace("%", "%%")
        if field.annotation is bool:
            rules.add_argument(flag, dest=name, action="store_true", help=about)
        elif name in PAIRS:
            rules.add_argument(flag, dest=name, metavar="NAME=SHARE", action="append", help=about)
        else:
            rules.add_argument(flag, dest=name, metavar=METAVARS[name[:3]], help=about)
    written = parser.add_argument_group("Reports")
    written.add_argument("--json", action="store_true", default=False, help="the decision as JSON on standard output")
    written.add_argument("--junit", metavar="PATH", default=None, help=f"JUnit XML: a test for each conversation{MORE}")
    written.add_argument(
        "--markdown", metavar="PATH", default=None, help=f"Markdown for a step summary or pull request{MORE}"
    )


def run(args: argparse.Namespace) -> int:
    """Prints the decision and returns it as the exit code."""
    rules = GateRules.parse({**gate_layer(), **_given(args)})
    check_writable(junit=args.junit, markdown=args.markdown)
    try:
        facts, comparison = _read(args.run, rules)
    except RunNotFound:
        raise
    except (ReplayError, SchemaError, OSError) as error:
        say(f"Error: {error}")
        return UNMEASURED
    runs = (facts.source, comparison.a.file if comparison else None)
    refuse_to_replace(runs, junit=args.junit, markdown=args.markdown)
    report = gate(facts, rules, comparison)
    _write(args, facts, report, comparison)
    if args.json:
        emit(report.model_dump_json(indent=2))
    else:
        emit(render_gate(report, width=width_of(sys.stdout), color=has_color(sys.stdout)))
    return report.exit_code


def _read(reference: str, rules: GateRules) -> tuple[RunFacts, Comparison | None]:
    facts = find_facts(reference)
    return facts, None if rules.baseline is None else compare_facts(find_facts(rules.baseline), facts)


def _given(args: argparse.Namespace) -> Mapping[str, object]:
    given = {name: value for name, value in vars(args).items() if name in GateRules.model_fields}
    return {name: _pairs(name, value) if name in PAIRS else value for name, value in given.items()}


def _pairs(name: str, texts: list[str]) -> dict[str, str]:
    """``NAME=SHARE``, where the name may hold an equals sign."""
    split = [text.rpartition("=") for text in texts]
    for text, (key, equals, _) in zip(texts, split, strict=True):
        if not equals or not key.strip():
            raise ConfigError(f"--{name.replace('_', '-')} takes NAME=SHARE, not {text!r}")
    return {key.strip(): share for key, _, share in split}


def _write(args: argparse.Namespace, facts: RunFacts, report: GateReport, comparison: Comparison | None) -> None:
    if args.junit is not None:
        replace_file(Path(args.junit), junit(facts, report))
    if args.markdown is not None:
        replace_file(Path(args.markdown), [gate_markdown(report, comparison).encode()])
