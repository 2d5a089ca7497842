"""`split-reductions`: a long sum for few results is made in two steps, so that all of a GPU has a part in it."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, linalg, tensor

from eyas.codegen.common.combine import Combiner, combiner_of
from eyas.codegen.common.kernel import generic_iterators, generic_maps
from eyas.ir.structured import copy_body, element_type, generic, split_operands
from eyas.ir.walk import entry_block, functions
from eyas.passes.dispatch.grouping import Role, role_of
from eyas.passes.targeted import TargetedPass

# Elements below which a second dispatch costs more than it saves.
_LEAST_ELEMENTS = 1 << 18
# Threads that share a sum along memory in a workgroup; across memory that is so many for each result.
_ALONG, _ACROSS = 256, 8
# Rows of which dispatches are formed that go through them several times.
_ROWS = 16
# How far from the wanted number of parts a divisor may be.
_FEWER, _MORE = 2, 4


@dataclass(frozen=True)
class Sum:
    """A generic with extents of its loops, and its combiner."""

    op: mlir.Operation
    extents: tuple[int, ...]
    iterators: tuple[str, ...]
    maps: tuple[mlir.AffineMap, ...]
    combiner: Combiner

    def size(self, kind: str) -> int:
        return prod(extent for extent, one in zip(self.extents, self.iterators, strict=True) if one == kind)


@dataclass(frozen=True)
class SplitReductions(TargetedPass):
    """Parts of the outermost reduced dimension are summed up side by side, then the parts.

    A workgroup sums up a result, or some that lie side by side. Where that makes fewer workgroups than the target needs
    to be busy, most of it waits. The order of the additions is another one.

        %1 = linalg.generic (sum) %0 : tensor<4096x512xf32> -> tensor<f32>
          =>
        %1 = linalg.generic (sum) %0 : tensor<4096x512xf32> -> tensor<4096xf32>
        %2 = linalg.generic (sum) %1 : tensor<4096xf32> -> tensor<f32>
    """

    name: ClassVar[str] = "split-reductions"

    def run(self, module: mlir.Module) -> None:
        wanted = self.target.wanted_threads
        for function in functions(module) if wanted else ():
            for view in list(entry_block(function).operations):
                found = _sum_of(view.operation)
                if found is not None and (split := _choose(found, wanted)) is not None:
                    with mlir.InsertionPoint(found.op), found.op.location:
                        _split(found, *split)


def _sum_of(op: mlir.Operation) -> Sum | None:
    if op.name != "linalg.generic" or role_of(op) is not Role.REDUCTION or len(op.results) != 1:
        return None
    inputs, _ = split_operands(op)
    body = op.regions[0].blocks[0]
    combiner = combiner_of(body, len(inputs))
    inner = [view.operation for view in body.operations]
    if combiner is None or any(one.name == "linalg.index" or len(one.regions) for one in inner):
        return None
    maps = tuple(generic_maps(op.opview))
    types = [mlir.RankedTensorType(value.type) for value in op.operands]
    if not all(map(_is_plain, maps)) or not all(one.has_static_shape for one in types):
        return None
    sizes = [pair for map_, one in zip(maps, types, strict=True) for pair in zip(map_.results, one.shape, strict=True)]
    extents = {expr.position: size for expr, size in sizes if isinstance(expr, mlir.AffineDimExpr)}
    if len(extents) != maps[0].n_dims:
        return None
    loops = tuple(extents[loop] for loop in range(maps[0].n_dims))
    return Sum(op, loops, tuple(generic_iterators(op.opview)), maps, combiner)


def _is_plain(map_: mlir.AffineMap) -> bool:
    """Whether each dimension is a loop of its own or has one element."""
    loops = [expr.position for expr in map_.results if isinstance(expr, mlir.AffineDimExpr)]
    ones = [expr for expr in map_.results if isinstance(expr, mlir.AffineConstantExpr)]
    return len(set(loops)) == len(loops) and len(loops) + len(ones) == len(map_.results)


def _position(expr: mlir.AffineExpr) -> int | None:
    return expr.position if isinstance(expr, mlir.AffineDimExpr) else None


def _choose(found: Sum, wanted: int) -> tuple[int, int] | None:
    """The loop to split and into how many parts, or None."""
    results = found.size("parallel")
    if prod(found.extents) < _LEAST_ELEMENTS:
        return None
    largest = max(found.maps[:-1], key=lambda map_: len(map_.results))
    read = [expr.position for expr in largest.results if isinstance(expr, mlir.AffineDimExpr)]
    along = found.iterators[read[-1]] == "reduction"
    busy = results * (_ALONG if along else _ACROSS)
    if 2 * busy > wanted or (along and results >= _ROWS and _goes_on_with_rows(found)):
        return None
    parts = -(-wanted // busy)
    loops = [loop for loop in read if found.iterators[loop] == "reduction" and found.extents[loop] > 1]
    for loop in loops:
        if found.extents[loop] >= parts // _FEWER and (count := _divisor(found.extents[loop], parts)):
            return loop, count
    loop = max(loops, key=lambda one: found.extents[one])
    return (loop, found.extents[loop]) if found.extents[loop] <= parts else None


def _goes_on_with_rows(found: Sum) -> bool:
    """Whether what is made of the sums meets something as large as what was summed up: then one dispatch should go
    through a row several times, as in a softmax."""
    size, pending, seen = prod(found.extents), [found.op], set()
    while pending:
        for use in [use for result in pending.pop().results for use in result.uses]:
            user = use.owner.operation
            while user.block != found.op.block:
                user = user.parent.operation
            types = [value.type for value in user.operands if isinstance(value.type, mlir.RankedTensorType)]
            if any(one.has_static_shape and prod(one.shape) >= size for one in types):
                return True
            if user not in seen:
                seen.add(user)
                pending.append(user)
    return False


def _divisor(extent: int, parts: int) -> int | None:
    """A number of parts that an extent has, near to what is wanted; all of it rather than a part that is not whole."""
    if extent <= _MORE * parts:
        return extent
    low, high = max(2, parts // _FEWER), _MORE * parts
    return next((count for count in [*range(parts, high + 1), *range(parts, low - 1, -1)] if extent % count == 0), None)


def _split(found: Sum, loop: int, parts: int) -> None:
    op = found.op
    inputs, (init,) = split_operands(op)
    iterators, maps = list(found.iterators), list(found.maps)
    if parts == found.extents[loop]:
        iterators[loop], part = "parallel", loop
    else:
        inputs = [_expand(value, map_, loop, parts) for value, map_ in zip(inputs, maps, strict=False)]
        maps = [_with_parts(map_, loop) for map_ in maps]
        iterators, part = ["parallel", *iterators], 0
    part_expr = mlir.AffineDimExpr.get(part)
    first_out = mlir.AffineMap.get(len(iterators), 0, [part_expr, *maps[-1].results])
    shape = [parts, *mlir.RankedTensorType(init.type).shape]
    partial = generic(
        inputs, [_identity(found.combiner, shape, element_type(init))], [*maps[:-1], first_out], iterators
    )
    copy_body(op, partial)
    rank = len(shape)
    every, rest = (
        mlir.AffineMap.get(rank, 0, [mlir.AffineDimExpr.get(dim) for dim in dims])
        for dims in (range(rank), range(1, rank))
    )
    final = generic([partial.results[0]], [init], [every, rest], ["reduction", *["parallel"] * (rank - 1)])
    block = final.regions[0].blocks[0]
    with mlir.InsertionPoint(block):
        linalg.YieldOp([found.combiner.join(block.arguments[1], block.arguments[0])])
    op.results[0].replace_all_uses_with(final.results[0])
    op.erase()


def _with_parts(map_: mlir.AffineMap, loop: int) -> mlir.AffineMap:
    """The same map behind a new first loop, which counts the parts of another one."""
    results = []
    for expr in map_.results:
        results += [mlir.AffineDimExpr.get(0)] if _position(expr) == loop else []
        position = _position(expr)
        results.append(expr if position is None else mlir.AffineDimExpr.get(position + 1))
    return mlir.AffineMap.get(map_.n_dims + 1, 0, results)


def _expand(value: mlir.Value, map_: mlir.AffineMap, loop: int, parts: int) -> mlir.Value:
    """A tensor whose dimension along a loop is two: which part, and where in it."""
    type_ = mlir.RankedTensorType(value.type)
    shape, groups = [], []
    for expr, size in zip(map_.results, type_.shape, strict=True):
        sizes = [parts, size // parts] if _position(expr) == loop else [size]
        groups.append(list(range(len(shape), len(shape) + len(sizes))))
        shape += sizes
    if len(shape) == type_.rank:
        return value
    result = mlir.RankedTensorType.get(shape, type_.element_type)
    return tensor.ExpandShapeOp(result, value, groups, [], shape).result


def _identity(combiner: Combiner, shape: list[int], element: mlir.Type) -> mlir.Value:
    """A tensor that changes nothing it is joined to."""
    number = combiner.identity(element)
    is_float = isinstance(element, mlir.FloatType)
    attribute = mlir.FloatAttr.get(element, number) if is_float else mlir.IntegerAttr.get(element, number)
    scalar = arith.ConstantOp(element, attribute).result
    return linalg.fill(scalar, outs=[tensor.EmptyOp(shape, element).result])
