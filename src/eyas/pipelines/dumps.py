"""Programs between two phases as text, complete with their attributes: what one process leaves another can take up."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

from torch_mlir import ir as mlir

from eyas.errors import CompileError
from eyas.ir import make_context, parse_module
from eyas.ir.walk import functions
from eyas.passes.dispatch.shapes import SIGNATURE
from eyas.pipelines import weights_file
from eyas.pipelines.request import Phase
from eyas.pipelines.signatures import call_tree_of, entry_of, signature_from_text, signature_to_text
from eyas.program.parameters import Parameter
from eyas.program.program import ImportedProgram, Source

# Of functions (with SIGNATURE) and of the module: a later process resumes with these and the weights.
CALL, SOURCE, SOURCE_DIGEST = "flow.call", "flow.source", "flow.source_digest"
PARAMETERS_FILE = "parameters.safetensors"


def file_name(phase: Phase) -> str:
    """What the program after a phase is called in a folder of dumps."""
    return f"{phase.ordinal + 1}.{phase.value}.mlir"


def note_attributes(program: ImportedProgram) -> None:
    """Writes into the module what a dump of it must say about calls and provenance."""
    module = program.module.operation
    values = [(module, SOURCE, str(program.source)), (module, SOURCE_DIGEST, program.digest)]
    for function in functions(program.module):
        entry = program.entries.get(function.attributes["sym_name"].value)
        if entry is not None:
            values.append((function.operation, SIGNATURE, signature_to_text(entry.signature)))
            values.append((function.operation, CALL, repr(tree) if (tree := call_tree_of(entry)) else ""))
    for op, name, value in values:
        if value:
            op.attributes[name] = mlir.StringAttr.get(value, program.module.context)


def read_dump(text: str | bytes, weights: Mapping[str, Parameter], where: str = "<text>") -> ImportedProgram:
    """The program in a dump of any phase."""
    module = parse_module(text, make_context(), where)
    entries = {}
    try:
        for function in functions(module):
            if SIGNATURE in function.attributes:
                call = ast.literal_eval(_text_of(function, CALL) or "{}")
                name = function.attributes["sym_name"].value
                entries[name] = entry_of(signature_from_text(_text_of(function, SIGNATURE)), call)
    except (ValueError, KeyError, TypeError, SyntaxError, StopIteration) as error:
        raise CompileError(f"{where}: '{SIGNATURE}' or '{CALL}' cannot be read: {error}") from None
    if not entries:
        raise CompileError(
            f"{where} has no '{SIGNATURE}' on a function, so it is not a dump of a phase; write one with"
            " `eyas compile --dump-phases` or `--to`, or compile the file without `--from`"
        )
    first = next(iter(entries.values()))
    call = (first.signature, first.in_tree, first.out_tree)
    source = Source.parse(_text_of(module.operation, SOURCE))
    digest = _text_of(module.operation, SOURCE_DIGEST)
    return ImportedProgram(module, dict(weights), *call, source, None, digest, entries)


def read_dump_file(path: Path, parameters: Path | None = None) -> ImportedProgram:
    """The program in a dump, with the weights of `parameters` or of the file that a dump has beside it."""
    beside = path.parent / PARAMETERS_FILE
    file = parameters or (beside if beside.exists() else None)
    return read_dump(path.read_bytes(), weights_file.read(file) if file else {}, str(path))


def _text_of(op: mlir.Operation | mlir.OpView, name: str) -> str:
    return mlir.StringAttr(op.attributes[name]).value if name in op.attributes else ""
