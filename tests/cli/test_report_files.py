"""``sim export --format md|html`` and the reports that a run writes beside its file."""

from __future__ import annotations

from pathlib import Path

RESULTS = Path(__file__).parents[1] / "data" / "published_runs" / "results.jsonl"
ONE = ("sim", "simulate", "--offline", "--only", "Vague request", "-q")


def test_a_run_writes_its_reports_and_export_writes_the_same(inside):
    ran = inside(*ONE, "--report-md", "out.md", "--report-html", "reports")
    assert ran.code == 0
    (page,) = Path("reports").glob("sim-report-sim-*.html")
    for form, written in (("md", Path("out.md")), ("html", page)):
        ran = inside("sim", "export", "-i", "latest", "-o", f"again.{form}", "--format", form)
        assert ran.code == 0
        assert Path(f"again.{form}").read_text() == written.read_text()
    assert "kB)" in ran.err + ran.out


def test_a_report_that_is_there_is_kept_unless_forced(inside):
    Path("out.md").write_text("mine")
    assert inside(*ONE, "--report-md", "out.md").code == 2
    assert Path("out.md").read_text() == "mine"
    assert inside(*ONE, "--report-md", "out.md", "--force").code == 0
    assert Path("out.md").read_text().startswith("# sim")


def test_a_run_that_is_kept_nowhere_still_writes_its_report(inside):
    assert inside(*ONE, "--no-save", "--report-md", "out.md").code == 0
    assert Path("out.md").is_file()
    assert not list(Path().rglob("sim_*.json"))


def test_results_without_a_run_become_a_report_with_the_label_that_is_given(inside):
    words = ("sim", "export", "-i", str(RESULTS), "--target-label", "shop agent")
    assert inside(*words, "-o", "a.html", "--format", "html").code == 0
    assert inside(*words, "-o", "a.md", "--format", "md").code == 0
    assert "target shop agent" in Path("a.html").read_text()
    assert "target `shop agent`" in Path("a.md").read_text()
