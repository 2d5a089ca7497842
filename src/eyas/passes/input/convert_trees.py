"""`convert-trees`: walks through decision trees become linalg."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir.dialects import arith, linalg, tensor

from eyas.dialects import flow
from eyas.ir import Pass, mlir
from eyas.ir.structured import empty_like, generic, index_constant
from eyas.passes.input.torch_values import find_operators, replace_by_tensor, to_tensor

OPERATOR = "eyas.trees"

# A node's link says which column it compares, whether NaN goes to the second child, and how far away its children are:
# in one word when both numbers are small, else in two.
COLUMN_BITS = 15
FARTHEST = (1 << 16) - 1
_NAN_BIT = 1 << COLUMN_BITS


@dataclass(frozen=True)
class ConvertTrees(Pass):
    """Replaces `eyas.trees`, which the ONNX frontend writes for ensembles of decision trees.

    Each row of `x` goes down each tree for a fixed number of steps, without a branch: leaves are their own children. So
    many walks are under way at once, and none is ever mispredicted. A row of `table` is a node, in words of 32 bits:
    the threshold (or the lowest and highest value of an interval), and the link. `values` are what nodes are worth;
    `roots` has a row for each group of trees whose leaves are combined; trees of other depths have their own. `columns`
    is how many columns of `x` nodes look at: a row that has them needs no clamps.

        %y = torch.operator "eyas.trees"(%x, %table, %values, %roots) {depths = [6], combine = "sum", ...}
      becomes
        %at = linalg.generic [row, group, tree, step (reduction)] outs(%roots, repeated for each row) {
          %threshold, %link = table[%out]; %goes = arith.cmpf ole, x[row, column(%link)], %threshold
          linalg.yield %out + distance(%link) + %goes }
        %y = linalg.generic [row, group, column, tree (reduction)] ins(%at) { %out + values[%in, column] }
    """

    name: ClassVar[str] = "convert-trees"

    def run(self, module: mlir.Module) -> None:
        for op in find_operators(module, OPERATOR):
            with mlir.InsertionPoint(op), op.location:
                replace_by_tensor(op, _convert(op))


def _convert(op: mlir.Operation) -> mlir.Value:
    x, nodes, values, *roots = (to_tensor(operand) for operand in op.operands)
    table = _Table(op, nodes, mlir.RankedTensorType(x.type).element_type)
    depths = [mlir.IntegerAttr(depth).value for depth in mlir.ArrayAttr(op.attributes["torch.onnx.depths"])]
    how = mlir.StringAttr(op.attributes["torch.onnx.combine"]).value
    type_ = mlir.RankedTensorType(values.type)
    shape = [mlir.RankedTensorType(x.type).shape[0], mlir.RankedTensorType(roots[0].type).shape[0], type_.shape[1]]
    neutral = arith.ConstantOp(type_.element_type, _COMBINE[how][1]).result
    total = linalg.fill(neutral, outs=[empty_like(x, shape, [0, 0, 0], type_.element_type)])
    for starts, depth in zip(roots, depths, strict=True):
        total = _combine(_walk(table, x, starts, depth), values, how, total)
    return total


class _Table:
    """How nodes are written in words: what the operator's attributes say."""

    def __init__(self, op: mlir.Operation, table: mlir.Value, element: mlir.FloatType):
        self.nodes, self.element = table, element
        self.interval, self.missing, self.wide, self.columns = (
            mlir.IntegerAttr(op.attributes[f"torch.onnx.{name}"]).value
            for name in ("interval", "missing", "wide", "columns")
        )
        self.i32 = mlir.IntegerType.get_signless(32)
        self._words = element.width // 32

    def next(self, here: mlir.Value, row: mlir.Value, x: mlir.Value) -> mlir.Value:
        """Where a walk goes from a node: the first child, or the second one when the value is in range."""
        node = arith.index_castui(mlir.IndexType.get(), here)
        limits = [self._limit(node, number) for number in range(2 if self.interval else 1)]
        link = self._word(node, len(limits) * self._words)
        column_mask = (1 << 31) - 1 if self.wide else _NAN_BIT - 1
        column = arith.index_castui(mlir.IndexType.get(), arith.andi(link, self._number(column_mask)))
        width = mlir.RankedTensorType(x.type).shape[1]
        value = _read(x, [row, column], is_within=width >= self.columns)
        goes = arith.cmpf(arith.CmpFPredicate.OLE, value, limits[-1])
        if self.interval:
            goes = arith.andi(goes, arith.cmpf(arith.CmpFPredicate.OLE, limits[0], value))
        if self.missing:
            flag = arith.andi(link, self._number(-(1 << 31) if self.wide else _NAN_BIT))
            flagged = arith.cmpi(arith.CmpIPredicate.ne, flag, self._number(0))
            goes = arith.ori(goes, arith.andi(flagged, arith.cmpf(arith.CmpFPredicate.UNO, value, value)))
        if self.wide:
            distance = self._word(node, len(limits) * self._words + 1)
        else:
            distance = arith.shrui(link, self._number(COLUMN_BITS + 1))
        return arith.addi(arith.addi(here, distance), arith.extui(self.i32, goes))

    def _word(self, node: mlir.Value, word: int) -> mlir.Value:
        return _read(self.nodes, [node, index_constant(word)])

    def _limit(self, node: mlir.Value, number: int) -> mlir.Value:
        bits = self._word(node, number * self._words)
        if self._words == 2:
            i64 = mlir.IntegerType.get_signless(64)
            high = arith.extui(i64, self._word(node, number * 2 + 1))
            bits = arith.ori(arith.extui(i64, bits), arith.shli(high, arith.constant(i64, 32)))
        return arith.bitcast(self.element, bits)

    def _number(self, value: int) -> mlir.Value:
        return arith.constant(self.i32, value)


def _read(source: mlir.Value, indices: Sequence[mlir.Value], is_within: bool = True) -> mlir.Value:
    """An element. Walks stay inside of their table, because the frontend lays it out."""
    op = tensor.ExtractOp(source, list(indices))
    if is_within:
        op.operation.attributes[flow.WITHIN] = mlir.UnitAttr.get()
    return op.result


def _walk(table: _Table, x: mlir.Value, roots: mlir.Value, depth: int) -> mlir.Value:
    """The node that each row reaches in each tree: (rows, groups, trees)."""
    rows = mlir.RankedTensorType(x.type).shape[0]
    shape = [rows, *mlir.RankedTensorType(roots.type).shape]
    row, group, tree, step = (mlir.AffineExpr.get_dim(dim) for dim in range(4))
    each = mlir.AffineMap.get(3, 0, [row, group, tree])
    starts = generic(
        [roots],
        [empty_like(x, shape, [0, 0, 0], table.i32)],
        [mlir.AffineMap.get(3, 0, [group, tree]), each],
        ["parallel"] * 3,
    )
    body = starts.regions[0].blocks[0]
    with mlir.InsertionPoint(body):
        linalg.YieldOp([body.arguments[0]])
    # Only its size is used: it says how many steps there are.
    steps = tensor.EmptyOp([max(depth, 1)], mlir.IntegerType.get_signless(8)).result
    op = generic(
        [steps],
        [starts.results[0]],
        [mlir.AffineMap.get(4, 0, [step]), mlir.AffineMap.get(4, 0, [row, group, tree])],
        ["parallel", "parallel", "parallel", "reduction"],
    )
    body = op.regions[0].blocks[0]
    with mlir.InsertionPoint(body):
        linalg.YieldOp([table.next(body.arguments[1], linalg.IndexOp(0).result, x)])
    return op.results[0]


_COMBINE = {"sum": (arith.addf, 0.0), "min": (arith.minimumf, float("inf")), "max": (arith.maximumf, float("-inf"))}


def _combine(leaves: mlir.Value, values: mlir.Value, how: str, total: mlir.Value) -> mlir.Value:
    """What the leaves are worth, added to a total: (rows, groups, columns of `values`)."""
    row, group, column, tree = (mlir.AffineExpr.get_dim(dim) for dim in range(4))
    maps = [mlir.AffineMap.get(4, 0, exprs) for exprs in ([row, group, tree], [row, group, column])]
    op = generic([leaves], [total], maps, ["parallel", "parallel", "parallel", "reduction"])
    body = op.regions[0].blocks[0]
    with mlir.InsertionPoint(body):
        leaf = arith.index_castui(mlir.IndexType.get(), body.arguments[0])
        worth = _read(values, [leaf, linalg.IndexOp(2).result])
        linalg.YieldOp([_COMBINE[how][0](body.arguments[1], worth)])
    return op.results[0]
