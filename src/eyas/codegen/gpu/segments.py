"""A kernel whose large tensors are bound as several segments of their bytes.

    %v = memref.load %x[%i]    =>    %in_first = arith.cmpi ult, %i, %segment
                                     %v = scf.if %in_first { memref.load %x_0[%i] }
                                          else { memref.load %x_1[%i - %segment] }

Every strategy emits kernels as if a binding showed all of a tensor; this is the one place that knows of segments. The
branch costs little: neighbours in a workgroup mostly take the same side, and tensors that fit one binding have none.
"""

from __future__ import annotations

from collections.abc import Callable

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, scf

from eyas.codegen.common.passes.lanes import element_type
from eyas.codegen.common.segments import in_segments
from eyas.codegen.gpu.interface import BINDING, BINDINGS, UNALIGNED
from eyas.ir.values import element_bytes, index_constant
from eyas.ir.walk import entry_block, find_ops

_ACCESSES = {"memref.load": 0, "memref.store": 1, "memref.atomic_rmw": 1}
"""Which operand is the memory; the last is the index."""


def split_bindings(module: mlir.Module, segments: list[int], segment_bytes: int) -> None:
    """Gives the kernel of a module, which numbers tensors, `segments` bindings for each of them."""
    if max(segments, default=1) == 1:
        return
    (kernel,) = find_ops(module, "gpu.func")
    with module.context, mlir.Location.unknown():
        _split_arguments(kernel, segments, segment_bytes)
        attributes = kernel.operation.attributes
        attributes[BINDINGS] = mlir.IntegerAttr.get(mlir.IntegerType.get_signless(64), sum(segments))
        if UNALIGNED in attributes:
            unaligned = in_segments(mlir.DenseI64ArrayAttr(attributes[UNALIGNED]), segments)
            attributes[UNALIGNED] = mlir.DenseI64ArrayAttr.get(unaligned)


def _split_arguments(kernel: mlir.OpView, segments: list[int], segment_bytes: int) -> None:
    """Each argument that shows a tensor becomes one for each of its segments, in the order of all arguments."""
    block, described = entry_block(kernel), []
    entries = [{one.name: one.attr for one in entry} for entry in mlir.ArrayAttr(kernel.attributes["arg_attrs"])]
    for argument, entry in zip(list(block.arguments), entries, strict=True):
        tensor = mlir.IntegerAttr(entry[BINDING]).value if BINDING in entry else None
        numbers = [None] if tensor is None else in_segments([tensor], segments)
        shown = [block.add_argument(argument.type, mlir.Location.unknown()) for _ in numbers]
        described += [entry if number is None else {**entry, BINDING: _i32(number)} for number in numbers]
        if len(shown) > 1:
            _split_accesses(argument, shown, segment_bytes // _unit_bytes(argument))
        argument.replace_all_uses_with(shown[0])
    for _ in entries:
        block.erase_argument(0)
    types = [argument.type for argument in block.arguments]
    kernel.operation.attributes["function_type"] = mlir.TypeAttr.get(mlir.FunctionType.get(types, []))
    kernel.operation.attributes["arg_attrs"] = mlir.ArrayAttr.get([mlir.DictAttr.get(one) for one in described])


def _split_accesses(whole: mlir.Value, shown: list[mlir.Value], elements: int) -> None:
    for use in list(whole.uses):
        op = use.owner.operation
        place = _ACCESSES[op.name]
        with mlir.InsertionPoint(op), op.location:

            def access(memory: mlir.Value, index: mlir.Value, op=op, place=place) -> list[mlir.Value]:
                copy = op.clone().operation
                copy.operands[place], copy.operands[len(copy.operands) - 1] = memory, index
                return list(copy.results)

            made = _in_segment(shown, list(op.operands)[-1], elements, access, [one.type for one in op.results])
        for old, new in zip(op.results, made, strict=True):
            old.replace_all_uses_with(new)
        op.erase()


def _in_segment(
    shown: list[mlir.Value],
    index: mlir.Value,
    elements: int,
    access: Callable[[mlir.Value, mlir.Value], list[mlir.Value]],
    types: list[mlir.Type],
) -> list[mlir.Value]:
    """Accesses the segment that an index is in, each but the last of which has so many elements."""
    first, *rest = shown
    if not rest:
        return access(first, index)
    end = index_constant(elements)
    branch = scf.IfOp(arith.cmpi(arith.CmpIPredicate.ult, index, end), types, has_else=True)
    with mlir.InsertionPoint(branch.then_block):
        scf.YieldOp(access(first, index))
    with mlir.InsertionPoint(branch.else_block):
        scf.YieldOp(_in_segment(rest, arith.subi(index, end), elements, access, types))
    return list(branch.results_)


def _unit_bytes(argument: mlir.Value) -> int:
    """Of an element of the argument's memory, which may be a vector."""
    type_ = mlir.MemRefType(argument.type).element_type
    lanes = mlir.VectorType(type_).shape[0] if isinstance(type_, mlir.VectorType) else 1
    return lanes * element_bytes(element_type(type_))


def _i32(value: int) -> mlir.IntegerAttr:
    return mlir.IntegerAttr.get(mlir.IntegerType.get_signless(32), value)
