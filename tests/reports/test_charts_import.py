"""Drawing charts leaves the importing of everything else as it was."""

from __future__ import annotations

import sys

from evaluatorq.reports.charts import bars


def test_drawing_a_chart_leaves_no_old_import_hook_behind() -> None:
    assert "<svg" in bars(["one", "two"], [1, 2], "How many")
    assert all(hasattr(finder, "find_spec") for finder in sys.meta_path)
