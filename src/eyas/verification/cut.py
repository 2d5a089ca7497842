"""Programs made from programs: values inside one as further results, and a piece of one as a program of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from torch_mlir.dialects import func

from eyas.ir import clone_into, mlir
from eyas.ir.walk import defining_op, entry_block, functions, is_private, nested_operands, remap_operands
from eyas.module.trees import CallTree, flat_results
from eyas.program.dtypes import short_name_of_ir
from eyas.program.literals import by_value
from eyas.program.program import Argument, ImportedProgram, Signature

_MAIN_ONLY = "verification works on programs with one entry point"


def main_block(module: mlir.Module) -> mlir.Block:
    """The body of the program's function."""
    found = [one for one in functions(module) if not is_private(one)]  # bodies of loops are private
    assert len(found) == 1, _MAIN_ONLY
    return entry_block(found[0])


def add_results(program: ImportedProgram, choose: Callable[[mlir.Module], Sequence[mlir.Value]]) -> ImportedProgram:
    """A copy of the program that also returns the values that `choose` finds in it."""
    module = clone_into(program.module.operation, program.module.context)
    function, block = functions(module)[0], main_block(module)
    values = list(choose(module))
    end = list(block.operations)[-1]
    with module.context, end.operation.location:
        returned = [*end.operands, *values]
        with mlir.InsertionPoint(end):
            func.ReturnOp(returned)
        end.operation.erase()
        types = mlir.FunctionType.get([one.type for one in block.arguments], [one.type for one in returned])
        function.attributes["function_type"] = mlir.TypeAttr.get(types)
        if "res_attrs" in function.attributes:
            del function.attributes["res_attrs"]
    extra = tuple(_argument(f"tap.{index}", value.type) for index, value in enumerate(values))
    old = program.signature
    signature = Signature(old.arguments, (*old.results, *extra), old.symbols)
    trees = (
        CallTree.flat([one.name for one in signature.arguments]),
        flat_results([one.name for one in signature.results]),
    )
    return ImportedProgram(module, program.parameters, signature, *trees, program.source)


@dataclass(frozen=True)
class Piece:
    """Part of a program as text in the input contract, and the arrays that go in."""

    text: str
    inputs: tuple[np.ndarray, ...]
    ops: int


def cut(
    program: ImportedProgram,
    wanted: Sequence[int],
    given: Mapping[int, np.ndarray],
    arguments: Sequence[np.ndarray],
    inline_weights: bool,
) -> Piece | None:
    """What computes the results `wanted`, from the results `given` (with their values) and the program's arguments.

    Weights become arguments, or constants when `inline_weights`, which is larger but keeps what depends on weights
    alone constant. None when nothing is left to compute.
    """
    block = main_block(program.module)
    returned = list(list(block.operations)[-1].operands)
    known = {returned[index]: array for index, array in given.items()}
    known |= {argument: array for argument, array in zip(block.arguments, arguments, strict=True)}
    targets = [returned[index] for index in wanted]
    if any(target in known for target in targets):
        return None
    needed, entering = _needed(targets, known)
    if not inline_weights:
        weights = [op for op in needed if op.name == "flow.parameter"]
        needed -= set(weights)
        for op in weights:
            known[op.results[0]] = program.parameters[op.attributes["key"].value].array()
            entering.append(op.results[0])
    ordered = [view.operation for view in block.operations if view.operation in needed]
    if not ordered:
        return None
    module = _build(program, ordered, entering, targets)
    inputs = tuple(as_stored(known[value]) for value in entering)
    computing = sum(op.name not in ("flow.parameter", "arith.constant", "tensor.empty") for op in ordered)
    return Piece(module.operation.get_asm(enable_debug_info=True), inputs, computing)


def _needed(
    targets: Sequence[mlir.Value], known: Mapping[mlir.Value, np.ndarray]
) -> tuple[set[mlir.Operation], list[mlir.Value]]:
    """The ops behind the targets, and the known values at which the search ended."""
    needed: set[mlir.Operation] = set()
    entering: dict[mlir.Value, None] = {}
    stack = list(targets)
    while stack:
        value = stack.pop()
        if value in known:
            entering[value] = None
            continue
        op = defining_op(value)
        if op is not None and op not in needed:
            needed.add(op)
            stack += [operand for operand in nested_operands(op) if _is_outside(operand, op)]
    return needed, list(entering)


def _is_outside(value: mlir.Value, op: mlir.Operation) -> bool:
    """Whether an operand found inside an op is made before it, in the same block or as an argument of it."""
    owner = value.owner
    return owner == op.block if isinstance(owner, mlir.Block) else owner.operation.block == op.operation.block


def _build(
    program: ImportedProgram, ops: Sequence[mlir.Operation], entering: Sequence[mlir.Value], targets: list[mlir.Value]
) -> mlir.Module:
    with program.module.context, mlir.Location.unknown():
        module = mlir.Module.create()
        with mlir.InsertionPoint(module.body):
            function = func.FuncOp("main", ([one.type for one in entering], [one.type for one in targets]))
            block = function.add_entry_block()
        values: dict[mlir.Value, mlir.Value] = dict(zip(entering, block.arguments, strict=True))
        with mlir.InsertionPoint(block):
            for op in ops:
                if op.name == "flow.parameter":
                    values[op.results[0]] = _constant(program, op)
                    continue
                copy = op.clone().operation
                remap_operands(copy, values)
                values.update(zip(op.results, copy.results, strict=True))
            func.ReturnOp([values[target] for target in targets])
    return module


def _constant(program: ImportedProgram, op: mlir.Operation) -> mlir.Value:
    type_ = mlir.RankedTensorType(op.results[0].type)
    array = program.parameters[op.attributes["key"].value].array()
    value = by_value(as_stored(array), str(type_.element_type))
    return mlir.Operation.create("arith.constant", [type_], attributes={"value": value}).result


def as_stored(array: np.ndarray) -> np.ndarray:
    """The program knows signless integers, which count as signed when it is read again."""
    array = np.asarray(array, order="C")
    return array.view(array.dtype.name.removeprefix("u")) if array.dtype.kind == "u" else array


def _argument(name: str, type_: mlir.Type) -> Argument:
    shaped = mlir.RankedTensorType(type_)
    dims = tuple("?" if shaped.is_dynamic_dim(index) else size for index, size in enumerate(shaped.shape))
    return Argument(name, short_name_of_ir(str(shaped.element_type), f"'{name}'"), dims)
