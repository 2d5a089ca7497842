"""Programs whose results were once wrong, or that ended the process: each against eager torch.

Most of them come from integers that lose their sign on the way, so a table names the types that it is tried with. The
programs of a row are compiled as one, which costs one compilation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

import eyas  # noqa: E402


class Function(nn.Module):
    def __init__(self, functions: Sequence[Callable[..., Any]]) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, *args: Any) -> Any:
        return [function(*args) for function in self.functions]


def same(got: Any, wanted: Any, rtol: float = 1e-5) -> None:
    got, wanted = pytree.tree_leaves(got), pytree.tree_leaves(wanted)
    assert len(got) == len(wanted)
    for index, (one, other) in enumerate(zip(got, wanted, strict=True)):
        if isinstance(other, torch.Tensor):
            one = torch.as_tensor(one)
            torch.testing.assert_close(
                one, other, rtol=rtol, atol=rtol / 10, equal_nan=True, msg=lambda text, index=index: f"{index}: {text}"
            )
        else:
            assert one == other, index


def compare(functions: Sequence[Callable[..., Any]], *args: Any, rtol: float = 1e-5, **options: Any) -> None:
    model = Function(functions)
    same(eyas.compile(model, args, **options)(*args), model(*args), rtol)


def u8(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.uint8)


TRUTHS = torch.tensor([True, False, True, True, False])
BYTES = u8(200, 3, 100, 255, 0, 128, 127, 7, 9)
SQUARES = torch.arange(27.0).reshape(3, 3, 3)
I64 = torch.int64
INDEX = torch.tensor([2, 0, 2, 1, 0])

WRONG = {
    "diagonals": (
        [
            lambda x: torch.trace(x[0]),
            lambda x: torch.diagonal(x[1]) + 1,
            lambda x: torch.diagonal(x[2]).sum(),
            lambda x: torch.einsum("ii->", x[0]),
            lambda x: torch.einsum("bii->b", x),
            lambda x: torch.diagonal(x, dim1=-2, dim2=-1).log1p().sum(-1),
            lambda x: torch.diagonal(x, 1, -1, 0) * 2,
        ],
        SQUARES,
    ),
    "floats to bytes": (
        [
            lambda x: x.to(torch.uint8),
            lambda x: x.half().to(torch.uint8),
            lambda x: x.bfloat16().to(torch.uint8),
            lambda x: x.double().to(torch.uint8),
            lambda x: (x / 255 * 255).round().clamp(0, 255).to(torch.uint8),
            lambda x: F.interpolate(x[:64].to(torch.uint8).reshape(1, 1, 8, 8), scale_factor=2, mode="bilinear"),
        ],
        torch.arange(0.0, 256.0),
    ),
    "adaptive max pooling": (
        [
            lambda x: F.adaptive_max_pool1d(x[..., :8], 3),
            lambda x: F.adaptive_max_pool1d(x[..., :5], 3),
            lambda x: F.adaptive_max_pool1d(x[..., :7], 5, return_indices=True),
            lambda x: F.adaptive_max_pool1d(x[..., :3], 5),
            lambda x: F.adaptive_max_pool2d(x.reshape(1, 1, 8, 9), (3, 5)),
            lambda x: F.adaptive_max_pool2d(x.reshape(1, 1, 8, 9), (5, 2), return_indices=True),
        ],
        (torch.arange(72.0).reshape(1, 1, 72) * 37) % 73,
    ),
    "norms in f16": (
        [
            lambda x: F.rms_norm(x, (3,)),
            lambda x: torch.linalg.vector_norm(x),
            lambda x: torch.linalg.vector_norm(x, dim=-1),
            lambda x: F.normalize(x),
            lambda x: F.layer_norm(x, (3,)),
            lambda x: torch.norm(x),
            lambda x: x.norm(2, -1),
            lambda x: torch.cosine_similarity(x, x + 1),
            lambda x: torch.dist(x, x * 2),
            lambda x: F.rms_norm(x[:, :1] / 1e5, (1,)),
            lambda x: (x / 1e6, x * 1e-8, x + 1e-8, x * 1e5, x < 1e6, 1e6 / x),
        ],
        torch.tensor([[300.0, 400, 500], [-600, 2, 0.5]]).half(),
    ),
    "logcumsumexp": (
        [
            lambda x: torch.logcumsumexp(x, -1),
            lambda x: torch.logcumsumexp(x, 0),
            lambda x: torch.logcumsumexp(x[0, 0], 0),
            lambda x: torch.logcumsumexp(x.bfloat16().float(), 1),
        ],
        torch.tensor(
            [[100.0, 1, 200], [-200, -201, -150], [float("-inf"), float("-inf"), 3], [float("inf"), 1, float("nan")]]
        ),
    ),
    "order of truths": (
        [
            torch.sort,
            torch.msort,
            torch.argsort,
            lambda x: torch.sort(x, descending=True, stable=True),
            lambda x: x.max(),
            lambda x: x.min(),
            lambda x: torch.aminmax(x),
            lambda x: x.unsqueeze(0).amax(0),
            lambda x: x > False,
            lambda x: torch.maximum(x, ~x),
            lambda x: torch.cummax(x, 0),
        ],
        TRUTHS,
    ),
    "bounds that are tensors": (
        [
            lambda x: torch.clamp(x, max=u8(150)),
            lambda x: torch.clamp(x, min=u8(150)),
            lambda x: torch.clamp(x, u8(9), u8(150)),
            lambda x: torch.clamp_min(x, u8(130)),
            lambda x: torch.clamp_max(x, u8(130)),
            lambda x: torch.clamp(x, 130, 200),
            lambda x: torch.clamp(x > 100, min=x > 3),
            lambda x: torch.clamp(x > 100, max=x > 210),
        ],
        BYTES,
    ),
    "bytes are unsigned": (
        [
            lambda x: torch.kthvalue(x, 1),
            lambda x: torch.kthvalue(x.reshape(3, 3), 2, -1),
            lambda x: torch.prod(x[:3]),
            lambda x: torch.prod(x.reshape(3, 3), 1),
            lambda x: torch.prod(x.reshape(3, 3), -1, dtype=torch.uint8),
            lambda x: x[:3].scatter_reduce(0, INDEX, x[3:8], "amax"),
            lambda x: x[:3].scatter_reduce(0, INDEX, x[3:8], "amin"),
            lambda x: x[:3].index_reduce(0, INDEX, x[3:8], "amax"),
            lambda x: x[:3].index_reduce(0, INDEX, x[3:8], "amin"),
            lambda x: F.max_pool2d(x.reshape(1, 3, 3), 2, 1),
            lambda x: F.max_pool2d(x.reshape(1, 3, 3), 2, 1, return_indices=True),
            lambda x: x.float(),
            lambda x: x // 7,
            lambda x: x % 7,
            lambda x: torch.fmod(x, 100),
            lambda x: torch.fmod(x.float() - 99, 7.5),
            lambda x: x >> 1,
            lambda x: x.sort(),
            lambda x: x.topk(3),
            lambda x: x.argmax(),
            lambda x: x.median(),
            lambda x: x.sum(),
            lambda x: x.cumsum(0),
            lambda x: torch.searchsorted(u8(3, 100, 200), x),
            lambda x: x.unique(),
        ],
        BYTES,
    ),
    "sums of truths": (
        [
            lambda x: x.scatter_add(0, INDEX, x),
            lambda x: x.index_add(0, INDEX, x),
            lambda x: x.index_put((INDEX,), x, accumulate=True),
            lambda x: x.sum(),
            lambda x: x.cumsum(0),
            lambda x: x + x,
            lambda x: x * x,
            lambda x: x.prod(),
        ],
        TRUTHS,
    ),
    "types of results": (
        [
            lambda x: x**2,
            torch.square,
            lambda x: torch.bincount(x.long(), x.int()),
            lambda x: torch.bincount(x.long(), x.float()),
            lambda x: torch.pow(2, x),
            lambda x: (torch.bitwise_right_shift(x, 1), torch.bitwise_left_shift(x, 3)),
            lambda x: torch.heaviside(x, ~x),
            lambda x: torch.heaviside(x[0].to(torch.uint8), x[1].to(torch.uint8)),
            lambda x: x.float() ** 2,
        ],
        TRUTHS,
    ),
    "truths that are given as numbers": (
        [
            lambda x: torch.full((3,), 6, dtype=torch.bool),
            lambda x: torch.full((), 2.5, dtype=torch.bool),
            lambda x: torch.full_like(x, 4),
            lambda x: x.new_full((2,), 0.5),
            lambda x: x.masked_fill(~x, 2),
            lambda x: F.pad(x, (1, 1), value=6),
        ],
        TRUTHS,
    ),
    "the k-th smallest beside NaN": (
        [
            lambda x: torch.kthvalue(x, 2).values,
            lambda x: torch.kthvalue(x, 3, 1, True).values,
            lambda x: torch.kthvalue(x, 1, 0).values,
        ],
        torch.tensor([[3.0, 1, 2], [math.nan, math.nan, 1], [math.inf, math.nan, 0]]),
    ),
    "doubles and integers of 64 bits keep their digits": (
        [
            torch.angle,
            lambda x: torch.tensor(1860617857901295610) // 3 + x.long(),
            lambda x: torch.logaddexp2(x * 40, x * 0) * 1e6,
            lambda x: torch.logaddexp(x * 40, x * 0) * 1e6,
        ],
        torch.tensor([-1.0, -0.25, -0.5, 0, 1], dtype=torch.float64),
    ),
    "numbers that do not fit into bytes": ([lambda x: x & 300, lambda x: x | 513, lambda x: x ^ -1], u8(5, 7, 200)),
    "scatters with negative dims": (
        [
            lambda x, i: x.scatter(-1, i, x * 2),
            lambda x, i: x.scatter(-1, i, 1.0),
            lambda x, i: x.scatter_add(-1, i, x),
            lambda x, i: x.scatter_add(-2, i % 2, x),
            lambda x, i: x.scatter_reduce(-1, i, x, "prod"),
            lambda x, i: x.index_reduce(-1, i[0], x, "amax"),
            lambda x, i: x.index_add(-1, i[0], x),
            lambda x, i: x.index_copy(-1, torch.tensor([2, 0, 1, 4, 3]), x),
            lambda x, i: x.gather(-1, i),
        ],
        torch.arange(10.0).reshape(2, 5),
        torch.tensor([[2, 0, 3, 1, 4], [4, 1, 0, 3, 2]]),
    ),
    "ranges": (
        [
            lambda x: torch.arange(3, dtype=torch.uint8),
            lambda x: torch.arange(250, 256, dtype=torch.uint8) // 2,
            lambda x: torch.arange(3, dtype=torch.int8),
            lambda x: torch.arange(3, dtype=torch.int16) + x.short(),
            lambda x: torch.zeros(2, dtype=torch.uint8),
            lambda x: torch.zeros_like(x),
            lambda x: torch.full_like(x, 200),
            lambda x: torch.linspace(0, 200, 5, dtype=torch.uint8),
            lambda x: torch.linspace(4.3, -3, 50, dtype=torch.int32),
            lambda x: torch.linspace(x[0] * 1.7, 9.9, 50, dtype=torch.int64),
            lambda x: torch.linspace(-4.9, x[2] * 1.5, 50, dtype=torch.int32),
            lambda x: torch.linspace(4.3, -3, 50, dtype=torch.float16),
            lambda x: torch.linspace(x[0] * 1.7, 9.9, 50, dtype=torch.bfloat16),
            lambda x: torch.linspace(x[0] * 1.7, 9.9, 1, dtype=torch.float16),
        ],
        u8(1, 2, 3),
    ),
    "exponential units near zero": (
        [
            lambda x: F.elu(x, 0.7) * 1e6,
            lambda x: F.selu(x) * 1e6,
            lambda x: F.celu(x, 1.3) * 1e6,
            lambda x: F.selu(x.double()) * 1e6,
            lambda x: F.elu(x.half()) * 1024,
        ],
        torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-4, -1e-5, -1e-9, 1e-9, -90, 90, -0.3]),
    ),
    "pooling of integers in three dimensions": (
        [
            lambda x: F.max_pool3d(x, 2),
            lambda x: F.max_pool3d(x.long(), 2, 1),
            lambda x: F.max_pool3d(x.int(), 2, 1, 1),
            lambda x: F.max_pool3d(x.int(), 2, 1, return_indices=True),
            lambda x: F.max_pool2d(x.int()[0], 2, 1, return_indices=True),
        ],
        ((torch.arange(64) * 37) % 256).to(torch.uint8).reshape(1, 1, 4, 4, 4),
    ),
    "adaptive pooling in three dimensions": (
        [
            lambda x: F.adaptive_avg_pool3d(x, 2),
            lambda x: F.adaptive_avg_pool3d(x, 3),
            lambda x: F.adaptive_avg_pool3d(x, (4, 5, 6)),
            lambda x: F.adaptive_avg_pool3d(x, 1),
            lambda x: F.adaptive_max_pool3d(x, 3, return_indices=True),
            lambda x: F.interpolate(x, size=(2, 3, 4), mode="area"),
        ],
        ((torch.arange(120.0) * 37) % 121).reshape(1, 1, 4, 5, 6),
    ),
    "choices with names, one or the other": (
        [
            lambda x, sorter: torch.searchsorted(x, x, sorter=sorter, right=True),
            lambda x, sorter: torch.searchsorted(x, x, sorter=sorter, out_int32=True),
            lambda x, sorter: torch.searchsorted(x, 1.5, sorter=sorter, out_int32=True),
        ],
        torch.tensor([3.0, 1, 2, 1]),
        torch.tensor([1, 3, 2, 0]),
    ),
    "one number": (
        [
            lambda x, i: torch.take(x, i),
            lambda x, i: torch.take(x[0], i.reshape(1)),
            lambda x, i: torch.take(x.reshape(2, 2), i.expand(2, 0)),
        ],
        torch.tensor([3.0, 1, 2, 4]),
        torch.tensor(-1),
    ),
    "averages whose sizes stand for several axes": (
        [
            lambda x: torch.ops.aten.avg_pool2d(x, [2, 2], [], [0], False, True, -2),
            lambda x: torch.ops.aten.avg_pool2d(x[0], [2], [1], [1]),
        ],
        torch.arange(32.0).reshape(1, 2, 4, 4),
    ),
    "conversions to and from complex numbers": (
        [
            lambda x, z: x.cdouble(),
            lambda x, z: x.half().to(torch.complex64) + z,
            lambda x, z: x.int().to(torch.complex64) * z,
            lambda x, z: (x > 0) * 2j,
            lambda x, z: (x.abs() * 100).to(torch.uint8) * 2j,
            lambda x, z: (x > 0) * z,
            lambda x, z: torch.fft.fft(x > 0),
            lambda x, z: z.cdouble() * 2,
            lambda x, z: z.cdouble().to(torch.complex64) * z,
        ],
        torch.tensor([3.0, 1, 2, 4]),
        torch.tensor([1j, 2, 3 - 2j, -1]),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_finding(name):
    functions, *args = WRONG[name]
    compare(functions, *args, rtol=2e-3 if args[0].dtype == torch.float16 else 1e-5)


ROWS = torch.arange(15.0).reshape(5, 3)
SKEW = torch.tensor([[3.0, 1, 2], [0, 2, -1], [1, 0, 4]])
DYNAMIC = {
    "a list": lambda x: x[[1, 2]],
    "a tensor": lambda x: x[torch.tensor([2, 0, 2])],
    "gather": lambda x: torch.gather(x, 0, torch.tensor([[1, 0, 2], [0, 0, 1]])),
    "embedding": lambda x: F.embedding(torch.tensor([[1, 2], [0, 0]]), x),
    "index_select": lambda x: torch.index_select(x, 0, torch.tensor([2, 1])),
    "take": lambda x: torch.take(x, torch.tensor([2, 4, 1])),
    "both": lambda x: x[[0, 2, 1], [2, 1, 0]],
}


def test_dynamic_rows_that_are_chosen_by_few():
    """The program reads a tensor of unknown size at places that it knows."""
    functions = list(DYNAMIC.values())
    model = Function(functions)
    compiled = eyas.compile(model, (ROWS,), dynamic_shapes=(({0: torch.export.Dim("n", min=3)},),))
    for size in (5, 4, 3):
        same(compiled(ROWS[:size].contiguous()), model(ROWS[:size]))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[0, 0].item() * 2,
        lambda x: x * x[0, 1].item(),
        lambda x: x + x.long()[0, 1].item(),
        lambda x: x.sum().item(),
    ],
)
def test_numbers_of_tensors(function):
    compare([function], ROWS)


@pytest.mark.parametrize("places", [[1, 3], [], [0, 0, 5], [4]])
def test_split_at_places_that_are_a_tensor(places):
    where = torch.tensor(places, dtype=I64)
    compare([lambda x: torch.tensor_split(x, where)], ROWS)


def test_only_numbers():
    compare([lambda x: x.shape], ROWS)
    compare([lambda x: x.shape[0] * 2, lambda x: 3.5, lambda x: "name", lambda x: None], ROWS)
    model = Function([lambda x: x.shape[0], lambda x: 7])
    compiled = eyas.compile(model, (ROWS,), dynamic_shapes=(({0: torch.export.Dim("n", min=2)},),))
    same(compiled(ROWS[:4].contiguous()), [4, 7])


def gradients(function: Callable[..., Any], *args: torch.Tensor) -> tuple[Any, list[Any]]:
    args = tuple(arg.clone().requires_grad_(arg.is_floating_point()) for arg in args)
    made = function(*args)
    made.sum().backward()
    return made.detach(), [arg.grad for arg in args]


@pytest.mark.parametrize(
    "function,args",
    [
        (lambda w: F.embedding(torch.tensor(2), w), (ROWS,)),
        (lambda x: torch.sort(x, -1).values * ROWS, (ROWS,)),
        (lambda x: torch.topk(x, 2).values * 3, (ROWS,)),
        (lambda x: torch.kthvalue(x, 2).values * 3, (ROWS,)),
        (lambda x: x.scatter_add(-1, torch.zeros(5, 3, dtype=I64), x * 2), (ROWS,)),
        (lambda x: x.unsqueeze(0).squeeze(0).exp(), (ROWS / 10,)),
        (lambda x: torch.cat([x[0], x[0].gather(0, torch.zeros(2, 0, dtype=I64)).sum().reshape(1)]), (ROWS,)),
        (lambda x: x.index_fill(0, torch.tensor([2, 0]), x.sum()), (ROWS,)),
        (lambda x: F.cross_entropy(x, torch.tensor([0, 1, 2, 0, 1])), (ROWS,)),
        # Matrices in rows and in columns.
        *(
            (function, (matrix,))
            for function in (torch.linalg.det, torch.logdet, lambda x: torch.linalg.solve(x, ROWS[:3]))
            for matrix in (SKEW, SKEW.T)
        ),
        (lambda x: torch.as_strided_copy(x, (1,), (1,), 0) * 3, (ROWS[0, 1:2].clone(),)),
        (lambda x: torch.as_strided(x, (), (), 4) * x, (ROWS,)),
    ],
)
def test_gradients(function, args):
    compiled = torch.compile(function, backend="eyas", fullgraph=True)
    same(gradients(compiled, *args), gradients(function, *args))


@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_attention_of_half_types_is_as_exact_as_torch(dtype, target):
    generator = torch.Generator().manual_seed(1)
    given = [(torch.randn(2, 2, 9, 16, generator=generator) * 3).to(dtype) for _ in range(3)]
    mask = torch.rand(9, 9, generator=generator) > 0.3

    def attend(query, key, value):
        plain = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return plain, F.scaled_dot_product_attention(query, key, value, attn_mask=mask)

    made, eager = eyas.compile(attend, given, target=target)(*given), attend(*given)
    for one, other, exact in zip(made, eager, attend(*(x.double() for x in given)), strict=True):
        assert one.dtype == dtype
        assert (one - exact).abs().max() <= 2 * (other - exact).abs().max()


def test_gradients_of_a_selection():
    """Its size depends on data, which not even `aot_eager` takes whole; it is eager's."""
    mask = ROWS % 2 == 0

    def select(x):
        return torch.masked_select(x * 2, mask) + 1

    same(gradients(torch.compile(select, backend="eyas"), ROWS), gradients(select, ROWS))


@pytest.mark.parametrize("pad", [(1, 0, 0, 0), (1, 2, 2, 1), (0, 0, 0, 0, 0, 2), (0, 1, 1, 0, 0, 0, 1, 2)], ids=str)
def test_a_padded_image_is_spread(pad):
    """Zeros around pixels between which there will be others; also images and channels of zeros."""
    channels = 4 + sum(pad[4:6])
    spread = nn.ConvTranspose2d(channels, 3, 2, stride=(2, 3), padding=(1, 0)).eval()
    compare([lambda x: spread(F.pad(x, pad))], torch.randn(2, 4, 3, 5), rtol=1e-4)


def test_padding_is_written_with_gaps():
    def spaced(x):
        y = torch.zeros(2, 12)
        y[:, 1::2] = F.pad(x, (2, 1))
        return y

    compare([spaced], torch.randn(2, 3))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_extremes_of_two_types_keep_nan(dtype):
    nan = math.nan
    functions = [torch.maximum, torch.minimum, torch.fmax, torch.fmin]
    for other in (torch.tensor(1.0), torch.tensor([1.0, nan, nan, 3.0]), torch.tensor([1, 2, 3, 4])):
        compare(functions, torch.tensor([nan, 2.0, nan, 4.0], dtype=dtype), other)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16])
def test_common_multiples_that_are_too_large(dtype):
    bounds = torch.iinfo(dtype)
    x, y = (torch.randint(bounds.min, bounds.max, (99,), dtype=dtype) for _ in range(2))
    compare([torch.lcm, torch.gcd], x, y)
