"""`widen-accumulators`: sums of narrow floats are kept in f32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, linalg

from eyas.codegen.common.combine import combiner_of
from eyas.ir import Pass
from eyas.ir.structured import empty_like, fill_value, generic, split_operands
from eyas.ir.walk import defining_op, entry_block, functions
from eyas.passes.dispatch.grouping import Role, indexing_maps, role_of


@dataclass(frozen=True)
class WidenAccumulators(Pass):
    """A reduction or contraction whose result is f16 or bf16 accumulates in f32 and rounds once, at the end.

    Frameworks do the same, and multiply what is summed in f32 as well; a running sum in f16 stops growing at 2048 when
    ones are added. Minima and maxima are exact in any type and stay as they are.

        %1 = linalg.generic (sum) ... -> tensor<8xf16>   =>   %0 = linalg.generic (sum) ... -> tensor<8xf32>
                                                              %1 = linalg.generic (truncf) %0 -> tensor<8xf16>
    """

    name: ClassVar[str] = "widen-accumulators"

    def run(self, module: mlir.Module) -> None:
        for function in functions(module):
            for view in list(entry_block(function).operations):
                op = view.operation
                if role_of(op) in (Role.REDUCTION, Role.CONTRACTION) and _is_narrow_sum(op):
                    with mlir.InsertionPoint(op), op.location:
                        _widen(op)


def _is_narrow_sum(op: mlir.Operation) -> bool:
    if len(op.results) != 1 or not _is_narrow(op.results[0].type):
        return False
    inputs, _ = split_operands(op)
    combiner = combiner_of(op.regions[0].blocks[0], len(inputs))
    return combiner is not None and combiner.op_name in ("arith.addf", "arith.mulf")


def _is_narrow(type_: mlir.Type) -> bool:
    element = mlir.RankedTensorType(type_).element_type
    return isinstance(element, mlir.F16Type | mlir.BF16Type)


def _widen(op: mlir.Operation) -> None:
    inputs, (init,) = split_operands(op)
    f32 = mlir.F32Type.get()
    shape = list(mlir.RankedTensorType(init.type).shape)
    wide = _convert(init, f32)
    if op.name == "linalg.generic":
        new = _widened_generic(op, inputs, wide)
    else:
        attributes = {name: op.attributes[name] for name in op.attributes}
        result = mlir.RankedTensorType.get(shape, f32)
        new = mlir.Operation.create(
            op.name, results=[result], operands=[*inputs, wide], attributes=attributes, regions=1
        )
        linalg.fill_builtin_region(new)
        new = new.opview
    op.results[0].replace_all_uses_with(_convert(new.operation.results[0], op.results[0].type.element_type))
    op.erase()


def _widened_generic(op: mlir.Operation, inputs: list[mlir.Value], wide: mlir.Value) -> mlir.OpView:
    """The same body, its inputs extended and its last op, the combiner, in f32."""
    f32 = mlir.F32Type.get()
    maps = indexing_maps(op)
    assert maps is not None
    kinds = ["reduction" if "reduction" in str(kind) else "parallel" for kind in op.attributes["iterator_types"]]
    new = generic(inputs, [wide], maps, kinds)
    source, target = op.regions[0].blocks[0], new.regions[0].blocks[0]
    old = source.arguments[len(inputs)]
    combine = list(source.operations)[-1].operands[0].owner
    added = next(operand for operand in combine.operands if operand != old)
    values = dict(zip(source.arguments, target.arguments, strict=True))
    with mlir.InsertionPoint(target):
        for view in source.operations:
            if view.operation == combine or view.operation.name == "linalg.yield":
                continue
            _clone(view.operation, values)
        extended = _extended(added, values)
        joined = mlir.Operation.create(
            combine.name, results=[f32], operands=[target.arguments[len(inputs)], extended]
        ).results[0]
        linalg.YieldOp([joined])
    return new


def _extended(added: mlir.Value, values: dict[mlir.Value, mlir.Value]) -> mlir.Value:
    """What is added, in f32. A product is made in f32 too, where that of two narrow floats is exact."""
    f32 = mlir.F32Type.get()
    product = defining_op(added)
    if product is None or product.name != "arith.mulf" or added not in values:
        return arith.ExtFOp(f32, values.get(added, added)).result
    factors = [arith.ExtFOp(f32, values.get(value, value)).result for value in product.operands]
    return arith.MulFOp(*factors).result


def _clone(op: mlir.Operation, values: dict[mlir.Value, mlir.Value]) -> None:
    copy = op.clone().operation
    for position, value in enumerate(copy.operands):
        if value in values:
            copy.operands[position] = values[value]
    values.update(zip(op.results, copy.results, strict=True))


def _convert(value: mlir.Value, element: mlir.Type) -> mlir.Value:
    """A tensor in another float type; a fill is made in it at once."""
    type_ = mlir.RankedTensorType(value.type)
    if type_.element_type == element:
        return value
    shape, dims = list(type_.shape), list(range(type_.rank))
    empty = empty_like(value, shape, dims, element)
    scalar = fill_value(value)
    if scalar is not None:
        widened = arith.ExtFOp(element, scalar).result
        return linalg.fill(widened, outs=[empty])
    identity = mlir.AffineMap.get_identity(type_.rank)
    op = generic([value], [empty], [identity, identity], ["parallel"] * type_.rank)
    block = op.regions[0].blocks[0]
    with mlir.InsertionPoint(block):
        cast = arith.ExtFOp if mlir.FloatType(element).width > type_.element_type.width else arith.TruncFOp
        linalg.YieldOp([cast(element, block.arguments[0]).result])
    return op.results[0]
