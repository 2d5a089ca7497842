"""Kinds of torch programs against eager torch: many ops in one program, so that a table costs one compilation."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch._higher_order_ops.map import map as map_rows  # noqa: E402
from torch._higher_order_ops.scan import scan  # noqa: E402
from torch._higher_order_ops.while_loop import while_loop  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

import eyas  # noqa: E402

torch.manual_seed(0)
X = torch.randn(5, 7)
SQUARE = torch.randn(4, 6)
ROWS = torch.tensor([2, 0, 4, 2, 2, 1, 3, 3, 0])
SORTED = torch.sort(torch.randn(80)).values
C, D = torch.randn(2, 4, 6, dtype=torch.complex64)
WINDOW = torch.hann_window(64)


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


class Spectrum(nn.Module):
    """Complex weights, small enough to be values of the IR and too large for that."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, dtype=torch.complex64))
        self.register_buffer("table", torch.randn(40, 6, dtype=torch.complex64))

    def forward(self, x):
        return x * self.weight + self.table[:4], self.table.abs().sum()


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)

    def forward(self, x):
        one, two = torch.cond(
            x.sum() > 0, lambda x: (self.linear(x) + 1, x.cos()), lambda x: (torch.softmax(x, -1), x.exp()), (x,)
        )
        return one @ two.T


class Loop(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)

    def forward(self, x):
        def goes_on(turn, x):
            return (turn < 5) & (x.abs().sum() < 100)

        return while_loop(goes_on, lambda turn, x: (turn + 1, self.linear(x) * 3), (torch.tensor(0), x))


def write(x, rows):
    x = x.clone()
    x[rows, 2] = 5.0
    x[1:3, ::2] = rows[:4].float()
    return x


PROGRAMS = {
    "counts": (
        lambda x, rows: (
            torch.histc(x, 6, -1, 2),
            torch.histc(x, 6),
            F.one_hot(rows, 5),
            torch.searchsorted(SORTED, x),
            torch.bucketize(x, SORTED[:9], right=True),
            torch.zeros(5, 7).scatter_add(0, rows[:6].reshape(2, 3), x),
            torch.zeros(5, 7).index_add(0, rows, x[rows], alpha=2.0),
            torch.ones(5, 7).index_reduce(0, rows, x[rows], "amax"),
        ),
        (X, ROWS),
    ),
    "writes": (
        lambda x, rows: (
            x.index_put((rows,), torch.ones(9, 7)),
            x.index_put((rows, rows), torch.arange(9.0), accumulate=True),
            torch.ops.aten.index_put(x, [x > 0], torch.tensor(3.0)),
            torch.diagonal_scatter(x, torch.ones(5)),
            write(x, rows),
        ),
        (X, ROWS),
    ),
    "bags": (
        lambda rows, table: (
            F.embedding_bag(rows, table, torch.tensor([0, 3, 3]), mode="sum", per_sample_weights=table[:, 0][rows]),
            F.embedding_bag(rows, table, torch.tensor([0, 3, 3]), mode="mean", padding_idx=2),
            F.embedding_bag(rows.reshape(3, 3), table, mode="max"),
        ),
        (ROWS, X),
    ),
    "order": (
        lambda x: (
            torch.median(x, 1),
            torch.mode(x > 0),
            torch.cummax(x, 1),
            torch.sort((x > 0).long(), stable=True, descending=True),
            torch.cdist(x, x[:3] + 1),
            F.pdist(x, 1.0),
        ),
        (X,),
    ),
    "order of NaN": (
        lambda x: (
            *torch.sort(x, 1),
            *torch.topk(x, 3, 1),
            *torch.max(x, 1),
            torch.argmin(x, 1),
            torch.median(x, 1)[0],
            torch.nanmedian(x, 1)[0],
        ),
        (torch.where(X > 1, torch.nan, X),),
    ),
    "comparisons of odd numbers": (
        lambda x, y: (
            *(x == x, x != x, x <= x, x == y, x != y, torch.isclose(x, x), torch.isclose(x, y)),
            *(torch.isclose(x, y, equal_nan=True), torch.isfinite(x), torch.isfinite(x.long())),
        ),
        (
            torch.tensor([1.0, torch.nan, torch.inf, -torch.inf, 0.0]),
            torch.tensor([1.0, torch.nan, torch.inf, 2, -0.0]),
        ),
    ),
    "bytes": (
        lambda a, b: (
            *(a * 2, a * b, a // 3, a % 3, torch.div(a, b, rounding_mode="floor"), torch.fmod(a, b), a + b, a - b),
            *(a << (b & 3), a >> (b & 3), a >> 1, ~a, a.max(), a.argmax(), a.sum(), a.clamp(2, 50), a > b, a / b),
        ),
        (torch.tensor([0, 1, 100, 200, 255], dtype=torch.uint8), torch.tensor([3, 7, 200, 100, 255]).to(torch.uint8)),
    ),
    "signed": (
        lambda a, b: (
            *(a * b, a // 3, a % 3, a // b, torch.div(a, b, rounding_mode="trunc"), torch.fmod(a, b), a % b),
            *(a << (b & 3), a >> (b & 3), a << 1, -a, a.abs()),
        ),
        (torch.tensor([-128, -7, -1, 3, 127]).to(torch.int8), torch.tensor([3, 2, -1, -2, 5]).to(torch.int8)),
    ),
    "floats rounded down": (
        lambda a, b: (
            *(a // b, a // 0.1, a // -3, torch.div(a, b, rounding_mode="floor"), a // b.bfloat16(), a.half() // 3.0),
            *(1.0 // b, a.half() // b.half(), torch.fmod(a, b), torch.fmod(a, 2.0), torch.fmod(1e20 * a, 3 * b)),
            *(torch.fmod(a.half(), b.half()), torch.remainder(a, b), torch.fmod(a, torch.inf)),
        ),
        (
            torch.tensor([6.0, -6.0, -1.0, 1.0, 0.0, -0.0, 7.5, -7.5, torch.nan, torch.inf, 3.0, -1e-30]),
            torch.tensor([0.1, 0.1, torch.inf, -torch.inf, -2.0, 2.0, 2.5, 2.0, 1.0, 2.0, 0.0, 1e10]),
        ),
    ),
    "long integers rounded down": (
        lambda a, b: (a // b, a // -1, a // 3, torch.div(a, -2, rounding_mode="floor"), torch.floor_divide(a, 7)),
        (
            torch.tensor([5288834974689840763, -5288834974689840763, -7, 7, 0, 2**62 + 1]),
            torch.tensor([-1, 3, 2, -2, 5, -3]),
        ),
    ),
    "scalars": (
        lambda s, t: (
            *(s + t, s.expand(3), torch.stack([s, t]), s.argmax(), torch.softmax(s, 0), s.cumsum(0), s.sort()[0]),
            *(s.std(correction=0), s.flatten(), s.any(), s.prod()),
        ),
        (torch.tensor(1.5), torch.tensor(-2.0)),
    ),
    "transforms": (
        lambda x, c: (
            torch.fft.fft(x, n=9),
            torch.fft.rfft2(x, norm="ortho"),
            torch.fft.irfft(c, n=7),
            torch.fft.ifftn(c),
            torch.fft.fftshift(x),
            torch.fft.hfft(c),
        ),
        (SQUARE, C),
    ),
    "long transforms": (lambda x: (torch.fft.fft(x).abs(), torch.fft.rfft(x[:, :97])), (torch.randn(2, 400),)),
    "short time": (
        lambda x: torch.istft(
            torch.stft(x, 64, 16, window=WINDOW, return_complex=True), 64, 16, window=WINDOW, length=400
        ),
        (torch.randn(2, 400),),
    ),
    "complex": (
        lambda a, b: (
            *(a + b, a * b, a / b, a * 2.5, a + 1j, a.conj() * b, -a, a.abs(), a.angle(), a.exp(), a.sum(1)),
            *(a == b, a.mean(0), a @ b.T, torch.view_as_real(a), a.sqrt(), a.log(), torch.where(a.real > 0, a, b)),
            *(torch.polar(a.abs(), b.angle()), torch.cat([a, b]), a.masked_fill(a.imag > 0, 1j), a**2, a.prod(0)),
        ),
        (C, D),
    ),
    "complex weights": (Spectrum(), (C,)),
    "complex f64": (lambda a: (a * a * 0.1, a.abs()), (C.to(torch.complex128),)),
    "scan": (lambda x, y: scan(lambda carry, row: (carry + row, carry * 2), y, x), (SQUARE, torch.randn(6))),
    "map": (lambda x, y: map_rows(lambda row, y: row @ y, x, y), (torch.randn(5, 3, 3), torch.randn(3, 3))),
}


def check(compiled, model, args):
    want, got = pytree.tree_leaves(model(*args)), pytree.tree_leaves(compiled(*args))
    for number, (one, other) in enumerate(zip(got, want, strict=True)):
        one, other = np.asarray(one), other.detach().resolve_conj().numpy()
        assert one.dtype == other.dtype and one.shape == other.shape, number
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4, err_msg=f"result {number}")


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_eager(name):
    function, args = PROGRAMS[name]
    model = function if isinstance(function, nn.Module) else Function(function)
    check(eyas.compile(model, args), model, args)


@pytest.mark.parametrize("model", [Branch(), Loop()], ids=["cond", "while_loop"])
def test_control_flow_depends_on_data(model):
    compiled = eyas.compile(model, (SQUARE,))
    for x in (SQUARE, SQUARE.abs(), -SQUARE.abs() * 30):
        check(compiled, model, (x,))


# Programs whose results have sizes that depend on data.
SELECTIONS = {
    "masks": lambda x: (x[x > 0] * 2, torch.masked_select(x, x < 0), torch.nonzero(x > 1)),
    "unique": lambda x: torch.unique((x * 2).long(), return_inverse=True, return_counts=True),
    "runs": lambda x: torch.unique_consecutive((x > 0).long(), return_counts=True)[1],
    "counts": lambda x: torch.bincount((x * 2).long().abs().flatten(), minlength=3),
    "scalar": lambda x: torch.nonzero(x[0, 0] > 0),
    "repeats": lambda x: torch.repeat_interleave(x, (x[:, 0] * 2).long().abs(), 0),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_sizes_from_data(name):
    model = Function(SELECTIONS[name])
    compiled = eyas.compile(model, (X,))
    for x in (X, X * 3, X.abs() + 1):
        check(compiled, model, (x,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_grouped_products(dtype):
    x, weights = torch.randn(10, 16, dtype=dtype), torch.randn(4, 16, 8, dtype=dtype)

    class Experts(nn.Module):
        def forward(self, x, weights, ends):
            if dtype is torch.float32:
                # torch traces its own op for bf16 only.
                from eyas.frontends.torch.routing import grouped_mm

                return grouped_mm(x, weights, ends)
            return F.grouped_mm(x, weights, offs=ends)

    ends = torch.tensor([2, 2, 7, 10], dtype=torch.int32)
    compiled = eyas.compile(Experts(), (x, weights, ends))
    for cut in (ends, torch.tensor([0, 10, 10, 10], dtype=torch.int32)):
        want = torch.cat([x[b:e].float() @ w.float() for b, e, w in zip([0, *cut[:-1]], cut, weights, strict=True)])
        got = compiled(x, weights, cut).float()
        torch.testing.assert_close(got, want, rtol=1e-2 if dtype is torch.bfloat16 else 1e-5, atol=1e-4)
