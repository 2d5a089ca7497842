"""Fixtures that several end-to-end tests share."""

from __future__ import annotations

import pytest


@pytest.fixture
def faults_in_this_process(monkeypatch):
    """What a test plants is not known to child processes."""
    monkeypatch.setenv("EYAS_COMPILE_IN_PROCESS", "1")
