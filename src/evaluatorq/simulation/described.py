"""An agent described in words: the text of a target option that is JSON or names a file, as the mapping it stands for.

A description is read when the options are, so that what it hides (a header's key) is hidden wherever options are kept.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

FILES = (".yaml", ".yml", ".json", ".toml")
_SCHEME = re.compile(r"\w+:")


def is_description_file(target: object) -> bool:
    """Whether the option names a file that describes an agent; a URL, a command or ``module:attribute`` does not."""
    return isinstance(target, str) and Path(target).suffix in FILES and not _SCHEME.match(target)


def described(target: object) -> object:
    """The option's value, with a description read. Raises ``ValueError`` for one that cannot be."""
    if isinstance(target, str) and target.lstrip().startswith("{"):
        return _mapping(target, ".json", "it")
    if not isinstance(target, str) or not is_description_file(target):
        return target
    path = Path(target)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ValueError(f"cannot read {path}: {reason}") from None
    return _mapping(text, path.suffix, str(path))


def _mapping(text: str, ending: str, what: str) -> dict[str, object]:
    kind = {".json": "JSON", ".toml": "TOML"}.get(ending, "YAML")
    try:
        value: object = _parsed(text, kind)
    except ValueError as error:
        raise ValueError(f"{what} is not {kind}: {' '.join(str(error).split())}") from None
    if not isinstance(value, dict):
        reason = f"{what} is no table; an agent is described by its url or its command"
        raise ValueError(reason)  # noqa: TRY004  the text is at fault, not a type of ours
    return value


def _parsed(text: str, kind: str) -> object:
    if kind == "JSON":
        return json.loads(text)
    if kind == "TOML":
        return tomllib.loads(text)
    import yaml  # noqa: PLC0415  only for this ending

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
