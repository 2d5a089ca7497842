"""Custom operators."""

EXACT: dict = {}
