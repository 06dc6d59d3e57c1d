"""What is written beside a run's own file: results as JSON Lines, and reports for reading."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import anyio
import anyio.to_thread

from evaluatorq.errors import ConfigError, StoreError
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import SimulationRecommendation, SimulationRun
from evaluatorq.run.outcome import RunOutcome
from evaluatorq.simulation.config import SimulationConfig
from evaluatorq.store.atomic import replace_file, try_to_write
from evaluatorq.store.paths import sanitise_run_name

if TYPE_CHECKING:  # what draws reports is loaded where one is wanted
    from evaluatorq.reports.document import Document
    from evaluatorq.reports.terminal import About

Format = Literal["md", "html"]
REPORTS: tuple[Format, ...] = ("md", "html")


def draw(
    form: Format,
    results: Iterable[SimulationResult],
    about: About,
    run: SimulationRun | None,
    recommendations: Sequence[SimulationRecommendation] | None = None,
) -> tuple[Document, str]:
    """What the report holds, and its text; ``recommendations`` go before those of the run."""
    from evaluatorq.reports.document import Document  # noqa: PLC0415

    if form == "md":
        from evaluatorq.reports.markdown_report import MOST_TRANSCRIPTS, markdown_report  # noqa: PLC0415

        document = Document.of(results, about, run, recommendations, MOST_TRANSCRIPTS)
        return document, markdown_report(document)
    from evaluatorq.reports.html import html_report, require_html  # noqa: PLC0415

    require_html()
    document = Document.of(results, about, run, recommendations)
    return document, html_report(document)


def check_outputs(config: SimulationConfig) -> None:
    """``ConfigError`` before anything is paid for, where a file is wanted that could not be drawn or written."""
    if config.report_html is not None:
        from evaluatorq.reports.html import require_html  # noqa: PLC0415

        require_html()
    for name in ("results", "report_path", "report_md", "report_html"):
        path: Path | None = getattr(config, name)
        if path is not None:
            try:
                try_to_write(path if is_file_name(path) or name == "results" else path / f"{name}.json")
            except StoreError as error:
                raise ConfigError(f"{name}: {error}") from None


def is_file_name(path: Path) -> bool:
    """A report goes to this file, pipe or device; a folder, or a new path without suffix, is a folder to put it in."""
    return not path.is_dir() and (bool(path.suffix) or path.exists())


async def write_outputs(outcome: RunOutcome, config: SimulationConfig) -> None:
    """Writes the results and reports that were asked for, whole or not at all; none for a run that is not complete.

    In a worker thread: a large run takes a while, and the event loop may be somebody else's too.
    """
    if not outcome.interrupted:
        await anyio.to_thread.run_sync(_write, outcome, config)


def _write(outcome: RunOutcome, config: SimulationConfig) -> None:
    if config.results is not None:
        lines = (result.model_dump_json().encode() + b"\n" for result in outcome.iter_results())
        replace_file(config.results, lines)
    run = outcome.header
    if run is None:
        return
    wanted: tuple[tuple[Format, Path | None], ...] = (("md", config.report_md), ("html", config.report_html))
    for form, path in wanted:
        if path is not None:
            from evaluatorq.reports.terminal import About  # noqa: PLC0415

            _, text = draw(form, outcome.iter_results(), About.run(run), run)
            replace_file(_file(path, run, form), (text.encode(),))


def _file(path: Path, run: SimulationRun, form: Format) -> Path:
    """The path itself, or a file in it."""
    if is_file_name(path):
        return path
    return path / f"sim-report-{sanitise_run_name(run.run_name)}-{run.created_at:%Y%m%d-%H%M%S}.{form}"
