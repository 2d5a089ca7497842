"""Fragments of bf16, which the GPU dialect does not have: they are f16 until the kernel is a `spirv.module`."""

from __future__ import annotations

import re

from torch_mlir import ir as mlir

_HALVES = re.compile(r"(coopmatrix<\d+x\d+x)f16,")


def hold_brain_floats(made: mlir.OpView) -> None:
    """Makes every fragment of f16 one of bf16, in variables and loops too. They are only loaded and multiplied, so
    nothing else changes."""

    def visit(op: mlir.Operation) -> mlir.WalkResult:
        for value in [
            *op.results,
            *(one for region in op.regions for block in region.blocks for one in block.arguments),
        ]:
            changed, count = _HALVES.subn(r"\1bf16,", str(value.type))
            if count:
                value.set_type(mlir.Type.parse(changed))
        return mlir.WalkResult.ADVANCE

    with made.context:
        made.operation.walk(visit)
