"""The published place of a report's section data."""

from __future__ import annotations

from evaluatorq.reports.sections import ReportSection, build_report_sections

__all__ = ["ReportSection", "build_report_sections"]
