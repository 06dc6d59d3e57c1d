"""``sim validate``: reads case files exactly as a run would, and lists everything that is wrong with them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from evaluatorq.cli.console import emit, say
from evaluatorq.cli.layers import project_layer
from evaluatorq.cli.parsing import Parser
from evaluatorq.cli.worlds import Worlds
from evaluatorq.errors import ConfigError
from evaluatorq.reports.text import plural
from evaluatorq.roles.secrecy import secret_told
from evaluatorq.store.cases import Kind, validate_paths

OK, USAGE = 0, 2
CASES = ("personas", "scenarios", "input")
KINDS: tuple[Kind, ...] = ("personas", "scenarios", "datapoints")


def configure(parser: Parser) -> None:
    """The options of ``sim validate``."""
    parser.epilog = (
        "Without PATH the cases of .evaluatorq/config.toml are checked. Tools that a scenario names and its "
        "environment\nlacks are warnings; 'evaluatorq env list' shows environments and their tools."
    )
    parser.add_argument("paths", metavar="PATH", nargs="*", default=[], help="files, folders or globs of cases")
    parser.add_argument("-i", "--input", metavar="PATH", nargs="+", action="extend", default=[], help="the same")


def run(args: argparse.Namespace) -> int:
    """Says how many cases there are, or everything that is wrong."""
    project = project_layer()
    paths = [*args.paths, *args.input] or _of_project(project)
    report = validate_paths(paths, doubts=_worlds(project).doubts, secrets=secret_told)
    for error in report.errors:
        say(str(error))
    for warning in report.warnings:
        say(f"Warning: {warning}")
    counts = [plural(report.counts[kind], kind.removesuffix("s")) for kind in KINDS if report.counts[kind]]
    counted = ", ".join(counts) or "no cases"
    if report.errors:
        right = f"right: {counted}" if counts else "no case is right"
        say(f"Error: {plural(len(report.errors), 'problem')}; {right}")
        return USAGE
    warned = f", {plural(len(report.warnings), 'warning')}" if report.warnings else ""
    emit(f"{counted}: all right{warned}")
    return OK


def _of_project(project: Mapping[str, object]) -> list[str]:
    """The case files that the folder's settings name."""
    named = [project[name] for name in CASES if name in project]
    paths = [str(path) for value in named for path in (value if isinstance(value, list) else [value])]
    if not paths:
        raise ConfigError(
            "name at least one file, folder or glob to check, or personas and scenarios in .evaluatorq/config.toml"
        )
    return paths


def _worlds(project: Mapping[str, object]) -> Worlds:
    """The environments that a run with the folder's settings would build."""
    own = project.get("environment")
    if own is None:
        return Worlds()
    from evaluatorq.simulation.assemble import environment_factory  # noqa: PLC0415  loads what a run needs

    return Worlds(environment_factory(own))
