"""Building and reading linalg ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch_mlir import ir as mlir
from torch_mlir.dialects import linalg, tensor

from eyas.ir.walk import defining_op


def transpose(value: mlir.Value, permutation: Sequence[int]) -> mlir.Value:
    """A tensor whose dimension i is dimension `permutation[i]` of `value`."""
    type_ = mlir.RankedTensorType(value.type)
    shape = [type_.shape[p] for p in permutation]
    init = empty_like(value, shape, list(permutation))
    op = linalg.TransposeOp(
        result=[mlir.RankedTensorType.get(shape, type_.element_type)],
        input=value,
        init=init,
        permutation=mlir.DenseI64ArrayAttr.get(list(permutation)),
    )
    linalg.fill_builtin_region(op.operation)
    return op.results[0]


def empty_like(
    value: mlir.Value, shape: Sequence[int], source_dims: Sequence[int], element: mlir.Type | None = None
) -> mlir.Value:
    """An empty tensor of `shape`; a dynamic dimension i has the size of `value`'s dimension `source_dims[i]`."""
    dynamic = mlir.ShapedType.get_dynamic_size()
    sizes = [
        tensor.DimOp(value, index_constant(source)).result if size == dynamic else size
        for size, source in zip(shape, source_dims, strict=True)
    ]
    return tensor.EmptyOp(sizes, element or mlir.RankedTensorType(value.type).element_type).result


def index_constant(value: int) -> mlir.Value:
    from torch_mlir.dialects import arith

    return arith.ConstantOp(mlir.IndexType.get(), value).result


def generic(
    inputs: Sequence[mlir.Value],
    outputs: Sequence[mlir.Value],
    maps: Sequence[mlir.AffineMap],
    iterators: Sequence[str],
) -> linalg.GenericOp:
    """A linalg.generic with an empty body block whose arguments have the element types of the operands."""
    op = linalg.GenericOp(
        [output.type for output in outputs],
        list(inputs),
        list(outputs),
        mlir.ArrayAttr.get([mlir.AffineMapAttr.get(map_) for map_ in maps]),
        mlir.ArrayAttr.get([mlir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in iterators]),
    )
    types = [element_type(value) for value in [*inputs, *outputs]]
    op.regions[0].blocks.append(*types, arg_locs=[mlir.Location.current] * len(types))
    return op


def elementwise(value: mlir.Value, element: mlir.Type, scalar: Callable[[mlir.Value], mlir.Value]) -> mlir.Value:
    """A tensor of `element`s: what `scalar` builds from each element of `value`."""
    shape = list(mlir.RankedTensorType(value.type).shape)
    identity = mlir.AffineMap.get_identity(len(shape))
    init = empty_like(value, shape, range(len(shape)), element)
    op = generic([value], [init], [identity, identity], ["parallel"] * len(shape))
    with mlir.InsertionPoint(op.regions[0].blocks[0]):
        linalg.YieldOp([scalar(op.regions[0].blocks[0].arguments[0])])
    return op.results[0]


def element_type(value: mlir.Value) -> mlir.Type:
    return value.type.element_type if isinstance(value.type, mlir.ShapedType) else value.type


def clone_body(source: mlir.Block, target: mlir.Block, values: dict[mlir.Value, mlir.Value]) -> list[mlir.Value]:
    """Copies a linalg body; `values` maps the old block arguments. Returns what the body yields."""
    with mlir.InsertionPoint(target):
        return inline_body(source, values)


def inline_body(source: mlir.Block, values: dict[mlir.Value, mlir.Value]) -> list[mlir.Value]:
    """Copies a body of scalars to where the insertion point is, and returns what it yields."""
    for view in source.operations:
        op = view.operation
        if op.name in ("linalg.yield", "tm_tensor.yield"):
            return [values.get(value, value) for value in op.operands]
        copy = op.clone().operation
        for position, value in enumerate(copy.operands):
            if value in values:
                copy.operands[position] = values[value]
        values.update(zip(op.results, copy.results, strict=True))
    raise AssertionError("a body of scalars ends with a yield")


def copy_body(old: mlir.Operation | mlir.OpView, new: mlir.OpView) -> None:
    """Gives a new generic the body of another one with the same elements."""
    source, target = old.operation.regions[0].blocks[0], new.regions[0].blocks[0]
    yielded = clone_body(source, target, dict(zip(source.arguments, target.arguments, strict=True)))
    with mlir.InsertionPoint(target):
        linalg.YieldOp(yielded)


def split_operands(op: mlir.Operation | mlir.OpView) -> tuple[list[mlir.Value], list[mlir.Value]]:
    """Inputs and outputs (inits) of a linalg op on tensors."""
    operands, inits = list(op.operation.operands), len(op.operation.results)
    return operands[: len(operands) - inits], operands[len(operands) - inits :]


def is_elementwise(op: mlir.Operation) -> bool:
    """A generic with only parallel loops that writes each element once, in order."""
    if op.name != "linalg.generic" or len(op.results) != 1:
        return False
    maps = [mlir.AffineMapAttr(attribute).value for attribute in op.attributes["indexing_maps"]]
    identity = mlir.AffineMap.get_identity(maps[-1].n_dims, maps[-1].context)
    return maps[-1] == identity and all("parallel" in str(kind) for kind in op.attributes["iterator_types"])


def permutation_of(op: mlir.Operation) -> list[int]:
    """The permutation of a linalg.transpose."""
    return list(mlir.DenseI64ArrayAttr(op.attributes["permutation"]))


def fill_value(value: mlir.Value) -> mlir.Value | None:
    """The scalar of a tensor made by linalg.fill, else None."""
    op = defining_op(value)
    return op.operands[0] if op is not None and op.name == "linalg.fill" else None


def constant_scalar(value: mlir.Value) -> float | int | None:
    """The number of a scalar constant, else None."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    return attribute.value if isinstance(attribute, mlir.FloatAttr | mlir.IntegerAttr) else None


def concat(parts: Sequence[mlir.Value], axis: int) -> mlir.Value:
    """Tensors one after the other along a dimension; the type says what is known of the sizes."""
    types = [mlir.RankedTensorType(part.type) for part in parts]
    shape = [
        next((t.get_dim_size(dim) for t in types if not t.is_dynamic_dim(dim)), mlir.ShapedType.get_dynamic_size())
        for dim in range(types[0].rank)
    ]
    if any(type_.is_dynamic_dim(axis) for type_ in types):
        shape[axis] = mlir.ShapedType.get_dynamic_size()
    else:
        shape[axis] = sum(type_.get_dim_size(axis) for type_ in types)
    return tensor.ConcatOp(mlir.RankedTensorType.get(shape, types[0].element_type), axis, parts).result
