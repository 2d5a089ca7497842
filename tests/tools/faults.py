"""Models for `eyas.verify`, and faults that tests plant in passes and strategies.

A fault is a function that plants it and returns the model to verify, the culprit and the first layer that is wrong.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import onnx
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
from eyas.ir.walk import find_ops
from eyas.passes.dispatch import deduplicate_executables, form_dispatches
from eyas.passes.optimize import convert_conv_layout, evaluate_constants, propagate_transposes
from eyas.passes.schedule import plan_memory, reuse_in_place
from eyas.pipelines import compilation


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


def after(monkeypatch, cls, change, condition=lambda one: True) -> None:
    """Lets a pass run, and then does something wrong to the module."""
    run = cls.run

    def wrong(self, module):
        run(self, module)
        if condition(self):
            change(module)

    monkeypatch.setattr(cls, "run", wrong)


def drop_elementwise(module: mlir.Module, least: int = 0) -> None:
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
    after(monkeypatch, propagate_transposes.PropagateTransposes, drop_elementwise)
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
    after(
        monkeypatch,
        form_dispatches.FormDispatches,
        lambda module: drop_elementwise(module, 2),
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
