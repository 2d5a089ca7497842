"""The rules of dispatch formation, one program each: what is grouped, and the reason where it is not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import programs as p  # noqa: E402

from eyas.ir import make_context, parse_module  # noqa: E402
from eyas.ir.walk import entry_block, functions  # noqa: E402
from eyas.passes.dispatch.grouping import MAX_TENSORS, Forming, Role, form_groups, role_of  # noqa: E402
from eyas.targets import Target  # noqa: E402

A, S = p.tensor_type([32, 64]), p.tensor_type([32])
ID, TR, ROW, COLUMN = p.affine(2, [0, 1]), p.affine(2, [1, 0]), p.affine(2, [0]), p.affine(2, [1])
TARGET = Target.parse("llvm-cpu:x86_64:znver4")
SUM = "%r = arith.addf %i0, %o : f32"
HEAD = p.filled("init", [32, 64], "f32", "0.0") + p.filled("rows", [32], "f32", "0.0") + f"%e = tensor.empty() : {A}\n"


def groups_of(arguments, lines, results, target=None):
    """(names of results per group, reasons by name), with the roots."""
    module = parse_module(p.main(arguments, lines, results), make_context())
    block = entry_block(functions(module)[0])
    groups, reasons = form_groups(block, TARGET if target is None else Target.parse(target))
    names = {op: op.results[0].get_name().lstrip("%") for group in groups for op in group.ops}
    order = [[op.name.split(".")[1] for op in group.ops] for group in groups]
    return order, [reasons[op] for op in names if op in reasons], [group.root for group in groups]


def unary(name, source, map_=ID, type_=A):
    return p.generic(name, [(source, type_, map_)], ("e", A, ID), "pp", "%r = math.exp %i0 : f32", "f32")


MATMUL = f"%y = linalg.matmul ins(%x, %w : {A}, tensor<64x64xf32>) outs(%init : {A}) -> {A}\n"
PAIR = [("x", A), ("w", "tensor<64x64xf32>")]


def test_elementwise_ops_join_a_product():
    order, reasons, roots = groups_of(PAIR, HEAD + MATMUL + unary("a", "y") + unary("b", "a"), [("b", A)])
    assert order == [["matmul", "generic", "generic"]] and not reasons and roots == [Role.CONTRACTION]


def test_two_users_share_the_products_dispatch():
    order, _, _ = groups_of(PAIR, HEAD + MATMUL + unary("a", "y") + unary("b", "y"), [("a", A), ("b", A)])
    assert order == [["matmul", "generic", "generic"]]


def test_products_start_groups_of_their_own():
    second = f"%z = linalg.matmul ins(%y, %w : {A}, tensor<64x64xf32>) outs(%init : {A}) -> {A}\n"
    order, _, _ = groups_of(PAIR, HEAD + MATMUL + second, [("z", A)])
    assert order == [["matmul"], ["matmul"]]


def test_a_reduction_does_not_join_a_product():
    lines = HEAD + MATMUL + p.generic("s", [("y", A, ID)], ("rows", S, ROW), "pr", SUM, "f32")
    order, reasons, roots = groups_of(PAIR, lines, [("s", S)])
    assert order == [["matmul"], ["generic"]] and roots[1] is Role.REDUCTION
    assert reasons == ["it reads a contraction's result in another order"]


def test_rows_keep_softmax_together():
    lines = HEAD + p.generic("s", [("x", A, ID)], ("rows", S, ROW), "pr", SUM, "f32")
    lines += p.generic("z", [("x", A, ID), ("s", S, ROW)], ("e", A, ID), "pp", "%r = arith.divf %i0, %i1 : f32", "f32")
    order, reasons, _ = groups_of([("x", A)], lines, [("z", A)])
    assert order == [["generic", "generic"]] and not reasons


def test_columns_are_no_rows():
    c = p.tensor_type([64])
    lines = HEAD + p.filled("columns", [64], "f32", "0.0")
    lines += p.generic("s", [("x", A, ID)], ("columns", c, COLUMN), "rp", SUM, "f32")
    lines += p.generic(
        "z", [("x", A, ID), ("s", c, COLUMN)], ("e", A, ID), "pp", "%r = arith.divf %i0, %i1 : f32", "f32"
    )
    order, reasons, _ = groups_of([("x", A)], lines, [("z", A)])
    assert order == [["generic"], ["generic"]] and reasons == ["they have no rows in common"]


def test_long_rows_stay_apart():
    n = 20_000
    a, s = p.tensor_type([32, n]), p.tensor_type([32])
    lines = p.filled("rows", [32], "f32", "0.0") + f"%e = tensor.empty() : {a}\n"
    lines += p.generic("q", [("x", a, ID)], ("e", a, ID), "pp", "%r = math.exp %i0 : f32", "f32")
    lines += p.generic("s", [("q", a, ID)], ("rows", s, ROW), "pr", SUM, "f32")
    order, reasons, _ = groups_of([("x", a)], lines, [("s", s)])
    assert order == [["generic"], ["generic"]] and reasons == [f"a row of {n} elements is too long to keep near"]


def test_few_long_rows_stay_apart():
    a, s = p.tensor_type([8, 16_000]), p.tensor_type([8])
    lines = p.filled("rows", [8], "f32", "0.0") + f"%e = tensor.empty() : {a}\n"
    lines += p.generic("q", [("x", a, ID)], ("e", a, ID), "pp", "%r = math.exp %i0 : f32", "f32")
    lines += p.generic("s", [("q", a, ID)], ("rows", s, ROW), "pr", SUM, "f32")
    order, reasons, _ = groups_of([("x", a)], lines, [("s", s)])
    assert order == [["generic"], ["generic"]] and reasons == ["only 8 rows: too few to share among cores"]


def test_no_cycles():
    """%z needs %y and a product of %y: joining %y's group would make that depend on itself."""
    lines = HEAD + unary("y", "x")
    lines += f"%m = linalg.matmul ins(%y, %w : {A}, tensor<64x64xf32>) outs(%init : {A}) -> {A}\n"
    lines += p.generic("z", [("y", A, ID), ("m", A, ID)], ("e", A, ID), "pp", "%r = arith.addf %i0, %i1 : f32", "f32")
    order, _, _ = groups_of(PAIR, lines, [("z", A)])
    assert order == [["generic"], ["matmul", "generic"]]


def test_no_cycles_through_an_op_that_stands_before():
    """%z needs %p, whose group needs the product by way of %q: %z must not join the product."""
    square = p.tensor_type([64, 64])
    add = "%r = arith.addf %i0, %i1 : f32"
    lines = p.filled("init", [64, 64], "f32", "0.0") + f"%e = tensor.empty() : {square}\n"
    lines += unary("p", "x", type_=square).replace(A, square)
    lines += f"%m = linalg.matmul ins(%x, %x : {square}, {square}) outs(%init : {square}) -> {square}\n"
    lines += p.generic("q", [("p", square, ID), ("m", square, TR)], ("e", square, ID), "pp", add, "f32")
    lines += p.generic("z", [("m", square, ID), ("p", square, ID)], ("e", square, ID), "pp", add, "f32")
    order, _, _ = groups_of([("x", square)], lines, [("q", square), ("z", square)])
    assert order == [["generic", "generic", "generic"], ["matmul"]]


@pytest.mark.parametrize("branches", [1, 8])
def test_the_work_grows_with_the_program_and_not_with_its_square(branches: int):
    """Branches that exchange their results in each layer, as in nets of several resolutions, quantised ones too."""
    add = "%r = arith.addf %i0, %i1 : f32"

    def visits(layers: int) -> tuple[int, int]:
        lines = HEAD
        for layer in range(layers):
            for branch in range(branches):
                before = [f"b{layer - 1}_{(branch + n) % branches}" if layer else "x" for n in range(2)]
                sources = [(before[0], A, ID), (before[1], A, TR if branch % 3 == 1 else ID)]
                square = sources[1][2] == ID
                lines += p.generic(
                    f"a{layer}_{branch}", sources if square else sources[:1], ("e", A, ID), "pp",
                    add if square else "%r = math.exp %i0 : f32", "f32",
                )  # fmt: skip
                lines += f"%m{layer}_{branch} = linalg.matmul ins(%a{layer}_{branch}, %w : {A}, tensor<64x64xf32>)"
                lines += f" outs(%init : {A}) -> {A}\n"
                both = [(f"m{layer}_{branch}", A, ID), (f"a{layer}_{branch}", A, ID)]
                lines += p.generic(f"b{layer}_{branch}", both, ("e", A, ID), "pp", add, "f32")
        results = [(f"b{layers - 1}_{branch}", A) for branch in range(branches)]
        module = parse_module(p.main(PAIR, lines, results), make_context())
        forming = Forming(TARGET)
        ops = [view.operation for view in entry_block(functions(module)[0]).operations]
        for op in ops:
            forming.visit(op)
        return forming.dependencies.visits, len(ops)

    few, _ = visits(80 // branches)
    many, count = visits(640 // branches)
    assert count > 1900 and many < 10 * few and many < 20 * count


def test_opaque_ops_run_alone():
    lines = (
        HEAD
        + f"%s = tensor.insert_slice %w into %x[0, 0] [1, 64] [1, 1] : tensor<1x64xf32> into {A}\n"
        + unary("a", "s")
    )
    order, reasons, _ = groups_of([("x", A), ("w", "tensor<1x64xf32>")], lines, [("a", A)])
    assert order == [["insert_slice"], ["generic"]] and reasons == ["its producer runs alone"]


def test_a_dispatch_has_a_limit_of_tensors():
    count = MAX_TENSORS + 4
    arguments = [(f"x{n}", A) for n in range(count)]
    lines, last = HEAD, "x0"
    for n in range(1, count):
        lines += p.generic(
            f"s{n}", [(last, A, ID), (f"x{n}", A, ID)], ("e", A, ID), "pp", "%r = arith.addf %i0, %i1 : f32", "f32"
        )
        last = f"s{n}"
    order, reasons, _ = groups_of(arguments, lines, [(last, A)])
    assert len(order) > 1 and reasons[0] == f"the dispatch would have more than {MAX_TENSORS} tensors"


@pytest.mark.parametrize(
    ("target", "element", "longest"),
    [
        ("llvm-cpu:x86_64:znver4", "f32", 16_384),
        ("llvm-cpu:x86_64:sapphirerapids", "f32", 16_384),
        ("vmvx", "f32", 16_384),
        ("llvm-cpu:x86_64:znver4", "f64", 8192),
        ("llvm-cpu:x86_64:znver4", "f16", 16_384),  # computed with as f32
        ("llvm-cpu:aarch64:apple-m1", "f32", 65_536),
        ("llvm-cpu:riscv64:l1d=16K", "f64", 4096),
    ],
)
def test_rows_are_as_long_as_a_workgroup_keeps_near(target, element, longest):
    def reasons(length):
        whole, row = f"tensor<32x{length}x{element}>", f"tensor<32x{element}>"
        zero = p.filled("rows", [32], element, "0.0") + f"%e = tensor.empty() : {whole}\n"
        sums = p.generic(
            "s", [("x", whole, ID)], ("rows", row, ROW), "pr", f"%r = arith.addf %i0, %o : {element}", element
        )
        body = f"%r = arith.divf %i0, %i1 : {element}"
        divided = p.generic("d", [("x", whole, ID), ("s", row, ROW)], ("e", whole, ID), "pp", body, element)
        squared = p.generic(
            "q", [("d", whole, ID)], ("rows", row, ROW), "pr", f"%r = arith.addf %i0, %o : {element}", element
        )
        return groups_of([("x", whole)], zero + sums + divided + squared, [("q", row)], target)[1]

    assert reasons(longest) == []
    assert reasons(longest + 1) == [f"a row of {longest + 1} elements is too long to keep near"]


@pytest.mark.parametrize(
    ("line", "role"),
    [
        ("%z = arith.constant 1.0 : f32", Role.CLONED),
        (f"%z = arith.constant dense<1.0> : {A}", Role.CLONED),
        (f"%z = tensor.empty() : {A}", Role.CLONED),
        ("%c0 = arith.constant 0 : index\n%z = arith.addi %c0, %c0 : index", Role.HOST),
        ("%z = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>", Role.OPAQUE),
        (f"%e = tensor.empty() : {A}\n" + unary("z", "x"), Role.ELEMENTWISE),
        (HEAD + p.generic("z", [("x", A, ID)], ("rows", S, ROW), "pr", SUM, "f32"), Role.REDUCTION),
        (HEAD + MATMUL, Role.CONTRACTION),
        (
            HEAD + "%t = tensor.empty() : tensor<64x32xf32>\n"
            f"%z = linalg.transpose ins(%x : {A}) outs(%t : tensor<64x32xf32>) permutation = [1, 0]",
            Role.ELEMENTWISE,
        ),
    ],
    ids=["scalar", "splat", "empty", "index", "table", "elementwise", "reduction", "matmul", "transpose"],
)
def test_roles(line, role):
    module = parse_module(p.main(PAIR, line, [("x", A)]), make_context())
    op = list(entry_block(functions(module)[0]).operations)[-2]
    assert role_of(op.operation) is role


def test_without_fusion_each_op_is_alone():
    module = parse_module(p.main(PAIR, HEAD + MATMUL + unary("a", "y") + unary("b", "a"), [("b", A)]), make_context())
    groups, reasons = form_groups(entry_block(functions(module)[0]), TARGET, fuse=False)
    assert [len(group.ops) for group in groups] == [1, 1, 1] and not reasons


def multiply(name, left, right):
    inputs = [(left, A, ID), (right, A, ID)]
    return p.generic(name, inputs, ("e", A, ID), "pp", "%r = arith.mulf %i0, %i1 : f32", "f32")


FOUR = [("a", A), ("b", A), ("c", A), ("d", A)]


def test_elementwise_ops_from_two_sides_run_together():
    lines = HEAD + multiply("l", "a", "b") + multiply("t", "c", "d") + multiply("z", "l", "t")
    order, _, roots = groups_of(FOUR, lines, [("z", A)])
    assert order == [["generic"] * 3] and roots == [Role.ELEMENTWISE]


def test_two_sides_stay_apart_when_something_between_them_needs_one():
    """The halves of `l` make what `t` reads: one dispatch of `l`, `t` and `z` would need itself."""
    half = p.tensor_type([16, 64])
    swapped = f"%h = tensor.extract_slice %l[16, 0] [16, 64] [1, 1] : {A} to {half}\n"
    swapped += f"%y = tensor.concat dim(0) %h, %h : ({half}, {half}) -> {A}\n"
    lines = HEAD + multiply("l", "a", "b") + swapped + multiply("t", "y", "b") + multiply("z", "l", "t")
    order, _, _ = groups_of(FOUR, lines, [("z", A)])
    assert order == [["generic"], ["extract_slice"], ["concat"], ["generic", "generic"]]


def test_two_sides_of_other_shapes_stay_apart():
    """A side that is broadcast has other loops."""
    row = p.generic(
        "l", [("s", S, p.affine(1, [0]))], ("rows", S, p.affine(1, [0])), "p", "%r = math.exp %i0 : f32", "f32"
    )
    inputs = [("l", S, ROW), ("t", A, ID)]
    join = p.generic("z", inputs, ("e", A, ID), "pp", "%r = arith.mulf %i0, %i1 : f32", "f32")
    order, _, _ = groups_of([*FOUR, ("s", S)], HEAD + row + multiply("t", "a", "b") + join, [("z", A)])
    assert [len(group) for group in order] == [1, 2]


def test_sizes_that_share_their_operands_are_walked_once():
    """There are 2^64 ways through this sum of a sum with itself."""
    sums = [f"%s{i + 1} = arith.addi %s{i}, %s{i} : i64\n" for i in range(64)]
    lines = "".join(["%s0 = arith.constant 1 : i64\n", *sums])
    module = parse_module(p.main([("x", A)], lines, [("x", A)]), make_context())
    ops = [op.operation for op in entry_block(functions(module)[0]).operations]
    assert role_of(ops[64]) is Role.HOST
