"""Agents under test: Python callables and objects, models, HTTP endpoints, commands, and the bundled demo agent."""
