"""One file for several targets: the best variant runs on each machine, and each gives PyTorch's numbers."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
import torch  # noqa: E402
from torch import nn  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from emulated import Case, build_runners, emulated  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import CallError, ModuleError, TargetError  # noqa: E402
from eyas.module import container  # noqa: E402
from eyas.targets import Target, best_first  # noqa: E402

V3, V4, ARM, RISCV = "llvm-cpu:x86_64:x86-64-v3", "llvm-cpu:x86_64:x86-64-v4", "llvm-cpu:aarch64", "llvm-cpu:riscv64"
TARGETS = ["vmvx", V3, ARM, V4, RISCV]
pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="names targets that run on x86-64")


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case("conv_net", tmp_path_factory.mktemp("fat"), TARGETS)


@pytest.fixture(scope="module")
def runners() -> Path:
    return build_runners()


def test_the_best_variant_runs_here(case: Case) -> None:
    module = eyas.load(case.path)
    assert module.variants == tuple(map(str, best_first([Target.parse(one) for one in TARGETS])))
    assert module.variants[-1] == "vmvx"
    assert module.variant == next(one for one in module.variants if Target.parse(one).runs_here)
    assert module.manifest["provenance"]["target"] == module.variant


@pytest.mark.parametrize("target", TARGETS)
def test_each_variant_is_right(case: Case, target: str) -> None:
    if not Target.parse(target).runs_here:
        with pytest.raises(ModuleError, match="format|feature"):
            eyas.load(case.path, variant=target)
        return
    given = np.frombuffer(case.input.read_bytes(), np.float32).reshape(2, 3, 21, 19)
    module = eyas.load(case.path, variant=target)
    assert module.variant == target
    np.testing.assert_allclose(module(given), case.wanted[0], atol=1e-5)


@pytest.mark.parametrize(("arch", "variant"), [("aarch64", ""), ("riscv64", ""), ("aarch64", "vmvx")])
def test_other_machines_find_theirs(case: Case, runners: Path, arch: str, variant: str) -> None:
    cpu = {"aarch64": "cortex-a53", "riscv64": "rv64,v=false"}[arch]
    case.check(emulated(runners, arch, cpu), *(["--variant", variant] if variant else []))


class Net(nn.Module):
    """A product whose weights are packed for the lanes of a target, a table that is not, and a counter."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.table = nn.Linear(96, 160), nn.Embedding(300, 96)
        self.register_buffer("calls", torch.ones(()))

    def forward(self, places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.calls += 1
        return self.linear(self.table(places)), self.calls.clone()


def runnable() -> list[str]:
    return [one for one in ("llvm-cpu:x86_64", V3, V4, "vmvx") if Target.parse(one).runs_here]


def test_weights_are_shared_where_their_layout_is(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, places = Net().eval(), torch.randint(0, 300, (24,))
    wanted = model.linear(model.table(places)).detach().numpy()
    module = eyas.compile(model, (places,), target=runnable())
    module.save(tmp_path / "m.eyas")
    opened = container.read(tmp_path / "m.eyas")
    table, linear = model.table.weight.numel() * 4, model.linear.weight.numel() * 4
    stored = next(entry.length for entry in opened.entries if entry.name == "parameters.bin")
    assert stored < table + linear * len(runnable()) + 4096
    for target in runnable():
        loaded = eyas.load(tmp_path / "m.eyas", variant=target)
        for call in (2, 3):
            got, calls = loaded(places.numpy())
            np.testing.assert_allclose(got, wanted, atol=1e-5)
            assert calls == call


def test_external_weights_of_all_variants_are_in_one_file(tmp_path: Path) -> None:
    from eyas.pipelines import driver
    from eyas.pipelines.request import Request

    torch.manual_seed(0)
    model, places = Net().eval(), torch.randint(0, 300, (24,))
    wanted = model.linear(model.table(places)).detach().numpy()
    targets = tuple(map(Target.parse, runnable()))
    request = Request(model, (places,), targets=targets, external_weights=tmp_path / "w.safetensors")
    driver.compile(request).save(tmp_path / "m.eyas")
    assert (tmp_path / "m.eyas").stat().st_size < (tmp_path / "w.safetensors").stat().st_size
    for target in runnable():
        got, _ = eyas.load(tmp_path / "m.eyas", variant=target)(places.numpy())
        np.testing.assert_allclose(got, wanted, atol=1e-5)


def test_dumps_of_variants_are_apart(tmp_path: Path) -> None:
    module = eyas.compile(nn.ReLU(), (torch.randn(3),), target=["vmvx", V3], dump_phases=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["llvm-cpu-x86_64-x86-64-v3", "vmvx"]
    assert (tmp_path / "vmvx/5.hal.mlir").is_file()
    assert module(torch.tensor([-1.0, 2.0, 3.0])).tolist() == [0.0, 2.0, 3.0]


def test_what_runs_nowhere_here_can_be_saved(tmp_path: Path) -> None:
    module = eyas.compile(nn.ReLU(), (torch.randn(3),), target=[ARM, RISCV])
    with pytest.raises(CallError, match="none of the module's 2 variants runs .*elf-aarch64.*elf-riscv64.*vmvx"):
        module(torch.randn(3))
    module.save(tmp_path / "m.eyas")
    assert [one.target for one in container.read(tmp_path / "m.eyas").variants] == [ARM, RISCV]


def test_a_target_is_given_once() -> None:
    with pytest.raises(TargetError, match="'vmvx' is given more than once"):
        eyas.compile(nn.ReLU(), (torch.randn(3),), target=["vmvx", V3, "vmvx"])
