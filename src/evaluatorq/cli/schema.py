"""``sim schema``: the JSON schema of what goes in or of what comes out."""

from __future__ import annotations

import argparse
import json

from evaluatorq.cli.console import emit
from evaluatorq.cli.parsing import Parser

NAMED_BY_TEXT = ("target", "environment")
"""Options that are objects in Python and have a name elsewhere; other objects are for Python alone."""


def configure(parser: Parser) -> None:
    """The options of ``sim schema``."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--input", dest="output", action="store_false", help="the options of --config (the default)")
    which.add_argument("--output", dest="output", action="store_true", default=False, help="a saved run")
    which.add_argument("--trace", action="store_true", default=False, help="a trace, evaluatorq.trace/1")
    parser.add_argument(
        "--command", choices=("simulate", "run"), default="simulate", help="whose options (default: simulate)"
    )


def run(args: argparse.Namespace) -> int:
    """Prints the schema."""
    if args.trace:
        emit(_trace_schema())
        return 0
    emit(json.dumps(_run_schema() if args.output else _config_schema(args.command), indent=2))
    return 0


def _trace_schema() -> str:
    """The published file, as it is."""
    from importlib.resources import files  # noqa: PLC0415  one of the three is needed

    return (files("evaluatorq") / "_schemas" / "trace-1.schema.json").read_text(encoding="utf-8")


def _run_schema() -> dict[str, object]:
    from evaluatorq.model.runs import SimulationRun  # noqa: PLC0415  one of the three is needed

    return SimulationRun.model_json_schema(mode="serialization")


def _config_schema(command: str) -> dict[str, object]:
    from evaluatorq.cli.making import NOT_FOR_MADE_CASES  # noqa: PLC0415
    from evaluatorq.simulation.config import SimulationConfig  # noqa: PLC0415
    from evaluatorq.simulation.orders import RunConfig  # noqa: PLC0415

    config = RunConfig if command == "run" else SimulationConfig
    schema: dict[str, object] = config.model_json_schema()
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for name in NOT_FOR_MADE_CASES if command == "run" else ():
            properties.pop(name)
        for name, field in config.model_fields.items():
            if name in NAMED_BY_TEXT:
                properties[name] = {**properties[name], "type": ["string", "object", "null"]}
            elif field.annotation is object:
                properties.pop(name)
    return schema
