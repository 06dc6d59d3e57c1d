"""Charts as inline SVG by pygal, without its scripts, styles and tooltips: the page's own CSS colours them.

Only numbers and fixed names go in; nothing that an agent or a model wrote.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from pygal.graph.graph import Graph  # type: ignore[import-untyped]  # pygal has no annotations

_SVG = "{http://www.w3.org/2000/svg}"
_WIDTH, _HEIGHT = 520, 240
_UNUSED = ("defs", "title", "desc")


def bars(labels: Sequence[str], values: Sequence[int], title: str) -> str:
    """A bar for each label."""
    _load()
    import pygal  # type: ignore[import-untyped]  # noqa: PLC0415  an extra

    chart = pygal.Bar(**_options(), show_legend=False, range=(0, max(values, default=1)))
    chart.x_labels = list(labels)
    chart.y_labels = _steps(max(values, default=1))
    chart.add("", list(values))
    return _drawn(chart, title)


def lines(labels: Sequence[str], series: Mapping[str, Sequence[float | None]], title: str) -> str:
    """A line for each series of shares."""
    _load()
    import pygal  # noqa: PLC0415  an extra

    chart = pygal.Line(**_options(), legend_at_bottom=True, legend_at_bottom_columns=2, range=(0, 1), dots_size=3)
    chart.x_labels = list(labels)
    chart.y_labels = [0, 0.25, 0.5, 0.75, 1]
    for name, values in series.items():
        chart.add(name, list(values))
    return _drawn(chart, title)


def _load() -> None:
    """Imports pygal and takes its import hook out again, which warns about every later import that fails."""
    import pygal  # noqa: F401, PLC0415  an extra

    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "PluginImportFixer"]


def _options() -> dict[str, object]:
    from pygal.style import Style  # type: ignore[import-untyped]  # noqa: PLC0415  an extra

    style = Style(label_font_size=12, major_label_font_size=12, legend_font_size=13)
    return {
        "width": _WIDTH, "height": _HEIGHT, "js": (), "no_prefix": True, "style": style, "margin": 8,
        "truncate_legend": -1, "show_x_guides": False,
    }  # fmt: skip


def _steps(highest: int) -> list[int]:
    return sorted({round(highest * part / 4) for part in range(5)})


def _drawn(chart: Graph, title: str) -> str:
    root = chart.render_tree()
    for parent in list(root.iter()):
        for child in list(parent):
            tag = child.tag.removeprefix(_SVG) if isinstance(child.tag, str) else "comment"
            if tag in (*_UNUSED, "comment", "script", "style") or "tooltip-overlay" in child.get("class", ""):
                parent.remove(child)
        parent.attrib.pop("id", None)
    root.set("role", "img")
    root.set("aria-label", title)
    return ET.tostring(root, encoding="unicode")
