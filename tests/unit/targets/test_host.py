"""This machine taken for one with less: what the compiler targets, what the runtime refuses and interprets with."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from eyas import knobs
from eyas.errors import UsageError
from eyas.targets import Target

needs_x86 = pytest.mark.skipif(Target.host().arch != "x86_64", reason="levels are x86-64's")


def run_as(host: str, code: str) -> str:
    """What a new process prints that is told to be on such a machine."""
    environment = {**os.environ, "EYAS_HOST": host}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout


@needs_x86
def test_the_host_is_what_it_is_taken_for() -> None:
    code = "from eyas.targets import Target; host = Target.host(); print(host.cpu, *host.required_features)"
    assert run_as("x86-64", code).split() == ["x86-64"]
    level = Target.parse("llvm-cpu:x86_64:x86-64-v2")
    assert run_as("x86-64-v2", code).split() == ["x86-64-v2", *level.required_features]


@needs_x86
def test_the_runtime_refuses_what_such_a_machine_has_not() -> None:
    code = """
import numpy, eyas
text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
text = text.replace("return", "%y = arith.addf %x, %x : tensor<4xf32>\\n return").replace("return %x", "return %y")
ones = numpy.ones(4, numpy.float32)
print(eyas.compile(text)(ones))
try:
    eyas.compile(text, target="llvm-cpu:x86_64:x86-64-v3")(ones)
except eyas.EyasError as error:
    print(error)
"""
    said = run_as("x86-64-v2", code)
    assert said.startswith("[2. 2. 2. 2.]") and "needs the CPU feature" in said


def test_other_names_are_refused(monkeypatch) -> None:
    monkeypatch.setenv("EYAS_HOST", "znver3")
    with pytest.raises(UsageError, match="EYAS_HOST is 'znver3'; it can be x86-64, "):
        knobs.host()
