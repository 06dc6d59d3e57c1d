"""An agent described in words: the text of a target option that is JSON or names a file, as the mapping it stands for.

A description is read when the options are, so that what it hides (a header's key) is hidden wherever options are kept.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from pydantic import JsonValue

from evaluatorq.errors import CaseError, ConfigError
from evaluatorq.model.rules import Misfit, Problem, dotted
from evaluatorq.store.documents import near_file, read_documents
from evaluatorq.store.located import Document
from evaluatorq.store.toml_reader import read_toml

FILES = (".yaml", ".yml", ".json", ".toml")
_RIGHT = "an agent is described by its url or its command"
_SCHEME = re.compile(r"\w+:")


def is_description_file(target: object) -> bool:
    """Whether the option names a file that describes an agent; a URL, a command or ``module:attribute`` does not."""
    return isinstance(target, str) and Path(target).suffix in FILES and not _SCHEME.match(target)


def _inline(text: str) -> dict[str, JsonValue]:
    try:
        value: dict[str, JsonValue] = json.loads(text)
    except ValueError as error:
        raise ValueError(f"it is not JSON: {' '.join(str(error).split())}") from None
    return value


def described(target: object) -> object:
    """The option's value, with a description read. Raises ``ValueError`` for one that cannot be."""
    if isinstance(target, str) and target.lstrip().startswith("{"):
        return _fitting(_inline(target))
    if not isinstance(target, str) or not is_description_file(target):
        return target
    document = _read(Path(target))
    if not isinstance(document.value, dict):
        reason = f"{target} is no table; {_RIGHT}"
        raise ValueError(reason)  # noqa: TRY004  the text is at fault, not a type of ours
    return _fitting(document.value, document)


def _fitting(value: dict[str, JsonValue], document: Document | None = None) -> dict[str, JsonValue]:
    """The description itself; ``ValueError`` for one that does not fit, with each place."""
    from evaluatorq.targets.resolve import kind_of_description  # noqa: PLC0415  only for an agent that is described

    try:
        problems = kind_of_description(value).problems(value)
    except ConfigError as error:
        raise ValueError(f"{document.file if document else 'it'}: {error}") from None
    if not problems:
        problems = [] if document is None else list(_unfit_today(value))
    if not problems:
        return value
    raise ValueError("; ".join(_told(problem, document) for problem in problems))


def _unfit_today(value: dict[str, JsonValue]) -> Iterator[Problem]:
    """What keeps the agent from being reached: a variable that is not set, a URL or a program that is none."""
    from evaluatorq.targets.resolve import kind_of_description  # noqa: PLC0415  only for an agent that is described

    try:
        kind_of_description(value).model_validate(value).make_targets()
    except Misfit as error:
        yield from error.problems


def _told(problem: Problem, document: Document | None) -> str:
    place = "" if document is None else f"{document.file}:{document.line(problem.keys)}: "
    return f"{place}{dotted(problem.keys)}: {problem.reason}"


def _read(path: Path) -> Document:
    """The file with its lines. Raises ``ValueError``, of which ``CaseError`` is one."""
    if not path.is_file():
        raise ValueError(f"cannot read {path}: no such file{near_file(path)}")
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty; {_RIGHT}")
    if path.suffix == ".toml":
        return _toml(path)
    found = next(read_documents(path))
    if isinstance(found, CaseError):
        raise found
    return found


def _toml(path: Path) -> Document:
    try:
        text = path.read_text(encoding="utf-8")
        return read_toml(text, str(path))
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
