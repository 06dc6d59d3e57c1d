"""Plots how agents came to their level: ``python benchmarks/decision_trajectories.py RUN OUT.svg``.

One panel for each right level, one line for each conversation, turn by turn; a line that ends on the dashed line ended
right. Needs the ``plot`` extra.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt

from evaluatorq.records.measurable import Measurable, measurable
from evaluatorq.store.runs import find_run, iter_results


def at_end_of_turns(seen: Measurable) -> list[tuple[int, int]]:
    """The turn and the place on the scale (0 is the gravest) that was held at its end."""
    scale = seen.rules.scale
    assert scale is not None
    places = {step.turn: place for step in seen.held if (place := scale.place(step.value)) is not None}
    return sorted(places.items())


def main(run: str, out: str) -> None:
    groups: dict[int, list[Measurable]] = defaultdict(list)
    for result in iter_results(find_run(run)):
        seen = measurable(result)
        truth = None if seen.rules.scale is None else seen.rules.scale.place(seen.truth)
        if truth is not None and seen.held:
            groups[truth].append(seen)
    if not groups:
        raise SystemExit(f"{run}: no conversation has a scale, a right level and a held one")
    scale = next(iter(groups.values()))[0].rules.scale
    levels = scale.levels if scale.gravest == "first" else scale.levels[::-1]
    mpl.rcParams["svg.hashsalt"] = "evaluatorq"
    figure, axes = plt.subplots(1, len(groups), figsize=(2.6 * len(groups), 3), sharey=True, squeeze=False)
    for axis, (truth, several) in zip(axes[0], sorted(groups.items()), strict=True):
        axis.axhline(truth, color="#999999", linestyle="--", linewidth=1)
        for number, seen in enumerate(several):
            way = at_end_of_turns(seen)
            shift = (number - (len(several) - 1) / 2) * 0.06
            right = way[-1][1] == truth
            color = "#2b7a4b" if right else "#b3402f"
            axis.plot([turn for turn, _ in way], [place + shift for _, place in way], color=color, linewidth=1)
            axis.plot(way[-1][0], way[-1][1] + shift, "o" if right else "x", color=color, markersize=4)
        wrong = sum(at_end_of_turns(seen)[-1][1] != truth for seen in several)
        axis.set_title(f"right level {levels[truth]}: {wrong} of {len(several)} wrong", fontsize=8)
        axis.set_xlabel("turn", fontsize=8)
        axis.xaxis.set_major_locator(mpl.ticker.MaxNLocator(integer=True))
    axes[0][0].set_yticks(range(len(levels)), [str(level) for level in levels])
    axes[0][0].set_ylabel(f"level held ({scale.name})", fontsize=8)
    axes[0][0].invert_yaxis()
    figure.tight_layout()
    figure.savefig(Path(out), metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:3])
