"""Our decompositions compute what eager torch does, in the tensors' own width."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

from eyas.frontends import import_model  # noqa: E402
from eyas.frontends.torch import decompositions, rare  # noqa: E402
from eyas.frontends.torch.decompositions import decomposition_table  # noqa: E402
from eyas.verification.oracle import evaluate  # noqa: E402


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


torch.manual_seed(0)
QUERY, KEY, VALUE = torch.randn(2, 4, 6, 8), torch.randn(2, 4, 5, 8), torch.randn(2, 4, 5, 8)
HALF_KEY, HALF_VALUE = torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8)
X = torch.randn(3, 7, 10)
# One row of each mask hides everything: its result is 0, not NaN.
BOOL_MASK = torch.rand(2, 1, 6, 5) > 0.5
BOOL_MASK[0, 0, 2] = False
FLOAT_MASK = torch.randn(6, 5)
FLOAT_MASK[1] = float("-inf")

STATISTICS = torch.randn(7), torch.rand(7) + 0.1

CASES = {
    "batch-norm": (lambda x, m, v: F.batch_norm(x, m, v, m + 1, v - 1, eps=0.01), X, *STATISTICS),
    "batch-norm-plain": (F.batch_norm, X, *STATISTICS),
    "batch-norm-weight": (lambda x, m, v: F.batch_norm(x, m, v, weight=v), X[:, :, 0], *STATISTICS),
    "batch-norm-bias": (lambda x, m, v: F.batch_norm(x, m, v, bias=m), X[:, :, :, None, None], *STATISTICS),
    "batch-norm-half": (F.batch_norm, X.half(), *STATISTICS),
    "attention": (F.scaled_dot_product_attention, QUERY, KEY, VALUE),
    "self-attention": (F.scaled_dot_product_attention, QUERY, QUERY, QUERY),
    "causal": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), QUERY, KEY, VALUE),
    "bool-mask": (F.scaled_dot_product_attention, QUERY, KEY, VALUE, BOOL_MASK),
    "float-mask": (lambda *a: F.scaled_dot_product_attention(*a, scale=0.3), QUERY, KEY, VALUE, FLOAT_MASK),
    "grouped": (lambda *a: F.scaled_dot_product_attention(*a, enable_gqa=True), QUERY, HALF_KEY, HALF_VALUE),
    "softmax": (lambda x: torch.softmax(x * 50, 1), X),
    "layer-norm": (nn.LayerNorm((7, 10)), X * 3 + 5),
    "group-norm": (nn.GroupNorm(2, 4), torch.randn(2, 4, 5, 5)),
    "gelu-tanh": (nn.GELU("tanh"), X * 3),
    "gelu": (nn.GELU(), X),
    "variance": (lambda x: x.var(1), X),
    "variance-all": (lambda x: x.var(), X),
    "variance-biased": (lambda x: x.var(dim=(0, 2), correction=0, keepdim=True), X),
    "deviation": (lambda x: x.std(-1), X),
    "variance-mean": (lambda x: torch.var_mean(x, 1), X),
    "lerp": (lambda x: (torch.lerp(x, x + 3, 0.1), torch.lerp(x, 2 * x, 0.75), torch.lerp(x, x - 1, -2.0)), X),
    "lerp-half": (lambda x: torch.lerp(x, x + 3, 0.1), X.half()),
    "powers": (lambda x: (x**2, x**3, x**4, x.abs() ** 0.5, (x.abs() + 1) ** -0.5, x**5), X),
    # Cuts and grows: equal sizes must not be taken for "nothing to do".
    "shift": (lambda x: F.pad(x, (0, 0, 1, -1)), X),
    "cut": (lambda x: F.pad(x, (-2, 3, -1, -1), value=4.0), X),
    "top-unsorted": (lambda x: torch.topk(x, 3, sorted=False)[0].sum(-1), X),
    "quotient-of-sizes": (lambda x: x.reshape(torch.div(x.size(1), 3, rounding_mode="trunc"), -1), X),
    "integer-power": (lambda x: x**2, torch.arange(4)),
}


@pytest.mark.parametrize("name", CASES)
def test_matches_eager(name):
    function, *args = CASES[name]
    model = function if isinstance(function, nn.Module) else Function(function)
    program = import_model(model.eval(), *args)
    assert len(program.signature.arguments) == len(args)
    assert "f64" not in program.as_text()
    expected = model(*args)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for got, want in zip(evaluate(program, *(a.numpy() for a in args)), expected, strict=True):
        np.testing.assert_allclose(got, want.detach().numpy(), rtol=2e-5, atol=2e-6)


def test_softmax_carries_no_indices():
    assert "linalg.index" not in import_model(Function(lambda x: torch.softmax(x, 1)), X).as_text()


def test_half_types_reduce_in_f32():
    for function in (lambda x: torch.softmax(x, -1), lambda x: F.layer_norm(x, (10,))):
        program = import_model(Function(function), X.bfloat16())
        assert program.signature.results[0].dtype == "bf16"
        assert "arith.addf" in program.as_text()
        reductions = [line for line in program.as_text().splitlines() if "arith.addf" in line]
        assert all("f32" in line and "bf16" not in line for line in reductions), reductions


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.new_zeros(4, 2),
        lambda x: x.new_full((3,), 2.0),
        lambda x: torch.zeros(5),
        lambda x: torch.full((5,), 2.0),
        lambda x: torch.ones(2, dtype=torch.complex64).real,
        lambda x: torch.ops.aten.unfold_backward(x, [1, 10], 1, 4, 2),
    ],
)
def test_memory_is_filled_once(make):
    """What makes memory and what fills it are taken apart into each other by torch."""

    class Model(torch.nn.Module):
        def forward(self, x):
            return make(x)

    program = torch.export.export(Model(), (torch.randn(1, 4, 4),), strict=False)
    made = program.run_decompositions(decomposition_table())
    fills = [node for node in made.graph.nodes if "full" in str(node.target) or "empty" in str(node.target)]
    assert len(fills) <= 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8, torch.bool])
def test_differences_of_neighbours(dtype) -> None:
    x = torch.randint(0, 9, (3, 5)).to(dtype)
    for n in (0, 1, 3, 7):
        for dim, ends in ((-1, {}), (0, {}), (1, {"prepend": x[:, :2], "append": x[:, :1]})):
            made = rare.differences(x, n, dim, **ends)
            assert made is not x and torch.equal(made, torch.diff(x, n, dim, **ends))


def test_operators_are_looked_up_once(monkeypatch):
    """And from then on as before: somebody may have registered more."""
    utils = torch._export.utils
    calls, listing = [], utils._materialize_cpp_cia_ops
    monkeypatch.setattr(decompositions, "_LIST_OPERATORS", lambda: calls.append(listing()))
    monkeypatch.setattr(utils, "_materialize_cpp_cia_ops", decompositions._LIST_OPERATORS)
    decompositions.decompose(torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),)), {})
    assert len(calls) == 1 and utils._materialize_cpp_cia_ops is decompositions._LIST_OPERATORS
