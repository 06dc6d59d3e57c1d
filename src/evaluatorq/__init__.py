"""Asynchronous agent simulation: personas talk to your agent, a judge audits every criterion with evidence."""

__version__ = "0.1.0"
