"""Complex numbers as vectors of two floats: SPIR-V has no such type."""

from __future__ import annotations

from collections.abc import Callable

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, complex, vector

from eyas.ir import run_upstream
from eyas.ir.walk import find_ops

_PARTS = {"complex.re": 0, "complex.im": 1}


def split_complex_numbers(module: mlir.Module) -> None:
    """Arithmetic becomes that of parts, by upstream's patterns. What is left puts numbers together, takes them apart,
    and carries them through loops and branches: as pairs."""
    if not find_ops(module, "complex.create", "complex.constant"):
        return
    run_upstream(module, "convert-complex-to-standard,canonicalize")
    for op in find_ops(module, "arith.select"):
        # A vector is chosen by a vector of truths, so that parts are chosen one by one.
        if isinstance(op.results[0].type, mlir.ComplexType):
            _replace(op, _by_parts)
    for op in find_ops(module, "complex.create", "complex.constant", *_PARTS):
        _replace(op, _as_vector)
    module.operation.walk(_retype)


def _replace(op: mlir.OpView, make: Callable[[mlir.OpView], mlir.Value]) -> None:
    with mlir.InsertionPoint(op), op.operation.location:
        op.results[0].replace_all_uses_with(make(op))
    op.operation.erase()


def _by_parts(op: mlir.OpView) -> mlir.Value:
    condition, *options = op.operands
    parts = [arith.select(condition, *(part(one).result for one in options)) for part in (complex.ReOp, complex.ImOp)]
    return complex.CreateOp(op.results[0].type, *parts).result


def _as_vector(op: mlir.OpView) -> mlir.Value:
    name = op.operation.name
    if name in _PARTS:
        # The operand's type is changed below.
        attributes = {"static_position": mlir.DenseI64ArrayAttr.get([_PARTS[name]])}
        return mlir.Operation.create("vector.extract", [op.results[0].type], [op.operands[0]], attributes).result
    pair = _pair(mlir.ComplexType(op.results[0].type))
    parts = op.operands
    if name == "complex.constant":
        parts = [arith.constant(pair.element_type, part) for part in mlir.ArrayAttr(op.attributes["value"])]
    return vector.from_elements(pair, list(parts))


def _retype(op: mlir.Operation) -> mlir.WalkResult:
    blocks = [block for region in op.regions for block in region.blocks]
    for value in (*op.results, *(argument for block in blocks for argument in block.arguments)):
        if isinstance(value.type, mlir.ComplexType):
            value.set_type(_pair(value.type))
    return mlir.WalkResult.ADVANCE


def _pair(type_: mlir.ComplexType) -> mlir.VectorType:
    return mlir.VectorType.get([2], type_.element_type)
