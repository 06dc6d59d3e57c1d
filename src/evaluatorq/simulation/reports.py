"""A run as text for people; documents (Markdown, HTML) are made from the same summary."""

from __future__ import annotations

from evaluatorq.reports.terminal import About, render_conversations, render_summary
from evaluatorq.reports.transcript import conversation_view, render_conversation
from evaluatorq.reports.view import Summary

__all__ = ["About", "Summary", "conversation_view", "render_conversation", "render_conversations", "render_summary"]
