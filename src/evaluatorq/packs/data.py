"""Reads the data files of a pack: YAML beside its code, held to a model, with the file and place in every error."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from evaluatorq.errors import ConfigError

T = TypeVar("T")


def read_data(path: Path, kind: TypeAdapter[T]) -> T:
    """What a file holds. ``ConfigError`` when it cannot be read or does not fit."""
    import yaml  # noqa: PLC0415  heavy, and only needed for cases

    try:
        raw: object = yaml.safe_load(path.read_text(encoding="utf-8"))
        return kind.validate_python(raw)
    except OSError as error:
        raise ConfigError(f"{path.name} cannot be read: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path.name} is not YAML: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{path.name}: {place}: {first['msg']}") from None
