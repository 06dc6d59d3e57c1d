"""Domains as plugins: cases, a world, an agent without a model and rules for what it believes, found by one name."""

from __future__ import annotations

from evaluatorq.packs.pack import GROUP, Pack, PackUse, find_pack, pack_names

__all__ = ["GROUP", "Pack", "PackUse", "find_pack", "pack_names"]
