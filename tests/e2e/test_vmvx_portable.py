"""One `vmvx` file on several CPUs: this one, AArch64 and RISC-V 64 with and without vectors, in every kernel set here.

`runtime/tools/cross.sh` builds `eyas-run`, which is the C core and nothing else; qemu runs it for the other CPUs.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import eyas

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from emulated import MODELS, Case, build_runners, emulated  # noqa: E402

EMULATED = {
    "aarch64": "",
    "riscv64": "rv64,v=false",
    "riscv64-v128": "rv64,v=true,vlen=128,vext_spec=v1.0",
    "riscv64-v512": "rv64,v=true,vlen=512,vext_spec=v1.0",
}


@pytest.fixture(scope="module")
def runners() -> Path:
    return build_runners()


@pytest.fixture(scope="module", params=sorted(MODELS))
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case(request.param, tmp_path_factory.mktemp(request.param), "vmvx")


@pytest.mark.parametrize("cpu", EMULATED)
def test_other_cpus(case: Case, runners: Path, cpu: str) -> None:
    case.check(emulated(runners, cpu.split("-")[0], EMULATED[cpu]))


# Each set with one width, and each width with one set; the other combinations are long.
SETS, WIDTHS = ("portable", "sse2", "avx2", "avx512"), ("1", "2", "4", "8")
COMBINED = [
    pytest.param(kernels, width, marks=() if row == column else pytest.mark.long)
    for row, kernels in enumerate(SETS)
    for column, width in enumerate(WIDTHS)
]


@pytest.mark.parametrize(("kernels", "width"), COMBINED)
def test_kernel_sets_of_this_cpu(case: Case, runners: Path, kernels: str, width: str) -> None:
    if not _has(kernels):
        pytest.skip(f"this CPU has no {kernels}")
    case.check([str(runners / "native/eyas-run")], EYAS_VMVX_KERNELS=kernels, EYAS_VMVX_WIDTH=width)


def _has(kernels: str) -> bool:
    """Whether this machine, or what EYAS_HOST takes it for, runs these microkernels."""
    try:
        eyas.Device("local-sync", vmvx_kernels=kernels)
    except eyas.EyasError:
        return False
    return True


def test_wrong_calls_say_what_is_wrong(case: Case, runners: Path, tmp_path: Path) -> None:
    runner = str(runners / "native/eyas-run")
    short = tmp_path / "short.in"
    short.write_bytes(b"123")
    for arguments, message in [
        ([], "a module and a function are needed"),
        ([case.path, "nobody", case.input], "no such function"),
        ([case.path, case.function], "wrong number of inputs"),
        ([case.path, case.function, short], "its size is not the argument's"),
        ([case.path, case.function, f"{case.input}:x"], "bad sizes"),
        ([short, case.function, case.input], "short.in"),
    ]:
        done = subprocess.run([runner, *map(str, arguments)], capture_output=True, text=True, timeout=60)
        assert done.returncode != 0
        assert message in done.stderr
