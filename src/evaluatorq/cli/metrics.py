"""``sim metrics``: what agents believed, in numbers: decisions, lists, reasons, calibration, and kept secrets."""

from __future__ import annotations

import argparse
import json
import sys

from evaluatorq.cli.parsing import Parser
from evaluatorq.model.assessments import Scale
from evaluatorq.model.results import SimulationResult
from evaluatorq.records.measurable import measurable
from evaluatorq.records.metrics import BeliefMetrics, belief_metrics
from evaluatorq.records.metrics_summary import MetricsSummary, summarise
from evaluatorq.records.secrecy_summary import SecrecySummary, pooled
from evaluatorq.reports.beliefs import beliefs_text
from evaluatorq.roles.secrecy import is_independent
from evaluatorq.store.runs import find_run, iter_results, read_run


def configure(parser: Parser) -> None:
    """The options of ``sim metrics``."""
    parser.usage = f"{parser.prog} [RUN] [OPTION ...]"
    parser.add_argument(
        "run", metavar="RUN", nargs="?", default="latest", help="a run: id, name, file (default: latest)"
    )
    parser.add_argument("--json", action="store_true", default=False, help="print JSON: each conversation, and the run")


def run(args: argparse.Namespace) -> int:
    """Prints the metrics."""
    path = find_run(args.run)
    results = list(iter_results(path))
    metrics = [belief_metrics(measurable(result)) for result in results]
    summary = summarise(metrics, _scale(results))
    datapoints = [one for one in read_run(path).datapoints or () if one.scenario.truth is not None]
    proven = sum(is_independent(datapoint) for datapoint in datapoints)
    secrecy = pooled(results, cases=len(datapoints), proven=proven)
    text = _as_json(metrics, summary, secrecy) if args.json else beliefs_text(summary, secrecy)
    sys.stdout.write(text)
    return 0


def _scale(results: list[SimulationResult]) -> Scale | None:
    """The scale of the run, where all of its conversations share one."""
    scales = {
        result.cognition.rules.scale.model_dump_json(): result.cognition.rules.scale
        for result in results
        if result.cognition is not None
        and result.cognition.rules is not None
        and result.cognition.rules.scale is not None
    }
    return next(iter(scales.values())) if len(scales) == 1 else None


def _as_json(metrics: list[BeliefMetrics], summary: MetricsSummary, secrecy: SecrecySummary) -> str:
    document = {
        "summary": summary.model_dump(mode="json"),
        "secrecy": secrecy.model_dump(mode="json"),
        "conversations": [one.model_dump(mode="json") for one in metrics],
    }
    return json.dumps(document, indent=2) + "\n"
