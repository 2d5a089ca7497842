"""Machine code for other CPUs runs on them, in qemu, and gives PyTorch's numbers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.tools.slices import half_of

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from emulated import MODELS, Case, build_runners, emulated  # noqa: E402

from eyas.targets import CpuTarget, Target  # noqa: E402

# Target -> qemu's CPU: the least one that has what the target needs, so that an instruction too many is a failure.
TARGETS = {
    "llvm-cpu:aarch64": "cortex-a53",
    "llvm-cpu:aarch64:cortex-a76": "neoverse-n1",
    "llvm-cpu:aarch64:neoverse-v1": "max",
    "llvm-cpu:riscv64": "rv64,v=false",
    "llvm-cpu:riscv64:+v": "rv64,v=true,vlen=128,vext_spec=v1.0",
    "llvm-cpu:riscv64:+v,vlen=256": "rv64,v=true,vlen=256,vext_spec=v1.0",
}


@pytest.fixture(scope="module")
def runners() -> Path:
    return build_runners()


@pytest.mark.parametrize(("model", "target"), half_of(tuple(MODELS), tuple(TARGETS)))
def test_other_cpus(model: str, target: str, runners: Path, tmp_path: Path) -> None:
    parsed = Target.parse(target)
    assert isinstance(parsed, CpuTarget)
    command = emulated(runners, parsed.arch, TARGETS[target])
    Case(model, tmp_path, target).check(command)
