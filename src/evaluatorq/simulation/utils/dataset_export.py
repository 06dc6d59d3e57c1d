"""The published place of what reads and writes JSON Lines."""

from __future__ import annotations

from evaluatorq.store.cases import export_datapoints_to_jsonl, load_datapoints_from_jsonl
from evaluatorq.store.jsonl import export_results_to_jsonl, parse_jsonl, results_to_jsonl

__all__ = [
    "export_datapoints_to_jsonl", "export_results_to_jsonl", "load_datapoints_from_jsonl", "parse_jsonl",
    "results_to_jsonl",
]  # fmt: skip
