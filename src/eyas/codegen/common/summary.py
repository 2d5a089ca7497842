"""A dispatch in words: its ops in order, each with what it makes."""

from __future__ import annotations

from torch_mlir import ir as mlir

from eyas.ir.walk import entry_block

# They only say where numbers are.
_SILENT = ("tensor.empty", "arith.constant", "func.return", "tensor.dim", "arith.index_cast", "linalg.fill")
_MOST_IN_A_BODY = 6


def describe_ops(function: mlir.OpView) -> list[str]:
    """`conv_2d_nhwc_hwcf 1x56x56x64xf32`, `(mulf, addf, maximumf) 1x56x56x64xf32`: one text for each op that works."""
    return [
        f"{_name(view.operation)} {_type(view.operation)}".strip()
        for view in entry_block(function).operations
        if view.operation.name not in _SILENT
    ]


def _name(op: mlir.Operation) -> str:
    if op.name != "linalg.generic":
        return op.name.split(".", 1)[1]
    body = [inner.operation.name for inner in op.regions[0].blocks[0].operations]
    names = list(dict.fromkeys(name.split(".", 1)[1] for name in body if name not in (*_SILENT, "linalg.yield")))
    shown = names[:_MOST_IN_A_BODY] + (["..."] if len(names) > _MOST_IN_A_BODY else [])
    kind = "sum over" if "reduction" in str(op.attributes["iterator_types"]) else ""
    return f"{kind} ({', '.join(shown)})".strip() if shown else "copy"


def _type(op: mlir.Operation) -> str:
    tensors = [value.type for value in op.results if isinstance(value.type, mlir.RankedTensorType)]
    return str(tensors[0]).removeprefix("tensor<").removesuffix(">") if tensors else ""
