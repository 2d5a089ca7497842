"""`note-work`: arithmetic, traffic and ops of each kernel, noted while its loops can still be read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.codegen.common.flops import count_flops, flop_terms
from eyas.codegen.common.summary import describe_ops
from eyas.codegen.common.traffic import count_bytes
from eyas.dialects import codegen, flow
from eyas.ir import Pass
from eyas.ir.walk import find_ops

WORK = "hal.work"
_MOST_OPS = 12


@dataclass(frozen=True)
class NoteWork(Pass):
    """Notes on the module what each kernel does, for the manifest, where `eyas explain` reads it.

    Per kernel: the flops and bytes of one dispatch (-1 where they depend on the call) and how often it is dispatched;
    its ops in words; remarks on its schedule; flops that depend on the call, as products of a factor and push
    constants.

        module {                                       module attributes {hal.work = {f = [
          func.func @f(...) {flow.executable}    =>      array<i64: 4096, 1024, 2>, ["matmul 4x8x16"], [], []]}} {
    """

    name: ClassVar[str] = "note-work"

    def run(self, module: mlir.Module) -> None:
        calls = Counter(op.attributes["callee"].value for op in find_ops(module, "hal.dispatch"))
        kernels = {op.attributes["sym_name"].value: op for op in module.body.operations if flow.is_executable(op)}
        work = {name: _work(op, calls[name]) for name, op in kernels.items()}
        module.operation.attributes[WORK] = mlir.DictAttr.get(work)


def _work(op: mlir.OpView, dispatches: int) -> mlir.ArrayAttr:
    flops, bytes_ = count_flops(op), count_bytes(op)
    terms = (flop_terms(op) or []) if flops is None else []
    counts = [-1 if flops is None else flops, -1 if bytes_ is None else bytes_, dispatches]
    ops = [mlir.StringAttr.get(text) for text in shortened(describe_ops(op), _MOST_OPS)]
    remarks = op.attributes[codegen.REMARKS] if codegen.REMARKS in op.attributes else mlir.ArrayAttr.get([])
    products = [mlir.DenseI64ArrayAttr.get([term.factor, *term.symbols]) for term in terms]
    return mlir.ArrayAttr.get(
        [mlir.DenseI64ArrayAttr.get(counts), mlir.ArrayAttr.get(ops), remarks, mlir.ArrayAttr.get(products)]
    )


def shortened(texts: list[str], most: int) -> list[str]:
    """At most so many, the last of them saying how many were left out."""
    return texts if len(texts) <= most else [*texts[: most - 1], f"... {len(texts) - most + 1} more"]
