"""`deduplicate-executables`: equal executables are kept once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.dialects import flow
from eyas.ir import Pass
from eyas.ir.walk import find_ops

_NOTE = rf'{re.escape(flow.NOT_FUSED)} = "[^"]*"'
# Alone in its dictionary, or beside others.
_NOTES = re.compile(rf"(?: attrs =)? *\{{{_NOTE}\}}|, {_NOTE}|{_NOTE}, ")


@dataclass(frozen=True)
class DeduplicateExecutables(Pass):
    """Compares the text of the functions without their names; dispatches of a copy call the first instead."""

    name: ClassVar[str] = "deduplicate-executables"

    def run(self, module: mlir.Module) -> None:
        first: dict[str, str] = {}
        replaced: dict[str, str] = {}
        for function in [op for op in module.body.operations if flow.is_executable(op)]:
            name = function.attributes["sym_name"].value
            # Local: the names of values are otherwise made for the whole module, once for each function.
            text = function.operation.get_asm(assume_verified=True, use_local_scope=True)
            body = _NOTES.sub("", text.replace(name, ""))
            if body in first:
                replaced[name] = first[body]
                function.operation.erase()
            else:
                first[body] = name
        for call in find_ops(module, "func.call"):
            callee = call.attributes["callee"].value
            if callee in replaced:
                call.attributes["callee"] = mlir.FlatSymbolRefAttr.get(replaced[callee])
