"""The branches of an `scf.if` as functions, one of which the host program runs."""

from __future__ import annotations

from torch_mlir import ir as mlir

from eyas.dialects import flow
from eyas.ir.walk import is_tensor, nested_operands
from eyas.passes.dispatch.tie_shapes import tie_branches
from eyas.passes.optimize.outlining import Outlining
from eyas.passes.optimize.speculate_branches import branches


def outline_branches(module: mlir.Module, op: mlir.Operation, name: str) -> bool:
    """Makes functions of both branches, and a call that runs one of them; says whether that was possible.

    Sizes of the results must be known before; those that vary are computed for both branches.
    """
    outlining = Outlining(module, op)
    blocks = branches(op)
    used = [value for block in blocks for view in block.operations for value in nested_operands(view.operation)]
    captured = outlining.captured(used)
    if captured is None or len(blocks) != 2 or not op.results or not all(map(is_tensor, op.results)):
        return False
    tie_branches(op)
    symbols = [f"{name}_{side}" for side in ("then", "else")]
    for symbol, block in zip(symbols, blocks, strict=True):
        *ops, end = (view.operation for view in block.operations)
        outlining.make_function(symbol, captured, ops, list(end.operands))
    call = outlining.declare(name, [op.operands[0], *captured], [value.type for value in op.results])
    call.attributes[flow.BRANCHES] = mlir.ArrayAttr.get([mlir.FlatSymbolRefAttr.get(one) for one in symbols])
    for old, new in zip(op.results, call.results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()
    return True
