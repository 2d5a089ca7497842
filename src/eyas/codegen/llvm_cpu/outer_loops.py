"""Loops around loops stay loops.

LLVM unrolls a short loop before it looks at the loops inside: of `for 16 { for n { ... } }` it makes 16 loops, each of
which is then vectorised and unrolled for itself. That takes twenty times as long to compile and gains nothing, since
the time is spent in the inner loop. Where the inner loop is short, too, both are unrolled, as in windows of 3 x 3.
"""

from __future__ import annotations

from torch_mlir import ir as mlir

from eyas.ir.walk import constant_int, find_ops

_UNROLLED_TRIPS = 8
"""An inner loop of so many trips is taken to vanish, being unrolled itself."""
_KEEP = "#llvm.loop_annotation<unroll = <disable = true>>"
_CARRIED, _OWN = "llvm.loop_annotation", "loop_annotation"
"""The annotation's name on what is lowered, which upstream carries along, and on a branch of the LLVM dialect."""


def keep_outer_loops(module: mlir.Module) -> None:
    """Notes on loops around loops that they are not to be unrolled."""
    for view in find_ops(module, "scf.for", "scf.while"):
        if _stays(view.operation):
            _keep_around(view.operation)


def annotate_branches(module: mlir.Module) -> None:
    """Gives the notes to LLVM, as its own attributes of the branches that the loops became."""
    for view in find_ops(module, "llvm.br", "llvm.cond_br"):
        attributes = view.operation.attributes
        if _CARRIED in attributes:
            attributes[_OWN] = attributes[_CARRIED]
            del attributes[_CARRIED]


def _keep_around(loop: mlir.Operation) -> None:
    outer = loop.parent
    while outer is not None and outer.name != "func.func":
        if outer.name == "scf.for":
            if _CARRIED in outer.attributes:
                return
            outer.attributes[_CARRIED] = mlir.Attribute.parse(_KEEP)
        outer = outer.parent


def _stays(loop: mlir.Operation) -> bool:
    if loop.name == "scf.while":
        return True
    low, high, step = (constant_int(value) for value in list(loop.operands)[:3])
    if low is None or high is None or not step:
        return True
    return (high - low + step - 1) // step > _UNROLLED_TRIPS
