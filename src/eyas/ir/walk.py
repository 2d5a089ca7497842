"""Small ways to find ops and values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from torch_mlir import ir as mlir


def find_ops(root: mlir.Operation | mlir.OpView | mlir.Module, *names: str) -> list[mlir.OpView]:
    """All ops below `root` with one of these names, in program order; what is inside an op comes before it."""
    found: list[mlir.OpView] = []

    def visit(op: mlir.Operation) -> mlir.WalkResult:
        if op.name in names:
            found.append(op.opview)
        return mlir.WalkResult.ADVANCE

    root.operation.walk(visit)
    return found


def functions(module: mlir.Module) -> list[mlir.OpView]:
    """The functions directly in a module that have a body."""
    return [
        op for op in module.body.operations if op.operation.name == "func.func" and len(op.operation.regions[0].blocks)
    ]


def defining_op(value: mlir.Value) -> mlir.Operation | None:
    """The op that makes a value, or None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, mlir.Block) else owner.operation


def ops_behind(
    value: mlir.Value, through: Callable[[mlir.Operation], bool] = lambda _: True
) -> Iterator[mlir.Operation]:
    """The ops that a value is made of, itself included, and what those are made of that `through` allows.

    Each comes once: sizes that are made of sizes have more paths between them than anyone could walk.
    """
    seen: set[mlir.Operation] = set()
    pending = [defining_op(value)]
    while pending:
        op = pending.pop()
        if op is None or op in seen:
            continue
        seen.add(op)
        yield op
        if through(op):
            pending.extend(defining_op(operand) for operand in op.operands)


def nested_operands(op: mlir.Operation) -> Iterator[mlir.Value]:
    """Operands of an op and of everything inside it; values defined inside come too."""
    yield from op.operands
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from nested_operands(inner.operation)


def values_inside(op: mlir.Operation) -> set[mlir.Value]:
    """Values that an op makes, or one inside of it, with the arguments of its blocks."""
    found = set(op.results)
    for region in op.regions:
        for block in region.blocks:
            found.update(block.arguments)
            for inner in block.operations:
                found |= values_inside(inner.operation)
    return found


def remap_operands(op: mlir.Operation, values: Mapping[mlir.Value, mlir.Value]) -> None:
    """Replaces operands, nested ones too, that `values` has another value for."""
    for position, value in enumerate(op.operands):
        if value in values:
            op.operands[position] = values[value]
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                remap_operands(inner.operation, values)


def is_tensor(value: mlir.Value) -> bool:
    return isinstance(value.type, mlir.RankedTensorType)


def entry_block(function: mlir.OpView) -> mlir.Block:
    return function.operation.regions[0].blocks[0]


def constant_int(value: mlir.Value) -> int | None:
    """The value of an integer or index constant, else None."""
    owner = value.owner
    if isinstance(owner, mlir.Block) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    return int(attribute.value) if isinstance(attribute, mlir.IntegerAttr | mlir.BoolAttr) else None


def is_private(function: mlir.OpView) -> bool:
    """Whether only the program itself calls a function."""
    attributes = function.operation.attributes
    return "sym_visibility" in attributes and mlir.StringAttr(attributes["sym_visibility"]).value == "private"
