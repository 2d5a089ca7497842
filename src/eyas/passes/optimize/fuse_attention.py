"""`fuse-attention`: two products and the row-wise ops between them become one dispatch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, linalg, tensor

from eyas.codegen.common.traffic import held_bytes
from eyas.dialects import flow
from eyas.ir import run_upstream
from eyas.ir.structured import constant_scalar, element_type, fill_value, generic, transpose
from eyas.ir.views import Digit, Dim, Index, digits_of, is_contiguous_along, is_view, linear_map, regroup, trace
from eyas.ir.walk import defining_op, entry_block, functions
from eyas.passes.optimize.attention_rows import RowOps, constant_factor
from eyas.passes.targeted import TargetedPass
from eyas.targets import Target
from eyas.targets.gpu import GpuTarget


@dataclass(frozen=True)
class _Bounds:
    """Of what one dispatch is made for a target."""

    min_rows: int
    min_columns: int
    max_columns: int
    in_pieces: bool
    """Whether rows of scores are taken in pieces: then nothing is gained from keys that are transposed first, and only
    softmax may lie between the products."""


# Fewer rows cannot share what a product loads; longer rows of scores leave the first-level cache.
_BOUNDS_OF_CPUS = _Bounds(8, 16, 2048, in_pieces=False)
_BOUNDS_OF_GPUS = _Bounds(1, 1, 1 << 31, in_pieces=True)


@dataclass(frozen=True)
class FuseAttention(TargetedPass):
    """Rewrites softmax(Q K^T) V, or any row-wise ops between two batched products, so that it runs block by block.

    A block of query rows has its scores in memory of the workgroup, which is in the first-level cache: they are never
    written out. Heads are read from and written to where the projections have them, without transposes, except that
    each workgroup transposes its keys. A constant factor of queries or keys is applied to the scores, a constant
    divisor of the scores is a factor, and what rows of scores are divided by divides the result. The new ops share the
    attribute `flow.group`, which makes them one dispatch. A few rows (a decoder's) are not worth that: there the first
    product alone reads the keys as they lie. GPUs take softmax in pieces, of any length and for any number of rows, and
    read keys as they lie; other ops than softmax between the products are left alone there.

        %s = linalg.batch_matmul ins(%q, %kt)        %s = linalg.generic ins(%x, %kt) {flow.group = 0}
        %p = softmax %s                        =>    %e = ... exp(s - max) ...        {flow.group = 0}
        %o = linalg.batch_matmul ins(%p, %v)         %o = linalg.generic ins(%e, %y)  {flow.group = 0}
        %t = linalg.transpose %o                     %d = ... o / sum ...             {flow.group = 0}
    """

    name: ClassVar[str] = "fuse-attention"

    def run(self, module: mlir.Module) -> None:
        count = 0
        bounds = _BOUNDS_OF_GPUS if isinstance(self.target, GpuTarget) else _BOUNDS_OF_CPUS
        for function in functions(module):
            for view in list(entry_block(function).operations):
                if view.operation.name == "linalg.batch_matmul" and _fuse(view.operation, count, bounds, self.target):
                    count += 1
        run_upstream(module, "canonicalize,cse")


def _fuse(first: mlir.Operation, number: int, bounds: _Bounds, target: Target) -> bool:
    """Rewrites the pattern that begins with a product of queries and keys, if it is one."""
    if not _is_product(first):
        return False
    queries, keys = list(first.operands)[:2]
    batch, rows, depth = mlir.RankedTensorType(queries.type).shape
    columns = mlir.RankedTensorType(keys.type).shape[2]
    heads = _batch_digits(queries, batch)
    m, n = len(heads), len(heads) + 1
    row, column = Digit(m, rows), Digit(n, columns)
    if rows < bounds.min_rows:
        _read_keys_as_they_lie(first, heads, row, column, Digit(n + 1, depth))
        return False
    if not bounds.min_columns <= columns <= bounds.max_columns:
        return False
    ops = RowOps(heads, row, column)
    second = ops.follow(first)
    if second is None or not _is_product(second) or second.operands[1] in ops.index or not ops.folds_rows:
        return False
    if bounds.in_pieces and not ops.is_softmax(first.results[0], second.operands[0]):
        return False
    values = second.operands[1]
    width = mlir.RankedTensorType(values.type).shape[2]
    group = mlir.IntegerAttr.get(mlir.IntegerType.get_signless(64), number)

    with mlir.InsertionPoint(second), second.location:
        inner = Digit(n + 1, depth)
        factors: list[float] = []
        q, q_index = _trace_scaled(queries, (Dim(heads), Dim((row,)), Dim((inner,))), factors)
        k, k_index = _trace_scaled(keys, (Dim(heads), Dim((inner,)), Dim((column,))), factors)
        is_near = is_contiguous_along(k_index, n) and _has_plain(inner, q_index, k_index)
        if not bounds.in_pieces and not is_near:
            k, k_index = _materialize(k, k_index, (*heads, inner, column), group, target)
        shape = [digit.size for digit in (*heads, row)]
        identity = mlir.AffineMap.get_identity(n + 1)
        into = mlir.AffineMap.get(n + 2, 0, [mlir.AffineDimExpr.get(loop) for loop in range(n + 1)])
        maps = [linear_map(q_index, n + 2), linear_map(k_index, n + 2), into]
        scores = _product(
            q, k, maps, [*shape, columns], first, group, None if _has_plain(inner, q_index, k_index) else depth
        )
        for factor in factors:
            scores = _times(scores, factor, identity, group)
        weights, divisor = ops.rebuild(scores, second.operands[0], group)

        # The second product: heads, rows, width of a value | columns.
        out = Digit(n, width)
        summed = Digit(n + 1, columns)
        v, v_index = trace(values, (Dim(heads), Dim((summed,)), Dim((out,))))
        if not bounds.in_pieces and not is_contiguous_along(v_index, n):
            v, v_index = _materialize(v, v_index, (*heads, summed, out), group, target)
        read = mlir.AffineMap.get(n + 2, 0, [mlir.AffineDimExpr.get(loop) for loop in (*range(n), n + 1)])
        result = _product(weights, v, [read, linear_map(v_index, n + 2), into], [*shape, width], second, group)
        if divisor is not None:
            result = _over(result, divisor, identity, group)
        _place(result, second.results[0], (Dim(heads), Dim((row,)), Dim((out,))), group)
    return True


def _read_keys_as_they_lie(
    product: mlir.Operation, heads: tuple[Digit, ...], row: Digit, column: Digit, inner: Digit
) -> None:
    """With few rows the product takes less time than a transpose of the keys: it runs along the keys instead."""
    queries, keys = list(product.operands)[:2]
    rows = Dim((row,)) if row.size != 1 else Dim()
    k, k_index = trace(keys, (Dim(heads), Dim((inner,)), Dim((column,))))
    q, q_index = trace(queries, (Dim(heads), rows, Dim((inner,))))
    if not _has_plain(inner, q_index, k_index):  # the depth of a head must be a dimension of one of them
        q, q_index = queries, (Dim(heads), rows, Dim((inner,)))
    assert inner.loop is not None
    if k == keys or not all(is_contiguous_along(index, inner.loop) for index in (k_index, q_index)):
        return
    loops = inner.loop + 1
    into = mlir.AffineMap.get(loops, 0, [mlir.AffineDimExpr.get(loop) for loop in range(inner.loop)])
    maps = [linear_map(q_index, loops), linear_map(k_index, loops), into]
    with mlir.InsertionPoint(product), product.location:
        result = _product(q, k, maps, [digit.size for digit in (*heads, row, column)], product, None)
        if result.type != product.results[0].type:
            result = flow.ReshapeOp(result, [], product.results[0].type).result
    product.results[0].replace_all_uses_with(result)


def _has_plain(digit: Digit, *indices: Index) -> bool:
    """Whether a loop is the index of some dimension by itself: that is where its extent is read."""
    return any(dim == Dim((digit,)) for index in indices for dim in index)


def _is_product(op: mlir.Operation) -> bool:
    """A batched product of floats with static sizes that starts from zero."""
    if op.name != "linalg.batch_matmul" or len(op.operands) != 3 or "indexing_maps" in op.attributes:
        default = op.name == "linalg.batch_matmul" and len(op.operands) == 3
        if not default or not _has_default_maps(op):
            return False
    types = [mlir.RankedTensorType(value.type) for value in op.operands]
    if not all(type_.has_static_shape and isinstance(type_.element_type, mlir.FloatType) for type_ in types):
        return False
    start = fill_value(op.operands[2])
    return start is not None and constant_scalar(start) == 0


def _has_default_maps(op: mlir.Operation) -> bool:
    maps = [str(mlir.AffineMapAttr(attribute).value) for attribute in op.attributes["indexing_maps"]]
    dims = "(d0, d1, d2, d3) -> "
    return maps == [f"{dims}(d0, d1, d3)", f"{dims}(d0, d3, d2)", f"{dims}(d0, d1, d2)"]


def _batch_digits(queries: mlir.Value, batch: int) -> tuple[Digit, ...]:
    """The batch as the framework had it before it was flattened: images and heads."""
    op = defining_op(queries)
    sizes = [batch]
    if op is not None and op.name == "tensor.collapse_shape":
        source = mlir.RankedTensorType(op.operands[0].type)
        if source.has_static_shape:
            sizes = source.shape[: source.rank - 2]
    found = [size for size in sizes if size != 1]
    product = 1
    for size in found:
        product *= size
    if product != batch:
        found = [batch] if batch != 1 else []
    return tuple(Digit(loop, size) for loop, size in enumerate(found))


def _trace_scaled(value: mlir.Value, index: Index, factors: list[float]) -> tuple[mlir.Value, Index]:
    """Follows views and multiplications by constants, which are collected.

    One right behind what makes the tensor stays: it costs nothing there."""

    def through(op: mlir.Operation) -> bool:
        factor, above = constant_factor(op), defining_op(op.operands[0])
        if factor is None or above is None or not is_view(above):
            return False
        factors.append(factor)
        return True

    return trace(value, index, through)


def _materialize(
    value: mlir.Value, index: Index, order: tuple[Digit, ...], group: mlir.Attribute, target: Target
) -> tuple[mlir.Value, Index]:
    """A copy in which the last digit of `order` is contiguous, made by each workgroup if it can hold that of a head."""
    numbered = {digit.loop: loop for loop, digit in enumerate(order)}
    renamed = tuple(
        Dim(tuple(Digit(None if d.loop is None else numbered[d.loop], d.size, d.value) for d in dim.digits), dim.offset)
        for dim in index
    )
    empty = tensor.EmptyOp([digit.size for digit in order], element_type(value)).result
    maps = [linear_map(renamed, len(order)), mlir.AffineMap.get_identity(len(order))]
    op = generic([value], [empty], maps, ["parallel"] * len(order))
    if held_bytes(order[-2].size * order[-1].size, element_type(value)) <= target.workgroup_bytes:
        op.operation.attributes[flow.GROUP] = group
    block = op.regions[0].blocks[0]
    with mlir.InsertionPoint(block):
        linalg.YieldOp([block.arguments[0]])
    return op.results[0], tuple(Dim((digit,)) for digit in order)


def _product(
    left: mlir.Value,
    right: mlir.Value,
    maps: list[mlir.AffineMap],
    shape: list[int],
    like: mlir.Operation,
    group: mlir.Attribute | None,
    depth: int | None = None,
) -> mlir.Value:
    """A product whose last loop is summed, in the type of the product that it replaces.

    Where the operands may hide that loop in a sum of loops, `depth` is its extent, which an operand says that nobody
    reads."""
    type_ = element_type(like.results[0])
    zero = fill_value(like.operands[2])
    assert zero is not None, "the pattern was checked"
    init = linalg.fill(zero, outs=[tensor.EmptyOp(shape, type_).result])
    operands, loops = [left, right], len(shape) + 1
    if depth is not None:
        operands.append(tensor.EmptyOp([depth], type_).result)
        maps = [*maps[:2], mlir.AffineMap.get(loops, 0, [mlir.AffineDimExpr.get(loops - 1)]), maps[2]]
    op = generic(operands, [init], maps, ["parallel"] * len(shape) + ["reduction"])
    if group is not None:
        op.operation.attributes[flow.GROUP] = group
    block = op.regions[0].blocks[0]
    with mlir.InsertionPoint(block):
        factors = [_widened(argument, type_) for argument in list(block.arguments)[:2]]
        product = arith.MulFOp(*factors).result
        linalg.YieldOp([arith.AddFOp(block.arguments[len(operands)], product).result])
    return op.results[0]


def _widened(value: mlir.Value, type_: mlir.Type) -> mlir.Value:
    return value if value.type == type_ else arith.ExtFOp(type_, value).result


def _times(value: mlir.Value, factor: float, identity: mlir.AffineMap, group: mlir.Attribute) -> mlir.Value:
    type_ = mlir.RankedTensorType(value.type)
    scalar = arith.ConstantOp(type_.element_type, mlir.FloatAttr.get(type_.element_type, factor)).result
    empty = tensor.EmptyOp(list(type_.shape), type_.element_type).result
    op = generic([value], [empty], [identity, identity], ["parallel"] * type_.rank)
    op.operation.attributes[flow.GROUP] = group
    block = op.regions[0].blocks[0]
    with mlir.InsertionPoint(block):
        linalg.YieldOp([arith.MulFOp(block.arguments[0], scalar).result])
    return op.results[0]


def _over(value: mlir.Value, divisor: mlir.Value, identity: mlir.AffineMap, group: mlir.Attribute) -> mlir.Value:
    """Each row divided by its number."""
    type_ = mlir.RankedTensorType(value.type)
    rows = mlir.AffineMap.get(type_.rank, 0, [mlir.AffineDimExpr.get(loop) for loop in range(type_.rank - 1)])
    empty = tensor.EmptyOp(list(type_.shape), type_.element_type).result
    op = generic([value, divisor], [empty], [identity, rows, identity], ["parallel"] * type_.rank)
    op.operation.attributes[flow.GROUP] = group
    block = op.regions[0].blocks[0]
    with mlir.InsertionPoint(block):
        divided = arith.DivFOp(block.arguments[0], _widened(block.arguments[1], type_.element_type)).result
        linalg.YieldOp([divided])
    return op.results[0]


def _place(result: mlir.Value, old: mlir.Value, index: Index, group: mlir.Attribute) -> None:
    """Replaces `old`, whose elements `index` says; a transpose of it that nothing else reads is made here."""
    made = digits_of(index)
    assert made is not None
    value, wanted = old, made
    while True:
        users = [use.owner.operation for use in value.uses]
        following = _below(users[0], index) if len(users) == 1 else None
        if following is None:
            break
        value, index = users[0].results[0], following
        if users[0].name == "linalg.transpose":
            wanted = digits_of(index) or made
            break
    if wanted == made:
        value = old
    order = [made.index(digit) for digit in wanted]
    if order != sorted(order):
        result = transpose(result, order)
        op = defining_op(result)
        assert op is not None
        op.attributes[flow.GROUP] = group
    if result.type != value.type:
        result = flow.ReshapeOp(result, [], value.type).result
    value.replace_all_uses_with(result)


def _below(op: mlir.Operation, index: Index) -> Index | None:
    """The index of the result of a reshape or transpose, of which the operand's is known."""
    if op.name in ("tensor.expand_shape", "tensor.collapse_shape"):
        type_ = mlir.RankedTensorType(op.results[0].type)
        return regroup(index, type_.shape) if type_.has_static_shape else None
    if op.name == "linalg.transpose":
        return tuple(index[dim] for dim in mlir.DenseI64ArrayAttr(op.attributes["permutation"]))
    return None
