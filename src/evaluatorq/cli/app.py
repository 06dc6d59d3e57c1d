"""Finds the command that was asked for, imports only that one, and turns what it raises into one line and a code."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
import warnings
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Protocol

from evaluatorq import __version__
from evaluatorq.cli.console import let_go_of_stdout, prepare_streams, say
from evaluatorq.cli.parsing import Parser
from evaluatorq.cli.signals import heard_like_ctrl_c
from evaluatorq.errors import (
    CaseError,
    ConfigError,
    EvaluatorqError,
    MissingLLMCredentialsError,
    ReplayDrift,
    ReplayError,
)

OK, FAILED, USAGE, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141


class CommandModule(Protocol):
    """What a command's module offers."""

    def configure(self, parser: Parser) -> None:
        """Adds the command's options."""
        ...

    def run(self, args: Namespace) -> int:
        """Does it and returns the exit code."""
        ...


@dataclass(frozen=True, slots=True)
class Command:
    """A command: one line of help, and the module that is imported when it is called."""

    about: str
    module: str


@dataclass(frozen=True, slots=True)
class Group:
    """Commands under one word."""

    about: str
    commands: Mapping[str, Command | Group]


TRACES = Group(
    "Conversations as documents: kept, found again, replayed.",
    {
        "export": Command("Write the traces of a run to a file or a database.", "traces_export"),
        "query": Command("Find traces by run, label, time and version.", "traces_query"),
        "replay": Command("Do again what is deterministic and say where it came out otherwise.", "traces_replay"),
    },
)
SIM = Group(
    "Simulate conversations and look at them.",
    {
        "simulate": Command("Let simulated users talk to an agent and judge what it did.", "simulate"),
        "run": Command("Have cases made for an agent and simulate them.", "run"),
        "generate": Command("Have cases made for an agent and write them to a file.", "generate"),
        "resume": Command("Go on with a run that was stopped.", "resume"),
        "runs": Command("List saved, running and interrupted runs.", "runs"),
        "show": Command("Show a run, or one conversation with its verdicts.", "show"),
        "apply": Command("Work a run's suggestions into a prompt file, or show how that would look.", "apply"),
        "export": Command("Write results in the shape of other tools, or as training data.", "export"),
        "traces": TRACES,
        "metrics": Command("Measure what agents believed: decisions, lists, reasons, secrets.", "metrics"),
        "compare": Command("Compare two runs of the same cases: better, worse, or noise.", "compare"),
        "gate": Command("Decide whether a run is good enough, for CI.", "gate"),
        "samples": Command("Count repeats: pass rates, pass^k, flaky cases.", "samples"),
        "labels": Command("Print what people said of a run's verdicts, as JSON Lines.", "labels"),
        "replay": Command("Prove a run from its recording, or fork its conversations.", "replay"),
        "rejudge": Command("Have recorded conversations judged again by another judge.", "rejudge"),
        "rescore": Command("Score saved conversations with other evaluators.", "rescore"),
        "rebuild": Command("Make a run's file again from its journal.", "rebuild"),
        "validate": Command("Check case files and say what would be run.", "validate"),
        "validate-dataset": Command("The older name of validate.", "validate"),
        "schema": Command("Print the JSON schema of the options, of a saved run or of a trace.", "schema"),
    },
)
ENV = Group(
    "Worlds behind an agent's tools.",
    {
        "list": Command("List the environments that a scenario can name, with their tools.", "env_list"),
        "serve": Command("Serve an environment's tools over MCP, by itself or joined to a run.", "env_serve"),
    },
)
ROOT = Group(
    "Simulated users talk to your agent; every verdict shows its evidence.",
    {
        "sim": SIM,
        "env": ENV,
        "view": Command("Look at runs in a browser on this machine.", "view"),
        "init": Command("Write a working folder: cases, settings and an agent to change.", "init"),
    },
)


ROLE_MODELS = {"--fast-model": "EVALUATORQ_FAST_MODEL", "--smart-model": "EVALUATORQ_SMART_MODEL"}
"""Options before the command, and the variables that they stand for."""


ENVIRONMENT = """environment:
  EVALUATORQ_DIR                     where runs and settings are kept (default: .evaluatorq)
  OPENAI_API_KEY, OPENAI_BASE_URL    where models are asked
  EVALUATORQ_FAST_MODEL              plays users and makes cases (default: openai/gpt-6-luna)
  EVALUATORQ_SMART_MODEL             judges and sums up (default: openai/gpt-6-sol)
  EQ_DEBUG                           1 shows where an error arose"""


EXIT_CODES = """exit codes:
  0    done; sim gate: every rule holds; sim replay --verify: nothing differs
  1    a conversation ended in an error, or something could not be read or written; no verdict gives 1;
       sim gate: a rule is broken; sim replay --verify: something differs
  2    asked wrongly: an option, a setting, a case file, a run that is not there; nothing was done
  3    sim gate only: no rule is broken, but one could not be measured
  130  interrupted; sim resume goes on"""


def run(words: Sequence[str] | None = None) -> int:
    """Runs the command that ``words`` name (``sys.argv`` without its first unless given)."""
    prepare_streams()
    warnings.showwarning = lambda message, *_where, **_more: say(f"Warning: {message}")
    try:
        with heard_like_ctrl_c(ends_process=words is None):
            code = _dispatch("evaluatorq", ROOT, _take_models(list(sys.argv[1:] if words is None else words)))
            sys.stdout.flush()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else OK
    except BrokenPipeError:
        let_go_of_stdout()
        return PIPE_CLOSED
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  the last line of defence
        let_go_of_stdout()
        return _told(error)
    return code


def _take_models(words: list[str]) -> list[str]:
    """Puts the models named before the command into the environment; returns the other words."""
    while words and words[0].partition("=")[0] in ROLE_MODELS:
        option, given, model = words.pop(0).partition("=")
        if not given and words:
            model = words.pop(0)
        if not model.strip():
            raise ConfigError(f"{option} names a model, such as {option} openai/gpt-6-luna")
        os.environ[ROLE_MODELS[option]] = model
    return words


def _told(error: BaseException) -> int:
    """Says in one line what went wrong and returns the exit code for it."""
    if os.environ.get("EQ_DEBUG") == "1":
        traceback.print_exc()
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    match error:
        case KeyboardInterrupt():
            line, code = "Interrupted.", INTERRUPTED
        case ReplayDrift():
            line, code = f"Error: {error}{notes}", FAILED
        case ConfigError() | CaseError() | ReplayError() | MissingLLMCredentialsError():
            line, code = f"Error: {error}{notes}", USAGE
        case EvaluatorqError() | OSError():
            line, code = f"Error: {error}{notes}", FAILED
        case _:
            line = f"Error: {type(error).__name__}: {error} (a fault of evaluatorq; EQ_DEBUG=1 shows where)"
            code = FAILED
    say(" ".join(line.split()))
    return code


def _dispatch(prog: str, group: Group, words: list[str]) -> int:
    name = words[0] if words else ""
    entry = group.commands.get(name)
    match entry:
        case Group():
            return _dispatch(f"{prog} {name}", entry, words[1:])
        case Command():
            return _call(f"{prog} {name}", entry, words[1:])
    if name and not name.startswith("-"):
        near = get_close_matches(name, group.commands, n=1)
        raise ConfigError(f"no such command: {prog} {name}; " + (f"did you mean {near[0]}?" if near else _names(group)))
    parser = _group_parser(prog, group)
    parser.parse_words(words)
    parser.print_help()
    return OK if not words else USAGE


def _names(group: Group) -> str:
    return f"there is {', '.join(group.commands)}"


def _call(prog: str, command: Command, words: list[str]) -> int:
    module: CommandModule = importlib.import_module(f"evaluatorq.cli.{command.module}")
    parser = Parser(prog, command.about)
    module.configure(parser)
    return module.run(parser.parse_words(words))


def _group_parser(prog: str, group: Group) -> Parser:
    width = max(map(len, group.commands)) + 2
    lines = [f"  {name:<{width}}{entry.about}" for name, entry in group.commands.items()]
    more = [EXIT_CODES, "", ENVIRONMENT, ""] if group is ROOT or group is SIM else []
    epilog = "\n".join(["commands:", *lines, "", *more, f"Each of them has --help: {prog} COMMAND --help"])
    parser = Parser(prog, group.about, epilog)
    parser.usage = f"{prog} COMMAND [OPTION ...]"
    if group is ROOT:
        parser.add_argument("--version", action="version", version=f"evaluatorq {__version__}")
        parser.add_argument("--fast-model", metavar="MODEL", help="plays users and makes cases, before the command")
        parser.add_argument("--smart-model", metavar="MODEL", help="judges and sums up, before the command")
    return parser
