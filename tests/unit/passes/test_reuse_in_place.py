"""Random chains of kernels give the same bits with `reuse-in-place` on and off, and the pass does save memory."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import programs as p  # noqa: E402

import eyas  # noqa: E402
from eyas.ir import make_context, mlir, parse_module  # noqa: E402
from eyas.passes.schedule.reuse_in_place import alias_pairs  # noqa: E402
from eyas.targets import Target  # noqa: E402

N = 24
A, S, W = p.tensor_type([N, N]), p.tensor_type([N]), p.tensor_type([N, N])
ID, TR, ROW, COLUMN = p.affine(2, [0, 1]), p.affine(2, [1, 0]), p.affine(2, [0]), p.affine(2, [1])


def random_program(rng: np.random.Generator) -> str:
    """Elementwise ops (some transposed), reductions, broadcasts, pads and products over values of one size."""
    lines = (
        p.filled("zeros", [N, N], "f32", "0.0") + p.filled("low", [N], "f32", "0.0") + f"%e = tensor.empty() : {A}\n"
    )
    matrices, vectors = ["x", "y"], ["v"]

    def matrix() -> str:  # mostly recent values, so that old ones die
        return matrices[-1 - min(len(matrices) - 1, int(rng.geometric(0.6)) - 1)]

    for step in range(int(rng.integers(4, 12))):
        name, kind = (
            f"t{step}",
            rng.choice(["add", "transposed", "row", "rows", "columns", "matmul", "shift", "softmax"]),
        )
        half = "%h = arith.constant 0.5 : f32\n"
        if kind in ("add", "transposed"):
            maps = [ID, TR if kind == "transposed" else ID]
            body = half + "%m = arith.mulf %i1, %h : f32\n%r = arith.addf %i0, %m : f32"
            lines += p.generic(name, [(matrix(), A, maps[0]), (matrix(), A, maps[1])], ("e", A, ID), "pp", body, "f32")
        elif kind == "row":
            map_ = ROW if rng.random() < 0.5 else COLUMN
            body = "%r = arith.subf %i0, %i1 : f32"
            lines += p.generic(
                name, [(matrix(), A, ID), (str(rng.choice(vectors)), S, map_)], ("e", A, ID), "pp", body, "f32"
            )
        elif kind in ("rows", "columns"):
            map_, loops = (ROW, "pr") if kind == "rows" else (COLUMN, "rp")
            lines += p.generic(
                name, [(matrix(), A, ID)], ("low", S, map_), loops, "%r = arith.maximumf %i0, %o : f32", "f32"
            )
            vectors.append(name)
            continue
        elif kind == "matmul":
            source = matrix()
            lines += f"%{name}_m = linalg.matmul ins(%{source}, %y : {A}, {A}) outs(%zeros : {A}) -> {A}\n"
            body = "%h = arith.constant 0.03125 : f32\n%r = arith.mulf %i0, %h : f32"
            lines += p.generic(name, [(f"{name}_m", A, ID)], ("e", A, ID), "pp", body, "f32")
        elif kind == "shift":
            lines += f"""%{name}_z = arith.constant 1.0 : f32
              %{name}_s = tensor.extract_slice %{matrix()}[1, 0] [{N - 1}, {N}] [1, 1] : {A} to tensor<{N - 1}x{N}xf32>
              %{name} = tensor.pad %{name}_s low[0, 0] high[1, 0] {{
              ^bb0(%a: index, %b: index): tensor.yield %{name}_z : f32 }} : tensor<{N - 1}x{N}xf32> to {A}\n"""
        else:
            source = matrix()
            lines += p.generic(
                f"{name}_m", [(source, A, ID)], ("low", S, ROW), "pr", "%r = arith.maximumf %i0, %o : f32", "f32"
            )
            body = "%r = arith.subf %i0, %i1 : f32"
            lines += p.generic(name, [(source, A, ID), (f"{name}_m", S, ROW)], ("e", A, ID), "pp", body, "f32")
        matrices.append(name)
    return p.main([("x", A), ("y", A), ("v", S)], lines, [(matrices[-1], A), (vectors[-1], S)])


@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
@pytest.mark.parametrize("seed", range(14))
def test_random_programs(seed, target):
    rng = np.random.default_rng(seed)
    text = random_program(rng)
    inputs = [p.random_array(rng, shape, "f32") for shape in ((N, N), (N, N), (N,))]
    kept = [one.copy() for one in inputs]
    with_pass, without = (eyas.compile(text, target=target, disable=off) for off in ((), ("reuse-in-place",)))
    for _ in range(2):  # the second call finds the arena full of old values
        for one, other in zip(with_pass(*inputs), without(*inputs), strict=True):
            np.testing.assert_array_equal(one, other)
    for one, other in zip(inputs, kept, strict=True):
        np.testing.assert_array_equal(one, other)
    sizes = [module.manifest["memory"].get("arena_bytes", 0) for module in (with_pass, without)]
    assert sizes[0] <= sizes[1]


def test_it_saves_memory():
    """Products with elementwise ops between them that do not fuse: they need rows in common and have columns."""
    lines = (
        p.filled("zeros", [N, N], "f32", "0.0") + p.filled("low", [N], "f32", "0.0") + f"%e = tensor.empty() : {A}\n"
    )
    lines += f"%a = linalg.matmul ins(%x, %x : {A}, {A}) outs(%zeros : {A}) -> {A}\n"
    lines += p.generic("m", [("a", A, ID)], ("low", S, COLUMN), "rp", "%r = arith.maximumf %i0, %o : f32", "f32")
    lines += p.generic(
        "b", [("a", A, ID), ("m", S, COLUMN)], ("e", A, ID), "pp", "%r = arith.subf %i0, %i1 : f32", "f32"
    )
    lines += f"%z = linalg.matmul ins(%b, %b : {A}, {A}) outs(%zeros : {A}) -> {A}\n"
    text = p.main([("x", A)], lines, [("z", A)])
    sizes = [eyas.compile(text, disable=off).manifest["memory"]["arena_bytes"] for off in ((), ("reuse-in-place",))]
    assert sizes == [N * N * 4 + 128, 2 * N * N * 4 + 128]


def test_loops_that_are_bufferised_never_share_memory():
    """They may write a part of a result before they have read all of an operand."""
    text = p.main([("x", A)], f"%e = tensor.empty() : {A}\n" + p.generic(
        "z", [("x", A, ID)], ("e", A, ID), "pp", "%r = arith.addf %i0, %i0 : f32", "f32"
    ), [("z", A)])  # fmt: skip
    module = parse_module(text.replace("@main", "private @main"), make_context())
    with module.context, mlir.Location.unknown():
        function = module.body.operations[0]
        for target in ("llvm-cpu", "vmvx"):
            assert alias_pairs(function, Target.parse(target), (), {}) == [(0, 1)]
        assert alias_pairs(function, Target.parse("vmvx"), ("microkernels",), {}) == []
