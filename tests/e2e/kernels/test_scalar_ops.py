# ruff: noqa: E501 - lines of IR are as long as they are
"""Ops of scalars with their edge values: every width of integers, divisions of each kind, bits, control flow in bodies."""

from __future__ import annotations

import numpy as np
import programs as p
import pytest
from elementwise import WIDTHS, check, edges, unsigned

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


@pytest.mark.parametrize("dtype", WIDTHS)
def test_integers_wrap_at_their_width(dtype):
    a, b = edges(dtype)
    if dtype == "i1":
        table = {"addi": a ^ b, "subi": a ^ b, "muli": a & b, "andi": a & b, "ori": a | b, "xori": a ^ b,
                 "maxsi": a & b, "minsi": a | b, "maxui": a | b, "minui": a & b}  # fmt: skip
    else:
        ua, ub = unsigned(a), unsigned(b)
        table = {"addi": a + b, "subi": a - b, "muli": a * b, "andi": a & b, "ori": a | b, "xori": a ^ b,
                 "maxsi": np.maximum(a, b), "minsi": np.minimum(a, b), "maxui": np.maximum(ua, ub).view(a.dtype),
                 "minui": np.minimum(ua, ub).view(a.dtype)}  # fmt: skip
    cases = [(dtype, f"%r = arith.{op} %i0, %i1 : {dtype}", expected) for op, expected in table.items()]
    check([dtype] * 2, [a, b], cases)


def divided(op: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A division by zero gives the dividend and the remainder 0; the smallest integer divided by -1 wraps."""
    x, y = (unsigned(a), unsigned(b)) if op.endswith("ui") else (a, b)
    found = []
    for one, other in zip(x.tolist(), y.tolist(), strict=True):
        if other == 0:
            found.append(0 if op.startswith("rem") else one)
            continue
        quotient = abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)
        rest = one - quotient * other
        found.append({"div": quotient, "rem": rest, "flo": one // other, "cei": -(-one // other)}[op[:3]])
    half = 1 << (8 * a.itemsize - 1)
    return np.array([(one + half) % (2 * half) - half for one in found], a.dtype)


@pytest.mark.parametrize("dtype", [d for d in WIDTHS if d != "i1"])
def test_divisions_do_not_trap(dtype):
    a, b = edges(dtype)
    ops = ["divsi", "remsi", "divui", "remui", "floordivsi", "ceildivsi", "ceildivui"]
    check([dtype] * 2, [a, b], [(dtype, f"%r = arith.{op} %i0, %i1 : {dtype}", divided(op, a, b)) for op in ops])


@pytest.mark.parametrize("dtype", [d for d in WIDTHS if d != "i1"])
def test_shifts(dtype):
    a, _ = edges(dtype)
    b = (np.arange(a.size) % WIDTHS[dtype]).astype(a.dtype)
    table = {"shli": a << b, "shrsi": a >> b, "shrui": (unsigned(a) >> unsigned(b)).view(a.dtype)}
    cases = [(dtype, f"%r = arith.{op} %i0, %i1 : {dtype}", expected) for op, expected in table.items()]
    check([dtype] * 2, [a, b], cases)


@pytest.mark.parametrize("dtype", WIDTHS)
def test_comparisons_of_integers(dtype):
    a, b = edges(dtype)
    signed = (-a.astype(np.int8), -b.astype(np.int8)) if dtype == "i1" else (a, b)
    cases = [
        (
            "i1",
            f"%r = arith.cmpi {name}, %i0, %i1 : {dtype}",
            compare(*map(unsigned, (a, b))) if name[0] == "u" else compare(*signed),
        )
        for name, compare in COMPARISONS.items()
    ]
    check([dtype] * 2, [a, b], cases)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_comparisons_of_floats(dtype):
    values = np.array([np.nan, -np.inf, -1.5, -0.0, 0.0, 1.5, np.inf], p.NUMPY[dtype])
    a, b = (np.ascontiguousarray(one.reshape(-1)) for one in np.meshgrid(values, values))
    wide = a.astype(np.float64), b.astype(np.float64)
    cases = [
        ("i1", f"%r = arith.cmpf {name}, %i0, %i1 : {dtype}", np.asarray(compare(*wide)))
        for name, compare in FLOAT_COMPARISONS.items()
    ]
    check([dtype] * 2, [a, b], cases)


@pytest.mark.parametrize("source", WIDTHS)
def test_integers_change_their_width(source):
    a, _ = edges(source)
    cases = []
    for target in WIDTHS:
        type_ = np.dtype(p.NUMPY[target])
        if WIDTHS[target] > WIDTHS[source]:
            signed = -a.astype(type_) if source == "i1" else a.astype(type_)
            cases.append((target, f"%r = arith.extsi %i0 : {source} to {target}", signed))
            wide = unsigned(a).astype(f"u{type_.itemsize}").view(type_)
            cases.append((target, f"%r = arith.extui %i0 : {source} to {target}", wide))
        elif WIDTHS[target] < WIDTHS[source]:
            cut = (a & 1).astype(bool) if target == "i1" else a.astype(type_)
            cases.append((target, f"%r = arith.trunci %i0 : {source} to {target}", cut))
    check([source], [a], cases)


@pytest.mark.parametrize("source", WIDTHS)
def test_integers_become_floats(source):
    a = edges(source)[0]
    signed = -a.astype(np.int8) if source == "i1" else a
    cases = []
    for target in ("bf16", "f32", "f64"):
        for op, values in (("sitofp", signed), ("uitofp", unsigned(a))):
            # A narrow float is made from the f32 next to the integer.
            expected = values.astype(np.float64 if target == "f64" else np.float32).astype(p.NUMPY[target])
            cases.append((target, f"%r = arith.{op} %i0 : {source} to {target}", expected))
    check([source], [a], cases)
    if source != "i1":
        small = np.arange(-100, 101).astype(a.dtype)
        body = f"%r = arith.sitofp %i0 : {source} to f16"
        check([source], [small], [("f16", body, small.astype(np.float16))])


@pytest.mark.parametrize("source", ["f16", "bf16", "f32", "f64"])
def test_floats_become_integers_towards_zero(source):
    a = np.array([-100.9, -1.5, -1.0, -0.99, -0.0, 0.0, 0.5, 0.99, 1.0, 1.5, 2.5, 100.9, 126.5], p.NUMPY[source])
    for op, values in (("fptosi", a), ("fptoui", abs(a))):
        cut = np.trunc(values.astype(np.float64))
        cases = [
            (target, f"%r = arith.{op} %i0 : {source} to {target}", cut.astype(p.NUMPY[target]))
            for target in ("i8", "i16", "i32", "i64")
        ]
        check([source], [values], cases)


def test_bytes_of_floats_are_unsigned_where_the_op_is():
    """Quantisation clamps to 0 .. 255 and converts to i8, which holds the bits of an unsigned byte."""
    a = np.array([0.0, 1.0, 127.0, 128.0, 200.5, 255.0], np.float32)
    check(["f32"], [a], [("i8", "%r = arith.fptoui %i0 : f32 to i8", a.astype(np.uint8).view(np.int8))])


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_narrow_floats_round_once(dtype, rng):
    """From f64 too: what is rounded to f32 first comes out one off where that makes a tie."""
    a = rng.standard_normal(401)
    ties = np.float64(1) + np.ldexp(1.0, -11 if dtype == "f16" else -8) + np.ldexp(1.0, -40)
    a = np.concatenate([a, [ties, -ties, 65504.0, 1e-7, 6e-8, np.nan, np.inf]])
    if dtype == "f16":
        check(["f64"], [a], [(dtype, f"%r = arith.truncf %i0 : f64 to {dtype}", a.astype(np.float16))])
    b = a.astype(np.float32)
    narrow = b.astype(p.NUMPY[dtype])
    check(["f32"], [b], [(dtype, f"%r = arith.truncf %i0 : f32 to {dtype}", narrow)])
    cases = [
        (wide, f"%r = arith.extf %i0 : {dtype} to {wide}", narrow.astype(p.NUMPY[wide])) for wide in ("f32", "f64")
    ]
    check([dtype], [narrow], cases)


@pytest.mark.parametrize(("float_", "integer"), [("f16", "i16"), ("bf16", "i16"), ("f32", "i32"), ("f64", "i64")])
def test_bits_of_floats(float_, integer):
    a = np.array([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, 1e-5], p.NUMPY[float_])
    bits = a.view(p.NUMPY[integer])
    cases = [
        (integer, f"%r = arith.bitcast %i0 : {float_} to {integer}", bits),
        (float_, f"%r = arith.bitcast %i1 : {integer} to {float_}", a),
    ]
    check([float_, integer], [a, bits], cases)


@pytest.mark.parametrize("dtype", [d for d in WIDTHS if d != "i1"])
def test_counts_of_bits_and_sizes_of_integers(dtype):
    a, _ = edges(dtype)
    bits = WIDTHS[dtype]
    texts = [format(one % (1 << bits), f"0{bits}b") for one in a.tolist()]
    counts = {
        "ctlz": [len(one) - len(one.lstrip("0")) for one in texts],
        "cttz": [len(one) - len(one.rstrip("0")) for one in texts],
        "ctpop": [one.count("1") for one in texts],
        "absi": np.abs(a),
    }
    cases = [(dtype, f"%r = math.{op} %i0 : {dtype}", np.array(value, a.dtype)) for op, value in counts.items()]
    check([dtype], [a], cases)


@pytest.mark.parametrize("dtype", ["i8", "i32", "i64"])
def test_upper_half_of_a_product(dtype):
    a, b = edges(dtype)
    half, cases = 1 << (WIDTHS[dtype] - 1), []
    for op, (x, y) in {"mului_extended": (unsigned(a), unsigned(b)), "mulsi_extended": (a, b)}.items():
        high = [(i * j >> WIDTHS[dtype]) for i, j in zip(x.tolist(), y.tolist(), strict=True)]
        expected = np.array([(one + half) % (2 * half) - half for one in high], a.dtype)
        cases.append((dtype, f"%low, %r = arith.{op} %i0, %i1 : {dtype}", expected))
    check([dtype] * 2, [a, b], cases)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_kinds_of_floats(dtype):
    tiny = np.finfo(p.NUMPY[dtype]).tiny
    a = np.array(
        [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -tiny, tiny / 2, np.finfo(p.NUMPY[dtype]).max], p.NUMPY[dtype]
    )
    table = {"isnan": np.isnan(a), "isfinite": np.isfinite(a)}
    check([dtype], [a], [("i1", f"%r = math.{name} %i0 : {dtype}", expected) for name, expected in table.items()])


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
    check(["i64"], [n], [("i64", body, np.array(numbers, np.int64))])


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
    check(["i64", "i64"], [n, other], [("i64", body, expected)])


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
    check(["i32"], [n], [("i32", body, expected)])


@pytest.mark.parametrize("dtype", ["i8", "i32", "i64"])
def test_integer_powers(dtype):
    base = np.array([-3, -2, -1, 0, 1, 2, 3, 5], p.NUMPY[dtype])
    power = np.array([3, 5, 7, 2, 100, 6, 0, 2], p.NUMPY[dtype])
    check([dtype] * 2, [base, power], [(dtype, f"%r = math.ipowi %i0, %i1 : {dtype}", base**power)])


def test_floats_to_integer_powers():
    base = np.array([-3.0, -0.5, 1.25, 2.0, 0.0], np.float32)
    power = np.array([3, -2, 7, 10, 0], np.int32)
    body = "%r = math.fpowi %i0, %i1 : f32, i32"
    check(["f32", "i32"], [base, power], [("f32", body, base ** power.astype(np.float32))], rtol=1e-6)
