"""`convert-sorts`: sorts become merge sorts, and those of which only the start is used a selection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.ir import Pass
from eyas.ir.structured import inline_body
from eyas.ir.walk import find_ops
from eyas.passes.input.stablehlo_scalars import Values
from eyas.passes.sorting import merge_sort, select_first

# Where the data come in the worst order each element moves all that were found before. A merge sort moves each as often
# as its length can be halved, in about eight times the time: selecting more than this many would take longer.
_MOVES_OF_A_MERGE = 8


@dataclass(frozen=True)
class ConvertSorts(Pass):
    """Turns `tm_tensor.sort` into loops: upstream's compares neighbours, again and again, in a time that grows with the
    square of the length.

    Where nothing but the first few places of each row is used, which is what the k largest elements are, these are kept
    in order while the row is read once. Other sorts are merge sorts. Equal elements stay in their order.

        %s:2 = tm_tensor.sort dimension(1) outs(%x, %i) { <= }       %s:2 = scf.for %row ... {
        %a = tensor.extract_slice %s#1[0, 0] [8, 5] [1, 1]      =>     scf.for %j ... { scf.if %x[%j] < %last {...} } }

    With `keep`, sorts that will be a dispatch of their own stay: the target has a strategy for them.
    """

    name: ClassVar[str] = "convert-sorts"
    keep: bool = False

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, "tm_tensor.sort"):
            if self.keep and op.operation.parent.name == "func.func" and not _is_sorted(op.operation):
                continue
            with mlir.InsertionPoint(op), op.location:
                _convert(op.operation)


def _is_sorted(op: mlir.Operation) -> bool:
    """Whether rows have one element at the most."""
    length = mlir.RankedTensorType(op.operands[0].type).shape[mlir.IntegerAttr(op.attributes["dimension"]).value]
    return not mlir.ShapedType.is_dynamic_size(length) and length <= 1


def _convert(op: mlir.Operation) -> None:
    body, inputs = op.regions[0].blocks[0], list(op.operands)
    dimension = mlir.IntegerAttr(op.attributes["dimension"]).value

    def before(lefts: Values, rights: Values) -> mlir.Value:
        pairs = [value for pair in zip(lefts, rights, strict=True) for value in pair]
        (stays,) = inline_body(body, dict(zip(body.arguments, pairs, strict=True)))
        return arith.xori(stays, arith.constant(stays.type, 1))

    for result, value in zip(op.results, inputs, strict=True):
        for dim in [use.owner for use in result.uses if use.owner.operation.name == "tensor.dim"]:
            dim.operation.operands[0] = value
    slices = _slices_of_the_start(op, dimension)
    if slices:
        count = slices[0].results[0].type.shape[dimension]
        made = select_first(inputs, dimension, before, count)
        for one in slices:
            new = made[list(op.results).index(one.operands[0])]
            one.results[0].replace_all_uses_with(new)
            one.erase()
    else:
        used = [any(True for _ in result.uses) for result in op.results]
        for result, new in zip(op.results, merge_sort(inputs, dimension, before, used), strict=True):
            result.replace_all_uses_with(new)
    op.erase()


def _slices_of_the_start(op: mlir.Operation, dimension: int) -> list[mlir.Operation]:
    """All uses, if each takes the same few first places of every row."""
    uses = [use.owner.operation for result in op.results for use in result.uses]
    shape = mlir.RankedTensorType(op.operands[0].type).shape
    for use in uses:
        if use.name != "tensor.extract_slice" or not _takes_start(use, dimension):
            return []
    counts = {use.results[0].type.shape[dimension] for use in uses}
    most = min(_MOVES_OF_A_MERGE * shape[dimension].bit_length(), shape[dimension] // 4)
    few = len(counts) == 1 and 0 < min(counts) <= most
    return uses if few and shape[dimension] > 0 else []


def _takes_start(use: mlir.Operation, dimension: int) -> bool:
    """Whether a slice is whole but for the end of one dimension."""
    offsets, sizes, strides = (
        list(mlir.DenseI64ArrayAttr(use.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")
    )
    source, result = (mlir.RankedTensorType(value.type) for value in (use.operands[0], use.results[0]))
    if any(offsets) or set(strides) != {1} or source.rank != result.rank:
        return False
    return all(
        source.shape[dim] == size or mlir.ShapedType.is_dynamic_size(size) and source.is_dynamic_dim(dim)
        for dim, size in enumerate(sizes)
        if dim != dimension
    ) and not mlir.ShapedType.is_dynamic_size(sizes[dimension])
