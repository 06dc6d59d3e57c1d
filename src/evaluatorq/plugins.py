"""Finds code by name: what other packages offer through entry points, and what ``module:attribute`` means.

Nothing is imported until it is asked for by name. What a package offers never replaces something built in.
"""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from evaluatorq.errors import ConfigError

_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def offered(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name; of two with one name, the first that is installed."""
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=group):
        found.setdefault(entry.name, entry)
    return found


def load(entry: EntryPoint) -> object:
    """What an entry point stands for; ``ConfigError`` names the entry point when it cannot be imported."""
    try:
        return entry.load()
    except Exception as error:
        raise ConfigError(f"the plugin {entry.name!r} ({entry.value}) cannot be loaded: {_said(error)}") from error


def import_attribute(reference: str) -> object:
    """What ``module:attribute`` names; modules of the working folder come first. ``ConfigError`` with near names."""
    module_name, _, path = reference.partition(":")
    if module_name.endswith(".py"):
        raise ConfigError(f"{reference!r} names a file; write {Path(module_name).stem}:{path or 'name'}")
    if not _DOTTED.fullmatch(module_name) or not _DOTTED.fullmatch(path):
        raise ConfigError(f"{reference!r} is not of the form module:attribute")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    value = _imported(module_name, reference)
    for attribute in path.split("."):
        if not hasattr(value, attribute):
            raise ConfigError(f"{reference!r}: {module_name} has no {attribute!r}{_near(attribute, dir(value))}")
        value = getattr(value, attribute)
    return value


def _imported(module_name: str, reference: str) -> object:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise ConfigError(f"{reference!r} cannot be imported: {_said(error)}") from error
        files = [path.stem for path in Path.cwd().glob("*.py")]
        raise ConfigError(f"{reference!r}: no module {error.name!r} here{_near(error.name, files)}") from None
    except Exception as error:
        raise ConfigError(f"{reference!r} cannot be imported: {_said(error)}") from error


def _near(name: str, names: list[str]) -> str:
    public = [candidate for candidate in names if not candidate.startswith("_")]
    near = get_close_matches(name, public, n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _said(error: Exception) -> str:
    """Type and first line of an error, with the line of code that raised it."""
    text = f"{type(error).__name__}: {error}".removesuffix(": ").splitlines()[0]
    last = traceback.extract_tb(error.__traceback__)[-1]
    at_import = last.filename.startswith("<frozen ")
    return text if at_import else f"{text} ({Path(last.filename).name}:{last.lineno} in {last.name})"
