"""What each kernel does and where each dispatch comes from, for the manifest: `eyas explain` reads it there."""

from __future__ import annotations

from collections import Counter
from typing import Any

from torch_mlir import ir as mlir

from eyas.codegen.common.flops import count_flops, flop_terms
from eyas.codegen.common.summary import describe_ops
from eyas.codegen.common.traffic import count_bytes
from eyas.dialects import codegen, flow
from eyas.ir.locations import source_names
from eyas.ir.walk import find_ops, functions

# Of the module: kernel -> [[flops and bytes of one dispatch, -1 where they depend on the call; how often it is
# dispatched], its ops in words, remarks on its schedule, flops that depend on the call as products].
WORK = "hal.work"
_MOST_OPS, _MOST_SOURCES = 12, 8


def note_work(module: mlir.Module) -> None:
    """Notes the work of each kernel while its loops can still be read."""
    calls = Counter(op.attributes["callee"].value for op in find_ops(module, "hal.dispatch"))
    with module.context:
        work = {}
        for op in filter(flow.is_executable, module.body.operations):
            name = op.attributes["sym_name"].value
            flops, bytes_ = count_flops(op), count_bytes(op)
            terms = (flop_terms(op) or []) if flops is None else []
            counts = [-1 if flops is None else flops, -1 if bytes_ is None else bytes_, calls[name]]
            ops = [mlir.StringAttr.get(text) for text in _shortened(describe_ops(op), _MOST_OPS)]
            remarks = op.attributes[codegen.REMARKS] if codegen.REMARKS in op.attributes else mlir.ArrayAttr.get([])
            products = [mlir.DenseI64ArrayAttr.get([term.factor, *term.symbols]) for term in terms]
            work[name] = mlir.ArrayAttr.get(
                [mlir.DenseI64ArrayAttr.get(counts), mlir.ArrayAttr.get(ops), remarks, mlir.ArrayAttr.get(products)]
            )
        module.operation.attributes[WORK] = mlir.DictAttr.get(work)


def work_of(module: mlir.Module) -> dict[str, dict[str, Any]]:
    """What `note_work` noted, by kernel; a dump of an earlier compiler may have nothing."""
    attributes = module.operation.attributes
    counted = mlir.DictAttr(attributes[WORK]) if WORK in attributes else {}
    work = {}
    for executable in find_ops(module, "hal.executable"):
        for name in (one["name"].value for one in executable.exports):
            noted = mlir.ArrayAttr(counted[name]) if name in counted else ((-1, -1, 0), (), (), ())
            numbers, ops, remarks, products = noted
            flops, bytes_, dispatches = list(numbers)
            work[name] = {
                "flops": flops if flops >= 0 else None,
                "bytes": bytes_ if bytes_ >= 0 else None,
                "dispatches": dispatches,
                "ops": [mlir.StringAttr(op).value for op in ops],
                "remarks": [mlir.StringAttr(remark).value for remark in remarks],
            }
            if len(products):
                # Each a factor and the ordinals of push constants to multiply it with.
                work[name]["flop_terms"] = [list(mlir.DenseI64ArrayAttr(one)) for one in products]
    return work


def sources_of(module: mlir.Module) -> dict[str, list[list[str]]]:
    """For each entry function, in the order of dispatch, the names that the model has for what a dispatch computes."""
    return {
        function.attributes["sym_name"].value: [
            _shortened(source_names(op.operation.location), _MOST_SOURCES)
            for op in find_ops(function, "vm.cmd_dispatch")
        ]
        for function in functions(module)
    }


def _shortened(texts: list[str], most: int) -> list[str]:
    return texts if len(texts) <= most else [*texts[: most - 1], f"... {len(texts) - most + 1} more"]
