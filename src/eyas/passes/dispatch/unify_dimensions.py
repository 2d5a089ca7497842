"""`unify-dimensions`: sizes that the signature says are equal become one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.ir import Pass
from eyas.ir.walk import constant_int, entry_block, find_ops, functions
from eyas.passes.dispatch.shapes import argument_dim, first_with_same_symbol


@dataclass(frozen=True)
class UnifyDimensions(Pass):
    """Replaces `tensor.dim` of an argument by that of the first argument which has the same symbol.

    The runtime checks on entry that dimensions with one symbol are equal. Codegen then sees equal extents as one push
    constant, which is what lets loops of different tensors be shared.

        f(x: f32[batch, seq], mask: i1[batch, seq]):  tensor.dim %mask, 1   =>   tensor.dim %x, 1
    """

    name: ClassVar[str] = "unify-dimensions"

    def run(self, module: mlir.Module) -> None:
        for function in functions(module):
            block = entry_block(function)
            for op in find_ops(function, "tensor.dim"):
                source, index = op.operands
                if isinstance(source.owner, mlir.Block) and source.owner == block:
                    dim = constant_int(index)
                    if dim is not None and first_with_same_symbol(source, dim) != (source, dim):
                        op.result.replace_all_uses_with(argument_dim(source, dim))
