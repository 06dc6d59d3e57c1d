"""``sim export``: results in the shape of other tools, one line in ``FORMATS`` each, and traces as training data."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from evaluatorq.cli.artifacts import ARTIFACT, write_artifacts
from evaluatorq.cli.console import say
from evaluatorq.cli.export_reports import REPORTS, add_report_options, refuse_report_options, write_report
from evaluatorq.cli.parsing import Parser
from evaluatorq.cli.simulate import refuse_existing
from evaluatorq.cli.training import TRAINING, add_training_options, write_training
from evaluatorq.errors import ConfigError
from evaluatorq.model.results import SimulationResult
from evaluatorq.reports.text import plural
from evaluatorq.store.atomic import replace_file
from evaluatorq.store.jsonl import load_results_from_jsonl
from evaluatorq.store.runs import find_run, iter_results

Writer = Callable[[Iterable[SimulationResult]], Iterator[str]]


def configure(parser: Parser) -> None:
    """The options of ``sim export``."""
    parser.add_argument(
        "-i", "--input", metavar="RUN", required=True, help="a run (file, 'latest', id, name) or a results .jsonl file"
    )
    parser.add_argument("-o", "--output", metavar="PATH", required=True, help="the file to write")
    formats = ", ".join((*FORMATS, *REPORTS, ARTIFACT, TRAINING))
    parser.add_argument("--format", default="openresponses", help=f"{formats} (default: openresponses)")
    parser.add_argument("--force", action="store_true", default=False, help="replace the file if it is there")
    add_report_options(parser)
    add_training_options(parser)


def run(args: argparse.Namespace) -> int:
    """Writes the file."""
    known = (*FORMATS, *REPORTS, ARTIFACT, TRAINING)
    if args.format not in known:
        raise ConfigError(f"no such format: {args.format!r}; there is {', '.join(known)}")
    if args.format not in REPORTS:
        refuse_report_options(args)
    output = Path(args.output)
    if not args.force:
        refuse_existing(output)
    if args.format == TRAINING:
        return write_training(args)
    if args.format == ARTIFACT:
        return write_artifacts(_results(args.input), output, force=args.force)
    if args.format in REPORTS:
        return write_report(args, _results(args.input), output)
    results = list(_results(args.input))
    replace_file(output, (part.encode() for part in FORMATS[args.format](results)))
    say(f"Exported {plural(len(results), 'result')} to {output}")
    return 0


def _results(reference: str) -> Iterable[SimulationResult]:
    path = Path(reference)
    if path.suffix == ".jsonl":
        if not path.is_file():
            raise ConfigError(f"no such file: {path}")
        return load_results_from_jsonl(path)
    return iter_results(find_run(reference))


def _open_responses(results: Iterable[SimulationResult]) -> Iterator[str]:
    from evaluatorq.simulation.convert import to_open_responses  # noqa: PLC0415  only for this format

    yield "["
    for number, result in enumerate(results):
        text = json.dumps(to_open_responses(result), indent=2).replace("\n", "\n  ")
        yield f"{',' if number else ''}\n  {text}"
    yield "\n]\n"


FORMATS: dict[str, Writer] = {"openresponses": _open_responses}
