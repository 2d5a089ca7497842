"""Branches and loops that the host program runs, however little work they have, against ONNX Runtime."""

from __future__ import annotations

import functools

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from tests.tools.onnx_texts import check_text  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import CallError  # noqa: E402
from eyas.passes.optimize.outline_control_flow import OutlineControlFlow  # noqa: E402
from eyas.pipelines import phases  # noqa: E402

RANDOM = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def outlined(monkeypatch):
    """Everything is outlined, and nothing is computed on both sides of a branch."""
    lookup = phases.lookup
    always = functools.partial(OutlineControlFlow, min_work=0)
    monkeypatch.setattr(phases, "lookup", lambda name: always if name == OutlineControlFlow.name else lookup(name))


@pytest.fixture
def check(tmp_path):
    """Compiles; every call must agree with ONNX Runtime, and the host program runs as many functions as are said."""

    def check_one(text: str, *calls, functions: int, **options) -> eyas.Module:
        options = {"disable": ["speculate-branches"], "cache": False, "dump_phases": tmp_path, **options}
        module = check_text(text, *calls, opset=17, atol=1e-5, **options)
        (dump,) = tmp_path.glob("*optimize*.mlir")
        assert dump.read_text().count("flow.branches") + dump.read_text().count("flow.while") == functions
        return module

    return check_one


def rows(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


BRANCHES = """main (float[b, 7] x, float[7, 7] w, int64 rate) => (float[b, 7] y, float[n, 7] z, int64[b] best)
{
  sixteen = Constant <value = int64 {16}> ()
  wide = Equal (rate, sixteen)
  y, z, best = If (wide) <
    then_branch = one () => (float[b, 7] y1, float[n, 7] z1, int64[b] b1) {
      p = MatMul (x, w)
      y1 = Tanh (p)
      z1 = Concat <axis = 0> (p, x)
      b1 = ArgMax <axis = 1, keepdims = 0> (p)
    },
    else_branch = other () => (float[b, 7] y2, float[n, 7] z2, int64[b] b2) {
      y2 = Identity (x)
      z2 = Neg (x)
      eight = Constant <value = int64 {8}> ()
      narrow = Equal (rate, eight)
      b2 = If (narrow) <
        then_branch = least () => (int64[b] b3) { b3 = ArgMin <axis = 1, keepdims = 0> (z2) },
        else_branch = most () => (int64[b] b4) { q = MatMul (z2, w) b4 = ArgMax <axis = 1, keepdims = 0> (q) }
      >
    }>
}"""


@pytest.mark.parametrize(
    "options", [{}, {"target": "llvm-cpu:x86_64:x86-64-v3"}, {"target": "vmvx"}, {"device": "far"}]
)
def test_branches_of_sizes_that_vary(check, options):
    """Results as large as the branch makes them, one that is an argument, and a branch inside of a branch."""
    w = rows(7, 7)
    calls = [(rows(b, 7), w, np.int64(rate)) for rate in (16, 8, 3) for b in (1, 5, 16)]
    check(BRANCHES, *calls, functions=2, **options)


def test_branches_of_fixed_sizes_with_weights(check):
    text = """main (float[3, 5] x, bool go) => (float[3, 4] y)
    <float[5, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, float[3, 4] c =
      {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}>
    {
      y = If (go) <
        then_branch = one () => (float[3, 4] p) { p = MatMul (x, w) },
        else_branch = other () => (float[3, 4] q) { q = Identity (c) }
      >
    }"""
    module = check(text, (rows(3, 5), True), (rows(3, 5), False), functions=1)
    assert all(kernel["strategy"] != "loops" for kernel in module.manifest["kernels"])


def test_sizes_that_depend_on_data_inside_of_a_branch(check):
    text = """main (float[k] x, bool go) => (float y)
    {
      y = If (go) <
        then_branch = one () => (float p) {
          zero = Constant <value = float {0.0}> ()
          above = Greater (x, zero)
          some = Compress (x, above)
          p = ReduceSum <keepdims = 0> (some)
        },
        else_branch = other () => (float q) { q = ReduceMax <keepdims = 0> (x) }
      >
    }"""
    check(text, *((rows(k), go) for k in (1, 9) for go in (True, False)), functions=1)


def test_only_the_branch_that_is_taken_fails(check):
    text = """main (float[b, 6] x, float[c, 6] z, bool go) => (float[b, 6] y)
    {
      y = If (go) <
        then_branch = one () => (float[b, 6] p) { p = Add (x, z) },
        else_branch = other () => (float[b, 6] q) { q = Neg (x) }
      >
    }"""
    fits, does_not = (rows(4, 6), rows(4, 6)), (rows(4, 6), rows(3, 6))
    module = check(text, (*fits, True), (*fits, False), (*does_not, False), functions=1)
    with pytest.raises(CallError):
        module(*does_not, np.asarray(True))
    np.testing.assert_array_equal(np.asarray(module(*does_not, np.asarray(False))), -does_not[0])


LOOP = """main (float[b, 6] x, float[6, 6] w, float most, int64 n) => (float[b, 6] y, int64 count, float last)
{
  yes = Constant <value = bool {1}> ()
  none = Constant <value = int64 {0}> ()
  nothing = Constant <value = float {-1.0}> ()
  y, count, last = Loop (n, yes, x, none, nothing) <
    body = step (int64 i, bool c, float[b, 6] s, int64 k, float l) => (bool on, float[b, 6] t, int64 k1, float total) {
      p = MatMul (s, w)
      t = Add (p, x)
      total = ReduceL1 <keepdims = 0> (t)
      on = Less (total, most)
      k1 = Add (k, i)
    }>
}"""


@pytest.mark.parametrize(
    "options", [{}, {"target": "llvm-cpu:x86_64:x86-64-v3"}, {"target": "vmvx"}, {"device": "far"}]
)
def test_loops_until_data_say_so(check, options):
    """No step, one, an odd and an even number of them."""
    w = np.linalg.qr(rows(6, 6))[0].astype(np.float32)
    calls = [
        (rows(b, 6), w, np.float32(most), np.int64(n))
        for b in (1, 4)
        for most, n in ((1e9, 0), (1e9, 1), (1e9, 6), (40, 100), (0, 9))
    ]
    check(LOOP, *calls, functions=1, **options)


def test_branches_in_loops_in_branches(check):
    text = """main (float[b, 3] x, int64 n, bool go) => (float[b, 3] y)
    {
      y = If (go) <
        then_branch = one () => (float[b, 3] p) {
          p = Loop (n, , x) <body = step (int64 i, bool c, float[b, 3] s) => (bool c, float[b, 3] t) {
            sum = ReduceSum <keepdims = 0> (s)
            most = Constant <value = float {20.0}> ()
            small = Less (sum, most)
            t = If (small) <
              then_branch = grow () => (float[b, 3] g) { g = Add (s, s) },
              else_branch = shrink () => (float[b, 3] h) { f = Constant <value = float {0.3}> () h = Mul (s, f) }
            >
          }>
        },
        else_branch = other () => (float[b, 3] q) { q = Neg (x) }
      >
    }"""
    x = np.abs(rows(2, 3))
    check(text, *((x, np.int64(n), np.bool_(go)) for n in (0, 1, 7) for go in (True, False)), functions=3)


def test_what_is_carried_without_elements(check):
    text = """main (float[b, 3] x, int64 n) => (float[b, 3] y)
    {
      y = Loop (n, , x) <body = step (int64 i, bool c, float[b, 3] s) => (bool c, float[b, 3] t) { t = Add (s, s) }>
    }"""
    check(text, (np.zeros((0, 3), np.float32), np.int64(3)), (rows(2, 3), np.int64(3)), functions=1)
