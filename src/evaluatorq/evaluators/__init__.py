"""Turning a finished conversation into a number."""
