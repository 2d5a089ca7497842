"""What users touch of Vulkan: targets, devices, files for several of them, results that stay, commands."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.tools import vulkan
from torch import nn
from typer.testing import CliRunner

import eyas
from eyas.errors import IncompatibleError, UsageError

pytestmark = pytest.mark.usefixtures("vulkan_device")


@pytest.fixture(scope="module")
def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(24, 40), nn.GELU(), nn.Linear(40, 24), nn.Softmax(-1)).eval()


@pytest.fixture(scope="module")
def x() -> torch.Tensor:
    return torch.randn(3, 24)


@pytest.fixture(scope="module")
def fat(model: nn.Module, x: torch.Tensor, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for this machine's device, for a GPU that no test has, for every GPU, and for every CPU."""
    vulkan.device()
    path = tmp_path_factory.mktemp("vulkan") / "fat.eyas"
    targets = ["vulkan:adreno:subgroup=128", "vulkan", "vulkan:baseline", "vmvx"]
    eyas.compile(model, (x,), target=targets).save(path)
    return path


def test_a_module_for_vulkan_runs_there_by_default(model: nn.Module, x: torch.Tensor) -> None:
    module = eyas.compile(model, (x,), target="vulkan")
    assert module.device.name == "vulkan" and module.manifest["provenance"]["target"] == vulkan.target()
    with torch.no_grad():
        torch.testing.assert_close(module(x), model(x))
    np.testing.assert_array_equal(module(x.numpy()), module(x).numpy())


def test_a_file_for_several_devices(fat: Path, model: nn.Module, x: torch.Tensor) -> None:
    assert eyas.load(fat).device.name == "local-task"  # it has code for CPUs
    here = eyas.load(fat, device="vulkan")
    assert here.variant == vulkan.target()
    first = here.device.description.split()[0].upper()
    assert eyas.load(fat, device="vulkan:0").device is here.device is eyas.load(fat, device=f"vulkan:{first}").device
    plain = eyas.load(fat, variant="baseline")
    assert plain.device.name == "vulkan"
    with torch.no_grad():
        for module in (here, plain, eyas.load(fat)):
            torch.testing.assert_close(module(x), model(x))


def test_a_device_that_lacks_something_says_what_and_what_to_do(model: nn.Module, x: torch.Tensor, fat: Path) -> None:
    foreign = eyas.compile(model, (x,), target="vulkan:baseline:subgroup=2,alignment=4")
    with pytest.raises(eyas.EyasError, match="cannot run here.*it needs 'offset-alignment=4'.*compile .*'vulkan'"):
        foreign(x)
    with pytest.raises(IncompatibleError, match="format spirv, which device local-task"):
        eyas.load(fat, device="local-task", variant="baseline")
    with pytest.raises(UsageError, match="none is called so; there are: vulkan:0"):
        eyas.load(fat, device="vulkan:toaster")


def test_results_stay_on_the_device(model: nn.Module, x: torch.Tensor) -> None:
    module = eyas.compile(model, (x,), target="vulkan")
    hidden = module(module.on_device(x.numpy()))
    assert isinstance(hidden, eyas.DeviceTensor) and hidden.device is module.device
    with torch.no_grad():
        np.testing.assert_allclose(hidden.numpy(), model(model(x)).numpy(), rtol=1e-5, atol=1e-6)


def test_torch_compile(model: nn.Module, x: torch.Tensor) -> None:
    compiled = torch.compile(model, backend="eyas", options={"target": "vulkan"})
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x))


def test_commands(model: nn.Module, x: torch.Tensor, tmp_path: Path, fat: Path) -> None:
    from eyas.cli.app import app

    def run(*arguments: object) -> str:
        done = CliRunner().invoke(app, [str(one) for one in arguments])
        assert done.exit_code == 0, done.output
        return done.output

    path = tmp_path / "model.onnx"
    torch.onnx.export(model, (x,), str(path), dynamo=True, external_data=False, verbose=False)
    assert "float32[3, 24]" in run("run", path, "--target", "vulkan")
    assert "on vulkan" in run("bench", fat, "--device", "vulkan")
    assert "all within tolerance" in run("verify", path, "--target", "vulkan")
    assert "OpEntryPoint" in run("inspect", fat, "--variant", vulkan.target(), "--bytecode")
    assert "needs" in run("inspect", fat) and f"target     {vulkan.target()}" in run("devices")
