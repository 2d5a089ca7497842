"""Fragments of bf16, which the GPU dialect does not have: they are f16 until the kernel is a `spirv.module`."""

from __future__ import annotations

from torch_mlir import ir as mlir

_MATRIX = "!spirv.coopmatrix<"


def hold_brain_floats(made: mlir.OpView) -> None:
    """Makes every fragment of f16 one of bf16. They are only loaded and multiplied, so nothing else changes."""

    def visit(op: mlir.Operation) -> mlir.WalkResult:
        for result in op.results:
            text = str(result.type)
            if text.startswith(_MATRIX) and "xf16," in text:
                result.set_type(mlir.Type.parse(text.replace("xf16,", "xbf16,")))
        return mlir.WalkResult.ADVANCE

    with made.context:
        made.operation.walk(visit)
