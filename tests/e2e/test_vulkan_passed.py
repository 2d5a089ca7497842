"""Products whose lanes load different rows and hand them to each other, as drivers that compute on a CPU like it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.tools import vulkan
from torch import nn

import eyas
from eyas.codegen.gpu.strategies.contraction import Contraction


def _compiled(model, *args: torch.Tensor, **options) -> tuple[eyas.Module, list[dict]]:
    subgroup = eyas.Target.parse(vulkan.target()).subgroup
    module = eyas.compile(model, args, target=f"vulkan:lavapipe:subgroup={subgroup}", **options)
    knobs = [dict(one.split("=") for one in kernel["knobs"].split()) for kernel in module.manifest["kernels"]]
    return module, [one for one in knobs if "lanes" in one and "slices" in one]


@pytest.mark.parametrize("sizes", [(4, 3, 5), (13, 10, 8), (33, 17, 72), (131, 80, 200), (64, 64, 1), (40, 12, 1000)])
def test_products_of_odd_sizes(sizes: tuple[int, int, int]) -> None:
    rows, depth, columns = sizes
    torch.manual_seed(rows)
    left, right, bias = torch.randn(rows, depth), torch.randn(depth, columns), torch.randn(columns)
    module, knobs = _compiled(lambda a, b, c: torch.relu(a @ b + c), left, right, bias)
    assert [one["lanes"] != "1" for one in knobs] == [columns > 1]
    want = torch.relu(left.double() @ right.double() + bias)
    assert (module(left, right, bias) - want).abs().max() <= 1e-6 * depth


@pytest.mark.parametrize("dtype", [torch.float16, torch.int8, torch.int64, torch.float64])
def test_elements_of_every_size(dtype: torch.dtype) -> None:
    left, right = (torch.randint(-9, 9, shape).to(dtype) for shape in ((19, 24), (24, 32)))
    module, knobs = _compiled(lambda a, b: a.to(torch.float32) @ b.to(torch.float32), left, right)
    assert torch.equal(module(left, right), left.float() @ right.float()) and knobs
    whole, knobs = _compiled(lambda a, b: (a[:, :, None] * b[None]).sum(1, dtype=dtype), left, right)
    assert torch.equal(whole(left, right), (left.double() @ right.double()).to(dtype))
    assert all((one["lanes"] == "1") == (dtype == torch.float64) for one in knobs)  # which lanes cannot hand over


def test_convolutions_batches_and_rows_that_vary() -> None:
    torch.manual_seed(1)
    net = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 37, 3, padding=1, groups=1)).eval()
    x = torch.randn(2, 3, 19, 21)
    module, knobs = _compiled(net, x)
    assert any(one["lanes"] != "1" for one in knobs)
    assert (module(x) - net.double()(x.double())).abs().max() <= 1e-5
    batch = torch.export.Dim("batch", min=1, max=64)
    linear = nn.Linear(24, 40).eval()
    module, knobs = _compiled(linear, torch.randn(9, 24), dynamic_shapes=({0: batch},))
    assert [one["lanes"] != "1" for one in knobs] == [True]
    for rows in (1, 16, 61):
        x = torch.randn(rows, 24)
        assert torch.allclose(module(x), linear(x), atol=1e-5)


@pytest.mark.parametrize(("size", "stride", "dilation"), [(3, 1, 1), (5, 2, 1), (3, 2, 2), (4, 3, 2)])
def test_windows_that_overlap_are_loaded_once(size: int, stride: int, dilation: int) -> None:
    """Rows that read what others read in another step, inside of the image and at its edges."""
    torch.manual_seed(size)
    conv = nn.Conv2d(12, 12, size, stride, padding=size // 2, dilation=dilation, groups=12).eval()
    x = torch.randn(2, 12, 23, 29)
    module, knobs = _compiled(conv, x)
    assert [one["depth"] for one in knobs] == [str(size)]
    assert (module(x) - conv.double()(x.double())).abs().max() <= 1e-5


def test_knobs_that_cannot_be_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EYAS_COMPILE_IN_PROCESS", "1")
    seen = {}
    right = Contraction.choose.__func__

    def choose(cls, found, target):
        seen["strategy"] = made = right(cls, found, target)
        return made

    monkeypatch.setattr(Contraction, "choose", classmethod(choose))
    _, knobs = _compiled(torch.matmul, torch.randn(16, 16), torch.randn(16, 48))
    chosen, kernel = seen["strategy"].knobs, seen["strategy"].kernel
    assert chosen.lanes > 1 and knobs
    changed = replace(chosen, columns=1)
    assert "would have different rows" in str(Contraction.check(kernel, changed))
    changed = replace(chosen, column_points=5)
    assert "does not divide 48 columns" in str(Contraction.check(kernel, changed))
