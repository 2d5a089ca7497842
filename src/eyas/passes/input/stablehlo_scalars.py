"""What the StableHLO conversions to loops share: loops over tensors, signless views, and bodies on scalars."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from torch_mlir.dialects import arith, complex, math, scf, tensor

from eyas.ir import mlir
from eyas.ir.structured import index_constant
from eyas.ir.walk import constant_int

Values = list[mlir.Value]


def signless(value: mlir.Value) -> mlir.Value:
    """The same tensor with signless integers, which arith and scf need."""
    return _cast(value, signless_type(value.type))


def restore(value: mlir.Value, type_: mlir.Type) -> mlir.Value:
    """Back to the type that the rest of the program has."""
    return _cast(value, type_)


def signless_type(type_: mlir.Type) -> mlir.Type:
    if isinstance(type_, mlir.RankedTensorType):
        return mlir.RankedTensorType.get(type_.shape, signless_type(type_.element_type))
    if isinstance(type_, mlir.IntegerType):
        return mlir.IntegerType.get_signless(type_.width)
    return type_


def _cast(value: mlir.Value, type_: mlir.Type) -> mlir.Value:
    if value.type == type_:
        return value
    return mlir.Operation.create("stablehlo.bitcast_convert", results=[type_], operands=[value]).results[0]


def size_of(value: mlir.Value, dimension: int) -> mlir.Value:
    """A dimension's size as an index."""
    type_ = mlir.RankedTensorType(value.type)
    if type_.is_dynamic_dim(dimension):
        return tensor.dim(value, index_constant(dimension))
    return index_constant(type_.shape[dimension])


def sizes_of(value: mlir.Value) -> Values:
    return [size_of(value, dimension) for dimension in range(mlir.RankedTensorType(value.type).rank)]


def constant_of(value: mlir.Value) -> list[int] | None:
    """The elements of a constant tensor of integers, in order; None when it is not one."""
    owner = value.owner
    if isinstance(owner, mlir.Block):
        return None
    if owner.operation.name == "tensor.from_elements":
        numbers = [constant_int(element) for element in owner.operands]
        known = [number for number in numbers if number is not None]
        return known if len(known) == len(numbers) else None
    if owner.operation.name not in ("stablehlo.constant", "arith.constant"):
        return None
    shape = mlir.RankedTensorType(value.type).shape
    return [int(n) for n in np.broadcast_to(np.asarray(owner.attributes["value"]), shape).reshape(-1)]


def elements_of(value: mlir.Value) -> Values:
    """The elements of a small static tensor as scalars, in order."""
    owner = value.owner
    type_ = mlir.RankedTensorType(value.type)
    if (numbers := constant_of(value)) is not None:
        return [arith.constant(type_.element_type, number) for number in numbers]
    if not isinstance(owner, mlir.Block) and owner.operation.name == "tensor.from_elements":
        return list(owner.operands)
    places = np.ndindex(*type_.shape)
    return [tensor.extract(value, [index_constant(index) for index in place]) for place in places]


def loop(
    lower: mlir.Value, upper: mlir.Value, carried: Sequence[mlir.Value], body: Callable[[mlir.Value, Values], Values]
) -> Values:
    """`scf.for` with step 1; `body(index, carried)` returns what is carried on."""
    op = scf.ForOp(lower, upper, index_constant(1), list(carried))
    _mark_shapes_kept(op.operation, carried)
    with mlir.InsertionPoint(op.body):
        scf.YieldOp(body(op.induction_variable, list(op.inner_iter_args)))
    return list(op.results)


def nest(
    sizes: Sequence[mlir.Value], carried: Sequence[mlir.Value], body: Callable[[Values, Values], Values]
) -> Values:
    """Loops from 0 to each size, the last innermost."""
    if not sizes:
        return body([], list(carried))
    zero = index_constant(0)
    return loop(
        zero,
        sizes[0],
        carried,
        lambda index, inner: nest(sizes[1:], inner, lambda rest, innermost: body([index, *rest], innermost)),
    )


def when(condition: mlir.Value, carried: Sequence[mlir.Value], body: Callable[[], Values]) -> Values:
    """What `body` makes when the condition holds, else what was carried."""
    chosen = scf.IfOp(condition, [value.type for value in carried], has_else=True)
    _mark_shapes_kept(chosen.operation, carried)
    with mlir.InsertionPoint(chosen.then_block):
        scf.YieldOp(body())
    with mlir.InsertionPoint(chosen.else_block):
        scf.YieldOp(list(carried))
    return list(chosen.results)


def _mark_shapes_kept(op: mlir.Operation, carried: Sequence[mlir.Value]) -> None:
    """Tells `tie-shapes` where the dynamic sizes of the results come from."""
    if any(isinstance(v.type, mlir.RankedTensorType) and not v.type.has_static_shape for v in carried):
        op.attributes["flow.keeps_shape"] = mlir.UnitAttr.get()


def is_unsigned(type_: mlir.Type) -> bool:
    element = type_.element_type if isinstance(type_, mlir.RankedTensorType) else type_
    return isinstance(element, mlir.IntegerType) and (element.is_unsigned or element.width == 1)


def inline_scalars(block: mlir.Block, arguments: Sequence[mlir.Value]) -> Values:
    """Clones a region on 0-d tensors as arithmetic on scalars; returns what it returns."""
    known = dict(zip(block.arguments, arguments, strict=True))

    def read(value: mlir.Value) -> mlir.Value:
        return known[value] if value in known else tensor.extract(signless(value), [])

    for view in block.operations:
        op = view.operation
        if op.name in ("stablehlo.return", "func.return"):
            return [read(operand) for operand in op.operands]
        known[op.results[0]] = _scalar(op, [read(operand) for operand in op.operands])
    raise AssertionError("a StableHLO region ends with a return")


def _scalar(op: mlir.Operation, operands: Values) -> mlir.Value:
    result = signless_type(mlir.RankedTensorType(op.results[0].type).element_type)
    if op.name == "stablehlo.constant" and not isinstance(result, mlir.ComplexType):
        return _constant(op, result)
    if op.name == "stablehlo.compare" and not isinstance(operands[0].type, mlir.ComplexType):
        return _compare(op, operands)
    if op.name == "stablehlo.select":
        return arith.select(*operands)
    if op.name == "stablehlo.not":
        return arith.xori(operands[0], arith.constant(result, -1))
    kind = _kind(op.operands[0].type) if operands else ""
    build = _BINARY.get(op.name, {}).get(kind) or _UNARY.get(op.name, {}).get(kind)
    if build is not None:
        return build(*operands)
    return _through_tensors(op, operands)


def _through_tensors(op: mlir.Operation, operands: Values) -> mlir.Value:
    """The op as it is, on 0-d tensors, for upstream to lower."""
    tensors = [
        restore(tensor.from_elements(signless_type(old.type), [value]), old.type)
        for old, value in zip(op.operands, operands, strict=True)
    ]
    copy = op.clone().operation
    for position, value in enumerate(tensors):
        copy.operands[position] = value
    return tensor.extract(signless(copy.results[0]), [])


def _constant(op: mlir.Operation, type_: mlir.Type) -> mlir.Value:
    attribute = mlir.DenseElementsAttr(op.attributes["value"])
    element = attribute.get_splat_value()
    if isinstance(type_, mlir.IntegerType):
        value = int(mlir.IntegerAttr(element).value)
        wraps = type_.width > 1 and value >= 1 << (type_.width - 1)
        return arith.constant(type_, value - (1 << type_.width) if wraps else value)
    return arith.ConstantOp(type_, element).result


def _kind(type_: mlir.Type) -> str:
    element = mlir.RankedTensorType(type_).element_type
    if isinstance(element, mlir.ComplexType):
        return "complex"
    if isinstance(element, mlir.IntegerType):
        return "unsigned" if is_unsigned(element) else "signed"
    return "float"


def _integers(function: Callable[..., mlir.Value]) -> dict[str, Callable[..., mlir.Value]]:
    return {"signed": function, "unsigned": function}


_BINARY: dict[str, dict[str, Callable[..., mlir.Value]]] = {
    "stablehlo.add": {**_integers(arith.addi), "float": arith.addf, "complex": complex.add},
    "stablehlo.subtract": {**_integers(arith.subi), "float": arith.subf, "complex": complex.sub},
    "stablehlo.multiply": {**_integers(arith.muli), "float": arith.mulf, "complex": complex.mul},
    "stablehlo.divide": {"float": arith.divf, "complex": complex.div},
    "stablehlo.maximum": {"signed": arith.maxsi, "unsigned": arith.maxui, "float": arith.maximumf},
    "stablehlo.minimum": {"signed": arith.minsi, "unsigned": arith.minui, "float": arith.minimumf},
    "stablehlo.and": _integers(arith.andi),
    "stablehlo.or": _integers(arith.ori),
    "stablehlo.xor": _integers(arith.xori),
}
_UNARY: dict[str, dict[str, Callable[..., mlir.Value]]] = {
    "stablehlo.negate": {"float": arith.negf},
    "stablehlo.abs": {"float": math.absf},
    "stablehlo.reshape": {kind: lambda value: value for kind in ("signed", "unsigned", "float", "complex")},
}


_INTEGER_PREDICATES = {
    "EQ": (arith.CmpIPredicate.eq,) * 2,
    "NE": (arith.CmpIPredicate.ne,) * 2,
    "LT": (arith.CmpIPredicate.slt, arith.CmpIPredicate.ult),
    "LE": (arith.CmpIPredicate.sle, arith.CmpIPredicate.ule),
    "GT": (arith.CmpIPredicate.sgt, arith.CmpIPredicate.ugt),
    "GE": (arith.CmpIPredicate.sge, arith.CmpIPredicate.uge),
}
_FLOAT_PREDICATES = {
    "EQ": arith.CmpFPredicate.OEQ,
    "NE": arith.CmpFPredicate.UNE,
    "LT": arith.CmpFPredicate.OLT,
    "LE": arith.CmpFPredicate.OLE,
    "GT": arith.CmpFPredicate.OGT,
    "GE": arith.CmpFPredicate.OGE,
}


def _compare(op: mlir.Operation, operands: Values) -> mlir.Value:
    direction = str(op.attributes["comparison_direction"]).rstrip(">").split()[-1]
    unsigned = is_unsigned(op.operands[0].type)
    if _kind(op.operands[0].type) == "float":
        if "compare_type" not in op.attributes or "TOTALORDER" not in str(op.attributes["compare_type"]):
            return arith.cmpf(_FLOAT_PREDICATES[direction], *operands)
        operands = [_total_order(value) for value in operands]
    return arith.cmpi(_INTEGER_PREDICATES[direction][unsigned], *operands)


def _total_order(value: mlir.Value) -> mlir.Value:
    """An integer that is ordered as IEEE 754's totalOrder orders the float."""
    width = {"f64": 64, "f32": 32}.get(str(value.type), 16)
    integer = mlir.IntegerType.get_signless(width)
    bits = arith.bitcast(integer, value)
    negative = arith.cmpi(arith.CmpIPredicate.slt, bits, arith.constant(integer, 0))
    return arith.select(negative, arith.xori(bits, arith.constant(integer, (1 << (width - 1)) - 1)), bits)
