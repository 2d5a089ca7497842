"""Eyas's own dialects, one file each, in the order that a program meets them: flow, stream, hal, vm."""

from __future__ import annotations

import importlib

DIALECTS = {"flow": "Flow", "stream": "Stream", "hal": "Hal", "vm": "Vm"}


def load_all() -> None:
    """Loads every dialect into the current context."""
    for module, name in DIALECTS.items():
        getattr(importlib.import_module(f"eyas.dialects.{module}"), name).load()
