"""Showing a run: pure renderers over saved results."""
