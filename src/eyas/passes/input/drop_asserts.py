"""`drop-asserts`: shape checks that importers add leave the program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eyas.ir import Pass, mlir

_GLOBALS = ("ml_program.global", "ml_program.global_load", "ml_program.global_store", "ml_program.global_load_const")


@dataclass(frozen=True)
class DropAsserts(Pass):
    """Removes `cf.assert` and the random-seed global when nothing reads it.

    The checks guard against broadcasting of sizes that disagree, which the program's signature checks on entry; a
    program of tensors has no way to stop half-way.

        cf.assert %same, "mismatched size for broadcast"
        ml_program.global private mutable @global_seed(dense<0> : tensor<i64>) : tensor<i64>
    are erased.
    """

    name: ClassVar[str] = "drop-asserts"

    def run(self, module: mlir.Module) -> None:
        asserts: list[mlir.Operation] = []
        state: dict[str, list[mlir.Operation]] = {name: [] for name in _GLOBALS}

        def visit(op: mlir.Operation) -> mlir.WalkResult:
            if op.name == "cf.assert":
                asserts.append(op)
            elif op.name in state:
                state[op.name].append(op)
            return mlir.WalkResult.ADVANCE

        module.operation.walk(visit)
        for op in asserts:
            op.erase()
        used = any(state[name] for name in _GLOBALS[1:])
        if not used:
            for op in state["ml_program.global"]:
                op.erase()
