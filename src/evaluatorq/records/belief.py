"""A belief graph from what was put forward, and the flat view of it that readers of artifacts know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from evaluatorq.conversation.checks import same_json
from evaluatorq.model.belief import BeliefGraph, BeliefItem, BeliefUpdate, Evidence

RENAMES: Mapping[str, str] = {"associated_symptom": "associated_symptoms", "red_flag": "red_flags"}


def graph_of(updates: Iterable[BeliefUpdate]) -> BeliefGraph:
    """Everything put forward, in order.

    What names no slot or no value is dropped. A value that the same source gave before with the same certainty is the
    same item: its words are more evidence for it. Anything else is an item of its own.
    """
    growing = _Growing()
    for update in updates:
        growing.add(update)
    return BeliefGraph(
        evidence=growing.evidence,
        slots={slot: tuple(items) for slot, items in growing.slots.items()},
        edges={slot: tuple(map(tuple, edges)) for slot, edges in growing.edges.items()},
    )


class _Growing:
    """A graph while it grows."""

    def __init__(self) -> None:
        self.evidence: dict[str, Evidence] = {}
        self.slots: dict[str, list[BeliefItem]] = {}
        self.edges: dict[str, list[list[str]]] = {}
        self._ids: dict[tuple[str, int | None, int, str], str] = {}

    def add(self, update: BeliefUpdate) -> None:
        """Puts one value in its place."""
        slot, value = update.slot.strip(), _stripped(update.value)
        if not slot or value is None or value == "":
            return
        item = BeliefItem(value=value, source=update.source, turn=update.turn or 0, certainty=update.certainty)
        items, edges = self.slots.setdefault(slot, []), self.edges.setdefault(slot, [])
        at = next((i for i, known in enumerate(items) if _same(known, item)), len(items))
        if at == len(items):
            items.append(item)
            edges.append([])
        text = (update.evidence or "").strip()
        if text:
            key = self._noted(text, item, update.row)
            edges[at] += [key] if key not in edges[at] else []

    def _noted(self, text: str, item: BeliefItem, row: int | None) -> str:
        """The id of the evidence; the same words of one row are one piece of evidence, whatever they speak for."""
        place = text, row, item.turn, item.source
        if place not in self._ids:
            key = self._ids[place] = f"e{len(self.evidence) + 1:06d}"
            self.evidence[key] = Evidence(evidence_id=key, text=text, source=item.source, turn=item.turn, row=row)
        return self._ids[place]


def _stripped(value: JsonValue) -> JsonValue:
    return value.strip() if isinstance(value, str) else value


def _same(known: BeliefItem, item: BeliefItem) -> bool:
    return (known.source, known.certainty) == (item.source, item.certainty) and same_json(known.value, item.value)


def flat_view(
    graph: BeliefGraph,
    *,
    renames: Mapping[str, str] = RENAMES,
    sources: Mapping[str, str] | None = None,
    reserved: Iterable[str] = (),
) -> dict[str, list[dict[str, JsonValue]]]:
    """Slot by slot the items as plain objects: ``value``, ``source``, ``turn``, ``certainty``.

    Two slots that come to one name are joined. A slot with a ``reserved`` name gets a ``_`` behind it. ``sources``
    gives sources other names.
    """
    taken = frozenset(reserved)
    view: dict[str, list[dict[str, JsonValue]]] = {}
    for slot, items in graph.slots.items():
        name = renames.get(slot, slot)
        rows = view.setdefault(f"{name}_" if name in taken else name, [])
        for item in items:
            source = (sources or {}).get(item.source, item.source)
            rows.append({"value": item.value, "source": source, "turn": item.turn, "certainty": item.certainty})
    return view
