# ruff: noqa: E501 - lines of IR are as long as they are
"""Ops of scalars with their edge values: every width of integers, divisions of each kind, bits, control flow in bodies."""

from __future__ import annotations

import numpy as np
import programs as p
import pytest

WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "slt": np.less, "sle": np.less_equal, "sgt": np.greater, "sge": np.greater_equal,
    "ult": np.less, "ule": np.less_equal, "ugt": np.greater, "uge": np.greater_equal,
}  # fmt: skip
FLOAT_COMPARISONS = {
    "oeq": lambda a, b: a == b, "ogt": lambda a, b: a > b, "oge": lambda a, b: a >= b, "olt": lambda a, b: a < b,
    "ole": lambda a, b: a <= b, "one": lambda a, b: (a < b) | (a > b), "ord": lambda a, b: (a == a) & (b == b),
    "ueq": lambda a, b: ~((a < b) | (a > b)), "ugt": lambda a, b: ~(a <= b), "uge": lambda a, b: ~(a < b),
    "ult": lambda a, b: ~(a >= b), "ule": lambda a, b: ~(a > b), "une": lambda a, b: a != b,
    "uno": lambda a, b: (a != a) | (b != b),
}  # fmt: skip


def edges(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of values at the ends of a type and around zero."""
    if dtype == "i1":
        values = np.array([False, True])
    else:
        half = 1 << (WIDTHS[dtype] - 1)
        values = np.array([-half, -half + 1, -7, -2, -1, 0, 1, 2, 3, 7, half - 2, half - 1], p.NUMPY[dtype])
    return tuple(np.ascontiguousarray(one.reshape(-1)) for one in np.meshgrid(values, values))


def unsigned(array: np.ndarray) -> np.ndarray:
    return array.view(f"u{array.itemsize}") if array.dtype != bool else array


def body_text(count: int, types: list[str], result: str, body: str) -> str:
    """Elementwise over vectors: the body sees %i0, %i1, ... and makes %r."""
    line = p.affine(1, [0])
    inputs = [(f"x{n}", p.tensor_type([count], type_), line) for n, type_ in enumerate(types)]
    made = p.tensor_type([count], result)
    lines = f"%e = tensor.empty() : {made}\n" + p.generic("z", inputs, ("e", made, line), "p", body, result)
    return p.main([(name, type_) for name, type_, _ in inputs], lines, [("z", made)])


def check(
    types: list[str], result: str, body: str, inputs: list[np.ndarray], expected: np.ndarray, **tolerance
) -> None:
    p.assert_both(body_text(inputs[0].size, types, result, body), inputs, expected, **tolerance)


@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("op", ["addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minsi", "maxui", "minui"])
def test_integers_wrap_at_their_width(dtype, op):
    a, b = edges(dtype)
    if dtype == "i1":
        table = {"addi": a ^ b, "subi": a ^ b, "muli": a & b, "andi": a & b, "ori": a | b, "xori": a ^ b,
                 "maxsi": a & b, "minsi": a | b, "maxui": a | b, "minui": a & b}  # fmt: skip
    else:
        ua, ub = unsigned(a), unsigned(b)
        table = {"addi": a + b, "subi": a - b, "muli": a * b, "andi": a & b, "ori": a | b, "xori": a ^ b,
                 "maxsi": np.maximum(a, b), "minsi": np.minimum(a, b), "maxui": np.maximum(ua, ub).view(a.dtype),
                 "minui": np.minimum(ua, ub).view(a.dtype)}  # fmt: skip
    check([dtype] * 2, dtype, f"%r = arith.{op} %i0, %i1 : {dtype}", [a, b], table[op])


@pytest.mark.parametrize("dtype", [d for d in WIDTHS if d != "i1"])
@pytest.mark.parametrize("op", ["divsi", "remsi", "divui", "remui", "floordivsi", "ceildivsi", "ceildivui"])
def test_divisions_do_not_trap(dtype, op):
    """A division by zero gives the dividend and the remainder 0; the smallest integer divided by -1 wraps."""
    a, b = edges(dtype)
    x, y = (unsigned(a), unsigned(b)) if op.endswith("ui") else (a, b)
    expected = []
    for one, other in zip(x.tolist(), y.tolist(), strict=True):
        if other == 0:
            expected.append(0 if op.startswith("rem") else one)
            continue
        quotient = abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)
        rest = one - quotient * other
        floor, ceil = one // other, -(-one // other)
        expected.append({"div": quotient, "rem": rest, "flo": floor, "cei": ceil}[op[:3]])
    half = 1 << (WIDTHS[dtype] - 1)
    wrapped = np.array([(one + half) % (2 * half) - half for one in expected], a.dtype)
    check([dtype] * 2, dtype, f"%r = arith.{op} %i0, %i1 : {dtype}", [a, b], wrapped)


@pytest.mark.parametrize("dtype", [d for d in WIDTHS if d != "i1"])
@pytest.mark.parametrize("op", ["shli", "shrsi", "shrui"])
def test_shifts(dtype, op):
    a, _ = edges(dtype)
    b = (np.arange(a.size) % WIDTHS[dtype]).astype(a.dtype)
    expected = a << b if op == "shli" else a >> b if op == "shrsi" else (unsigned(a) >> unsigned(b)).view(a.dtype)
    check([dtype] * 2, dtype, f"%r = arith.{op} %i0, %i1 : {dtype}", [a, b], expected)


@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("predicate", COMPARISONS)
def test_comparisons_of_integers(dtype, predicate):
    a, b = edges(dtype)
    if predicate[0] == "u":
        x, y = unsigned(a), unsigned(b)
    else:
        x, y = (-a.astype(np.int8), -b.astype(np.int8)) if dtype == "i1" else (a, b)
    check([dtype] * 2, "i1", f"%r = arith.cmpi {predicate}, %i0, %i1 : {dtype}", [a, b], COMPARISONS[predicate](x, y))


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("predicate", FLOAT_COMPARISONS)
def test_comparisons_of_floats(dtype, predicate):
    values = np.array([np.nan, -np.inf, -1.5, -0.0, 0.0, 1.5, np.inf], p.NUMPY[dtype])
    a, b = (np.ascontiguousarray(one.reshape(-1)) for one in np.meshgrid(values, values))
    expected = np.asarray(FLOAT_COMPARISONS[predicate](a.astype(np.float64), b.astype(np.float64)))
    check([dtype] * 2, "i1", f"%r = arith.cmpf {predicate}, %i0, %i1 : {dtype}", [a, b], expected)


@pytest.mark.parametrize("source", WIDTHS)
@pytest.mark.parametrize("target", WIDTHS)
def test_integers_change_their_width(source, target):
    a, _ = edges(source)
    if WIDTHS[source] == WIDTHS[target]:
        return
    if WIDTHS[target] > WIDTHS[source]:
        signed = -a.astype(p.NUMPY[target]) if source == "i1" else a.astype(p.NUMPY[target])
        check([source], target, f"%r = arith.extsi %i0 : {source} to {target}", [a], signed)
        wide = unsigned(a).astype(f"u{np.dtype(p.NUMPY[target]).itemsize}").view(p.NUMPY[target])
        check([source], target, f"%r = arith.extui %i0 : {source} to {target}", [a], wide)
    else:
        cut = (a & 1).astype(bool) if target == "i1" else a.astype(p.NUMPY[target])
        check([source], target, f"%r = arith.trunci %i0 : {source} to {target}", [a], cut)


@pytest.mark.parametrize("source", WIDTHS)
@pytest.mark.parametrize("target", ["f16", "bf16", "f32", "f64"])
def test_integers_become_floats(source, target):
    a = (
        edges(source)[0]
        if source not in ("i32", "i64") or target != "f16"
        else np.arange(-9, 10).astype(p.NUMPY[source])
    )
    signed = -a.astype(np.float64) if source == "i1" else a
    expected = signed.astype(np.float32).astype(p.NUMPY[target]) if target != "f64" else signed.astype(np.float64)
    check([source], target, f"%r = arith.sitofp %i0 : {source} to {target}", [a], expected)
    if target == "f16" and source in ("i16", "i32", "i64"):
        a = abs(a) // 4
    wide = unsigned(a)
    expected = wide.astype(np.float32).astype(p.NUMPY[target]) if target != "f64" else wide.astype(np.float64)
    check([source], target, f"%r = arith.uitofp %i0 : {source} to {target}", [a], expected)


@pytest.mark.parametrize("source", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("target", ["i8", "i16", "i32", "i64"])
def test_floats_become_integers_towards_zero(source, target):
    a = np.array([-100.9, -1.5, -1.0, -0.99, -0.0, 0.0, 0.5, 0.99, 1.0, 1.5, 2.5, 100.9, 126.5], p.NUMPY[source])
    expected = np.trunc(a.astype(np.float64)).astype(p.NUMPY[target])
    check([source], target, f"%r = arith.fptosi %i0 : {source} to {target}", [a], expected)
    a = abs(a)
    check([source], target, f"%r = arith.fptoui %i0 : {source} to {target}", [a], abs(expected))


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_narrow_floats_round_once(dtype, rng):
    """From f64 too: what is rounded to f32 first comes out one off where that makes a tie."""
    a = rng.standard_normal(4001)
    ties = np.float64(1) + np.ldexp(1.0, -11 if dtype == "f16" else -8) + np.ldexp(1.0, -40)
    a = np.concatenate([a, [ties, -ties, 65504.0, 1e-7, 6e-8, np.nan, np.inf]])
    if dtype == "f16":
        expected = a.astype(np.float16)
        check(["f64"], dtype, f"%r = arith.truncf %i0 : f64 to {dtype}", [a], expected)
    b = a.astype(np.float32)
    check(["f32"], dtype, f"%r = arith.truncf %i0 : f32 to {dtype}", [b], b.astype(p.NUMPY[dtype]))
    narrow = b.astype(p.NUMPY[dtype])
    check([dtype], "f32", f"%r = arith.extf %i0 : {dtype} to f32", [narrow], narrow.astype(np.float32))
    check([dtype], "f64", f"%r = arith.extf %i0 : {dtype} to f64", [narrow], narrow.astype(np.float64))


@pytest.mark.parametrize(("float_", "integer"), [("f16", "i16"), ("bf16", "i16"), ("f32", "i32"), ("f64", "i64")])
def test_bits_of_floats(float_, integer):
    a = np.array([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, 1e-5], p.NUMPY[float_])
    check([float_], integer, f"%r = arith.bitcast %i0 : {float_} to {integer}", [a], a.view(p.NUMPY[integer]))
    check([integer], float_, f"%r = arith.bitcast %i0 : {integer} to {float_}", [a.view(p.NUMPY[integer])], a)


@pytest.mark.parametrize("dtype", [d for d in WIDTHS if d != "i1"])
def test_counts_of_bits(dtype):
    a, _ = edges(dtype)
    bits = WIDTHS[dtype]
    texts = [format(one % (1 << bits), f"0{bits}b") for one in a.tolist()]
    counts = {
        "ctlz": [len(one) - len(one.lstrip("0")) for one in texts],
        "cttz": [len(one) - len(one.rstrip("0")) for one in texts],
        "ctpop": [one.count("1") for one in texts],
    }
    for op, expected in counts.items():
        check([dtype], dtype, f"%r = math.{op} %i0 : {dtype}", [a], np.array(expected, a.dtype))
    check([dtype], dtype, f"%r = math.absi %i0 : {dtype}", [a], np.abs(a))


@pytest.mark.parametrize("dtype", ["i8", "i32", "i64"])
@pytest.mark.parametrize("kind", ["mului_extended", "mulsi_extended"])
def test_upper_half_of_a_product(dtype, kind):
    a, b = edges(dtype)
    bits = WIDTHS[dtype]
    x, y = (unsigned(a), unsigned(b)) if kind == "mului_extended" else (a, b)
    half = 1 << (bits - 1)
    high = [(i * j >> bits) for i, j in zip(x.tolist(), y.tolist(), strict=True)]
    expected = np.array([(one + half) % (2 * half) - half for one in high], a.dtype)
    check([dtype] * 2, dtype, f"%l, %r = arith.{kind} %i0, %i1 : {dtype}", [a, b], expected)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", ["isnan", "isfinite"])
def test_kinds_of_floats(dtype, name):
    tiny = np.finfo(p.NUMPY[dtype]).tiny
    a = np.array(
        [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -tiny, tiny / 2, np.finfo(p.NUMPY[dtype]).max], p.NUMPY[dtype]
    )
    expected = {"isnan": np.isnan(a), "isfinite": np.isfinite(a)}[name]
    check([dtype], "i1", f"%r = math.{name} %i0 : {dtype}", [a], expected)


def test_a_loop_that_swaps_what_it_carries():
    """Fibonacci numbers: each round, the second value becomes the first."""
    body = """
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %a:3 = scf.while (%x = %c0, %y = %c1, %n = %i0) : (i64, i64, i64) -> (i64, i64, i64) {
      %go = arith.cmpi sgt, %n, %c0 : i64
      scf.condition(%go) %x, %y, %n : i64, i64, i64
    } do {
    ^bb0(%x: i64, %y: i64, %n: i64):
      %s = arith.addi %x, %y : i64
      %m = arith.subi %n, %c1 : i64
      scf.yield %y, %s, %m : i64, i64, i64
    }
    %r = arith.addi %a#0, %c0 : i64
    """
    n = np.arange(20, dtype=np.int64)
    numbers = [0, 1]
    while len(numbers) < 20:
        numbers.append(numbers[-1] + numbers[-2])
    check(["i64"], "i64", body, [n], np.array(numbers, np.int64))


def test_a_counted_loop_that_swaps_what_it_carries():
    body = """
    %i = arith.index_cast %i0 : i64 to index
    %z = arith.constant 0 : index
    %o = arith.constant 1 : index
    %p, %q = scf.for %k = %z to %i step %o iter_args(%x = %i1, %y = %i0) -> (i64, i64) {
      scf.yield %y, %x : i64, i64
    }
    %d = arith.subi %p, %q : i64
    %r = arith.muli %d, %i1 : i64
    """.replace("%o =", "%one =").replace("step %o ", "step %one ")
    n, other = np.arange(-3, 14, dtype=np.int64), np.arange(40, 57, dtype=np.int64)
    odd = (np.maximum(n, 0) % 2).astype(bool)
    expected = np.where(odd, n - other, other - n) * other
    check(["i64", "i64"], "i64", body, [n, other], expected)


def test_branches_and_switches():
    body = """
    %i = arith.index_cast %i0 : i32 to index
    %s = scf.index_switch %i -> i32
    case 2 {
      %v = arith.constant 20 : i32
      scf.yield %v : i32
    }
    case 5 {
      %v = arith.muli %i0, %i0 : i32
      scf.yield %v : i32
    }
    default {
      %v = arith.constant -1 : i32
      scf.yield %v : i32
    }
    %c = arith.constant 3 : i32
    %small = arith.cmpi slt, %i0, %c : i32
    %t = scf.if %small -> i32 {
      %w = arith.addi %s, %c : i32
      scf.yield %w : i32
    } else {
      %w = scf.execute_region -> i32 {
        cf.cond_br %small, ^bb1(%s : i32), ^bb1(%i0 : i32)
      ^bb1(%u: i32):
        scf.yield %u : i32
      }
      scf.yield %w : i32
    }
    %r = arith.addi %s, %t : i32
    """
    n = np.arange(-2, 8, dtype=np.int32)
    chosen = np.where(n == 2, 20, np.where(n == 5, 25, -1)).astype(np.int32)
    expected = chosen + np.where(n < 3, chosen + 3, n).astype(np.int32)
    check(["i32"], "i32", body, [n], expected)


@pytest.mark.parametrize("dtype", ["i8", "i32", "i64"])
def test_integer_powers(dtype):
    base = np.array([-3, -2, -1, 0, 1, 2, 3, 5], p.NUMPY[dtype])
    power = np.array([3, 5, 7, 2, 100, 6, 0, 2], p.NUMPY[dtype])
    check([dtype] * 2, dtype, f"%r = math.ipowi %i0, %i1 : {dtype}", [base, power], base**power)


def test_floats_to_integer_powers():
    base = np.array([-3.0, -0.5, 1.25, 2.0, 0.0], np.float32)
    power = np.array([3, -2, 7, 10, 0], np.int32)
    body = "%r = math.fpowi %i0, %i1 : f32, i32"
    check(["f32", "i32"], "f32", body, [base, power], base ** power.astype(np.float32), rtol=1e-6)
