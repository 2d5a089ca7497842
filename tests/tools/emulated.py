"""Small models, compiled for some target, and run by `eyas-run` in qemu or here, against what PyTorch says."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import eyas

ROOT = Path(__file__).parents[2]
TOLERANCE = 1e-5


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


class Numbers(nn.Module):
    """Every width of integer and float that a kernel may hold, sums over rows, a sort and reads at computed places."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        # Not to int8 at once: qemu 7.2 dies of its own in vfncvt.rtz.x.f.w, the vector form of that.
        small = (x * 40).to(torch.int32).to(torch.int8)
        wide = small.to(torch.int64) * 3 - 7
        half = (x.to(torch.float16) * 2).tanh().to(torch.float32)
        brain = (x.to(torch.bfloat16) + 1).to(torch.float32)
        double = torch.softmax(x.to(torch.float64), -1).cumsum(-1)
        values, places = torch.sort(x, dim=-1)
        taken = torch.gather(x, 1, places.flip(-1))
        bits = (small & 15) ^ (small >> 2)
        return bits, wide.sum(-1), wide % 5, half, brain, double, values + taken, x.amax(0), (x > 0).sum(0), x.mean(0)


def numbers() -> tuple[nn.Module, torch.Tensor]:
    return Numbers().eval(), torch.randn(7, 37)


MODELS = {"conv_net": conv_net, "block": block, "numbers": numbers}


class Case:
    """A compiled file with its input and what PyTorch says."""

    def __init__(self, name: str, folder: Path, target: str | Sequence[str]) -> None:
        torch.manual_seed(5)
        model, given = MODELS[name]()
        with torch.no_grad():
            wanted = model(given)
        self.wanted = [t.numpy() for t in (wanted if isinstance(wanted, tuple) else (wanted,))]
        module = eyas.compile(model, (given,), target=target)
        self.function = next(iter(module.manifest["functions"]))
        self.folder, self.path, self.input = folder, folder / f"{name}.eyas", folder / f"{name}.in"
        module.save(self.path)
        self.input.write_bytes(given.numpy().tobytes())

    def check(self, command: list[str], *options: str, **environment: str) -> None:
        outputs = [self.folder / f"{i}.out" for i in range(len(self.wanted))]
        for output in outputs:
            output.unlink(missing_ok=True)
        arguments = [self.path, self.function, self.input, "-o", *outputs, "--driver", "local-sync", *options]
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


def emulated(runners: Path, arch: str, cpu: str = "") -> list[str]:
    """The command that runs `eyas-run` on another CPU, or a reason to skip the test."""
    emulator = shutil.which(f"qemu-{arch}")
    if not emulator or not shutil.which(f"{arch}-linux-gnu-gcc"):
        pytest.skip(f"needs qemu-{arch} and {arch}-linux-gnu-gcc: make system-deps")
    return [emulator, *(["-cpu", cpu] if cpu else []), str(runners / arch / "eyas-run")]


def build_runners() -> Path:
    """Where `make vmvx-cross` puts `eyas-run`; ninja makes only what is new."""
    folder = ROOT / "build/cross"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other processes of the same run want them, too
        build = subprocess.run(
            [ROOT / "runtime/tools/cross.sh", folder],
            env=os.environ | {"PYTHON": sys.executable, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
        )
    assert build.returncode == 0, build.stderr + build.stdout
    return folder
