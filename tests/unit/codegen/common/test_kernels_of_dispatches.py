# ruff: noqa: E501 - lines of IR are as long as they are
"""Dispatch functions as loop nests: symbolic sizes, accesses, what is fused into registers, which loops remain."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
import programs as p  # noqa: E402

from eyas.codegen.common.analyze import analyze  # noqa: E402
from eyas.codegen.common.flops import count_flops  # noqa: E402
from eyas.codegen.common.kernel import Access, Unsupported, linear_expr  # noqa: E402
from eyas.codegen.common.normalize import normalize  # noqa: E402
from eyas.codegen.common.sizes import ONE, ZERO, Size, product, row_major_strides  # noqa: E402
from eyas.codegen.llvm_cpu.compile import compile_dispatch  # noqa: E402
from eyas.ir import make_context, mlir, parse_module, run_upstream  # noqa: E402
from eyas.targets import Target  # noqa: E402

ID = p.affine(2, [0, 1])


@pytest.fixture(scope="module")
def context():
    return make_context()


def kernel_of(context, text: str, normalized: bool = True):
    module = parse_module(text.replace("@main", "private @main"), context)
    run_upstream(module, "linalg-generalize-named-ops,canonicalize,cse")
    with context, mlir.Location.unknown():
        kernel = analyze(next(iter(module.body.operations)))
        if normalized:
            kernel = normalize(kernel)
    return kernel, module


# Sizes


def test_sizes_are_products():
    n, m = Size(1, (0,)), Size(1, (1,))
    assert Size(3) * Size(4) == Size(12) and Size(12).static == 12
    assert n * 4 * m == Size(4, (0, 1)) == m * n * Size(4)
    assert (n * m).static is None and not (n * m).is_static
    assert (n * Size(0)) == ZERO and ZERO.static == 0 and ZERO.is_static
    assert product([Size(2), n, Size(3)]) == Size(6, (0,)) and product([]) == ONE
    assert str(Size(4, (0, 1))) == "4*c0*c1"


def test_sums_of_sizes_only_where_they_are_products_again():
    n, m = Size(2, (0,)), Size(1, (1,))
    assert Size(3).plus(Size(4)) == Size(7)
    assert n.plus(Size(3, (0,))) == Size(5, (0,))
    assert n.plus(ZERO) == n == ZERO.plus(n)
    assert n.plus(m) is None and n.plus(ONE) is None


def test_strides_are_row_major():
    n = Size(1, (0,))
    assert row_major_strides([Size(2), n, Size(4)]) == (Size(4, (0,)), Size(4), ONE)
    assert row_major_strides([]) == ()


@pytest.mark.parametrize(
    ("expr", "coefficients", "constant"),
    [
        ("a", {0: 1}, 0),
        ("a * 2 + b", {0: 2, 1: 1}, 0),
        ("a + b * 3 - 4", {0: 1, 1: 3}, -4),
        ("7", {}, 7),
        ("a + a", {0: 2}, 0),
    ],
)
def test_linear_expressions(context, expr, coefficients, constant):
    with context:
        map_ = mlir.AffineMapAttr(mlir.Attribute.parse(f"affine_map<(a, b) -> ({expr})>")).value
        found = linear_expr(map_.results[0])
    assert {k: v for k, v in found.coefficients.items() if v} == coefficients and found.constant == constant


@pytest.mark.parametrize("expr", ["a floordiv 2", "a mod 3", "a ceildiv 2"])
def test_other_expressions_are_unsupported(context, expr):
    with context:
        map_ = mlir.AffineMapAttr(mlir.Attribute.parse(f"affine_map<(a, b) -> ({expr})>")).value
        with pytest.raises(Unsupported):
            linear_expr(map_.results[0])


# Nests


def elementwise(shape, map_=None, body="%r = arith.addf %i0, %i0 : f32"):
    a = p.tensor_type(shape)
    rank = len(shape)
    identity = p.affine(rank, range(rank))
    lines = f"%e = tensor.empty() : {a}\n" + p.generic(
        "z", [("x", a, map_ or identity)], ("e", a, identity), "p" * rank, body, "f32"
    )
    return p.main([("x", a)], lines, [("z", a)])


def test_contiguous_loops_collapse_into_one(context):
    kernel, _ = kernel_of(context, elementwise([3, 1, 5, 7]))
    (nest,) = kernel.nests
    assert nest.loops == (Size(105),)
    assert nest.statements[0].inputs[0].strides == (ONE,) and nest.statements[0].outputs[0].strides == (ONE,)


def test_a_transposed_read_keeps_its_loops(context):
    kernel, _ = kernel_of(context, elementwise([8, 8], p.affine(2, [1, 0])))
    (nest,) = kernel.nests
    assert nest.loops == (Size(8), Size(8))
    assert nest.statements[0].inputs[0].strides == (ONE, Size(8))


def test_unit_loops_vanish(context):
    kernel, _ = kernel_of(context, elementwise([1, 1, 1]))
    assert all(loop != ONE for nest in kernel.nests for loop in nest.loops)


def test_elementwise_consumers_are_fused_into_registers(context):
    a = p.tensor_type([8, 8])
    lines = f"%e = tensor.empty() : {a}\n" + p.filled("zero", [8, 8], "f32", "0.0")
    lines += f"%y = linalg.matmul ins(%x, %x : {a}, {a}) outs(%zero : {a}) -> {a}\n"
    lines += p.generic("z", [("y", a, ID)], ("e", a, ID), "pp", "%r = math.exp %i0 : f32", "f32")
    kernel, _ = kernel_of(context, p.main([("x", a)], lines, [("z", a)]))
    (nest,) = kernel.nests
    assert len(nest.statements) == 2 and nest.statements[0].outputs == (None,)
    assert nest.statements[1].inputs == ((0, 0),) and len(nest.reductions) == 1


def test_rows_are_shared_between_nests(context):
    a, s = p.tensor_type([16, 40]), p.tensor_type([16])
    lines = f"%e = tensor.empty() : {a}\n" + p.filled("zero", [16], "f32", "0.0")
    lines += p.generic("y", [("x", a, ID)], ("zero", s, p.affine(2, [0])), "pr", "%r = arith.addf %i0, %o : f32", "f32")
    lines += p.generic(
        "z", [("x", a, ID), ("y", s, p.affine(2, [0]))], ("e", a, ID), "pp", "%r = arith.divf %i0, %i1 : f32", "f32"
    )
    kernel, _ = kernel_of(context, p.main([("x", a)], lines, [("z", a)]))
    assert len(kernel.nests) == 2 and kernel.shared == 1
    local = kernel.nests[0].statements[0].outputs[0].storage
    assert local.binding is None and product(local.shape) == ONE  # one value for each row


def test_padding_is_a_guard(context):
    a, c = p.tensor_type([5, 6]), p.tensor_type([8, 6])
    lines = f"""%v = arith.constant 2.0 : f32
      %q = tensor.pad %x low[1, 0] high[2, 0] {{
      ^bb0(%i: index, %j: index): tensor.yield %v : f32 }} : {a} to {c}
      %e = tensor.empty() : {c}\n"""
    lines += p.generic("z", [("q", c, ID)], ("e", c, ID), "pp", "%r = arith.negf %i0 : f32", "f32")
    kernel, _ = kernel_of(context, p.main([("x", a)], lines, [("z", c)]), normalized=False)
    access = kernel.nests[0].statements[0].inputs[0]
    assert isinstance(access, Access) and len(access.guards) == 1
    guard = access.guards[0]
    assert (guard.coefficients, guard.shift, guard.extent) == ((1, 0), -1, Size(5))


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("%z = tensor.insert_slice %y into %x[0, 0] [2, 2] [2, 2] : tensor<2x2xf32> into tensor<8x8xf32>\n", "strides"),
        (
            "%w = math.exp %y : tensor<2x2xf32>\n%z = tensor.insert_slice %w into %x[0, 0] [2, 2] [1, 1] : tensor<2x2xf32> into tensor<8x8xf32>\n",
            "math.exp is not expressible",
        ),
    ],
)
def test_what_is_no_loop_nest_says_why(context, lines, reason):
    a = p.tensor_type([8, 8])
    with pytest.raises(Unsupported, match=reason):
        kernel_of(context, p.main([("x", a), ("y", "tensor<2x2xf32>")], lines, [("z", a)]))


# Flops and the choice of a strategy


def matmul(m=16, k=8, n=32) -> str:
    a, b, c = p.tensor_type([m, k]), p.tensor_type([k, n]), p.tensor_type([m, n])
    lines = (
        p.filled("init", [m, n], "f32", "0.0") + f"%z = linalg.matmul ins(%x, %y : {a}, {b}) outs(%init : {c}) -> {c}\n"
    )
    return p.main([("x", a), ("y", b)], lines, [("z", c)])


def test_flops_are_two_for_each_product(context):
    module = parse_module(matmul(), context)
    assert count_flops(next(iter(module.body.operations))) == 2 * 16 * 8 * 32
    assert count_flops(next(iter(parse_module(elementwise([8, 8]), context).body.operations))) == 0
    dynamic = (
        matmul("?", 8, 32)
        .replace("tensor.empty()", "tensor.empty(%d)")
        .replace("{\n", "{\n%c0 = arith.constant 0 : index\n%d = tensor.dim %x, %c0 : tensor<?x8xf32>\n", 1)
    )
    assert count_flops(next(iter(parse_module(dynamic, context).body.operations))) is None


@pytest.mark.parametrize("target", ["llvm-cpu:x86_64:znver3", "llvm-cpu:aarch64", "llvm-cpu:riscv64:+v"])
@pytest.mark.parametrize(
    ("disabled", "strategy"),
    [((), "contraction"), (("contraction",), "rows"), (("contraction", "rows"), "loops")],
    ids=["all", "no contraction", "loops"],
)
def test_each_strategy_on_each_target(context, target, disabled, strategy):
    module = parse_module(matmul().replace("@main", "private @main"), context)
    compiled = compile_dispatch(module, Target.parse(target), frozenset(disabled))
    assert compiled.strategy == strategy and compiled.object[:4] == b"\x7fELF"
    for name in disabled:
        assert any(reason.startswith(f"{name}: ") for reason in compiled.rejected)


def test_large_work_is_split_and_small_is_not(context):
    def grid(n):
        module = parse_module(matmul(n, 64, 64).replace("@main", "private @main"), context)
        return compile_dispatch(module, Target.parse("llvm-cpu:x86_64:znver3")).grid

    assert int(np.prod([-(-extent // piece) for extent, piece in grid(4)] or [1])) == 1
    assert 4 <= int(np.prod([-(-extent // piece) for extent, piece in grid(512)])) <= 64
