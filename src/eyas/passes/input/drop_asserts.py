"""`drop-asserts`: shape checks that importers add leave the program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eyas.ir import Pass, mlir
from eyas.ir.walk import find_ops

_GLOBALS = ("ml_program.global", "ml_program.global_load", "ml_program.global_store", "ml_program.global_load_const")

# An equality between sizes.
_TAKEN_FOR_TRUE = "Runtime assertion failed for expression Eq("


@dataclass(frozen=True)
class DropAsserts(Pass):
    """Removes `cf.assert` and the random-seed global when nothing reads it.

    The checks guard against broadcasting of sizes that disagree, which the program's signature checks on entry. Those
    beside a `tensor.extract` stay: they check an index that comes from data, and fail the call when it is out of range.
    So do those that a frontend of ours marked `flow.keep`, and those of torch.export about sizes that data says: what
    is said there it has taken for true, and kernels would read outside of a tensor that is smaller.

        cf.assert %same, "mismatched size for broadcast"
        ml_program.global private mutable @global_seed(dense<0> : tensor<i64>) : tensor<i64>
    are erased.
    """

    name: ClassVar[str] = "drop-asserts"

    def run(self, module: mlir.Module) -> None:
        asserts: list[mlir.Operation] = []
        state: dict[str, list[mlir.Operation]] = {name: [] for name in _GLOBALS}

        def visit(op: mlir.Operation) -> mlir.WalkResult:
            if op.name == "cf.assert" and not _is_needed(op):
                asserts.append(op)
            elif op.name in state:
                state[op.name].append(op)
            return mlir.WalkResult.ADVANCE

        module.operation.walk(visit)
        for op in asserts:
            op.erase()
        for op in [op for op in find_ops(module, "linalg.generic") if not op.results]:
            op.operation.erase()  # it was there for its assert alone
        used = any(state[name] for name in _GLOBALS[1:])
        if not used:
            for op in state["ml_program.global"]:
                op.erase()


def _is_needed(op: mlir.Operation) -> bool:
    message = mlir.StringAttr(op.attributes["msg"]).value
    return "flow.keep" in op.attributes or message.startswith(_TAKEN_FOR_TRUE) or _guards_an_index(op)


def _guards_an_index(op: mlir.Operation) -> bool:
    """Whether the assert stands in a body that reads a tensor at a computed position."""
    parent = op.parent
    if parent is None or not parent.operation.name.startswith("linalg.") or not parent.operation.results:
        return False
    return any(inner.operation.name == "tensor.extract" for inner in op.block.operations)
