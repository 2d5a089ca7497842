"""Ops inside of an op, such as a loop's body or a branch, as a function of their own."""

from __future__ import annotations

from collections.abc import Iterable

from torch_mlir import ir as mlir
from torch_mlir.dialects import func

from eyas.ir.walk import defining_op, is_tensor, nested_operands, remap_operands, values_inside
from eyas.passes.optimize.evaluate_constants import constant_ops

Known = dict[mlir.Value, mlir.Value]
"""Values of the program, and what they are in the function."""


class Outlining:
    """What the functions need that are made of the regions of one op at the top of a function.

    Weights, constants and, with `scalars`, scalars are made in the new function once more; other tensors are arguments
    of it.
    """

    def __init__(self, module: mlir.Module, op: mlir.Operation, scalars: bool = True):
        self.module, self.op, self.scalars = module, op, scalars
        self.constant = constant_ops(op.block)

    def captured(self, used: Iterable[mlir.Value]) -> list[mlir.Value] | None:
        """Tensors from outside that must be given so that these values can be had; None where a scalar would be."""
        found: dict[mlir.Value, None] = {}
        seen: set[mlir.Value] = set()
        pending = list(used)
        while pending:
            value = pending.pop(0)
            if value in seen or not self._is_outside(value):
                continue
            seen.add(value)
            owner = defining_op(value)
            if owner is not None and self._is_made_again(owner):
                pending += nested_operands(owner)
            elif is_tensor(value):
                found[value] = None
            else:
                return None
        return list(found)

    def begin(self, name: str, arguments: list[mlir.Type], results: list[mlir.Type]) -> mlir.Block:
        """The empty block of a new private function."""
        with mlir.InsertionPoint(self.module.body), self.op.location:
            function = func.FuncOp(name, (arguments, results), visibility="private")
            return function.add_entry_block([self.op.location] * len(arguments))

    def copy(self, ops: Iterable[mlir.Operation], known: Known) -> None:
        """Copies ops to where the insertion point is. Those for which something is missing are left out."""
        for op in ops:
            inside = values_inside(op)
            needed = [value for value in nested_operands(op) if value not in inside]
            for value in needed:
                self.make_again(value, known)
            if all(value in known for value in needed):
                copy = op.clone().operation
                remap_operands(copy, known)
                known.update(zip(op.results, copy.results, strict=True))

    def make_again(self, value: mlir.Value, known: Known) -> mlir.Value | None:
        """What a value is in the function, made of what comes from outside if need be; None if it cannot be known."""
        owner = defining_op(value)
        if value not in known and owner is not None and self._is_outside(value):
            for operand in nested_operands(owner):
                self.make_again(operand, known)
            copy = owner.clone().operation
            remap_operands(copy, known)
            known.update(zip(owner.results, copy.results, strict=True))
        return known.get(value)

    def declare(self, name: str, operands: list[mlir.Value], results: list[mlir.Type]) -> func.CallOp:
        """A call, before the op, of a function that has no body: attributes of the call will say what it does."""
        with mlir.InsertionPoint(self.module.body), self.op.location:
            func.FuncOp(name, ([value.type for value in operands], results), visibility="private")
        with mlir.InsertionPoint(self.op), self.op.location:
            return func.CallOp(results, mlir.FlatSymbolRefAttr.get(name), operands)

    def make_function(
        self, name: str, arguments: list[mlir.Value], ops: Iterable[mlir.Operation], results: list[mlir.Value]
    ) -> None:
        """A private function that takes `arguments`, copies `ops` and gives `results`."""
        entry = self.begin(name, [value.type for value in arguments], [value.type for value in results])
        known = dict(zip(arguments, entry.arguments, strict=True))
        with mlir.InsertionPoint(entry), self.op.location:
            self.copy(ops, known)
            func.ReturnOp([self.make_again(value, known) for value in results])

    def _is_outside(self, value: mlir.Value) -> bool:
        owner = value.owner
        return (owner if isinstance(owner, mlir.Block) else owner.operation.block) == self.op.block

    def _is_made_again(self, owner: mlir.Operation) -> bool:
        if owner in self.constant or owner.name == "arith.constant":
            return True
        return self.scalars and not list(owner.regions) and not any(is_tensor(value) for value in owner.results)
