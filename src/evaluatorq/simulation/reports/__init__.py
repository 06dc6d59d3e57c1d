"""A run as text for people, and what to change in the agent; documents are made from the same summary."""

from __future__ import annotations

from evaluatorq.records.triggers import SimulationRecommendationConfig, Trigger, find_triggers
from evaluatorq.reports.exports import export_html, export_markdown
from evaluatorq.reports.sections import ReportSection, build_report_sections
from evaluatorq.reports.terminal import About, render_conversations, render_summary
from evaluatorq.reports.transcript import conversation_view, render_conversation
from evaluatorq.reports.view import Summary
from evaluatorq.simulation.analysis import generate_recommendations
from evaluatorq.simulation.suggestions import ApplySuggestionsResult, apply_run_suggestions, apply_suggestions

__all__ = [
    "About",
    "ApplySuggestionsResult",
    "ReportSection",
    "SimulationRecommendationConfig",
    "Summary",
    "Trigger",
    "apply_run_suggestions",
    "apply_suggestions",
    "build_report_sections",
    "conversation_view",
    "export_html",
    "export_markdown",
    "find_triggers",
    "generate_recommendations",
    "render_conversation",
    "render_conversations",
    "render_summary",
]
