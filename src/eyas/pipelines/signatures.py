"""Signatures and the nesting of calls in their three forms: the frontends', the runtime's, and text in a dump."""

from __future__ import annotations

import ast
from typing import Any

from eyas.module.signature import Signature, Symbol, TensorSpec
from eyas.module.trees import CallTree, Tree, flat_results
from eyas.program.program import Argument, EntryPoint
from eyas.program.program import Signature as ImportedSignature


def to_program_signature(signature: ImportedSignature) -> Signature:
    """The signature that the runtime checks; dimensions it cannot express are left open."""

    def dims(values: tuple[int | str, ...]) -> tuple[int | str, ...]:
        return tuple(d if isinstance(d, int) or str(d).isidentifier() else "?" for d in values)

    def spec(argument: Argument) -> TensorSpec:
        return TensorSpec(argument.name, program_dtype(argument.dtype), dims(argument.dims))

    symbols = {
        name: Symbol(low, high) if high is not None else Symbol(low) for name, (low, high) in signature.symbols.items()
    }
    return Signature(tuple(map(spec, signature.arguments)), tuple(map(spec, signature.results)), symbols)


def program_dtype(dtype: str) -> str:
    """What the runtime calls an element type."""
    return "i1" if dtype == "bool" else dtype


def signature_to_text(signature: ImportedSignature) -> str:
    """The signature as a Python literal (whose quotes MLIR need not escape), so that a dump can be resumed."""
    return repr(
        {
            "arguments": [[a.name, a.dtype, list(a.dims)] for a in signature.arguments],
            "results": [[r.name, r.dtype, list(r.dims)] for r in signature.results],
            "symbols": {name: list(bounds) for name, bounds in signature.symbols.items()},
        }
    )


def signature_from_text(text: str) -> ImportedSignature:
    """The inverse of `signature_to_text`."""
    data = ast.literal_eval(text)

    def arguments(rows: list[list[Any]]) -> tuple[Argument, ...]:
        return tuple(Argument(name, dtype, tuple(dims)) for name, dtype, dims in rows)

    symbols = {name: (low, high) for name, (low, high) in data["symbols"].items()}
    return ImportedSignature(arguments(data["arguments"]), arguments(data["results"]), symbols)


def call_tree_of(entry: EntryPoint) -> dict[str, Any]:
    """How the model's own call nests, as plain data; nothing of it for flat positional tensors and flat results."""
    call, out = entry.in_tree, entry.out_tree
    flat_in = not call.keywords.children and all(child.kind == "leaf" for child in call.positional.children)
    flat_out = out.kind == "leaf" or (
        out.kind == "tuple" and len(out.children) > 1 and all(child.kind == "leaf" for child in out.children)
    )
    is_flat = flat_in and flat_out and not entry.mutates
    tree: dict[str, Any] = {} if is_flat else {"in": call.to_json(), "out": out.to_json()}
    if entry.mutates:
        tree["mutates"] = [list(pair) for pair in entry.mutates]
    if entry.narrows:
        tree["narrows"] = True
    return tree


def entry_of(signature: ImportedSignature, tree: dict[str, Any]) -> EntryPoint:
    """The inverse of `call_tree_of`."""
    if not tree:
        names = [[one.name for one in ones] for ones in (signature.arguments, signature.results)]
        return EntryPoint(signature, CallTree.flat(names[0]), flat_results(names[1]))
    mutates = tuple((result, argument) for result, argument in tree.get("mutates", ()))
    return EntryPoint(signature, CallTree.from_json(tree["in"]), Tree.from_json(tree["out"]), mutates)
