"""Recurrent layers of torch: right in every form, loops instead of written-out steps, for sizes that vary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim

import eyas

KINDS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-6, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def check(layer: nn.Module, *calls: tuple, dynamic_shapes: Any = None, **options: Any) -> Any:
    layer = layer.eval()
    module = eyas.compile(layer, calls[0], dynamic_shapes=dynamic_shapes, **options)
    for inputs in calls:
        with torch.no_grad():
            expected = torch.utils._pytree.tree_leaves(layer(*inputs))
        actual = torch.utils._pytree.tree_leaves(module(*inputs))
        assert len(actual) == len(expected)
        for left, right in zip(actual, expected, strict=True):
            assert left.dtype == right.dtype and left.shape == right.shape
            tolerance = TOLERANCE[right.dtype]
            np.testing.assert_allclose(left.double(), right.double(), rtol=tolerance, atol=tolerance)
    return module


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bias": False},
        {"num_layers": 3},
        {"bidirectional": True, "batch_first": True},
        {"num_layers": 2, "bidirectional": True, "bias": False},
    ],
    ids=lambda options: "-".join(options) or "plain",
)
def test_forms(kind: str, options: dict[str, Any]):
    torch.manual_seed(0)
    check(KINDS[kind](5, 7, **options), (torch.randn(9, 3, 5),))


@pytest.mark.parametrize("bidirectional", [False, True])
def test_projections_with_given_states(bidirectional: bool):
    torch.manual_seed(0)
    layer = nn.LSTM(6, 10, num_layers=2, proj_size=4, bidirectional=bidirectional)
    count = 2 * (1 + bidirectional)
    check(layer, (torch.randn(5, 3, 6), (torch.randn(count, 3, 4), torch.randn(count, 3, 10))))


@pytest.mark.parametrize("kind", ["gru", "rnn"])
def test_given_states(kind: str):
    torch.manual_seed(0)
    check(KINDS[kind](6, 10), (torch.randn(5, 3, 6), torch.randn(1, 3, 10)))


def test_relu_and_no_batch():
    torch.manual_seed(0)
    check(nn.RNN(4, 8, nonlinearity="relu"), (torch.randn(6, 4),))


def test_one_step_of_one_row():
    torch.manual_seed(0)
    check(nn.LSTM(3, 5), (torch.randn(1, 1, 3),))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_types(kind: str, dtype: torch.dtype):
    torch.manual_seed(0)
    check(KINDS[kind](8, 16).to(dtype), (torch.randn(7, 2, 8, dtype=dtype),))


@pytest.mark.parametrize("kind", KINDS)
def test_steps_and_batch_that_vary(kind: str):
    torch.manual_seed(0)
    calls = [(torch.randn(steps, batch, 6),) for steps, batch in ((12, 3), (2, 2), (31, 7))]
    shapes = ({0: Dim("steps", min=2), 1: Dim("batch", min=2)},)
    check(KINDS[kind](6, 9, bidirectional=True), *calls, dynamic_shapes=shapes)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
def test_hundreds_of_steps_stay_a_loop(kind: str, target: str):
    """As many dispatches as a few steps take."""
    torch.manual_seed(0)
    layer = KINDS[kind](16, 24)
    short = check(layer, (torch.randn(4, 2, 16),), target=target)
    long = check(layer, (torch.randn(300, 2, 16),), target=target)
    assert len(long.manifest["kernels"]) == len(short.manifest["kernels"]) < 12


@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
@pytest.mark.parametrize(
    ("kind", "steps", "options"),
    [("lstm", 7, {}), ("lstm", 8, {"bidirectional": True}), ("gru", 9, {"num_layers": 2}), ("rnn", 2, {})],
)
def test_steps_that_are_dispatches(kind: str, steps: int, options: dict[str, Any], target: str):
    """States of even and odd numbers of steps, read and written by turns, and states that are rows of the result."""
    torch.manual_seed(0)
    calls = [(torch.randn(steps, 3, 32),) for _ in range(2)]
    module = check(KINDS[kind](32, 96, **options), *calls, target=target, disable=["recurrence"])
    assert any("_loop_0_" in kernel["name"] for kernel in module.manifest["kernels"])
    assert not any("_for_" in kernel["name"] for kernel in module.manifest["kernels"])


@pytest.mark.parametrize(
    ("hidden", "batch", "cores", "apart"),
    [(64, 1, 2, False), (512, 1, 2, True), (512, 1, 1, False), (128, 8, 2, False), (512, 8, 2, True)],
)
def test_steps_with_much_work_are_dispatches(hidden: int, batch: int, cores: int, apart: bool):
    """All cores work on a step, unless there is little to do, or a core's cache holds the weights and each has rows."""
    torch.manual_seed(0)
    x = torch.randn(3, batch, 16)
    module = eyas.compile(nn.LSTM(16, hidden).eval(), (x,), target=f"llvm-cpu:x86_64:x86-64-v3:cores={cores},l2=1M")
    assert apart == any("_loop_0_" in kernel["name"] for kernel in module.manifest["kernels"])
    assert apart != any(kernel["strategy"] == "recurrence" for kernel in module.manifest["kernels"])


class Decoder(nn.Module):
    """Steps that read a tensor that all of them see, swap two states, and write two rows."""

    def forward(self, start: torch.Tensor, xs: torch.Tensor, memory: torch.Tensor) -> Any:
        from torch._higher_order_ops.scan import scan

        def step(carry: tuple, x: torch.Tensor) -> tuple:
            left, right = carry
            new = torch.tanh(left @ memory + x)
            return (right + 0.0, new), (new * 2, new + right)

        return scan(step, (start, start * 2), xs)


@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
def test_scan_with_captured_tensors(target: str):
    torch.manual_seed(0)
    check(Decoder(), (torch.randn(4, 64), torch.randn(5, 4, 64), torch.randn(64, 64) / 8), target=target)


POWERS = """
func.func @main(%w: tensor<32x32xf64>, %a: tensor<32x32xf64>, %b: tensor<32x32xf64>) -> (tensor<32x32xf64>, tensor<32x32xf64>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant {trips} : index
  %r:3 = scf.while (%i = %c0, %x = %a, %y = %b) : (index, tensor<32x32xf64>, tensor<32x32xf64>) -> (index, tensor<32x32xf64>, tensor<32x32xf64>) {{
    %go = arith.cmpi slt, %i, %n : index
    scf.condition(%go) %i, %x, %y : index, tensor<32x32xf64>, tensor<32x32xf64>
  }} do {{
  ^bb0(%i: index, %x: tensor<32x32xf64>, %y: tensor<32x32xf64>):
    %z = linalg.matmul ins(%w, %x : tensor<32x32xf64>, tensor<32x32xf64>) outs(%y : tensor<32x32xf64>) -> tensor<32x32xf64>
    %j = arith.addi %i, %c1 : index
    scf.yield %j, %z, %x : index, tensor<32x32xf64>, tensor<32x32xf64>
  }}
  return %r#1, %r#2 : tensor<32x32xf64>, tensor<32x32xf64>
}}
"""  # noqa: E501 - lines of IR are as long as they are


@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
@pytest.mark.parametrize("trips", [1, 2, 5])
@pytest.mark.parametrize("disable", [[], ["recurrence"]], ids=["whole", "steps"])
def test_states_alone(disable: list[str], trips: int, target: str, tmp_path):
    """No rows: one state becomes the other, and the arguments stay as they are."""
    (tmp_path / "powers.mlir").write_text(POWERS.format(trips=trips))
    w, x, y = np.random.default_rng(0).standard_normal((3, 32, 32)) / 8
    given = [array.copy() for array in (w, x, y)]
    module = eyas.compile(str(tmp_path / "powers.mlir"), target=target, disable=disable)
    actual = module(w, x, y)
    for _ in range(trips):
        x, y = w @ x + y, x
    for left, right in zip([*actual, *module(*given)], [x, y, x, y], strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-12)
    assert trips == 1 or not disable or any("_loop_0_" in kernel["name"] for kernel in module.manifest["kernels"])
    assert disable or trips == 1 or any(kernel["strategy"] == "recurrence" for kernel in module.manifest["kernels"])


@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
@pytest.mark.parametrize("backwards", [False, True])
def test_scans_of_jax(backwards: bool, target: str):
    """A loop that counts in tensors of one integer."""
    jax = pytest.importorskip("jax")
    rng = np.random.default_rng(0)
    w, u = (rng.standard_normal(shape).astype(np.float32) / 4 for shape in ((5, 24), (8, 24)))

    def gru(xs: Any) -> Any:
        def cell(h: Any, x: Any) -> Any:
            given, share = x @ w, h @ u
            update, reset = (jax.nn.sigmoid(given[:, k : k + 8] + share[:, k : k + 8]) for k in (0, 8))
            new = jax.numpy.tanh(given[:, 16:] + reset * share[:, 16:])
            h = (1 - update) * new + update * h
            return h, h

        return jax.lax.scan(cell, jax.numpy.ones((3, 8)), xs, reverse=backwards)

    xs = rng.standard_normal((11, 3, 5)).astype(np.float32)
    module = eyas.compile(gru, (xs,), target=target)
    for left, right in zip(module(xs), jax.jit(gru)(xs), strict=True):
        np.testing.assert_allclose(left, right, rtol=2e-6, atol=2e-6)
    assert any(kernel["strategy"] == "recurrence" for kernel in module.manifest["kernels"])
