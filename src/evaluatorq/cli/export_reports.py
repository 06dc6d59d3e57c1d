"""``sim export --format md|html``: a run, or a file of results, as a report for reading."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from evaluatorq.cli.console import say
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import SimulationRun
from evaluatorq.reports.terminal import About
from evaluatorq.reports.text import plural
from evaluatorq.simulation.report_files import REPORTS, draw
from evaluatorq.store.atomic import replace_file
from evaluatorq.store.runs import find_run, read_header

__all__ = ["REPORTS", "write_report"]


def write_report(args: argparse.Namespace, results: Iterable[SimulationResult], output: Path) -> int:
    """Writes the report and says how large it is."""
    given = Path(args.input)
    run: SimulationRun | None = None if given.suffix == ".jsonl" else read_header(find_run(args.input))
    about = About(given.stem) if run is None else About.run(run)
    if args.target_label is not None:
        about = replace(about, target=args.target_label)
    document, text = draw(args.format, results, about, run)
    replace_file(output, (text.encode(),))
    size = f"{len(text.encode()) / 1e6:.1f} MB" if len(text) >= 1e5 else f"{len(text.encode()) / 1e3:.0f} kB"
    say(f"Exported {plural(document.summary.total, 'result')} to {output} ({size})")
    return 0
