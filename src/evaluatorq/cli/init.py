"""``evaluatorq init``: a working folder with cases, settings, and an agent with one line to change."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from evaluatorq.cli.console import emit
from evaluatorq.cli.parsing import Parser
from evaluatorq.errors import ConfigError
from evaluatorq.store.cases import bundled

AGENT = '''\
"""The agent under test. Try it with: evaluatorq sim simulate"""

from evaluatorq.model.messages import Message


async def answer(messages: list[Message]) -> str:
    """Answers the conversation so far: ``messages[-1].text`` is what the user said last."""
    return "Sorry, I cannot do that yet."  # <- the one line to change: call your agent here
'''

CONFIG = """\
# Defaults of `evaluatorq sim simulate` in this folder. A flag or --config wins over what stands here;
# `evaluatorq sim schema` lists every option.

[simulate]
personas = "personas"
scenarios = "scenarios"
target = "my_agent:answer"

# Simulated users and checks without any model, so no key is needed. What only a model can judge stays unknown.
# Delete the line, or name models with --sim-model and --judge-model, to have the users played and judged by models.
offline = true
"""


def configure(parser: Parser) -> None:
    """The options of ``init``."""
    parser.add_argument("folder", metavar="DIR", nargs="?", default=".", help="where to write (default: here)")


def run(args: argparse.Namespace) -> int:
    """Writes the folder; nothing is written when any of it is there already."""
    folder = Path(args.folder)
    files = dict(contents())
    there = [path for path in files if (folder / path).exists()]
    if there:
        raise ConfigError(f"{folder / there[0]} exists, so nothing was written; choose an empty folder")
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    emit("\n".join(f"wrote {folder / path}" for path in files))
    go = "" if folder.resolve() == Path.cwd() else f"cd {folder} && "
    emit(f"\nNow: {go}evaluatorq sim simulate\nThen change one line in {folder / 'my_agent.py'} and run it again.")
    return 0


def contents() -> Iterator[tuple[Path, str]]:
    """Every file of a working folder, by its path in it."""
    yield Path("my_agent.py"), AGENT
    yield Path(".evaluatorq") / "config.toml", CONFIG
    yield Path(".evaluatorq") / ".gitignore", "sim-runs/\n"
    for kind in ("personas", "scenarios"):
        for source in sorted(bundled(kind).glob("*.yaml")):
            yield Path(kind) / source.name, source.read_text(encoding="utf-8")
