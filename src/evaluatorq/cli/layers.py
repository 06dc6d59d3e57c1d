"""Where a command's options come from: flags, then ``--config``, then ``.evaluatorq/config.toml``, then defaults.

A higher layer that names an input or a target displaces the lower layer's, and so does naming a model where the lower
layer says offline: the two could not stand together, and the user typed the later one.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from evaluatorq.errors import ConfigError
from evaluatorq.model.rules import Keys, Placed, nowhere
from evaluatorq.simulation.config import ALIASES, ANALYSES, INPUTS, TARGETS, Flag, SimulationConfig, canonical
from evaluatorq.simulation.described import is_description_file
from evaluatorq.store.documents import read_documents
from evaluatorq.store.located import Document
from evaluatorq.store.paths import store_dir
from evaluatorq.store.toml_reader import read_toml

C = TypeVar("C", bound=SimulationConfig)
_Lines = Callable[[Keys], int]
TABLE = "simulate"
GATE_TABLE = "gate"
PATHS = ("personas", "scenarios", "input", "report_path", "report_md", "report_html", "results")
_CASES = ("personas", "scenarios")
_MODELS = ("sim_model", "judge_model", "belief_model", "claims_model")


def config_of(flags: Mapping[str, object], config: str | None, defaults: Mapping[str, object]) -> SimulationConfig:
    """The config that a command runs with."""
    return layered(
        SimulationConfig, (defaults, project_layer(), file_layer(config) if config else {}, flag_layer(flags))
    )


def layered(of: type[C], layers: Iterable[Mapping[str, object]]) -> C:
    """The config of kind ``of`` that the layers make, later ones over earlier ones; the last is what was typed."""
    options: dict[str, object] = {}
    known = list(layers)
    for layer in known:
        options = merged(options, layer)
    typed = {name: flag for name, flag in _flags(of) if name in known[-1]}
    return of.parse(options, typed=typed, placed=lambda keys: _place(known, keys))


def _place(layers: Sequence[Mapping[str, object]], keys: Keys) -> str:
    """Where the topmost layer that has an option has it, as a message begins; nothing for a flag or a default."""
    for layer in reversed(layers) if keys else ():
        value = layer.get(str(keys[0]))
        if value is not None and (not isinstance(value, Mapping) or len(keys) < 2 or keys[1] in value):
            return layer.place(keys) if isinstance(layer, Layer) else ""
    return ""


def _flags(of: type[SimulationConfig]) -> Iterator[tuple[str, str]]:
    """Each option with the short one of its long flags."""
    for name, field in of.model_fields.items():
        for flag in field.metadata:
            if isinstance(flag, Flag):
                spellings = [word for word in flag.names if word.startswith("--")]
                yield name, min(spellings, key=len, default=f"--{name.replace('_', '-')}")


def merged(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    """One layer over another."""
    displaced = {name for given in above for name in _rivals(given, above)} - set(above)
    kept = {name: value for name, value in below.items() if name not in displaced}
    llm = [layer["llm_config"] for layer in (below, above) if isinstance(layer.get("llm_config"), Mapping)]
    both = {**kept, **above}
    if len(llm) == 2:
        both["llm_config"] = {key: value for layer in llm if isinstance(layer, Mapping) for key, value in layer.items()}
    return both


def _rivals(name: str, layer: Mapping[str, object]) -> tuple[str, ...]:
    """The options of a lower layer that cannot stand beside option ``name`` of ``layer``."""
    if name == "pack":
        return (*INPUTS, *TARGETS)
    if name in _CASES:
        return tuple(other for other in INPUTS if other not in _CASES)
    if name in INPUTS:
        return tuple(other for other in INPUTS if other != name)
    if name in TARGETS:
        return tuple(other for other in TARGETS if other != name)
    if name == "offline":
        return (*_MODELS, *ANALYSES) if layer[name] else ()
    calls = layer.get("llm_config")
    names_a_model = name in _MODELS or (name == "llm_config" and isinstance(calls, Mapping) and "model" in calls)
    return ("offline",) if names_a_model else ()


# ---------------------------------------------------------------- the layers


def flag_layer(flags: Mapping[str, object]) -> dict[str, object]:
    """Flags, with JSON read where a field is a record."""
    layer = canonical(flags)
    if isinstance(layer.get("llm_config"), str):
        layer["llm_config"] = _json(str(layer["llm_config"]), "--llm-config")
    return layer


class Layer(dict[str, object]):
    """Options by their first names. ``place`` says where one is written, as what a message about it begins with."""

    def __init__(self, options: Mapping[str, object] | None = None, place: Placed = nowhere) -> None:
        super().__init__(options or {})
        self.place = place

    def but(self, names: Iterable[str]) -> Layer:
        """The layer without the options ``names``."""
        left_out = set(names)
        return Layer({name: value for name, value in self.items() if name not in left_out}, self.place)


def file_layer(source: str, of: type[SimulationConfig] = SimulationConfig) -> Layer:
    """``--config``: JSON text, a file (JSON, TOML or YAML by its ending), or ``-`` for JSON on standard input."""
    if source == "-":
        return _checked(_json(sys.stdin.read(), "--config -"), "--config -", of)
    if source.lstrip().startswith("{"):
        return _checked(_json(source, "--config"), "--config", of)
    path = Path(source)
    text = _read(path, "--config")
    if path.suffix == ".toml":
        return _checked(_table(text, path), str(path), of, _toml_lines(text, path))
    if path.suffix in (".yaml", ".yml"):
        import yaml  # noqa: PLC0415  only for this ending

        try:
            return _checked(yaml.safe_load(text), str(path), of, _lines(path))
        except yaml.YAMLError as error:
            raise ConfigError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    return _checked(_json(text, str(path)), str(path), of, _lines(path))


def project_layer() -> Layer:
    """The project's defaults; paths in it are relative to the folder that holds the store."""
    path = store_dir() / "config.toml"
    if not path.is_file():
        return Layer()
    text = _read(path, "project defaults")
    layer = _checked(_table(text, path), str(path), lines=_toml_lines(text, path))
    base = path.parent.parent
    for name in PATHS:
        if name in layer:
            layer[name] = _based(layer[name], base)
    if is_description_file(layer.get("target")):
        layer["target"] = _based(layer["target"], base)
    return layer


def gate_layer() -> dict[str, object]:
    """The project's rules for ``sim gate``."""
    path = store_dir() / "config.toml"
    if not path.is_file():
        return {}
    text = _read(path, "project defaults")
    rules = _table(text, path, GATE_TABLE)
    if not isinstance(rules, dict):
        raise ConfigError(f"{path}: [{GATE_TABLE}] is no table of rules")
    from evaluatorq.records.gate_rules import GateRules  # noqa: PLC0415  only where there are some

    lines = _toml_lines(text, path, GATE_TABLE)
    GateRules.parse(rules, placed=lambda keys: f"{path}:{lines(keys)}: ")
    return rules


def _based(value: object, base: Path) -> object:
    if isinstance(value, str):
        return str(base / value)
    return [_based(item, base) for item in value] if isinstance(value, list) else value


def _table(text: str, path: Path, table: str = TABLE) -> object:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    stray = sorted(set(document) - {TABLE, GATE_TABLE})
    if stray:
        line = read_toml(text, str(path)).line((stray[0],))
        raise ConfigError(
            f"{path}:{line}: {stray[0]}: unknown key; options stand in the table [{TABLE}], rules in [{GATE_TABLE}]"
        )
    return document.get(table, {})


def _read(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"{what}: cannot read {path}: {reason}") from None


def _json(text: str, where: str) -> object:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{where} is not JSON: {error}") from None


def _toml_lines(text: str, path: Path, table: str = TABLE) -> _Lines:
    """The lines of the options in a table of a TOML file."""
    document = read_toml(text, str(path))
    return lambda keys: document.line((table, *keys))


def _lines(path: Path) -> _Lines | None:
    """The lines of the options in a YAML or JSON file; ``None`` for one that its strict reader does not take."""
    document = next(read_documents(path), None)
    return document.line if isinstance(document, Document) else None


def _checked(
    options: object, where: str, of: type[SimulationConfig] = SimulationConfig, lines: _Lines | None = None
) -> Layer:
    """The layer under first names, with unknown keys refused here, where the file is known."""
    if not isinstance(options, dict):
        raise ConfigError(f"{where} is no table of options")

    def place(keys: Keys) -> str:
        name, *inner = keys
        written = next((key for key in options if ALIASES.get(key) == name), name) if name not in options else name
        return f"{where}: " if lines is None else f"{where}:{lines((written, *inner))}: "

    for name in options:
        of.refuse_unknown((name,), where=place((name,)).removesuffix(": "))
    return Layer(canonical(options), place)
