"""Recurrent layers."""

EXACT: dict = {}
