"""`drop-unused-results`: linalg ops compute only what is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eyas.ir import Pass, mlir
from eyas.ir.walk import nested_operands


@dataclass(frozen=True)
class DropUnusedResults(Pass):
    """Removes results of `linalg.generic` that nothing reads, with the part of the body that only they need.

    The torch importer finds a maximum together with its index; in a softmax the index is never used, and it would keep
    the reduction from being vectorised.

        %m:2 = linalg.generic ... outs(%a, %b : tensor<4xf32>, tensor<4xi64>) { ... linalg.yield %max, %index }
    becomes, when %m#1 has no user,
        %m = linalg.generic ... outs(%a : tensor<4xf32>) { ... linalg.yield %max }
    """

    name: ClassVar[str] = "drop-unused-results"

    def run(self, module: mlir.Module) -> None:
        ops: list[mlir.Operation] = []

        def visit(op: mlir.Operation) -> mlir.WalkResult:
            if op.name == "linalg.generic" and len(op.results) > 1:
                ops.append(op)
            return mlir.WalkResult.ADVANCE

        module.operation.walk(visit)
        for op in ops:
            if droppable := _droppable_results(op):
                _rebuild(op, droppable)


def _droppable_results(op: mlir.Operation) -> set[int]:
    """Results without users whose running value feeds nothing but themselves."""
    block = op.regions[0].blocks[0]
    inputs = len(op.operands) - len(op.results)
    unused = {index for index, result in enumerate(op.results) if not list(result.uses)}
    if not unused or len(unused) == len(op.results):
        # Where the whole op is dead, that is for canonicalize to see.
        return set()
    needed = _needed_values(block, [index for index in range(len(op.results)) if index not in unused])
    return {index for index in unused if block.arguments[inputs + index] not in needed}


def _needed_values(block: mlir.Block, yielded: list[int]) -> set[mlir.Value]:
    """What the results at these places are made of, found from the last op of the body to the first; what made the
    values that the body takes from outside is nothing of it."""
    *ops, end = [view.operation for view in block.operations]
    needed = {end.operands[index] for index in yielded}
    for op in reversed(ops):
        # An assert in the body has no results and stays.
        if not op.results or any(result in needed for result in op.results):
            needed.update(nested_operands(op))
    return needed


def _rebuild(op: mlir.Operation, dropped: set[int]) -> None:
    inputs = len(op.operands) - len(op.results)
    kept = [index for index in range(len(op.results)) if index not in dropped]
    operands = [*list(op.operands)[:inputs], *(op.operands[inputs + index] for index in kept)]
    attributes = {name: op.attributes[name] for name in op.attributes}
    maps = list(mlir.ArrayAttr(attributes["indexing_maps"]))
    attributes["indexing_maps"] = mlir.ArrayAttr.get([*maps[:inputs], *(maps[inputs + index] for index in kept)])
    with mlir.InsertionPoint(op), op.location:
        attributes["operandSegmentSizes"] = mlir.DenseI32ArrayAttr.get([inputs, len(kept)])
        types = [op.results[index].type for index in kept]
        smaller = mlir.Operation.create(op.name, types, operands, attributes, regions=1)
    op.regions[0].blocks[0].append_to(smaller.regions[0])
    block = smaller.regions[0].blocks[0]
    end = list(block.operations)[-1]
    with mlir.InsertionPoint(end), end.location:
        mlir.Operation.create("linalg.yield", [], [end.operands[index] for index in kept])
    end.operation.erase()
    # Ops of the body come after what they use, so one backward sweep removes all that became dead.
    for inner in reversed(list(block.operations)[:-1]):
        if inner.results and not inner.regions and all(not list(result.uses) for result in inner.results):
            inner.operation.erase()
    for index in sorted(dropped, reverse=True):
        block.erase_argument(inputs + index)
    for new, index in zip(smaller.results, kept, strict=True):
        op.results[index].replace_all_uses_with(new)
    op.erase()
