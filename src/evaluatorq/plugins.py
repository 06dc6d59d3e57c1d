"""Finds code by name: what other packages offer through entry points, and what ``module:attribute`` means.

Nothing is imported until it is asked for by name. What a package offers never replaces something built in.
"""

from __future__ import annotations

import importlib
import re
import sys
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from evaluatorq.errors import ConfigError


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
    if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", module_name) or not re.fullmatch(r"[^\W\d]\w*(\.\w+)*", path):
        raise ConfigError(f"{reference!r} is not of the form module:attribute")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        value: object = importlib.import_module(module_name)
    except Exception as error:
        raise ConfigError(f"{reference!r} cannot be imported: {_said(error)}") from error
    for attribute in path.split("."):
        if not hasattr(value, attribute):
            near = get_close_matches(attribute, [name for name in dir(value) if not name.startswith("_")], n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise ConfigError(f"{reference!r}: there is no {attribute!r} in it{hint}")
        value = getattr(value, attribute)
    return value


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")
