"""What a pack offers, and how one is found: ``name`` or ``name:variant``, through entry points of ``evaluatorq.packs``.

The packs that ship with this package are registered like anybody's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evaluatorq.errors import ConfigError
from evaluatorq.model.cases import SimulationDatapoint
from evaluatorq.model.rules import near_and_known
from evaluatorq.plugins import load, offered
from evaluatorq.ports import Seat, TargetFactory, UserFactory

GROUP = "evaluatorq.packs"
MakeCases = Callable[[str, int], Sequence[SimulationDatapoint]]
"""The cases of a variant, paired by a seed."""


@dataclass(frozen=True)
class Pack:
    """A domain. The environments that its cases name are entry points of ``evaluatorq.environments``.

    ``agent`` and ``user`` ask no model. ``instructions`` make a model the agent. ``evaluators`` are the scores that
    make sense here. ``redact`` are rules for personal data that hold where none are given: names, or
    ``name=regular-expression``.
    """

    name: str
    about: str
    cases: MakeCases
    agent: TargetFactory
    user: UserFactory | None = None
    instructions: Callable[[Seat], str] | None = None
    evaluators: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    redact: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PackUse:
    """A pack and the variant of it that was asked for, ``""`` where it has none."""

    pack: Pack
    variant: str

    def cases(self, seed: int) -> tuple[SimulationDatapoint, ...]:
        """The cases, the same for the same seed."""
        return tuple(self.pack.cases(self.variant, seed))

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.pack.name}:{self.variant}" if self.variant else self.pack.name


def pack_names() -> list[str]:
    """The packs that are installed."""
    return sorted(offered(GROUP))


def find_pack(reference: str) -> PackUse:
    """The pack and variant that ``name`` or ``name:variant`` means. ``ConfigError`` with near names."""
    name, _, variant = reference.partition(":")
    entries = offered(GROUP)
    if name not in entries:
        raise ConfigError(f"no pack is called {name!r}; {near_and_known(name, entries)}")
    pack = load(entries[name])
    if not isinstance(pack, Pack):
        raise ConfigError(f"the plugin {name!r} ({entries[name].value}) is no Pack")
    if variant and variant not in pack.variants:
        known = f"there is {', '.join(pack.variants)}" if pack.variants else "it has none"
        raise ConfigError(f"pack {name} has no variant {variant!r}; {known}")
    return PackUse(pack, variant or next(iter(pack.variants), ""))
