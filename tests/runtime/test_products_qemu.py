"""The product microkernels of other CPUs against the portable ones, in qemu: the C test, cross-compiled."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("tests/ukernel/products_test.c", "src/base/cpu_features.c", "src/base/status.c", "src/base/half.c")
MACHINES = {
    "aarch64": (["-cpu", "cortex-a57"], "neon portable"),
    "aarch64-i8mm": (["-cpu", "max"], "neon-dotprod-i8mm neon-dotprod neon portable"),
    "riscv64": (["-cpu", "rv64,v=false"], "portable"),
    "riscv64-v128": (["-cpu", "rv64,v=true,vlen=128,vext_spec=v1.0"], "rvv portable"),
    "riscv64-v512": (["-cpu", "rv64,v=true,vlen=512,vext_spec=v1.0"], "rvv portable"),
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The C test for each architecture that this machine has a compiler for."""
    folder, runtime = tmp_path_factory.mktemp("products"), ROOT / "runtime"
    subprocess.run([sys.executable, str(runtime / "tools/make_isa_headers.py"), str(folder)], check=True)
    built = {}
    for architecture in ("aarch64", "riscv64"):
        compiler = shutil.which(f"{architecture}-linux-gnu-gcc")
        if compiler is None:
            continue
        built[architecture] = folder / architecture
        files = [*(runtime / name for name in SOURCES), *sorted((runtime / "src/ukernel").glob("products*.c"))]
        folders = [f"-I{runtime / name}" for name in ("src", "include", "tests")] + [f"-I{folder}"]
        flags = ["-static", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", *folders]
        subprocess.run([compiler, *flags, *map(str, files), "-lm", "-o", str(built[architecture])], check=True)
    return built


@pytest.mark.parametrize("machine", MACHINES)
def test_products(machine: str, programs: dict[str, Path]) -> None:
    architecture = machine.split("-")[0]
    qemu = shutil.which(f"qemu-{architecture}")
    if qemu is None or architecture not in programs:
        pytest.skip(f"no cross compiler or no qemu for {architecture}")
    options, sets = MACHINES[machine]
    run = subprocess.run(
        [qemu, *options, str(programs[architecture]), "3"], capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith(f"{sets} products_test: "), run.stdout
