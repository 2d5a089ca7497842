"""Faults are planted in passes and strategies; `eyas.verify` must find the layer, name the culprit, cut a reproducer.

Everything compiles in this process (`workers=1`), so that what is patched here is what runs.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from torch_mlir import ir as mlir

import eyas
from eyas.codegen.common.passes import approximations, expand_math
from eyas.codegen.common.sizes import Size
from eyas.codegen.llvm_cpu import compile as dispatch_compiler
from eyas.codegen.llvm_cpu.strategies import base, contraction, rows, windows
from eyas.codegen.vmvx.strategies import contraction as vmvx_contraction
from eyas.codegen.vmvx.strategies import loops as vmvx_loops
from eyas.frontends.onnx import importer as from_onnx
from eyas.ir.walk import find_ops
from eyas.passes.dispatch import deduplicate_executables, form_dispatches, outline_dispatches
from eyas.passes.optimize import convert_conv_layout, evaluate_constants, propagate_transposes
from eyas.passes.schedule import plan_memory, reuse_in_place
from eyas.pipelines import compilation
from eyas.verification import onnx_source, torch_source


def verify(model, inputs=(), **options):
    return eyas.verify(model, inputs, bisect=True, workers=1, threads=1, **options)


# --- models -----------------------------------------------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.fc = nn.Linear(8 * 8 * 8, 10)

    def forward(self, x):
        y = torch.relu(self.conv(x))
        y = nn.functional.max_pool2d(y, 2)
        return torch.softmax(self.fc(y.flatten(1)), -1)


def net():
    torch.manual_seed(0)
    return Net().eval(), (torch.randn(2, 3, 16, 16),)


def mlp() -> onnx.ModelProto:
    """Gemm, Exp, a normalisation by hand, and a second Gemm."""
    random = np.random.default_rng(0)
    weights = {
        "w1": random.standard_normal((20, 37)).astype(np.float32),
        "b1": random.standard_normal(37).astype(np.float32),
        "w2": random.standard_normal((37, 37)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], "first"),
        helper.make_node("Tanh", ["h"], ["t"], "tanh"),
        helper.make_node("Exp", ["t"], ["e"], "exp"),
        helper.make_node("ReduceSum", ["e", "axes"], ["s"], "sum", keepdims=1),
        helper.make_node("Div", ["e", "s"], ["n"], "normalize"),
        helper.make_node("MatMul", ["n", "w2"], ["m"], "second"),
        helper.make_node("Neg", ["m"], ["y"], "negate"),
    ]
    initializers = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    initializers.append(numpy_helper.from_array(np.array([1], np.int64), "axes"))
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [33, 20])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [33, 37])],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


# Transposes and sums that keep several buffers of one size alive.
CHAIN = """
!t = tensor<48x48xf32>
#rc = affine_map<(a, b) -> (a, b)>
#cr = affine_map<(a, b) -> (b, a)>
func.func @main(%x: !t, %w: !t) -> !t {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !t
  %f = linalg.fill ins(%zero : f32) outs(%e : !t) -> !t
  %0 = linalg.matmul ins(%x, %w : !t, !t) outs(%f : !t) -> !t
  %1 = linalg.matmul ins(%0, %w : !t, !t) outs(%f : !t) -> !t
  %2 = linalg.matmul ins(%1, %0 : !t, !t) outs(%f : !t) -> !t
  %3 = linalg.generic {indexing_maps = [#cr, #rc], iterator_types = ["parallel", "parallel"]}
    ins(%2 : !t) outs(%e : !t) {
  ^bb0(%i: f32, %o: f32):
    %s = arith.addf %i, %i : f32
    linalg.yield %s : f32
  } -> !t
  %4 = linalg.matmul ins(%3, %1 : !t, !t) outs(%f : !t) -> !t
  return %4 : !t
}
"""


# Two dispatches that take and give the same types.
TWICE = """
!t = tensor<48x48xf32>
func.func @main(%x: !t, %w: !t) -> !t {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !t
  %f = linalg.fill ins(%zero : f32) outs(%e : !t) -> !t
  %0 = linalg.matmul ins(%x, %w : !t, !t) outs(%f : !t) -> !t
  %1 = math.exp %0 : !t
  %2 = linalg.matmul ins(%1, %w : !t, !t) outs(%f : !t) -> !t
  %3 = arith.negf %2 : !t
  return %3 : !t
}
"""


def chain():
    random = np.random.default_rng(0)
    return CHAIN, tuple(random.standard_normal((48, 48)).astype(np.float32) / 7 for _ in range(2))


# --- faults -----------------------------------------------------------------------------------------------------------


def _after(monkeypatch, cls, change, condition=lambda one: True) -> None:
    """Lets a pass run, and then does something wrong to the module."""
    run = cls.run

    def wrong(self, module):
        run(self, module)
        if condition(self):
            change(module)

    monkeypatch.setattr(cls, "run", wrong)


def _drop_elementwise(module: mlir.Module, least: int = 0) -> None:
    """Drops the first op with one input of its result's type; `least` is how many linalg ops its block must have."""
    for op in find_ops(module, "linalg.generic"):
        inputs = list(op.operands)
        siblings = sum(one.operation.name.startswith("linalg.") for one in op.operation.block.operations)
        if len(inputs) == 2 and inputs[0].type == op.results[0].type and siblings >= least:
            if "reduction" not in str(op.attributes["iterator_types"]):
                op.results[0].replace_all_uses_with(inputs[0])
                return


def wrong_layout(monkeypatch):
    """Filters are transposed as if height and width were the other way round."""
    name = "linalg.conv_2d_nchw_fchw"
    monkeypatch.setitem(
        convert_conv_layout._REWRITES, name, replace(convert_conv_layout._REWRITES[name], filter=[3, 2, 1, 0])
    )
    return net(), "convert-conv-layout", "conv2d"


def dropped_op(monkeypatch):
    """A pass of the optimize phase loses an op."""
    _after(monkeypatch, propagate_transposes.PropagateTransposes, _drop_elementwise)
    return (mlp(), ()), "propagate-transposes", "t"


def wrong_constant(monkeypatch):
    """What depends on weights alone is wrong: what is computed, and what is only seen through other strides."""
    moved, evaluate_with = evaluate_constants.moved, compilation.evaluate_with

    def backwards(*arguments):
        view = moved(*arguments)
        return None if view is None else np.flip(view, 0)

    def wrong(*arguments):
        evaluate = evaluate_with(*arguments)
        return lambda *part: [np.flip(one, 0).copy() for one in evaluate(*part)]

    monkeypatch.setattr(compilation, "evaluate_with", wrong)
    monkeypatch.setattr(evaluate_constants, "moved", backwards)
    return net(), "evaluate-constants", None


def wrong_fusion(monkeypatch):
    """A group of ops forgets one of its members."""
    _after(
        monkeypatch,
        form_dispatches.FormDispatches,
        lambda module: _drop_elementwise(module, 2),
        lambda one: one.fuse,
    )
    return (mlp(), ()), "form-dispatches", None


def merged_executables(monkeypatch):
    """Executables are taken for equal when only their types are."""
    monkeypatch.setattr(deduplicate_executables, "_NOTES", re.compile(r"\{.*", re.DOTALL))
    return (TWICE, chain()[1]), "deduplicate-executables", "arith.negf_3"


def wrong_alias(monkeypatch):
    """A transpose writes over what it still has to read."""
    monkeypatch.setattr(reuse_in_place, "_may_alias", lambda found, *_: not any(n.reductions for n in found.raw.nests))
    return chain(), "reuse-in-place", None


def freed_too_early(monkeypatch):
    """A buffer's memory is given away after its first use."""
    lifetime = plan_memory._lifetime
    monkeypatch.setattr(plan_memory, "_lifetime", lambda *arguments: (lifetime(*arguments)[0],) * 2)
    return chain(), "plan-memory", None


def _short(extents: list[Size], loop: int) -> list[Size]:
    changed = list(extents)
    changed[loop] = Size(extents[loop].static - 1)
    return changed


def _shorten(kernel, steps=1):
    """Every reduction stops early."""
    nests = []
    for nest in kernel.nests:
        loops = nest.loops
        for loop in nest.reductions:
            for _ in range(steps):
                loops = _short(loops, loop)
        nests.append(replace(nest, loops=tuple(loops)))
    return replace(kernel, nests=tuple(nests))


def short_contraction(monkeypatch, steps=1):
    """The strategies for contractions leave out the last steps of the sum."""
    for strategy in (contraction.Contraction, windows.Windows):

        def wrong(self, function, module, lower=strategy.lower):
            lower(replace(self, kernel=_shorten(self.kernel, steps)), function, module)

        monkeypatch.setattr(strategy, "lower", wrong)
    return (mlp(), ()), "contraction", "h"


def short_convolution(monkeypatch):
    """The same where layouts are changed around the op: the reproducer must come without those changes."""
    return net(), short_contraction(monkeypatch)[1], "conv2d"


def lost_tail(monkeypatch):
    """The strategy for rows forgets the elements after the last full vector."""
    lower = rows.Rows.lower

    def wrong(self, function, module):
        nests = []
        for nest, tile in zip(self.kernel.nests, self.schedule.tiles, strict=True):
            loops = list(nest.loops)
            if tile.loop is not None and loops[tile.loop].static % tile.width:
                loops[tile.loop] = Size(loops[tile.loop].static // tile.width * tile.width)
            nests.append(replace(nest, loops=tuple(loops)))
        lower(replace(self, kernel=replace(self.kernel, nests=tuple(nests))), function, module)

    monkeypatch.setattr(rows.Rows, "lower", wrong)
    return (mlp(), ()), "rows", None


def wrong_exp(monkeypatch):
    """The argument of exp is a per mille off."""
    monkeypatch.setitem(expand_math._FUNCTIONS, "math.exp", lambda x: approximations.exp(x * 1.001))
    return (mlp(), ()), "expand-math", "e"


def wrong_llvm(monkeypatch):
    """LLVM's optimisations lose a negation."""
    emit = dispatch_compiler.emit_object

    def wrong(module, target, opt_level=3):
        if opt_level:
            for op in find_ops(module, "llvm.fneg"):
                op.results[0].replace_all_uses_with(op.operands[0])
        return emit(module, target, opt_level)

    monkeypatch.setattr(dispatch_compiler, "emit_object", wrong)
    return (mlp(), ()), "optimize-llvm", "y"


def wrong_emitter(monkeypatch):
    """What both strategies share is wrong, so neither is to blame alone."""
    emit = base.emit_kernel

    def wrong(kernel, *rest):
        emit(_shorten(kernel), *rest)

    monkeypatch.setattr(base, "emit_kernel", wrong)
    return (mlp(), ()), "contraction + rows", "h"


def short_vmvx_products(monkeypatch):
    """The products of portable modules leave out the last step of the sum."""
    lower = vmvx_contraction.Contraction.lower

    def wrong(self, function, asm):
        lower(replace(self, kernel=_shorten(self.kernel)), function, asm)

    monkeypatch.setattr(vmvx_contraction.Contraction, "lower", wrong)
    return (mlp(), ()), "contraction", "h"


@pytest.fixture(autouse=True)
def faults_are_in_this_process(monkeypatch):
    """What is planted here is not known to child processes."""
    monkeypatch.setenv("EYAS_COMPILE_IN_PROCESS", "1")


FAULTS = [
    wrong_layout,
    dropped_op,
    wrong_constant,
    wrong_fusion,
    merged_executables,
    wrong_alias,
    freed_too_early,
    short_contraction,
    short_convolution,
    lost_tail,
    wrong_exp,
    wrong_llvm,
    wrong_emitter,
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_planted_fault_is_named(fault, monkeypatch, tmp_path):
    (model, inputs), culprit, layer = fault(monkeypatch)
    report = verify(model, inputs, reproducer=tmp_path / "repro")
    assert not report.ok
    assert report.blame is not None and report.blame.name == culprit, report
    assert any(row.wrong for row in report.results), "the fault is in the program as it is"
    assert report.confirmed is not False, report
    if layer is not None:
        assert report.first is not None and report.first.layer.name == layer, report
    _check_reproducer(report, tmp_path / "repro", culprit)
    if set(culprit.split(" + ")) <= {"contraction", "rows", "expand-math", "optimize-llvm"}:
        assert report.reproducer_dispatches == 1, report


def test_portable_modules_are_verified_and_a_fault_in_them_is_named(monkeypatch, tmp_path):
    report = eyas.verify(mlp(), workers=1, threads=1, target="vmvx", device="local-sync")
    assert report.ok and len(report.layers) == 7, report
    (model, inputs), culprit, layer = short_vmvx_products(monkeypatch)
    assert verify(model, inputs).ok, "machine code does not have the fault"
    report = verify(model, inputs, target="vmvx", reproducer=tmp_path / "repro")
    assert report.blame is not None and report.blame.name == culprit, report
    assert report.first is not None and report.first.layer.name == layer and report.confirmed
    assert report.command is not None and report.command.endswith(" --target vmvx")
    _check_reproducer(report, tmp_path / "repro", culprit, "vmvx")


def test_programs_without_a_framework_are_compared_with_the_cpu(monkeypatch):
    """A fault in plain loops of another target is seen, although nothing simpler is left there."""
    lower = vmvx_loops.Loops.lower

    def wrong(self, function, asm):
        for op in find_ops(function, "arith.negf"):
            op.results[0].replace_all_uses_with(op.operands[0])
        lower(self, function, asm)

    monkeypatch.setattr(vmvx_loops.Loops, "lower", wrong)
    inputs = chain()[1]
    assert verify(TWICE, inputs, target="vmvx").ok, "microkernels do not have the fault"
    report = verify(TWICE, inputs, target="vmvx", disable=("microkernels",))
    assert report.first is not None and report.first.layer.op == "arith.negf", report
    assert report.blame is not None and "everything optional switched off" in report.blame.reason


def _check_reproducer(report, folder, culprit, target="llvm-cpu") -> None:
    """It is wrong as it stands, and right without the culprit."""
    assert report.command is not None and report.command.startswith("eyas run")
    inputs = [np.load(folder / f"input_{index}.npy") for index in range(len(list(folder.glob("input_*.npy"))))]
    expected = np.load(folder / "expected_0.npy")
    off = tuple(culprit.split(" + "))
    again = eyas.verify(folder / "repro.mlir", inputs, workers=1, threads=1, target=target)
    assert not again.ok, again
    right = eyas.compile(folder / "repro.mlir", disable=off, target=target)
    np.testing.assert_allclose(right(*inputs), expected, rtol=1e-3, atol=1e-4)


# --- faults that no switch explains -----------------------------------------------------------------------------------


def test_a_wrong_import_is_told_from_a_wrong_compilation(monkeypatch):
    finish = from_onnx.finish

    def wrong(module, *rest):
        with module.context, mlir.Location.unknown():
            _drop_elementwise(module)
        return finish(module, *rest)

    monkeypatch.setattr(from_onnx, "finish", wrong)
    report = verify(mlp())
    assert report.first is not None and report.first.layer.name == "t"
    assert report.blame is not None and not report.blame.culprits
    assert "frontend" in report.blame.reason, report


def test_a_wrong_pass_that_cannot_be_switched_off_is_bounded_by_phase(monkeypatch):
    _after(monkeypatch, outline_dispatches.OutlineDispatches, _drop_elementwise)
    report = verify(mlp())
    assert report.first is not None and report.first.layer.name == "t"
    assert report.blame is not None and not report.blame.culprits
    assert "what phase 'optimize' leaves is right" in report.blame.reason, report


def test_a_fault_that_cancels_is_seen_in_its_layer_only(monkeypatch):
    """exp off by a factor, then normalised: the results are right, the layer is not."""
    monkeypatch.setitem(expand_math._FUNCTIONS, "math.exp", lambda x: approximations.exp(x) * 1.001)
    report = verify(mlp())
    assert not report.ok and not any(row.wrong for row in report.results)
    assert report.first is not None and report.first.layer.name == "e"
    assert report.blame is not None and report.blame.name == "expand-math"
    assert "results are right" in str(report)


def test_a_program_that_fails_to_compile_is_a_mismatch(monkeypatch):
    def fail(self, module):
        raise eyas.EyasError("planted")

    monkeypatch.setattr(propagate_transposes.PropagateTransposes, "run", fail)
    report = verify(mlp())
    assert not report.ok and "planted" in str(report)
    assert report.blame is not None and report.blame.name == "propagate-transposes"


# --- right models -----------------------------------------------------------------------------------------------------


def _names(report):
    return [row.layer.name for row in report.layers]


def test_a_right_torch_module():
    model, inputs = net()
    report = eyas.verify(model, inputs, workers=1)
    assert report.ok, report
    assert _names(report) == ["conv2d", "relu", "max_pool2d", "view", "linear", "softmax"]
    assert report.layers[0].layer.op == "aten.conv2d.default" and "test_verify.py:" in report.layers[0].layer.place
    assert report.blame is None and report.reproducer is None
    assert all(row.difference.error < 1e-5 for row in report.layers)


def test_a_right_torch_file_with_a_dynamic_size_and_nested_results(tmp_path):
    class Nested(nn.Module):
        def forward(self, x, *, scale):
            values, places = torch.max(x * scale, 1)
            return {"values": values, "places": places, "none": None, "both": (x.relu(), x.to(torch.bfloat16))}

    x, scale = torch.randn(2, 7), torch.tensor(3.0)
    batch = torch.export.Dim("batch", min=1, max=9)
    exported = torch.export.export(
        Nested(), (x,), {"scale": scale}, dynamic_shapes={"x": {0: batch}, "scale": None}, strict=False
    )
    torch.export.save(exported, tmp_path / "model.pt2")
    for model in (exported, tmp_path / "model.pt2"):
        report = eyas.verify(model, (torch.randn(5, 7),), kwargs={"scale": scale}, workers=1)
        assert report.ok, report
        assert len(report.results) == 4 and report.results[0].shape == (5,)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_right_torch_modules_of_other_types(dtype):
    """Also: an argument named as a function of Python is, an op that writes in place, a buffer that changes."""

    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(8))
            self.norm = nn.LayerNorm(8)

        def forward(self, input):
            self.seen.add_(input.sum(0))
            y = self.norm(input) + self.seen
            y.relu_()
            return y * 2

    torch.manual_seed(0)
    report = eyas.verify(Counting().to(dtype).eval(), (torch.randn(3, 8, dtype=dtype),), workers=1)
    assert report.ok and len(report.layers) >= 5, report


def test_a_right_onnx_model():
    report = eyas.verify(mlp(), workers=1)
    assert report.ok, report
    assert _names(report) == ["h", "t", "e", "s", "n", "m", "y"] and "onnxruntime" in report.reference
    assert report.layers[0].layer.place == "node 'first'"


def test_onnx_without_onnxruntime(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    report = eyas.verify(mlp(), workers=1)
    assert report.ok and "reference evaluator" in report.reference


def test_a_right_jax_function():
    jax = pytest.importorskip("jax")
    weight = np.random.default_rng(0).standard_normal((32, 8)).astype(np.float32)

    @jax.jit
    def function(tree, x):
        hidden = jax.numpy.tanh(x @ tree["w"])
        total, _ = jax.lax.scan(lambda carry, row: (carry + row, row), jax.numpy.zeros(32), hidden)
        return {"y": jax.nn.softmax(hidden @ weight), "total": total}

    x = np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32)
    w = np.random.default_rng(2).standard_normal((16, 32)).astype(np.float32)
    report = eyas.verify(function, ({"w": w}, x), workers=1)
    assert report.ok, report
    assert {"dot_general_0", "tanh_1"} <= set(_names(report)) and any(
        name.startswith("scan") for name in _names(report)
    )
    assert "test_verify.py:" in report.layers[0].layer.place


def test_a_wrong_jax_function(monkeypatch):
    jax = pytest.importorskip("jax")
    wrong_exp(monkeypatch)
    x = np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32)
    report = verify(lambda x: jax.numpy.exp(x) + 1, (x,))
    assert report.blame is not None and report.blame.name == "expand-math"
    assert report.first is not None and report.first.layer.op == "exp"


def test_right_text():
    text, inputs = chain()
    report = eyas.verify(text, inputs, workers=1)
    assert report.ok and len(report.layers) == 5 and report.layers[0].layer.place == "line 9"


# --- differences that are the reference's -----------------------------------------------------------------------------


def quantized() -> tuple[onnx.ModelProto, tuple[np.ndarray]]:
    """u8 x s8 products with sums in 32 bits, scaled, rounded to u8, and scaled back."""
    random = np.random.default_rng(5)
    nodes = [
        helper.make_node("MatMulInteger", ["x", "w"], ["sums"], "product"),
        helper.make_node("Cast", ["sums"], ["floats"], "cast", to=TensorProto.FLOAT),
        helper.make_node("QuantizeLinear", ["floats", "scale", "zero"], ["q"], "quantize"),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"], "dequantize"),
        helper.make_node("Exp", ["small"], ["y"], "exp"),
    ]
    nodes.insert(4, helper.make_node("Mul", ["d", "factor"], ["small"], "scale down"))
    constants = {
        "w": random.integers(-128, 128, (64, 16)).astype(np.int8),
        "scale": np.float32(64),  # sums are whole numbers, so many lie exactly between two steps
        "zero": np.uint8(128),
        "factor": np.float32(1e-5),
    }
    graph = helper.make_graph(
        nodes,
        "quantized",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [256, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [256, 16])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    large, small = (random.integers(*ends, (128, 64)) for ends in ((128, 256), (0, 16)))
    return model, (np.concatenate([large, small]).astype(np.uint8),)


def _reference_that(monkeypatch, change) -> None:
    """ONNX Runtime with some of its values changed, and all that depends on them; it runs nodes alone the same way."""
    run = onnx_source._run_onnxruntime

    def changed(proto, wanted, feeds):
        known = dict(feeds)
        for one in proto.graph.initializer:
            known[one.name] = numpy_helper.to_array(one)
        for node in proto.graph.node:
            part = onnx_source._alone(proto, node.output[0], known)
            _, (value,) = run(part, [node.output[0]], {one.name: known[one.name] for one in part.graph.input})
            known[node.output[0]] = change(node, known, value)
        return "onnxruntime", [known[name] for name in wanted]

    monkeypatch.setattr(onnx_source, "_run_onnxruntime", changed)


def saturated(node, known, value):
    """As on a CPU with AVX2 and without VNNI: sums of two products stop at the ends of 16 bits."""
    if node.op_type != "MatMulInteger":
        return value
    products = known["x"].astype(np.int64)[:, :, None] * known["w"].astype(np.int64)[None]
    pairs = np.clip(products[:, 0::2] + products[:, 1::2], -(1 << 15), (1 << 15) - 1)
    return pairs.sum(1).astype(np.int32)


def away_from_zero(node, known, value):
    """Ties are rounded away from zero instead of to the even neighbour."""
    if node.op_type != "QuantizeLinear":
        return value
    scaled = known["floats"].astype(np.float64) / 64
    return np.clip(np.trunc(scaled + np.copysign(0.5, scaled)) + 128, 0, 255).astype(np.uint8)


@pytest.mark.parametrize(("change", "layer"), [(saturated, "sums"), (away_from_zero, "q")], ids=["saturated", "tie"])
def test_a_reference_that_is_not_exact_is_no_fault(monkeypatch, change, layer):
    model, inputs = quantized()
    assert verify(model, inputs).ok
    _reference_that(monkeypatch, change)
    report = verify(model, inputs)
    excused = [row.layer.name for row in report.rows if row.agrees_with]
    assert report.ok and excused[0] == layer and "y" in excused, report
    assert "right for what it is computed from" in str(report) and "reference evaluator" in str(report)


def test_a_fault_behind_a_tie_is_still_found(monkeypatch):
    model, inputs = quantized()
    _reference_that(monkeypatch, away_from_zero)
    monkeypatch.setitem(expand_math._FUNCTIONS, "math.exp", lambda x: approximations.exp(x * 1.5))
    report = verify(model, inputs)
    assert not report.ok and report.first is not None and report.first.layer.name == "y", report
    assert report.blame is not None and report.blame.name == "expand-math"


def test_a_wrong_integer_is_not_excused(monkeypatch):
    model, inputs = quantized()
    short_contraction(monkeypatch, steps=4)  # bytes are summed by fours
    report = verify(model, inputs)
    assert not report.ok and report.first is not None and report.first.layer.name == "sums", report
    assert report.blame is not None and report.blame.name == "contraction"


def test_a_tie_of_torch_is_no_fault(monkeypatch):
    """A float that differs within tolerance is rounded to the other side of a tie."""

    class Rounded(nn.Module):
        def forward(self, x):
            return torch.round(x * 0.1).to(torch.int32).to(torch.float32) + 0.25

    x = torch.arange(-40, 40, dtype=torch.float32).reshape(8, 10)
    assert verify(Rounded(), (x,)).ok
    run_node = torch_source._Recorder.run_node

    def off_by_a_bit(self, n):
        value = run_node(self, n)
        return value * (1 + 2e-7) if n.name == "mul" else value

    monkeypatch.setattr(torch_source._Recorder, "run_node", off_by_a_bit)
    report = verify(Rounded(), (x,))
    assert report.ok and any(row.agrees_with for row in report.rows), report
