"""Strategies for GPUs on the Vulkan device that is there, in sizes that divide nothing, against torch in f64.

Kernels are compiled for the device, and for hardware with near shared memory (`STAGED`), whose code the device runs as
well: staging, squares of transposes and teams in subgroups are tested without such hardware.
"""

from __future__ import annotations

import re

import pytest
import torch
from tests.tools import vulkan
from tests.tools.slices import half_of
from torch import nn

import eyas
from eyas.pipelines import driver
from eyas.pipelines.dumps import read_dump_file
from eyas.pipelines.request import Phase, Request

DEVICE, STAGED = "device", "staged"


def _target(kind: str) -> str:
    device = eyas.Target.parse(vulkan.target())
    return str(device) if kind == DEVICE else f"vulkan:ampere:subgroup={device.subgroup},shared=32K"


def _check(kind: str, strategies: set[str], model, *args: torch.Tensor, rtol: float = 2e-6) -> None:
    module = eyas.compile(model, args, target=_target(kind))
    used = {kernel["strategy"] for kernel in module.manifest["kernels"]}
    assert strategies <= used, used
    found = module(*args)
    with torch.no_grad():
        exact = model.double() if isinstance(model, nn.Module) else model
        want = exact(*(one.double() if one.is_floating_point() else one for one in args))
    assert found.shape == want.shape
    assert (found.double() - want.double()).abs().max() <= rtol * want.double().abs().max()


PRODUCTS = [(1, 1, 1), (1, 64, 100), (3, 5, 7), (33, 48, 70), (64, 64, 64), (131, 80, 67), (128, 16, 200)]


@pytest.mark.parametrize(("sizes", "kind"), half_of(PRODUCTS, [DEVICE, STAGED]))
def test_products(kind: str, sizes: tuple[int, int, int]) -> None:
    rows, depth, columns = sizes
    torch.manual_seed(rows + depth + columns)
    left, right, bias = torch.randn(rows, depth), torch.randn(depth, columns), torch.randn(columns)
    _check(kind, set(), lambda a, b, c: torch.relu(a @ b + c), left, right, bias, rtol=1e-5)


@pytest.mark.parametrize("rows", [1, 3, 8])
@pytest.mark.parametrize("columns", [96, 1000, 37, 2])
def test_few_rows_share_the_sum_among_threads(rows: int, columns: int) -> None:
    torch.manual_seed(rows)
    linear = nn.Linear(512, columns).eval()
    module = eyas.compile(linear, (torch.randn(rows, 512),), target=_target(STAGED))
    assert "slices=1" not in module.manifest["kernels"][0]["knobs"].split(), module.manifest["kernels"]
    x = torch.randn(rows, 512)
    assert torch.allclose(module(x), linear(x), atol=1e-5)


@pytest.mark.parametrize("kind", [DEVICE, STAGED])
def test_batched_and_transposed_products(kind: str) -> None:
    is_near = eyas.Target.parse(_target(kind)).facts.shared_is_near
    strategy = "products" if is_near else "contraction"
    _check(kind, {strategy}, lambda a, b: a @ b.mT, torch.randn(3, 65, 32), torch.randn(3, 70, 32), rtol=1e-5)


@pytest.mark.parametrize("kind", [DEVICE, STAGED])
def test_convolutions_with_padding_strides_and_groups(kind: str) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2d(3, 16, 3, stride=2, padding=1)
            self.second = nn.Conv2d(16, 40, 3, padding=1)
            self.third = nn.Conv2d(40, 40, 5, padding=2, groups=40)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.third(torch.relu(self.second(torch.relu(self.first(x)))))

    torch.manual_seed(1)
    _check(kind, {"contraction"}, Net().eval(), torch.randn(2, 3, 37, 35), rtol=1e-5)


@pytest.mark.parametrize(("columns", "kind"), half_of([1, 2, 10, 63, 1000, 5000, 5001], [DEVICE, STAGED]))
def test_rows(kind: str, columns: int) -> None:
    torch.manual_seed(columns)
    x = torch.randn(17, columns)
    strategies = {"rows"} if columns > 8 else set()
    _check(kind, strategies, lambda x: torch.softmax(x, -1) + x.amax(-1, keepdim=True), x)


@pytest.mark.parametrize("kind", [DEVICE, STAGED])
def test_norms_over_a_channel_in_the_middle(kind: str) -> None:
    torch.manual_seed(2)
    _check(kind, set(), nn.GroupNorm(4, 12).eval(), torch.randn(3, 12, 9, 7), rtol=1e-5)


@pytest.mark.parametrize("kind", [DEVICE, STAGED])
def test_sums_down_columns_and_of_everything(kind: str) -> None:
    _check(kind, set(), lambda x: x.sum(0), torch.randn(1000, 33), rtol=1e-5)
    _check(kind, {"rows"}, lambda x: (x * x).sum(), torch.randn(70_001), rtol=1e-5)


@pytest.mark.parametrize("shape", [(130, 70), (64, 128), (250, 61)])
def test_transposes_go_through_squares(shape: tuple[int, int]) -> None:
    x, y = torch.randn(shape), torch.randn(shape[::-1])
    _check(STAGED, {"transposes"}, lambda x, y: x.t() * 2 + y, x, y)


@pytest.mark.parametrize("shape", [(130, 70), (128, 61)])
@pytest.mark.parametrize("dtype", [torch.float16, torch.int8])
def test_narrow_elements_are_transposed_in_words(shape: tuple[int, int], dtype: torch.dtype) -> None:
    x = (torch.randn(shape) * 50).to(dtype)
    module = eyas.compile(lambda x: x.t().contiguous(), (x,), target=_target(STAGED))
    (kernel,) = module.manifest["kernels"]
    points = 1 if shape[1] % 2 else 2
    assert kernel["strategy"] == "transposes" and f"points={points}" in kernel["knobs"].split(), kernel
    assert torch.equal(torch.as_tensor(module(x)), x.t())


def test_permutations_of_images_go_through_squares() -> None:
    _check(STAGED, {"transposes"}, lambda x: x.permute(0, 2, 3, 1).contiguous(), torch.randn(2, 40, 33, 35))


@pytest.mark.parametrize("dtype", [torch.float16, torch.int8, torch.int64, torch.bool, torch.float64])
def test_elements_of_every_size(dtype: torch.dtype) -> None:
    x = (torch.randn(5, 36) * 50).to(dtype)
    module = eyas.compile(lambda x: (x.t().contiguous(), torch.where(x > 0, x, 0 * x)), (x,), target=_target(DEVICE))
    found = module(x)
    assert torch.equal(found[0], x.t()) and torch.equal(found[1], torch.where(x > 0, x, 0 * x))


def test_sizes_that_vary() -> None:
    model = nn.Sequential(nn.Linear(24, 30), nn.GELU(), nn.LayerNorm(30)).eval()
    batch = torch.export.Dim("batch", min=1, max=64)
    module = eyas.compile(model, (torch.randn(3, 24),), dynamic_shapes=({0: batch},), target=_target(DEVICE))
    for rows in (1, 5, 64):
        x = torch.randn(rows, 24)
        assert torch.allclose(module(x), model(x), atol=1e-5)


def test_views_that_begin_anywhere() -> None:
    """Rows of a tensor whose bytes are no multiple of what the device wants, and steps of a loop over them."""
    lstm = nn.LSTM(7, 5).eval()
    x = torch.randn(9, 3, 7)
    module = eyas.compile(lstm, (x,), target=_target(DEVICE))
    want, found = lstm(x)[0], module(x)[0]
    assert torch.allclose(found, want, atol=1e-5)
    y = torch.randn(11, 3)
    cut = eyas.compile(lambda y: (y[3:] * 2, y[1] + 1), (y,), target=_target(DEVICE))(y)
    assert torch.equal(cut[0], y[3:] * 2) and torch.equal(cut[1], y[1] + 1)


def test_an_edited_schedule_is_used_and_a_wrong_one_refused(tmp_path) -> None:
    dump = tmp_path / "dump"
    left, right = torch.randn(20, 16), torch.randn(16, 24)
    eyas.compile(torch.matmul, (left, right), target=_target(DEVICE), dump_phases=dump)
    text = (dump / "5.hal.mlir").read_text()
    assert "row_points" in text
    edited = re.sub(r"row_points = \d+", "row_points = 2", re.sub(r"columns = \d+", "columns = 4", text))
    edited = re.sub(r"lanes = \d+", "lanes = 1", edited)
    (dump / "5.hal.mlir").write_text(re.sub(r"threads = \d+", "threads = 32", edited))
    target = (eyas.Target.parse(_target(DEVICE)),)
    module = driver.compile(Request(read_dump_file(dump / "5.hal.mlir"), targets=target, after=Phase.HAL)).load()
    assert torch.allclose(torch.as_tensor(module(left.numpy(), right.numpy())), left @ right, atol=1e-5)
    (dump / "5.hal.mlir").write_text(re.sub(r"threads = \d+", "threads = 33", edited))
    with pytest.raises(eyas.EyasError, match="threads is 33; it must be a power of two"):
        driver.compile(Request(read_dump_file(dump / "5.hal.mlir"), targets=target, after=Phase.HAL))
