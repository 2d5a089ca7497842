"""What a driver must be told so that results do not depend on it.

By default a driver may fuse and reassociate floating-point arithmetic, take zeros for unsigned and NaN for impossible,
and keep a thread's writes to a buffer from the other threads of its workgroup.
"""

from __future__ import annotations

import re

from torch_mlir import ir as mlir

from eyas.codegen.spirv.interface import ENTRY_POINT, Interface
from eyas.ir.walk import find_ops

_CONTRACTED = "eyas.contracted"
"""Marks arithmetic that may be fused, on its way through the conversion, which forgets fast-math flags."""

_FUSED = {"arith.addf": "spirv.FAdd", "arith.subf": "spirv.FSub", "arith.mulf": "spirv.FMul"}


def mark_contractions(module: mlir.Module) -> None:
    """Converts the arithmetic that may be fused (`fastmath<contract>`) ahead of the rest."""
    mark = {_CONTRACTED: mlir.UnitAttr.get(module.context)}
    for op in find_ops(module, *_FUSED):
        if not re.search(r"\b(contract|fast)\b", str(op.attributes["fastmath"])):
            continue
        with mlir.InsertionPoint(op), op.operation.location:
            name = _FUSED[op.operation.name]
            made = mlir.Operation.create(name, [op.results[0].type], list(op.operands), attributes=mark)
        op.results[0].replace_all_uses_with(made.result)
        op.operation.erase()


def decorate(made: mlir.OpView, interface: Interface, float_controls: bool) -> None:
    """Decorates a `spirv.module`. `float_controls`: the target can promise to keep NaN, infinities and zeros' signs."""
    with made.context, made.operation.location:
        _forbid_contraction(made)
        _multiply_signed(made)
        shared = _order_barriers(made, interface)
        _describe_buffers(made, interface, shared)
        if float_controls:
            _preserve_specials(made)


def _forbid_contraction(made: mlir.OpView) -> None:
    unit = mlir.UnitAttr.get()
    for op in find_ops(made, *_FUSED.values(), "spirv.FDiv", "spirv.FNegate"):
        if _CONTRACTED in op.attributes:
            del op.attributes[_CONTRACTED]
        else:
            op.attributes["no_contraction"] = unit


def _multiply_signed(made: mlir.OpView) -> None:
    """Bytes of matrices have signs only where the product of them says so."""
    signed = mlir.Attribute.parse("#spirv.cooperative_matrix_operands_khr<ASigned|BSigned|CSigned|ResultSigned>")
    for product in find_ops(made, "spirv.KHR.CooperativeMatrixMulAdd"):
        if re.search(r"x[su]?i32,", str(product.results[0].type)):
            product.attributes["matrix_operands"] = signed


def _order_barriers(made: mlir.OpView, interface: Interface) -> frozenset[int]:
    """Makes barriers order storage buffers too, if a kernel reads what it has written. Gives the descriptors that
    threads may hand each other something in."""
    barriers = find_ops(made, "spirv.ControlBarrier")
    written = {one.number for one in interface.buffers if one.written and one.role != "error"}
    both = frozenset(one.number for one in interface.buffers if one.read and one.number in written)
    if not barriers or not both:
        return frozenset()
    semantics = mlir.Attribute.parse("#spirv.memory_semantics<AcquireRelease|UniformMemory|WorkgroupMemory>")
    for barrier in barriers:
        barrier.attributes["memory_semantics"] = semantics
    return both


def _describe_buffers(made: mlir.OpView, interface: Interface, shared: frozenset[int]) -> None:
    """A result may lie where an operand does, whatever the number of its descriptor: buffers may alias."""
    unit = mlir.UnitAttr.get()
    written = {buffer.number for buffer in interface.buffers if buffer.written}
    variables = {mlir.StringAttr(op.attributes["sym_name"]).value: op for op in find_ops(made, "spirv.GlobalVariable")}
    for position, buffer in enumerate(interface.buffers):
        attributes = variables[f"{ENTRY_POINT}_arg_{position}"].attributes
        attributes["aliased"] = unit
        if buffer.number not in written:
            attributes["non_writable"] = unit
        if buffer.number in shared:
            attributes["coherent"] = unit


def _preserve_specials(made: mlir.OpView) -> None:
    mode = mlir.Operation.parse(f'spirv.ExecutionMode @{ENTRY_POINT} "SignedZeroInfNanPreserve", 32')
    made.regions[0].blocks[0].append(mode)
