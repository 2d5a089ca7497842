"""Rows and columns on a Vulkan device, in sizes that divide nothing, against torch in f64.

Rows in registers, rows that are read again, columns shared by threads, and sums in two steps are chosen by a target's
numbers; the device runs code for hardware (`STAGED`) as well as its own.
"""

from __future__ import annotations

import pytest
from tests.tools import vulkan

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import eyas  # noqa: E402

DEVICE, STAGED, SMALL = "device", "staged", "small"


class Function(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


@pytest.fixture(autouse=True)
def same_numbers():
    torch.manual_seed(0)


def compiled(kind: str, function, *inputs: torch.Tensor, **options) -> tuple[nn.Module, eyas.Module]:
    device = eyas.Target.parse(vulkan.target())
    hardware = f"vulkan:ampere:subgroup={device.subgroup},shared=32K"
    target = {DEVICE: str(device), STAGED: hardware, SMALL: f"{hardware},cores=1"}[kind]
    model = function if isinstance(function, nn.Module) else Function(function)
    return model, eyas.compile(model, inputs, target=target, **options)


def check(kind: str, function, *inputs: torch.Tensor, kernels: list[str], tolerance: float = 2e-6) -> list[str]:
    """Compares with torch; the knobs of the kernels, whose strategies are these."""
    model, module = compiled(kind, function, *inputs)
    assert [kernel["strategy"] for kernel in module.manifest["kernels"]] == kernels
    compare(model, module, *inputs, tolerance=tolerance)
    return [kernel["knobs"] for kernel in module.manifest["kernels"]]


def compare(model: nn.Module, module: eyas.Module, *inputs: torch.Tensor, tolerance: float = 2e-6) -> None:
    found = torch.utils._pytree.tree_leaves(module(*inputs))
    with torch.no_grad():
        exact = model.double()(*(one.double() if one.is_floating_point() else one for one in inputs))
        model.float()
    for got, want in zip(found, torch.utils._pytree.tree_leaves(exact), strict=True):
        assert got.shape == want.shape
        assert (got.double() - want.double()).abs().max() <= tolerance * want.double().abs().max()


class Both(nn.Module):
    """What models have around a norm: a sum before it, and the sum itself for the next layer."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(columns)

    def forward(self, x, y):
        together = x + y
        return self.norm(together), together, together.var(-1)


@pytest.mark.parametrize("kind", [DEVICE, STAGED])
@pytest.mark.parametrize("columns", [9, 96, 1023, 40_004])
def test_rows_of_any_length_are_one_kernel(kind: str, columns: int) -> None:
    x, y = torch.randn(19, columns), torch.randn(19, columns)
    check(kind, Both(columns).eval(), x, y, kernels=["rows"], tolerance=1e-5)
    (knobs,) = check(kind, lambda x, y: torch.log_softmax(x + y, -1), x, y, kernels=["rows"])
    assert "pieces=0" not in knobs.split()


@pytest.mark.parametrize("kind", [DEVICE, STAGED])
def test_rows_whose_length_is_known_when_they_come(kind: str) -> None:
    batch, length = torch.export.Dim("batch", min=1), torch.export.Dim("length", min=2)
    shapes = (({0: batch, 1: length}, {1: length}),)
    model, module = compiled(
        kind, lambda x, y: torch.softmax(x * y, -1), torch.randn(4, 8), torch.randn(1, 8), dynamic_shapes=shapes
    )
    assert {kernel["strategy"] for kernel in module.manifest["kernels"]} == {"rows"}
    for rows, columns in ((1, 2), (7, 33), (3, 5000)):
        compare(model, module, torch.randn(rows, columns), torch.randn(1, columns))


@pytest.mark.parametrize("kind", [DEVICE, STAGED])
@pytest.mark.parametrize("columns", [40, 1021, 5000])
def test_the_first_of_equals_wherever_threads_have_it(kind: str, columns: int) -> None:
    x = torch.randint(0, 4, (9, columns)).float()
    x[0] = -torch.inf
    x[1, columns // 3 :] = torch.nan
    model, module = compiled(kind, lambda x: (x.argmax(-1), x.max(-1).indices), x)
    assert all(torch.equal(got, want) for got, want in zip(module(x), model(x), strict=True))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_rows(dtype: torch.dtype) -> None:
    x = torch.randn(17, 300).to(dtype)
    model, module = compiled(STAGED, lambda x: torch.softmax(x, -1), x)
    assert [kernel["strategy"] for kernel in module.manifest["kernels"]] == ["rows"]
    compare(model, module, x, tolerance=1e-2 if dtype == torch.bfloat16 else 1e-3)


def test_a_result_over_a_number_of_each_row() -> None:
    def scaled(x, y):
        scale = y.exp()
        return torch.softmax(x * scale[:, None], -1).square().sum(-1) * scale

    check(STAGED, scaled, torch.randn(50, 300), torch.randn(50), kernels=["points", "rows"], tolerance=1e-5)


@pytest.mark.parametrize("shape, dims", [((1000, 33), 0), ((5, 7, 9, 12), (0, 2)), ((3, 130, 64), 1), ((7, 4), 0)])
def test_sums_down_columns(shape: tuple[int, ...], dims: int | tuple[int, ...]) -> None:
    check(STAGED, lambda x: (x + 1).sum(dims), torch.randn(shape), kernels=["points", "columns"], tolerance=1e-5)
    x = torch.randint(0, 4, shape).float()
    if isinstance(dims, int):
        check(STAGED, lambda x: x.argmax(dims), x, kernels=["columns"], tolerance=0)


@pytest.mark.parametrize("shape", [(1021, 517), (1 << 19,), (5, 1031, 3, 37)])
def test_sums_of_everything_are_made_in_two_steps(shape: tuple[int, ...]) -> None:
    check(STAGED, lambda x: x.mean(), torch.randn(shape) + 1, kernels=["rows", "rows"], tolerance=1e-6)


def test_sums_down_few_columns_are_made_in_two_steps() -> None:
    check(STAGED, lambda x: x.amax(0), torch.randn(16_384, 36), kernels=["columns", "columns"], tolerance=0)


@pytest.mark.parametrize("columns", [1014, 1013])
def test_elements_of_many_groups_are_loaded_before_any_is_stored(columns: int) -> None:
    x = torch.randn(257, columns)
    (knobs,) = check(SMALL, lambda x: torch.relu(x) + 1, x, kernels=["points"], tolerance=1e-7)
    assert "ahead=1" not in knobs.split()
