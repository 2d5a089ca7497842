"""Dispatches that run by themselves: on every target, with sizes that are open, and with code that is wrong."""

import numpy as np
import pytest
from tests.tools import faults, tuning, vulkan

import eyas
from eyas.codegen.spirv import decorate
from eyas.errors import CompileError, UsageError
from eyas.ir.walk import find_ops
from eyas.tune import gate
from eyas.tune.gate import CHECKS
from eyas.tune.making import Maker
from eyas.tune.operands import Kind

CONTRACTION = '#codegen.strategy<"contraction", {{tiles = [{{{}}}]}}>'
TILE = CONTRACTION.format("loop = 1, width = 8, vectors = 1, unroll_loop = 0, unroll = 2")


SHARED = (
    '#codegen.strategy<"products", {threads = 64, columns = 8, row_points = 4, column_points = 4, depth = 16,'
    " slices = 1, buffers = 1}>"
)


@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
@pytest.mark.parametrize("cold", [False, True])
def test_dispatches_run_alone(target, cold):
    model = tuning.opened(tuning.product(), target)
    assert not model.skipped and len(model.dispatches) >= 2
    for dispatch in model.dispatches:
        runner, small = tuning.ready(dispatch, eyas.Device("local-task", threads=2), cold)
        runner.load("default", Maker().make(small, None))
        assert runner.check("default") is None
        times = runner.sample(["default"], 3)["default"]
        assert len(times) == 3 and min(times) > 0


def test_dispatches_run_alone_on_a_gpu():
    device = vulkan.device()
    model = tuning.opened(tuning.product(), vulkan.target(), device="vulkan")
    for dispatch in model.dispatches:
        runner, small = tuning.ready(dispatch, device)
        runner.load("default", Maker().make(small, None))
        assert runner.check("default") is None
        assert min(runner.sample(["default"], 2)["default"]) > 0


def test_open_sizes_are_those_of_the_call():
    model = tuning.opened(tuning.product(open_rows=True), inputs=("9x37xf32=random",))
    dispatch = model.find("matmul")
    assert dispatch.constants == (9,) and dispatch.operands[0].tensor.shape == (9, 37)
    runner, small = tuning.ready(dispatch, eyas.Device("local-task", threads=2))
    assert "tensor<?x37xf32>" in small.text  # the executable is that of the model
    runner.load("default", Maker().make(small, None))
    assert runner.check("default") is None


def test_weights_stay_constant_and_are_packed():
    dispatch = tuning.opened(tuning.product(33, 128, 512)).find("matmul")
    runner, small = tuning.ready(dispatch, eyas.Device("local-task", threads=2))
    schedule = CONTRACTION.format("loop = 1, width = 16, vectors = 2, unroll_loop = 0, unroll = 4")
    made = Maker().make(small, schedule)
    assert made.panels["w1.0#panels32"] == ("w1.0", 32)
    runner.load("packed", made)
    assert runner.check("packed") is None


def test_a_dispatch_is_known_in_every_model():
    one = tuning.opened(tuning.product()).find("matmul")
    again = tuning.opened(tuning.product()).find("matmul")
    other = tuning.opened(tuning.product(columns=48)).find("matmul")
    assert one.key == again.key != other.key


def test_a_name_that_no_dispatch_has():
    model = tuning.opened(tuning.product())
    with pytest.raises(UsageError, match="did you mean 'main_dispatch_0_matmul_12x40_f32'"):
        model.find("matmul_12x41")


def test_equal_code_has_equal_digests():
    dispatch = tuning.opened(tuning.product()).find("matmul")
    _, small = tuning.ready(dispatch, eyas.Device("local-task", threads=1))
    maker = Maker()
    assert maker.make(small, TILE).code == maker.make(small, TILE.replace("vectors = 1, ", "")).code
    assert maker.make(small, TILE).code != maker.make(small, TILE.replace("unroll = 2", "unroll = 3")).code


def test_a_schedule_that_does_not_fit_is_refused():
    dispatch = tuning.opened(tuning.product()).find("matmul")
    _, small = tuning.ready(dispatch, eyas.Device("local-task", threads=1))
    with pytest.raises(CompileError, match="unroll_loop"):
        Maker().make(small, TILE.replace("unroll_loop = 0", "unroll_loop = 7"))


# --- wrong candidates -------------------------------------------------------------------------------------------------


def test_a_tile_that_leaves_out_the_last_step(monkeypatch):
    dispatch = tuning.opened(tuning.product()).find("matmul")
    runner, small = tuning.ready(dispatch, eyas.Device("local-task", threads=2))
    faults.short_contraction(monkeypatch)
    runner.load("short", Maker().make(small, TILE))
    number, reason = runner.check("short")
    assert CHECKS[number].kind is Kind.NORMAL and "elements are wrong" in reason


def test_one_step_of_a_long_sum_of_narrow_numbers(monkeypatch):
    """Beyond what tolerances see: small integers show it."""
    text = """
    func.func @main(%a: tensor<8x4099xbf16>, %b: tensor<4099x16xbf16>) -> tensor<8x16xbf16> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<8x16xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
      %p = linalg.matmul ins(%a, %b : tensor<8x4099xbf16>, tensor<4099x16xbf16>)
        outs(%f : tensor<8x16xf32>) -> tensor<8x16xf32>
      %r = arith.truncf %p : tensor<8x16xf32> to tensor<8x16xbf16>
      return %r : tensor<8x16xbf16>
    }"""
    dispatch = tuning.opened(text).dispatches[0]
    runner, small = tuning.ready(dispatch, eyas.Device("local-task", threads=2))
    runner.load("right", Maker().make(small, None))
    assert runner.check("right") is None
    faults.short_contraction(monkeypatch)
    runner.load("short", Maker().make(small, None))
    assert runner.check("short") is not None


def test_a_race(monkeypatch):
    """Threads of a workgroup that do not wait for what others write."""
    device = vulkan.device()
    dispatch = tuning.opened(tuning.product(64, 64, 64), vulkan.target(), device="vulkan").find("matmul")
    runner, small = tuning.ready(dispatch, device)
    maker, erased = Maker(), []
    runner.load("right", maker.make(small, SHARED))
    assert runner.check("right") is None

    def without_barriers(made, interface):
        for barrier in find_ops(made, "spirv.ControlBarrier"):
            erased.append(1)
            barrier.operation.erase()
        return frozenset()

    monkeypatch.setattr(decorate, "_order_barriers", without_barriers)
    runner.load("racing", maker.make(small, SHARED))
    assert erased and runner.check("racing") is not None


def test_writers_that_are_not_parted(monkeypatch):
    """A race that most calls do not show: results must have the same bits in each."""
    dispatch = tuning.opened(tuning.product()).find("matmul")
    runner, small = tuning.ready(dispatch, eyas.Device("local-task", threads=2))
    runner.load("it", Maker().make(small, None))
    right, calls = runner._call, []

    def sometimes_late(loaded, check):
        results, problem = right(loaded, check)
        calls.append(check)
        if len(calls) == 3:  # within tolerance
            results = [np.nextafter(np.asarray(one), np.float32(np.inf)) for one in results]
        return results, problem

    monkeypatch.setattr(runner, "_call", sometimes_late)
    number, reason = runner.check("it")
    assert number == 0 and "a race" in reason


def test_what_is_written_beside_a_result(monkeypatch):
    dispatch = tuning.opened(tuning.product(16, 37, 64)).find("matmul")
    runner, small = tuning.ready(dispatch, eyas.Device("local-task", threads=1))
    runner.load("it", Maker().make(small, None))
    draw = gate.draw_canvas

    def touched(tensor):
        canvas = draw(tensor)
        canvas[gate.GUARD_BYTES - 3] ^= 1
        return canvas

    monkeypatch.setattr(gate, "draw_canvas", touched)
    runner._calls.clear()  # arguments that were drawn before
    number, reason = runner.check("it")
    assert CHECKS[number].entry == "canvas" and "2 bytes before its result" in reason


def test_elements_that_are_not_written(monkeypatch):
    dispatch = tuning.opened(tuning.product()).find("softmax")
    runner, small = tuning.ready(dispatch, eyas.Device("local-task", threads=1))
    faults.lost_tail(monkeypatch)
    schedule = '#codegen.strategy<"rows", {tiles = [{loop = 1, width = 16}, {loop = 1, width = 16}, {loop = 1, width = 16}, {loop = 1, width = 16}]}>'  # noqa: E501
    try:
        made = Maker().make(small, schedule)
    except CompileError:
        made = Maker().make(small, None)
    runner.load("tail", made)
    assert runner.check("tail") is not None
