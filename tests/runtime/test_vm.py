"""Instructions: each one against what Python says, on random and on extreme values."""

from __future__ import annotations

import random
import sys

import kernels
import ml_dtypes
import numpy as np
import pytest

import eyas.runtime
from eyas.errors import CallError, ModuleError
from eyas.module import isa
from eyas.module.assembler import Direct, ProgramBuilder, Slot, disassemble, iterate, method_name
from eyas.module.dtypes import DTYPES
from eyas.module.isa import Access, Alloc, Element
from eyas.module.program import State, decode, encode
from eyas.module.signature import Signature, TensorSpec


def wrap(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def u(value: int) -> int:
    return value % 2**64


def truncate(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


REFERENCE = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "divs": truncate,
    "divu": lambda a, b: u(a) // u(b),
    "rems": lambda a, b: a - truncate(a, b) * b,
    "remu": lambda a, b: u(a) % u(b),
    "ceildivs": lambda a, b: -(-a // b),
    "floordivs": lambda a, b: a // b,
    "mins": min,
    "maxs": max,
    "minu": lambda a, b: min(u(a), u(b)),
    "maxu": lambda a, b: max(u(a), u(b)),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << (b % 64),
    "shrs": lambda a, b: a >> (b % 64),
    "shru": lambda a, b: u(a) >> (b % 64),
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lts": lambda a, b: a < b,
    "les": lambda a, b: a <= b,
    "ltu": lambda a, b: u(a) < u(b),
    "leu": lambda a, b: u(a) <= u(b),
}

EXTREMES = [0, 1, -1, 2, -2, 63, 64, 2**31, -(2**31), 2**63 - 1, -(2**63)]


def scalars(count: int) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(f"a{i}", "i64") for i in range(count))


def scalar_function(builder: ProgramBuilder, name: str, arguments: int, body) -> None:
    """A function of i64 scalars; `body(asm, *registers)` gives the register of its one i64 result."""
    asm = builder.function(name, Signature(scalars(arguments), (TensorSpec("out", "i64"),)))
    zero = asm.const(0)
    values = [asm.buffer_load(None, asm.arg(None, i), zero, Element.I64) for i in range(arguments)]
    result = body(asm, *values)
    out = asm.buffer_alloc(None, asm.const(8), Alloc.RESULT)
    asm.buffer_store(result, out, zero, Element.I64)
    asm.set_result(0, out, [])


DEVICE = "local-sync"


@pytest.fixture(autouse=True, params=["local-sync", "far"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host program is the same wherever memory is and whenever work is done."""
    monkeypatch.setattr(sys.modules[__name__], "DEVICE", request.param)


def load(builder: ProgramBuilder, **keywords) -> eyas.runtime.Module:
    return eyas.runtime.load(kernels.pack(builder), device=DEVICE, **keywords)


def test_integer_instructions():
    builder = ProgramBuilder()
    for name in REFERENCE:
        method = method_name(isa.BY_NAME[name])
        scalar_function(builder, name, 2, lambda asm, a, b, m=method: getattr(asm, m)(None, a, b))
    module = load(builder)
    generator = random.Random(0)
    pairs = [(a, b) for a in EXTREMES for b in EXTREMES]
    pairs += [
        (wrap(generator.getrandbits(64)), wrap(generator.getrandbits(generator.choice([3, 8, 64])))) for _ in range(200)
    ]
    for name, reference in REFERENCE.items():
        for a, b in pairs:
            if name.startswith(("div", "rem", "ceil", "floor")) and b == 0:
                with pytest.raises(CallError, match="by zero"):
                    module.functions[name](a, b)
            else:
                assert int(module.functions[name](a, b)) == wrap(int(reference(a, b))), (name, a, b)


FLOATS = {
    "fadd": np.add,
    "fsub": np.subtract,
    "fmul": np.multiply,
    "fdiv": np.divide,
    "frem": np.fmod,
    "fmin": np.minimum,
    "fmax": np.maximum,
    # NumPy takes a root instead of a power of 0.5, which is another thing for minus infinity.
    "fpow": lambda a, b: np.inf if (a, b) == (-np.inf, 0.5) else np.power(a, b),
    "feq": np.equal,
    "flt": np.less,
    "fle": np.less_equal,
    "ffloor": np.floor,
    "fceil": np.ceil,
    "ftrunc": np.trunc,
    "fnearest": np.rint,
    "faway": lambda a: np.copysign(np.floor(np.abs(a)) + (np.abs(a) - np.floor(np.abs(a)) >= 0.5), a),
    "fsqrt": np.sqrt,
    "fabs": np.abs,
    "fneg": np.negative,
    "fexp": np.exp,
    "flog": np.log,
    "flog2": np.log2,
}
UNUSUAL = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e300, -1e300, 5e-324, 2.0**53 + 1, np.inf, -np.inf, np.nan, 0.1, 7.0]


def bits_of(value: float) -> int:
    return int(np.array(value, np.float64).view(np.int64))


def number_of(bits: int) -> float:
    return float(np.array(int(bits), np.int64).view(np.float64))


def test_float_instructions():
    """Against NumPy, to the bit except for libm's functions."""
    builder = ProgramBuilder()
    for name in FLOATS:
        op = isa.BY_NAME[name]
        count = len(op.operands) - 1
        scalar_function(builder, name, count, lambda asm, *given, op=op: getattr(asm, method_name(op))(None, *given))
    module = load(builder)
    numbers = [*UNUSUAL, *np.random.default_rng(0).normal(0, 50, 20).tolist()]
    with np.errstate(all="ignore"):
        for name, reference in FLOATS.items():
            binary = len(isa.BY_NAME[name].operands) == 3
            for a in numbers:
                for b in numbers if binary else [0.0]:
                    given = (a, b) if binary else (a,)
                    got, want = module.functions[name](*map(bits_of, given)), reference(*map(np.float64, given))
                    if name in ("feq", "flt", "fle"):
                        assert int(got) == int(want), (name, given)
                        continue
                    ulps = 2 if name in ("fpow", "fexp", "flog", "flog2") else 0
                    if np.isnan(want):
                        assert np.isnan(number_of(got)), (name, given)
                    else:
                        np.testing.assert_array_max_ulp(number_of(got), float(want), ulps)


def test_float_conversions():
    """Integers, and types that numbers are rounded to; what does not fit becomes the nearest that does."""
    builder = ProgramBuilder()
    for name in ("itof", "utof", "ftoi", "ftou"):
        scalar_function(builder, name, 1, lambda asm, a, m=name: getattr(asm, m)(None, a))
    for name in ("fround", "funpack", "fpack"):
        for kind in isa.Float:
            scalar_function(builder, f"{name}{kind}", 1, lambda asm, a, m=name, k=kind: getattr(asm, m)(None, a, k))
    call = load(builder).functions
    for value in EXTREMES:
        assert number_of(call["itof"](value)) == float(value)
        assert number_of(call["utof"](value)) == float(u(value))
    for value, signed, unsigned in [
        (2.9, 2, 2), (-2.9, -2, 0), (np.nan, 0, 0), (1e30, 2**63 - 1, 2**64 - 1), (-1e30, -(2**63), 0),
        (2.0**63, 2**63 - 1, 2**63),
    ]:  # fmt: skip
        assert int(call["ftoi"](bits_of(value))) == signed
        assert u(int(call["ftou"](bits_of(value)))) == unsigned
    types = {isa.Float.F64: np.float64, isa.Float.F32: np.float32, isa.Float.F16: np.float16}
    types[isa.Float.BF16] = ml_dtypes.bfloat16
    for value in [*UNUSUAL, 1 / 3, 65504.0, 65520.0, 1e-7]:
        for kind, dtype in types.items():
            with np.errstate(all="ignore"):
                narrow = np.array(value, np.float64).astype(dtype)
            assert np.array_equal(number_of(call[f"fround{kind}"](bits_of(value))), float(narrow), equal_nan=True)
            if np.isnan(value):
                continue
            bits = int(narrow.view(f"u{narrow.itemsize}"))
            assert u(int(call[f"fpack{kind}"](bits_of(value)))) == bits
            assert number_of(call[f"funpack{kind}"](wrap(bits))) == float(narrow)


def test_extension_and_select():
    builder = ProgramBuilder()
    for width in (1, 8, 16, 32):
        scalar_function(builder, f"sext{width}", 1, lambda asm, a, w=width: asm.sext(None, a, w))
        scalar_function(builder, f"zext{width}", 1, lambda asm, a, w=width: asm.zext(None, a, w))
    scalar_function(builder, "select", 3, lambda asm, c, a, b: asm.select(None, c, a, b))
    scalar_function(builder, "mov", 1, lambda asm, a: asm.mov(None, a))
    module = load(builder)
    for value in [*EXTREMES, 0x80, 0xFF, 0x8000, 0xFFFF_FFFF, 0x1234_5678_9ABC_DEF0]:
        for width in (1, 8, 16, 32):
            low = value % 2**width
            assert module.functions[f"zext{width}"](value) == low
            assert module.functions[f"sext{width}"](value) == (low - 2**width if low >> (width - 1) else low)
        assert module.functions["mov"](value) == value
    assert module.functions["select"](5, 1, 2) == 1
    assert module.functions["select"](0, 1, 2) == 2


def test_loop_sums_to_n():
    def body(asm, n):
        total, i = asm.mov(None, asm.const(0)), asm.mov(None, asm.const(0))
        head, done = asm.bind(asm.label()), asm.label()
        asm.br_if(asm.eq(None, i, n), done)
        asm.add(i, i, asm.const(1))
        asm.add(total, total, i)
        asm.br(head)
        asm.bind(done)
        return total

    builder = ProgramBuilder()
    scalar_function(builder, "main", 1, body)
    module = load(builder)
    assert module(0) == 0
    assert module(1000) == 500500


@pytest.mark.parametrize("element", list(Element))
def test_load_and_store_scalars(element: Element):
    names = {Element.I1: "i1", Element.I64: "i64"}
    dtype = names.get(element, element.name.lower())
    size = DTYPES[dtype][1]
    builder = ProgramBuilder()
    asm = builder.function(
        "main",
        Signature((TensorSpec("x", dtype, (3,)),), (TensorSpec("y", dtype, (3,)), TensorSpec("wide", "i64", (3,)))),
    )
    out = asm.buffer_alloc(None, asm.const(3 * size), Alloc.RESULT)
    wide = asm.buffer_alloc(None, asm.const(24), Alloc.RESULT)
    for i in range(3):
        value = asm.buffer_load(None, asm.arg(None, 0), asm.const(i * size), element)
        asm.buffer_store(value, out, asm.const(i * size), element)
        asm.buffer_store(value, wide, asm.const(i * 8), Element.I64)
    asm.set_result(0, out, [asm.const(3)])
    asm.set_result(1, wide, [asm.const(3)])
    module = load(builder)
    x = np.array([0, 1, 1], bool)
    if element is not Element.I1:
        numpy_type = np.dtype(("u" if dtype[0] == "u" else "") + f"int{8 * size}")
        x = np.array([np.iinfo(numpy_type).min, 7, np.iinfo(numpy_type).max], numpy_type)
    y, wide = module(x)
    assert np.array_equal(y, x) and y.dtype == x.dtype
    assert wide.tolist() == [int(v) for v in x]


def test_check_and_fail_carry_values():
    def body(asm, a):
        asm.check(asm.lts(None, a, asm.const(10)), "a is {}, the limit is {}", [a, asm.const(10)])
        good = asm.label()
        asm.br_if(a, good)
        asm.fail("a must not be zero")
        asm.bind(good)
        return a

    builder = ProgramBuilder()
    scalar_function(builder, "main", 1, body)
    module = load(builder)
    assert module(9) == 9
    with pytest.raises(CallError, match="a is 12, the limit is 10"):
        module(12)
    with pytest.raises(CallError, match="a must not be zero"):
        module(0)
    assert module(3) == 3


def test_views_and_bytes():
    """A result that is part of an argument is copied, and the copy is right."""
    builder = ProgramBuilder()
    asm = builder.function(
        "main", Signature((TensorSpec("x", "f32", (8,)),), (TensorSpec("y", "f32", (3,)), TensorSpec("n", "i64")))
    )
    view = asm.buffer_view(None, asm.arg(None, 0), asm.const(8), asm.const(20))
    view = asm.buffer_view(None, view, asm.const(4), asm.const(12))
    count = asm.buffer_bytes(None, asm.buffer_view(None, asm.arg(None, 0), asm.const(4), None))
    asm.set_result(0, view, [asm.const(3)])
    out = asm.buffer_alloc(None, asm.const(8), Alloc.RESULT)
    asm.buffer_store(count, out, asm.const(0), Element.I64)
    asm.set_result(1, out, [])
    module = load(builder)
    x = np.random.default_rng(0).random(8, np.float32)
    y, n = module(x)
    assert np.array_equal(y, x[3:6]) and n == 28
    y[:] = 0
    assert x[3] != 0


@pytest.mark.parametrize(
    ("offset", "length"), [(-1, 4), (0, 33), (30, 4), (33, 0), (0, -1), (2**62, 2**62), (8, 2**63 - 1)]
)
def test_views_outside_fail(offset: int, length: int):
    builder = ProgramBuilder()
    asm = builder.function("main", Signature((TensorSpec("x", "f32", (8,)),)))
    asm.buffer_view(None, asm.arg(None, 0), asm.const(offset), asm.const(length))
    with pytest.raises(CallError, match="buffer_view: .*outside a buffer of 32 bytes"):
        load(builder)(np.zeros(8, np.float32))


def test_arena_pack_and_dynamic_shapes():
    """((x + y) * 2) * 3 with every intermediate in one arena, sizes known only at the call."""
    builder = ProgramBuilder()
    exe = builder.executable(kernels.executable())
    specs = [TensorSpec(name, "f32", ("n",)) for name in ("x", "y", "out")]
    asm = builder.function("main", Signature(tuple(specs[:2]), (specs[2],)))
    n = asm.arg_dim(None, 0, 0)
    size, one = asm.mul(None, n, asm.const(4)), asm.const(1)
    total, (first, second) = asm.arena_pack(None, 2, [size, size], [0, 1, 1, 2])
    arena = asm.buffer_alloc(None, total, Alloc.TRANSIENT)
    out = asm.buffer_alloc(None, size, Alloc.RESULT)
    grid = kernels.groups(asm, n)
    cmd = asm.cmd_create(None, 2)
    bindings = [Slot(0), Slot(1), Direct(arena, first, size, Access.WRITE)]
    asm.cmd_dispatch(cmd, exe, kernels.ADD, grid, one, one, [n], bindings)
    asm.cmd_barrier(cmd)
    bindings = [Direct(arena, first, size), Direct(arena, second, size, Access.WRITE)]
    asm.cmd_dispatch(cmd, exe, kernels.SCALE, grid, one, one, [n, asm.const(2)], bindings)
    asm.cmd_barrier(cmd)
    bindings = [Direct(arena, second, size), Direct(out, access=Access.WRITE)]
    asm.cmd_dispatch(cmd, exe, kernels.SCALE, grid, one, one, [n, asm.const(3)], bindings)
    asm.cmd_end(cmd)
    asm.submit(cmd, [asm.arg(None, 0), asm.arg(None, 1)])
    asm.set_result(0, out, [n])
    module = eyas.runtime.load(kernels.pack(builder))
    generator = np.random.default_rng(0)
    for count in (1, 1000, 1000, 77, 0, 5000, 5000):
        x, y = generator.random(count, np.float32), generator.random(count, np.float32)
        assert np.array_equal(module(x, y), (x + y) * np.float32(2) * np.float32(3)), count
    assert module.transient_bytes == 2 * (-(-5000 * 4 // 64) * 64)  # grown once, and the smaller one let go


def test_fill_and_copy():
    builder = ProgramBuilder()
    asm = builder.function("main", Signature((TensorSpec("x", "i32", (6,)),), (TensorSpec("y", "i32", (6,)),)))
    out = asm.buffer_alloc(None, asm.const(24), Alloc.RESULT)
    cmd = asm.cmd_create(None, 1)
    asm.cmd_fill(cmd, Direct(out, access=Access.WRITE), asm.const(-7), 4)
    asm.cmd_barrier(cmd)
    asm.cmd_copy(cmd, Slot(0, asm.const(4), asm.const(8)), Direct(out, asm.const(12), asm.const(8), Access.WRITE))
    asm.cmd_end(cmd)
    asm.submit(cmd, [asm.arg(None, 0)])
    asm.set_result(0, out, [asm.const(6)])
    module = load(builder)
    assert module(np.arange(6, dtype=np.int32)).tolist() == [-7, -7, -7, 1, 2, -7]


def test_host_reads_back_a_count():
    """The shape of a result that depends on data: dispatch, read back, allocate."""
    builder = ProgramBuilder()
    exe = builder.executable(kernels.executable())
    asm = builder.function("main", Signature((TensorSpec("x", "i32", ("n",)),), (TensorSpec("y", "i8", ("?",)),)))
    count = asm.buffer_alloc(None, asm.const(8), Alloc.TRANSIENT)
    bindings = [Direct(asm.arg(None, 0)), Direct(count, access=Access.WRITE)]
    kernels.run_once(asm, exe, kernels.COUNT, asm.const(1), [asm.arg_dim(None, 0, 0)], bindings)
    positive = asm.buffer_load(None, count, asm.const(0), Element.I64)
    out = asm.buffer_alloc(None, positive, Alloc.RESULT)
    cmd = asm.cmd_create(None, 0)
    asm.cmd_fill(cmd, Direct(out, access=Access.WRITE), asm.const(5), 1)
    asm.cmd_end(cmd)
    asm.submit(cmd, [])
    asm.set_result(0, out, [positive])
    module = load(builder)
    x = np.random.default_rng(1).integers(-5, 5, 1000, dtype=np.int32)
    assert module(x).tolist() == [5] * int((x > 0).sum())
    assert module(-np.ones(4, np.int32)).shape == (0,)


def test_transient_memory_is_kept_and_reused():
    builder = ProgramBuilder()
    asm = builder.function("main", Signature())
    asm.buffer_alloc(None, asm.const(1 << 20), Alloc.TRANSIENT)
    asm.buffer_alloc(None, asm.const(1 << 10), Alloc.TRANSIENT)
    module = load(builder)
    for _ in range(5):
        assert module() is None
        assert module.transient_bytes == (1 << 20) + (1 << 10)


def test_globals_keep_buffers_between_calls():
    """A buffer in a global slot is not given to another allocation, and keeps its contents."""
    builder = ProgramBuilder()
    asm = builder.function("main", Signature((), (TensorSpec("calls", "i64"),)))
    zero = asm.const(0)
    counter, run, first = asm.global_load(None, 0), asm.label(), asm.label()
    asm.br_null(counter, first)
    asm.br(run)
    asm.bind(first)
    asm.buffer_alloc(counter, asm.const(8), Alloc.TRANSIENT)
    asm.buffer_store(zero, counter, zero, Element.I64)
    asm.global_store(0, counter)
    asm.bind(run)
    other = asm.buffer_alloc(None, asm.const(8), Alloc.TRANSIENT)
    asm.buffer_store(asm.const(-1), other, zero, Element.I64)
    calls = asm.add(None, asm.buffer_load(None, counter, zero, Element.I64), asm.const(1))
    asm.buffer_store(calls, counter, zero, Element.I64)
    asm.set_result(0, counter, [])
    module = load(builder)
    assert [int(module()) for _ in range(4)] == [1, 2, 3, 4]


def counting() -> ProgramBuilder:
    """Adds 1 to a state variable by storing, and doubles another in place by a kernel; then may fail."""
    builder = ProgramBuilder()
    exe = builder.executable(kernels.executable())
    calls, powers = builder.state(State("calls", "i64", ())), builder.state(State("powers", "f32", (4,)))
    asm = builder.function("main", Signature(scalars(1), ()))
    zero, one = asm.const(0), asm.const(1)
    asm.check(asm.buffer_load(None, asm.arg(None, 0), zero, Element.I64), "the argument is 0")
    counter, values = asm.state(None, calls), asm.state(None, powers)
    asm.buffer_store(asm.add(None, asm.buffer_load(None, counter, zero, Element.I64), one), counter, zero, Element.I64)
    bindings = [Direct(values), Direct(values, access=Access.WRITE)]
    kernels.run_once(asm, exe, kernels.SCALE, one, [asm.const(4), asm.const(2)], bindings)
    asm.check(asm.lts(None, asm.buffer_load(None, asm.arg(None, 0), zero, Element.I64), asm.const(9)), "too large")
    other = builder.function("other", Signature((), ()))
    other.return_()
    return builder


def test_state_stays_between_calls():
    module = load(counting())
    module.state["powers"] = np.ones(4, np.float32)
    for _ in range(3):
        module(1)
    assert module.state["calls"] == 3 and module.state["powers"].tolist() == [8.0] * 4
    module.reset()
    assert module.state["calls"] == 0 and module.state["powers"].tolist() == [0.0] * 4
    assert load(counting()).state["calls"] == 0


def test_state_after_a_failed_call():
    module = load(counting())
    module(1)
    with pytest.raises(CallError, match="the argument is 0"):
        module(0)
    assert module.state["calls"] == 1, "nothing had been written"
    with pytest.raises(CallError, match="too large"):
        module(9)
    with pytest.raises(CallError, match="state 'calls' is undefined"):
        module(1)
    with pytest.raises(CallError, match="state 'powers' is undefined"):
        module.state["powers"]
    module["other"]()  # it has no business with state
    module.state["calls"] = 5
    with pytest.raises(CallError, match="state 'powers' is undefined"):
        module(1)
    module.state["powers"] = np.ones(4, np.float32)
    module(1)
    assert module.state["calls"] == 6


def submissions(fails_first: bool) -> ProgramBuilder:
    """A kernel that fails and one that doubles a state variable, each in a submission of its own."""
    builder = ProgramBuilder()
    exe = builder.executable(kernels.executable())
    powers = builder.state(State("powers", "f32", (4,)))
    asm = builder.function("main", Signature((), ()))
    values = asm.state(None, powers)
    for fails in (fails_first, not fails_first):
        if fails:
            kernels.run_once(asm, exe, kernels.FAILS, asm.const(1), [], [])
        else:
            bindings = [Direct(values), Direct(values, access=Access.WRITE)]
            kernels.run_once(asm, exe, kernels.SCALE, asm.const(1), [asm.const(4), asm.const(2)], bindings)
    return builder


def test_work_behind_a_failure_does_not_run():
    """Also where it was submitted before anybody knew of the failure."""
    module = load(submissions(fails_first=True))
    module.state["powers"] = np.ones(4, np.float32)
    for _ in range(3):
        with pytest.raises(CallError, match="dispatch 'fails' .* reported error 77"):
            module()
        assert module.state["powers"].tolist() == [1.0] * 4
    module = load(submissions(fails_first=False))
    with pytest.raises(CallError, match="dispatch 'fails' .* reported error 77"):
        module()
    with pytest.raises(CallError, match="state 'powers' is undefined"):
        module.state["powers"]


def test_programs_with_state_are_written_and_read():
    program = counting().finish()
    assert decode(encode(program)) == program and "state 0 'calls' i64[] starts as zeros" in disassemble(program)


def misuse_argument_in_global(asm, builder, exe):
    asm.global_store(0, asm.arg(None, 0))


def misuse_argument_in_kept_commands(asm, builder, exe):
    cmd, one = asm.cmd_create(None, 0), asm.const(1)
    asm.global_store(0, cmd)
    out = asm.buffer_alloc(None, asm.const(16), Alloc.TRANSIENT)
    asm.cmd_dispatch(
        cmd, exe, kernels.COPY, one, one, one, [], [Direct(asm.arg(None, 0)), Direct(out, access=Access.WRITE)]
    )


def misuse_keep_commands_with_argument(asm, builder, exe):
    cmd, one = asm.cmd_create(None, 0), asm.const(1)
    out = asm.buffer_alloc(None, asm.const(16), Alloc.TRANSIENT)
    asm.cmd_dispatch(
        cmd, exe, kernels.COPY, one, one, one, [], [Direct(asm.arg(None, 0)), Direct(out, access=Access.WRITE)]
    )
    asm.global_store(0, cmd)


def misuse_write_argument(asm, builder, exe):
    out = asm.buffer_alloc(None, asm.const(16), Alloc.TRANSIENT)
    kernels.run_once(
        asm, exe, kernels.COPY, asm.const(1), [], [Direct(out), Direct(asm.arg(None, 0), access=Access.WRITE)]
    )


def misuse_store_to_argument(asm, builder, exe):
    asm.buffer_store(asm.const(1), asm.arg(None, 0), asm.const(0), Element.I8)


def misuse_submit_open(asm, builder, exe):
    asm.submit(asm.cmd_create(None, 0), [])


def misuse_null(asm, builder, exe):
    asm.buffer_bytes(None, asm.ref())


def misuse_commands_as_buffer(asm, builder, exe):
    asm.buffer_bytes(None, asm.cmd_create(None, 0))


def misuse_slot(asm, builder, exe):
    cmd = asm.cmd_create(None, 1)
    asm.cmd_fill(cmd, Slot(1, access=Access.WRITE), asm.const(0), 1)


def misuse_table_too_short(asm, builder, exe):
    cmd = asm.cmd_create(None, 1)
    asm.cmd_fill(cmd, Slot(0, None, asm.const(64), Access.WRITE), asm.const(0), 1)
    asm.cmd_end(cmd)
    asm.submit(cmd, [asm.buffer_alloc(None, asm.const(63), Alloc.TRANSIENT)])


def misuse_grid(asm, builder, exe):
    one = asm.const(1)
    asm.cmd_dispatch(asm.cmd_create(None, 0), exe, kernels.FAILS, asm.const(-1), one, one, [], [])


def misuse_kernel_fails(asm, builder, exe):
    kernels.run_once(asm, exe, kernels.FAILS, asm.const(1), [], [])


def misuse_allocate(asm, builder, exe):
    asm.buffer_alloc(None, asm.const(-1), Alloc.TRANSIENT)


def misuse_pack(asm, builder, exe):
    asm.arena_pack(None, 1, [asm.const(-1)], [0, 1])


def misuse_result_unset(asm, builder, exe):
    asm.return_()


def misuse_result_dims(asm, builder, exe):
    asm.set_result(0, asm.arg(None, 0), [asm.const(5)])


def misuse_result_too_small(asm, builder, exe):
    asm.set_result(0, asm.buffer_alloc(None, asm.const(15), Alloc.RESULT), [asm.const(4)])


@pytest.mark.parametrize("misuse", [f for name, f in sorted(globals().items()) if name.startswith("misuse_")])
def test_misuse_fails_the_call_only(misuse):
    """Programs that our compiler would not write: an error, and the context still works."""
    builder = ProgramBuilder()
    exe = builder.executable(kernels.executable())
    signature = Signature((TensorSpec("x", "f32", (4,)),), (TensorSpec("y", "f32", (4,)),))
    asm = builder.function("bad", signature)
    misuse(asm, builder, exe)
    if "result" not in misuse.__name__:
        asm.set_result(0, asm.arg(None, 0), [asm.const(4)])
    kernels.write_add(builder, "good")
    module = load(builder)
    x = np.arange(4, dtype=np.float32)
    for _ in range(3):
        with pytest.raises(CallError):
            module.functions["bad"](x)
        assert np.array_equal(module.functions["good"](x, x), x + x)
    assert x.tolist() == [0, 1, 2, 3]


def test_assembler_refuses_mistakes():
    builder = ProgramBuilder()
    asm = builder.function("main", Signature())
    with pytest.raises(ModuleError, match="not a register of the I64 bank"):
        asm.add(None, asm.ref(), asm.const(1))
    with pytest.raises(ModuleError, match="not a binding"):
        asm.cmd_fill(asm.cmd_create(None, 0), asm.ref(), asm.const(0), 1)
    asm.br(asm.label())
    with pytest.raises(ModuleError, match="never bound"):
        builder.finish()


def test_encode_decode_disassemble():
    builder = ProgramBuilder()
    builder.executable(kernels.executable(("avx2",)))
    kernels.write_add(builder, dims=(2, 3))
    program = builder.finish()
    assert decode(encode(program)) == program
    text = disassemble(program)
    assert "cmd_dispatch r3, 0, 0, i0, i0, i0, [i1], [ro slot0, ro slot1, wo slot2]" in text
    assert sum(1 for _ in iterate(program.functions[0].code)) == text.count("\n  ") - len(kernels.EXPORTS)


def test_table_is_well_formed():
    assert len(isa.BY_CODE) == len(isa.BY_NAME) == len(isa.OPS)
    assert 0 not in isa.BY_CODE and max(isa.BY_CODE) < 0x100
    assert all(f"| `0x{op.code:02X}` | `{op.name}" in isa.emit_md() for op in isa.OPS)
    assert all(f"EYAS_VM_OP_{op.name.upper()} = {op.code}," in isa.emit_c() for op in isa.OPS)
