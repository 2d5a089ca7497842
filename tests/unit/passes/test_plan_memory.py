"""Programs through `plan-memory`: the cap, what the manifest says, and what the arena really takes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import programs as p  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import CompileError  # noqa: E402


def chain(steps: int, n: int | str = 64) -> str:
    """Products one after the other: nothing fuses, two intermediates are alive at a time."""
    a = p.tensor_type([n, 64])
    lines = "" if n != "?" else f"%c0 = arith.constant 0 : index\n%d = tensor.dim %x, %c0 : {a}\n"
    lines += p.filled("init", [n, 64], "f32", "0.0", "%d" if n == "?" else "")
    source = "x"
    for step in range(steps):
        lines += f"%y{step} = linalg.matmul ins(%{source}, %w : {a}, tensor<64x64xf32>) outs(%init : {a}) -> {a}\n"
        source = f"y{step}"
    return p.main([("x", a), ("w", "tensor<64x64xf32>")], lines, [(source, a)])


def test_a_chain_needs_two_buffers():
    memory = eyas.compile(chain(6)).manifest["memory"]
    assert memory == {"arena_bytes": 2 * 64 * 64 * 4, "arena_lower_bound_bytes": 2 * 64 * 64 * 4}


def test_the_cap_is_honoured_and_explained():
    needed = 2 * 64 * 64 * 4
    assert eyas.compile(chain(6), max_arena_bytes=needed)
    with pytest.raises(
        CompileError, match=rf"needs {needed} bytes .* more than the cap of {needed - 1}; raise the cap"
    ):
        eyas.compile(chain(6), max_arena_bytes=needed - 1)


def test_one_dispatch_needs_no_arena():
    assert eyas.compile(chain(1)).manifest["memory"].get("arena_bytes", 0) == 0


def test_dynamic_sizes_are_packed_at_run_time():
    module = eyas.compile(chain(6, "?"))
    rng = np.random.default_rng(0)
    w = (rng.standard_normal((64, 64)) / 8).astype(np.float32)
    for n in (1, 64, 200, 3):
        x = rng.standard_normal((n, 64)).astype(np.float32)
        wanted = x.astype(np.float64)
        for _ in range(6):
            wanted = wanted @ w
        np.testing.assert_allclose(module(x, w), wanted, rtol=1e-4, atol=1e-4)
        assert module.transient_bytes >= 2 * n * 256
    assert module.transient_bytes < 5 * 200 * 256


def test_sizes_that_follow_from_each_other_are_looked_at_once():
    """Each of 60 sizes uses the one before twice: paths between the first and the last are more than can be walked."""
    row = "tensor<?xf32>"
    for first in (
        f"%d0 = tensor.dim %x, %c0 : {row}\n",
        "%e = tensor.extract %n[] : tensor<i64>\n%d0 = arith.index_cast %e : i64 to index\n",
    ):
        lines = "%c0 = arith.constant 0 : index\n%z = arith.constant 0.0 : f32\n" + first
        for step in range(60):
            lines += f"%m{step} = arith.addi %d{step}, %d{step} : index\n"
            lines += f"%d{step + 1} = arith.minui %m{step}, %d{step} : index\n"
        lines += f"%init = tensor.empty(%d60) : {row}\n"
        lines += p.generic(
            "a", [("x", row, p.affine(1, [0]))], ("init", row, p.affine(1, [0])), "p", "%r = math.exp %i0 : f32", "f32"
        )
        module = eyas.compile(p.main([("x", row), ("n", "tensor<i64>")], lines, [("a", row)]))
        x = np.ones(5, np.float32)
        np.testing.assert_allclose(module(x, np.int64(5)), np.exp(x), rtol=1e-6)
