"""Doing it: driving conversations, many at once, and writing down what happened."""
