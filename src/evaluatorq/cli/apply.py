"""``sim apply``: a run's suggestions worked into a prompt file; a patch on standard output until told to write."""

from __future__ import annotations

import argparse

from evaluatorq.cli.console import emit, say
from evaluatorq.cli.parsing import Parser
from evaluatorq.errors import ConfigError
from evaluatorq.reports.text import one_line, plural


def configure(parser: Parser) -> None:
    """The options of ``sim apply``."""
    parser.add_argument("run", metavar="RUN", help="'latest', a run id (8 or more characters), a name or a file")
    parser.add_argument("--prompt", metavar="FILE", required=True, help="the file that holds the agent's prompt")
    parser.add_argument("--apply", action="store_true", default=False, help="write the file; else only show the change")
    parser.add_argument("--sim-model", metavar="MODEL", default=None, help="the model that edits")
    parser.add_argument("--max-suggestions", metavar="N", default="20", help="most suggestions at once (default: 20)")


def run(args: argparse.Namespace) -> int:
    """Shows the change, makes it where that was asked for, and returns the exit code."""
    import anyio  # noqa: PLC0415  not needed for help

    from evaluatorq.simulation.suggestions import ApplySuggestionsResult, apply_run_suggestions  # noqa: PLC0415

    if not args.max_suggestions.isdecimal() or int(args.max_suggestions) < 1:
        raise ConfigError(f"--max-suggestions must be a number of at least 1, not {args.max_suggestions!r}")

    async def work() -> ApplySuggestionsResult:
        return await apply_run_suggestions(
            args.run, args.prompt, model=args.sim_model, apply=args.apply, max_suggestions=int(args.max_suggestions)
        )

    result = anyio.run(work)
    for text in result.skipped:
        say(one_line(f"already applied: {text}"))
    for text in result.recommendations:
        mark = "+" if text in result.carried_out else "left out"
        say(one_line(f"{mark} {text}"))
    if result.recommendations:
        say(f"This took {result.spent.total.total_tokens:,} tokens.")
    if not result.diff:
        say("Nothing to change.")
        return 0
    if not result.applied:
        emit(result.diff)
        say(f"Nothing was written; write it: evaluatorq sim apply {args.run} --prompt {args.prompt} --apply")
        return 0
    say(f"{args.prompt} is changed: {plural(len(result.carried_out), 'suggestion')} applied.")
    return 0
