"""One `vmvx` file on several CPUs: this one, AArch64 and RISC-V 64 with and without vectors, in every kernel set here.

`runtime/tools/cross.sh` builds `eyas-run`, which is the C core and nothing else; qemu runs it for the other CPUs.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import eyas  # noqa: E402

ROOT = Path(__file__).parents[2]
TOLERANCE = 1e-5
EMULATED = {
    "aarch64": ["qemu-aarch64"],
    "riscv64": ["qemu-riscv64", "-cpu", "rv64,v=false"],
    "riscv64-v128": ["qemu-riscv64", "-cpu", "rv64,v=true,vlen=128,vext_spec=v1.0"],
    "riscv64-v512": ["qemu-riscv64", "-cpu", "rv64,v=true,vlen=512,vext_spec=v1.0"],
}


class ConvNet(nn.Module):
    """Convolutions with stride, padding and groups, pooling, an activation with exp, and a product."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1),
            nn.BatchNorm2d(16),
            nn.SiLU(),
            nn.Conv2d(16, 16, 3, padding=1, groups=16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 24, 1),
            nn.Hardswish(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(24, 10),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Block(nn.Module):
    """Embeddings, one layer of a transformer, and what it thinks is next: gathers, attention, GELU, integers."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, activation="gelu", batch_first=True)

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.layer(self.embedding(tokens))
        scores = x @ self.embedding.weight.T
        return scores, scores.argmax(-1)


def conv_net() -> tuple[nn.Module, torch.Tensor]:
    model = ConvNet().train()
    model(torch.randn(8, 3, 21, 19))  # statistics that are not those of the start
    return model.eval(), torch.randn(2, 3, 21, 19)


def block() -> tuple[nn.Module, torch.Tensor]:
    return Block().eval(), torch.randint(0, 50, (2, 11))


MODELS = {"conv_net": conv_net, "block": block}


class Case:
    """A compiled file with its input and what PyTorch says."""

    def __init__(self, name: str, folder: Path) -> None:
        torch.manual_seed(5)
        model, given = MODELS[name]()
        with torch.no_grad():
            wanted = model(given)
        self.wanted = [t.numpy() for t in (wanted if isinstance(wanted, tuple) else (wanted,))]
        module = eyas.compile(model, (given,), target="vmvx")
        self.function = next(iter(module.manifest["functions"]))
        self.folder, self.path, self.input = folder, folder / f"{name}.eyas", folder / f"{name}.in"
        module.save(self.path)
        self.input.write_bytes(given.numpy().tobytes())

    def check(self, command: list[str], **environment: str) -> None:
        outputs = [self.folder / f"{i}.out" for i in range(len(self.wanted))]
        for output in outputs:
            output.unlink(missing_ok=True)
        arguments = [self.path, self.function, self.input, "-o", *outputs, "--driver", "local-sync"]
        done = subprocess.run(
            [*command, *map(str, arguments)], env=os.environ | environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        for output, wanted in zip(outputs, self.wanted, strict=True):
            got = np.frombuffer(output.read_bytes(), wanted.dtype).reshape(wanted.shape)
            if wanted.dtype.kind == "f":
                assert np.abs(got - wanted).max() < TOLERANCE * max(1.0, np.abs(wanted).max())
            else:
                np.testing.assert_array_equal(got, wanted)


@pytest.fixture(scope="module")
def runners(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `make cross` put them; ninja makes only what is new."""
    folder = ROOT / "build/cross"
    build = subprocess.run(
        [ROOT / "runtime/tools/cross.sh", folder],
        env=os.environ | {"PYTHON": sys.executable, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert build.returncode == 0, build.stderr + build.stdout
    return folder


@pytest.fixture(scope="module", params=sorted(MODELS))
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case(request.param, tmp_path_factory.mktemp(request.param))


@pytest.mark.parametrize("cpu", EMULATED)
def test_other_cpus(case: Case, runners: Path, cpu: str) -> None:
    arch = cpu.split("-")[0]
    emulator = shutil.which(EMULATED[cpu][0])
    if not emulator or not shutil.which(f"{arch}-linux-gnu-gcc"):
        pytest.skip(f"needs qemu-{arch} and {arch}-linux-gnu-gcc: make system-deps")
    case.check([emulator, *EMULATED[cpu][1:], str(runners / arch / "eyas-run")])


@pytest.mark.parametrize("width", ["1", "2", "4", "8"])
@pytest.mark.parametrize("kernels", ["portable", "sse2", "avx2", "avx512"])
def test_kernel_sets_of_this_cpu(case: Case, runners: Path, kernels: str, width: str) -> None:
    if kernels != "portable" and (platform.machine() != "x86_64" or f" {kernels}" not in _cpu_flags()):
        pytest.skip(f"this CPU has no {kernels}")
    case.check([str(runners / "native/eyas-run")], EYAS_VMVX_KERNELS=kernels, EYAS_VMVX_WIDTH=width)


def _cpu_flags() -> str:
    return Path("/proc/cpuinfo").read_text()


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
