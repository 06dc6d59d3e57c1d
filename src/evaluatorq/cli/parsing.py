"""The command-line parser: argparse, with one-sentence errors and near names, and flags made from config fields.

argparse and not a framework, because ``sim --help`` must cost less than importing one. Values stay text here;
``SimulationConfig`` alone says what they mean, so a flag and a key in a file get the same check and the same message.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, NoReturn, get_args, get_origin

from evaluatorq.errors import ConfigError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from evaluatorq.simulation.config import Flag, SimulationConfig


class Parser(argparse.ArgumentParser):
    """A parser whose mistakes are ``ConfigError``; options are never guessed from their first letters."""

    def __init__(self, prog: str, description: str, epilog: str | None = None) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            argument_default=argparse.SUPPRESS,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        """Says what is wrong and where help is."""
        raise ConfigError(f"{message} (see {self.prog} --help)")

    def parse_words(self, words: Sequence[str]) -> argparse.Namespace:
        """The options that were given; those that were not are absent unless they have a default."""
        found, unknown = self.parse_known_args(words)
        if unknown:
            known = re.findall(r"--[a-z][a-z-]*", self.format_help())
            near = get_close_matches(unknown[0].split("=")[0], known, n=1)
            self.error(f"no such option or argument: {unknown[0]}" + (f"; did you mean {near[0]}?" if near else ""))
        return found


def add_config_flags(
    parser: Parser,
    defaults: Mapping[str, object],
    *,
    sections: Sequence[str] = (),
    of: type[SimulationConfig] | None = None,
    without: Collection[str] = (),
) -> None:
    """Adds an option for every field of ``of`` that has a ``Flag`` (in one of ``sections``), but for ``without``.

    ``defaults`` are shown in the help instead of the fields' own.
    """
    from evaluatorq.simulation.config import Flag, SimulationConfig  # noqa: PLC0415  not needed for other commands

    groups: dict[str, argparse._ArgumentGroup] = {}
    for name, field in (of or SimulationConfig).model_fields.items():
        flag = next((item for item in field.metadata if isinstance(item, Flag)), None)
        if flag is not None and name not in without and (not sections or flag.section in sections):
            group = groups.get(flag.section) or groups.setdefault(flag.section, parser.add_argument_group(flag.section))
            _add(group, name, field, flag, defaults.get(name, field.default))


def _add(group: argparse._ArgumentGroup, name: str, field: FieldInfo, flag: Flag, default: object) -> None:
    spellings = flag.names or (f"--{name.replace('_', '-')}",)
    text = (field.description or "").replace("%", "%%")
    if field.annotation is bool or bool in get_args(field.annotation):
        shown = f" (default: {'yes' if default else 'no'})"
        group.add_argument(*spellings, dest=name, action=argparse.BooleanOptionalAction, help=text + shown)
        return
    if default is not None:
        text += f" (default: {default})"
    metavar = flag.metavar or name.upper()
    if _is_list(field.annotation):
        group.add_argument(*spellings, dest=name, metavar=metavar, nargs="+", action="extend", help=text)
    else:
        group.add_argument(*spellings, dest=name, metavar=metavar, help=text)


def _is_list(annotation: object) -> bool:
    return get_origin(annotation) is tuple or any(_is_list(part) for part in get_args(annotation))


def given_config(args: argparse.Namespace, of: type[SimulationConfig] | None = None) -> dict[str, object]:
    """The fields of ``of`` among the options that were given, as text or booleans."""
    from evaluatorq.simulation.config import SimulationConfig  # noqa: PLC0415

    return {name: value for name, value in vars(args).items() if name in (of or SimulationConfig).model_fields}
