"""`pack-bindings`: what a dispatch reads and makes beyond the target's bindings shares one buffer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import scf, tensor

from eyas.dialects import flow
from eyas.errors import CompileError
from eyas.ir import Pass, describe_location
from eyas.ir.structured import concat
from eyas.ir.walk import find_ops, functions, is_tensor, remap_operands
from eyas.passes.dispatch.outline_dispatches import captures


@dataclass(frozen=True)
class PackBindings(Pass):
    """Gives a region with more tensors than a dispatch binds fewer: those of one element type become one flat tensor.

    Operands are copied together before, in dispatches that stay within the limit; results are parts of the flat one,
    which costs nothing. Only an op that cannot be taken apart gets here, such as a loop that carries hundreds of
    tensors.

        %r:2 = region { uses %0, %1, ... }   =>   %p = region { tensor.concat (flat %0), (flat %1), ... }
                                                  %q = region { uses slices of %p; yields tensor.concat of results }
                                                  %r = flow.slice %q ...
    """

    name: ClassVar[str] = "pack-bindings"
    max_bindings: int = 256

    def run(self, module: mlir.Module) -> None:
        for function in functions(module):
            for region in find_ops(function, "scf.execute_region"):
                _Packing(region, self.max_bindings).run()


class _Packing:
    def __init__(self, region: mlir.OpView, limit: int):
        self.region, self.limit = region, limit
        self.body = region.regions[0].blocks[0]

    def run(self) -> None:
        captured, made = self._captured(), [result for result in self.region.results if is_tensor(result)]
        if len(captured) + len(made) <= self.limit:
            return
        before = len(captured) + len(made)
        with self.region.operation.location:
            self._pack_results()
            # Whole types at a time, those with the most tensors first, until the rest fits.
            for tensors in sorted(_by_type(captured), key=len, reverse=True):
                if self._count() > self.limit:
                    self._pack_operands(tensors)
        if self._count() > self.limit:
            where = describe_location(self.region.operation.location)
            raise CompileError(
                f"a dispatch at {where} uses {before} tensors and the target allows {self.limit}; those of dynamic"
                " sizes cannot share a buffer: give sizes, or carry fewer tensors through the loop or branch"
            )

    def _count(self) -> int:
        return len(self._captured()) + len([result for result in self.region.results if is_tensor(result)])

    def _captured(self) -> list[mlir.Value]:
        return captures([view.operation for view in self.body.operations][:-1], self.body)[0]

    def _pack_operands(self, tensors: list[mlir.Value]) -> None:
        with mlir.InsertionPoint(self.region):
            flat = [_flat(value) for value in tensors]
            while len(flat) > 1:
                most = max(2, self.limit - 1)
                groups = [flat[first : first + most] for first in range(0, len(flat), most)]
                flat = [_joined(group) if len(group) > 1 else group[0] for group in groups]
        parts: dict[mlir.Value, mlir.Value] = {}
        with mlir.InsertionPoint.at_block_begin(self.body):
            offset = 0
            for value in tensors:
                type_ = mlir.RankedTensorType(value.type)
                count = math.prod(type_.shape)
                part = mlir.RankedTensorType.get([count], type_.element_type)
                cut = tensor.ExtractSliceOp(part, flat[0], [], [], [], [offset], [count], [1]).result
                parts[value] = _shaped(cut, type_)
                offset += count
        made = {part.owner for part in parts.values()}
        for view in list(self.body.operations):
            if view.operation not in made:
                remap_operands(view.operation, parts)

    def _pack_results(self) -> None:
        """A new region that yields one flat tensor for each element type; the old results are parts of it."""
        groups = [group for group in _by_type(list(self.region.results)) if len(group) > 1]
        if not groups:
            return
        end = list(self.body.operations)[-1].operation
        yielded = dict(zip(self.region.results, end.operands, strict=True))
        packed = {value for group in groups for value in group}
        kept = [value for value in self.region.results if value not in packed]
        with mlir.InsertionPoint(end):
            flat = [concat([_collapsed(yielded[value]) for value in group], 0) for group in groups]
            scf.YieldOp([*(yielded[value] for value in kept), *flat])
        end.erase()
        with mlir.InsertionPoint(self.region):
            types = [*(value.type for value in kept), *(value.type for value in flat)]
            made = scf.ExecuteRegionOp(types, no_inline=True)
        self.body.append_to(made.regions[0])
        with mlir.InsertionPoint.after(self.region.operation):
            for old, new in zip(kept, made.results, strict=False):
                old.replace_all_uses_with(new)
            for group, whole in zip(groups, list(made.results)[len(kept) :], strict=True):
                offset = 0
                for value in group:
                    type_ = mlir.RankedTensorType(value.type)
                    start = mlir.IntegerAttr.get(mlir.IntegerType.get_signless(64), offset)
                    value.replace_all_uses_with(flow.SliceOp(whole, start, type_).result)
                    offset += math.prod(type_.shape)
        self.region.operation.erase()
        self.region, self.body = made, made.regions[0].blocks[0]


def _by_type(values: list[mlir.Value]) -> list[list[mlir.Value]]:
    """Tensors of static shape, by element type."""
    found: dict[mlir.Type, list[mlir.Value]] = {}
    for value in values:
        if is_tensor(value) and mlir.RankedTensorType(value.type).has_static_shape:
            found.setdefault(mlir.RankedTensorType(value.type).element_type, []).append(value)
    return list(found.values())


def _flat(value: mlir.Value) -> mlir.Value:
    type_ = mlir.RankedTensorType(value.type)
    flat = mlir.RankedTensorType.get([math.prod(type_.shape)], type_.element_type)
    return flow.ReshapeOp(value, [], flat).result


def _joined(parts: list[mlir.Value]) -> mlir.Value:
    """A dispatch that puts flat tensors one after the other."""
    total = sum(mlir.RankedTensorType(part.type).get_dim_size(0) for part in parts)
    type_ = mlir.RankedTensorType.get([total], mlir.RankedTensorType(parts[0].type).element_type)
    region = scf.ExecuteRegionOp([type_], no_inline=True)
    with mlir.InsertionPoint(region.regions[0].blocks.append()):
        scf.YieldOp([concat(parts, 0)])
    return region.results[0]


def _collapsed(value: mlir.Value) -> mlir.Value:
    type_ = mlir.RankedTensorType(value.type)
    if type_.rank == 1:
        return value
    flat = mlir.RankedTensorType.get([math.prod(type_.shape)], type_.element_type)
    if type_.rank == 0:
        return tensor.ExpandShapeOp(flat, value, [], [], [1]).result
    return tensor.CollapseShapeOp(flat, value, [list(range(type_.rank))]).result


def _shaped(flat: mlir.Value, type_: mlir.RankedTensorType) -> mlir.Value:
    if type_.rank == 1:
        return flat
    if type_.rank == 0:
        return tensor.CollapseShapeOp(type_, flat, []).result
    return tensor.ExpandShapeOp(type_, flat, [list(range(type_.rank))], [], list(type_.shape)).result
