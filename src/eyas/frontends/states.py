"""State: arguments that a program keeps between calls, each with the result that replaces it.

A frontend imports the state as ordinary arguments and results; here they become `flow.state` and `flow.set_state`, and
leave the signature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from eyas.dialects import flow
from eyas.errors import FrontendError, UsageError
from eyas.ir import mlir
from eyas.ir.walk import entry_block, functions
from eyas.module import trees
from eyas.program.dtypes import short_name
from eyas.program.parameters import Parameter
from eyas.program.program import EntryPoint, ImportedProgram, Signature


def bind_states(module: mlir.Module, arguments: Mapping[int, str], results: Mapping[int, str]) -> None:
    """Makes arguments of @main reads of state, and results new values of it. Positions -> names of variables."""
    (function,) = functions(module)
    block = entry_block(function)
    end = list(block.operations)[-1]
    with module.context:
        with mlir.InsertionPoint.at_block_begin(block), function.location:
            for position, name in arguments.items():
                argument = block.arguments[position]
                state = flow.StateOp(key=mlir.StringAttr.get(name), value=argument.type)
                argument.replace_all_uses_with(state.value)
        with mlir.InsertionPoint(end), end.location:
            for position, name in results.items():
                flow.SetStateOp(end.operands[position], mlir.StringAttr.get(name))
            kept = [value for position, value in enumerate(end.operands) if position not in results]
            mlir.Operation.create("func.return", operands=kept)
        end.operation.erase()
        for position in sorted(arguments, reverse=True):
            block.erase_argument(position)
        type_ = mlir.FunctionType.get([one.type for one in block.arguments], [one.type for one in kept])
        function.attributes["function_type"] = mlir.TypeAttr.get(type_)
        for name in ("arg_attrs", "res_attrs"):
            if name in function.attributes:
                del function.attributes[name]


def initial_values(values: Mapping[str, Any]) -> dict[str, Parameter]:
    """Parameters that hold the first values of state variables."""
    made = {}
    for name, value in values.items():
        key = flow.initial_key(name)
        array = np.asarray(value)
        made[key] = Parameter(key, short_name(array.dtype.name, f"state '{name}'"), array.shape, lambda a=array: a)
    return made


def carry_state(program: ImportedProgram, carry: Mapping[int, int], examples: Sequence[Any]) -> ImportedProgram:
    """Keeps arguments inside: argument i of the call is replaced after each call by result j, for each i: j.

    The example arguments are the first values. The trees under i and j must have the same leaves.
    """
    call, out = program.in_tree, program.out_tree
    branches = out.children if out.kind in ("tuple", "list") else (out,)
    starts = _starts([child.leaf_count for child in call.positional.children])
    result_starts = _starts([child.leaf_count for child in branches])
    arguments: dict[int, str] = {}
    results: dict[int, str] = {}
    values: dict[str, Any] = {}
    for i, j in carry.items():
        if not (isinstance(i, int) and isinstance(j, int) and 0 <= i < len(starts) and 0 <= j < len(branches)):
            raise UsageError(
                f"carry={{{i!r}: {j!r}}}: arguments are 0 to {len(starts) - 1}, results 0 to {len(branches) - 1}"
            )
        before, after = call.positional.children[i], branches[j]
        names = before.paths(call.names[i])
        old = program.signature.arguments[starts[i] : starts[i] + before.leaf_count]
        new = program.signature.results[result_starts[j] : result_starts[j] + after.leaf_count]
        if [(one.dtype, one.dims) for one in old] != [(one.dtype, one.dims) for one in new]:
            raise UsageError(
                f"carry={{{i}: {j}}}: argument {i} is ({', '.join(map(str, old))}), but result {j} that should replace"
                f" it is ({', '.join(map(str, new))})"
            )
        for name, one, leaf in zip(names, old, before.flatten(examples[i], f"argument {i}"), strict=True):
            if not all(isinstance(dim, int) for dim in one.dims):
                raise UsageError(f"carry={{{i}: {j}}}: '{name}' has the dynamic type {one}; state has fixed sizes")
            if not hasattr(leaf, "__array__"):
                raise UsageError(f"carry={{{i}: {j}}}: '{name}' needs an array as its first value, got {leaf!r}")
            values[name] = np.asarray(leaf).astype(np.asarray(leaf).dtype, copy=True)
        arguments |= {starts[i] + position: name for position, name in enumerate(names)}
        results |= {result_starts[j] + position: name for position, name in enumerate(names)}
    bind_states(program.module, arguments, results)
    kept = [index for index in range(len(starts)) if index not in carry]
    positional = trees.tuple_of([call.positional.children[index] for index in kept])
    rest = [branch for index, branch in enumerate(branches) if index not in carry.values()]
    signature = Signature(
        tuple(one for index, one in enumerate(program.signature.arguments) if index not in arguments),
        tuple(one for index, one in enumerate(program.signature.results) if index not in results),
        program.signature.symbols,
    )
    in_tree = trees.CallTree(positional, tuple(call.names[index] for index in kept), call.keywords)
    out_tree = rest[0] if len(rest) == 1 else trees.tuple_of(rest)
    if not rest:
        out_tree = trees.constant(None)
    return replace(
        program,
        parameters={**program.parameters, **initial_values(values)},
        signature=signature,
        in_tree=in_tree,
        out_tree=out_tree,
        entries={"main": EntryPoint(signature, in_tree, out_tree, narrows=program.entries["main"].narrows)},
        _digest=None,
    )


def state_names(program: ImportedProgram) -> set[str]:
    """The state variables of a program."""
    return {key.removesuffix(flow.initial_key("")) for key in program.parameters if key.endswith(flow.initial_key(""))}


def read_as_state(module: mlir.Module, names: set[str]) -> None:
    """Makes parameters that another entry point changes reads of its state."""
    from eyas.ir.walk import find_ops

    for op in find_ops(module, "flow.parameter"):
        if op.key.value in names:
            with mlir.InsertionPoint(op), op.operation.location:
                state = flow.StateOp(key=op.key, value=op.value.type)
            op.value.replace_all_uses_with(state.value)
            op.operation.erase()


def check_same_start(name: str, entry: str, left: Parameter, right: Parameter, equal: bool) -> None:
    """Entry points that share a variable must agree on it."""
    if (left.dtype, left.shape) != (right.dtype, right.shape):
        raise FrontendError(
            f"entry '{entry}': state '{name}' is {right.dtype}{list(right.shape)}, another entry has it as"
            f" {left.dtype}{list(left.shape)}; state is shared by name"
        )
    if not equal:
        raise FrontendError(
            f"entry '{entry}': state '{name}' starts from other values than in another entry; state is shared by name"
        )


def _starts(counts: Sequence[int]) -> list[int]:
    return [sum(counts[:index]) for index in range(len(counts))]
