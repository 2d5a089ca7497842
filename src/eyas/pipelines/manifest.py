"""`manifest.json`: provenance, and what each kernel does, for `eyas inspect` and `eyas explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_mlir import ir as mlir

from eyas import __version__
from eyas.dialects import codegen
from eyas.ir.locations import source_names
from eyas.ir.walk import find_ops, functions
from eyas.passes.codegen.note_work import WORK, shortened
from eyas.passes.schedule.plan_memory import ARENA_BYTES, LOWER_BOUND_BYTES
from eyas.pipelines.signatures import call_tree_of

if TYPE_CHECKING:
    from eyas.pipelines.compilation import Compilation

_MOST_SOURCES = 8


def manifest_of(compilation: Compilation) -> dict[str, Any]:
    """Provenance and statistics. The arena is that of the entry point which needs the most."""
    program, module = compilation.program, compilation.module
    memory = max(map(_arena, functions(module)), key=lambda one: one.get("arena_bytes", 0))
    work = work_of(module)
    flops = [None if one["flops"] is None else one["flops"] * one["dispatches"] for one in work.values()]
    kernels = [
        {
            "name": one["name"].value,
            **work[one["name"].value],
            "strategy": one["strategy"].value,
            "knobs": one["knobs"].value,
            "rejected": [mlir.StringAttr(reason).value for reason in one["rejected"]],
            **({"needs": mlir.StringAttr(one["needs"]).value.split(",")} if "needs" in one else {}),
            **({"tuned": mlir.StringAttr(one["tuned"]).value} if "tuned" in one else {}),
            **({"given_up": mlir.StringAttr(one["given_up"]).value} if "given_up" in one else {}),
        }
        for executable in find_ops(module, "hal.executable")
        for one in executable.exports
    ]
    calls = {name: tree for name, entry in program.entries.items() if (tree := call_tree_of(entry))}
    return {
        "provenance": {
            "compiler": f"eyas {__version__}",
            "target": str(compilation.options.target),
            "disabled": list(compilation.options.disable),
            "precision": compilation.options.precision,
            "tuning": tuning_of(module),
            "source": str(program.source),
            "source_digest": program.digest,
        },
        "memory": memory,
        "flops": None if None in flops else sum(one for one in flops if one is not None),
        "kernels": kernels,
        "sources": sources_of(module),
        **({"calls": calls} if calls else {}),
    }


def work_of(module: mlir.Module) -> dict[str, dict[str, Any]]:
    """What `note-work` noted, by kernel; a dump of an earlier compiler may have nothing."""
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


def tuning_of(module: mlir.Module) -> list[dict[str, Any]]:
    """What became of each tuning spec, as `apply-tuning-spec` noted it."""
    attributes = module.operation.attributes
    specs = mlir.ArrayAttr(attributes[codegen.TUNING]) if codegen.TUNING in attributes else ()
    return [{one.name: _plain(one.attr) for one in mlir.DictAttr(spec)} for spec in specs]


def _plain(attribute: mlir.Attribute) -> Any:
    if isinstance(attribute, mlir.DictAttr):
        return {one.name: _plain(one.attr) for one in attribute}
    if isinstance(attribute, mlir.ArrayAttr):
        return [_plain(one) for one in attribute]
    return attribute.value


def sources_of(module: mlir.Module) -> dict[str, list[list[str]]]:
    """For each entry function, in the order of dispatch, the names that the model has for what a dispatch computes."""
    return {
        function.attributes["sym_name"].value: [
            shortened(source_names(op.operation.location), _MOST_SOURCES)
            for op in find_ops(function, "vm.cmd_dispatch")
        ]
        for function in functions(module)
    }


def _arena(function: mlir.OpView) -> dict[str, int]:
    keys = ((ARENA_BYTES, "arena_bytes"), (LOWER_BOUND_BYTES, "arena_lower_bound_bytes"))
    return {name: function.attributes[key].value for key, name in keys if key in function.attributes}
