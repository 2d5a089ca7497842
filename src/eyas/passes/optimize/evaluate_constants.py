"""`evaluate-constants`: what depends on weights alone is computed once, at compile time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from torch_mlir import ir as mlir
from torch_mlir.dialects import func

from eyas.dialects import flow
from eyas.ir import Pass
from eyas.ir.transforms import is_matrix_of_transforms
from eyas.ir.values import element_bytes
from eyas.ir.walk import defining_op, entry_block, functions, is_tensor, nested_operands, remap_operands
from eyas.passes.dispatch.grouping import Role, role_of
from eyas.program.dtypes import STORAGE, short_name
from eyas.program.literals import array_of
from eyas.program.parameters import ParameterStore, on_disk
from eyas.program.program import Argument, Signature

# Ops that move no data; hoisting one alone would only store the weight twice.
_FREE = ("tensor.expand_shape", "tensor.collapse_shape", "tensor.reshape", "tensor.cast")
_SOURCES = ("flow.parameter", "arith.constant")
# A result may be larger than what it is made from by this much.
_MAX_GROWTH_BYTES = 1 << 20


@dataclass(frozen=True)
class ConstantPart:
    """What is computed from weights alone, as a program as the optimize phase leaves it. Its arguments are the weights
    with these keys, so that they are read where they lie instead of being copied into a module."""

    module: mlir.Module
    signature: Signature
    keys: tuple[str, ...]


Evaluate = Callable[[ConstantPart, Sequence[np.ndarray]], list[np.ndarray]]
"""Compiles a constant part, calls it with the values of its weights, and returns its results."""


@dataclass(frozen=True)
class EvaluateConstants(Pass):
    """Has the constant part of the program compiled for this machine, with Eyas itself, and run.

    A value is constant when all it is computed from is; the ones that the rest of the program uses become parameters.
    A weight whose dimensions are only permuted stays where it is, seen through other strides.
    Fills and splats are left alone, because making them again is cheaper than storing them.

        %0 = flow.parameter "fc.weight"
        %1 = linalg.transpose %0            =>      %1 = flow.parameter "fc.weight#transpose"
        %2 = linalg.matmul %arg0, %1                %2 = linalg.matmul %arg0, %1
    """

    name: ClassVar[str] = "evaluate-constants"
    parameters: ParameterStore = field(default_factory=ParameterStore, compare=False, repr=False)
    evaluate: Evaluate | None = field(default=None, compare=False, repr=False)
    """Without it, only what no arithmetic is needed for is done."""

    def run(self, module: mlir.Module) -> None:
        for function in functions(module):
            block = entry_block(function)
            self._store_tables(block)
            constant = constant_ops(block)
            leaves = _leaves(block, constant)
            views = [(leaf, view) for leaf in leaves if (view := moved(leaf, self.parameters)) is not None]
            self._replace([leaf for leaf, _ in views], [view for _, view in views])
            leaves = _leaves(block, constant_ops(block)) if views else leaves
            if leaves and self.evaluate is not None:
                part = _constant_part(leaves)
                weights = [_as_stored(self.parameters[key].array()) for key in part.keys]
                self._replace(leaves, on_disk(self.evaluate(part, weights)))

    def _store_tables(self, block: mlir.Block) -> None:
        """Tables still in the IR become parameters too, so that dispatches which differ only in them are equal."""
        tables = [view.operation for view in block.operations if _is_table(view.operation)]
        tables = [op for op in tables if not is_matrix_of_transforms(op)]  # code generation writes them out
        for number, op in enumerate(tables):
            key = f"constant_{number}"
            while key in self.parameters:
                key += "_"
            self.parameters.add(key, array_of(op.attributes["value"]))
            with mlir.InsertionPoint(op), op.location:
                parameter = flow.ParameterOp(mlir.StringAttr.get(key), op.results[0].type)
            op.results[0].replace_all_uses_with(parameter.value)
            op.erase()

    def _replace(self, leaves: list[mlir.Value], arrays: list[np.ndarray]) -> None:
        for value, array in zip(leaves, arrays, strict=True):
            key = self._fresh_key(value)
            self.parameters.add(key, array)
            op = defining_op(value)
            assert op is not None
            with mlir.InsertionPoint.after(op), op.location:
                parameter = flow.ParameterOp(mlir.StringAttr.get(key), value.type)
            value.replace_all_uses_with(parameter.value)

    def _fresh_key(self, value: mlir.Value) -> str:
        """The name of the weight that it is made from, and what was done last."""
        op = defining_op(value)
        assert op is not None
        source = _first_parameter(op) or "constant"
        return self.parameters.free_name(f"{source.split('#')[0]}#{op.name.split('.')[1]}")


def moved(value: mlir.Value, parameters: Mapping[str, Any]) -> np.ndarray | None:
    """A view of a weight that this value is, with its dimensions in another order; None when it is anything else."""
    op = defining_op(value)
    if op is None:
        return None
    if op.name == "flow.parameter":
        key = op.attributes["key"].value
        if key not in parameters:
            return None
        array = parameters[key].array()
        plain = array.dtype.kind in "fiub" and array.dtype.isbuiltin  # small types lie several to a byte
        return array if plain and list(array.shape) == list(mlir.RankedTensorType(value.type).shape) else None
    if op.name != "linalg.transpose":
        return None
    source = moved(op.operands[0], parameters)
    return None if source is None else source.transpose(list(op.attributes["permutation"]))


def constant_ops(block: mlir.Block) -> set[mlir.Operation]:
    """Ops that depend on parameters and constants only, and on at least one parameter, table or function's value.

    Sines of positions, as in rotary embeddings and Fourier transforms, need no weight; computing them costs more than
    reading them.
    """
    constant: set[mlir.Operation] = set()
    weighty: set[mlir.Operation] = set()
    for view in block.operations:
        op = view.operation
        if op.name in _SOURCES or op.name == "tensor.empty":
            if not op.operands:
                constant.add(op)
            if op.name == "flow.parameter" or _is_table(op):
                weighty.add(op)
            continue
        if op.name.startswith(("flow.", "func.", "cf.", "scf.")) or not op.results:
            continue
        if not all(mlir.RankedTensorType(one.type).has_static_shape for one in op.results if is_tensor(one)):
            continue  # its size would be one of the data
        owners = [_owner_in(value, block) for value in nested_operands(op)]
        if all(owner is _INSIDE or owner in constant for owner in owners):
            constant.add(op)
            if any(owner in weighty for owner in owners) or _computes_functions(op):
                weighty.add(op)
    return {op for op in constant if op in weighty or op.name in (*_SOURCES, "tensor.empty", "linalg.fill")}


def _computes_functions(op: mlir.Operation) -> bool:
    """Whether it computes sines, powers and the like of each element of a tensor."""
    if not op.name.startswith("linalg.") or not op.regions:
        return False
    shapes = [mlir.RankedTensorType(result.type) for result in op.results]
    if not all(shape.has_static_shape and math.prod(shape.shape) > 1 for shape in shapes):
        return False
    return any(inner.operation.name.startswith("math.") for inner in op.regions[0].blocks[0].operations)


_INSIDE = object()


def _owner_in(value: mlir.Value, block: mlir.Block) -> object:
    """The op of this block that makes a value; a mark for values made inside a nested region; None for arguments."""
    owner = value.owner
    if isinstance(owner, mlir.Block):
        return None if owner == block else _INSIDE
    return owner.operation if owner.operation.block == block else _INSIDE


def _is_table(op: mlir.Operation) -> bool:
    if op.name != "arith.constant" or not is_tensor(op.results[0]):
        return False
    attribute = op.attributes["value"]
    return not (isinstance(attribute, mlir.DenseElementsAttr) and attribute.is_splat)


def _leaves(block: mlir.Block, constant: set[mlir.Operation]) -> list[mlir.Value]:
    """Constant values that other ops use and that are worth storing."""
    found = []
    for view in block.operations:
        op = view.operation
        if op not in constant or op.name in (*_SOURCES, *_FREE, "tensor.empty", "linalg.fill"):
            continue
        for result in op.results:
            users = [use.owner.operation for use in result.uses]
            if is_tensor(result) and any(_is_real_user(user, constant) for user in users) and _is_worth_it(op):
                found.append(result)
    return found


def _is_real_user(user: mlir.Operation, constant: set[mlir.Operation]) -> bool:
    """Whether a value leaves the constant part here; a free reshape and a repetition only pass it on."""
    if user not in constant:
        return True
    return (user.name in _FREE or role_of(user) is Role.CLONED) and any(
        _is_real_user(use.owner.operation, constant) for result in user.results for use in result.uses
    )


def _is_worth_it(op: mlir.Operation) -> bool:
    if role_of(op) is Role.CLONED:
        return False  # a repetition: whoever uses it reads the original
    made = sum(_bytes(result.type) for result in op.results)
    operands = dict.fromkeys(operand for operand in nested_operands(op) if is_tensor(operand))
    owners = [(operand.type, defining_op(operand)) for operand in operands]
    read = sum(
        _bytes(type_) for type_, owner in owners if owner is None or owner.name not in ("tensor.empty", "linalg.fill")
    )
    return made <= read + _MAX_GROWTH_BYTES


def _bytes(type_: mlir.Type) -> int:
    shaped = mlir.RankedTensorType(type_)
    return math.prod(shaped.shape) * element_bytes(shaped.element_type)


def _first_parameter(op: mlir.Operation) -> str | None:
    stack, seen = [op], set()
    while stack:
        current = stack.pop(0)
        if current.name == "flow.parameter":
            return current.attributes["key"].value
        if current in seen:
            continue
        seen.add(current)
        stack += [owner for value in nested_operands(current) if (owner := defining_op(value)) is not None]
    return None


def _constant_part(leaves: list[mlir.Value]) -> ConstantPart:
    """Clones what the leaves need into a program of its own."""
    original = defining_op(leaves[0])
    assert original is not None
    needed = _needed(leaves)
    ordered = [view.operation for view in original.block.operations if view.operation in needed]
    weights = [op for op in ordered if op.name == "flow.parameter"]
    keys = list(dict.fromkeys(op.attributes["key"].value for op in weights))
    types = {op.attributes["key"].value: op.results[0].type for op in weights}

    module = mlir.Module.create(mlir.Location.unknown())
    with mlir.InsertionPoint(module.body), mlir.Location.unknown():
        function = func.FuncOp("main", ([types[key] for key in keys], [leaf.type for leaf in leaves]))
        block = function.add_entry_block()
    by_key = dict(zip(keys, block.arguments, strict=True))
    clones: dict[mlir.Value, mlir.Value] = {op.results[0]: by_key[op.attributes["key"].value] for op in weights}
    with mlir.InsertionPoint(block):
        for op in ordered:
            if op.name != "flow.parameter":
                _clone(op, clones)
        func.ReturnOp([clones[leaf] for leaf in leaves], loc=mlir.Location.unknown())
    arguments = tuple(_argument(key, types[key]) for key in keys)
    results = tuple(_argument(f"r{index}", leaf.type) for index, leaf in enumerate(leaves))
    return ConstantPart(module, Signature(arguments, results), tuple(keys))


def _argument(name: str, type_: mlir.Type) -> Argument:
    shaped = mlir.RankedTensorType(type_)
    text = str(shaped.element_type)
    return Argument(name, {"complex<f32>": "c64", "complex<f64>": "c128"}.get(text, text), tuple(shaped.shape))


def _as_stored(array: np.ndarray) -> np.ndarray:
    """The program knows signless integers only; unsigned weights and float8 are passed by their bits."""
    if short_name(array.dtype.name, "a weight") in STORAGE:
        return array.view(np.int8)
    return array.view(array.dtype.name.removeprefix("u")) if array.dtype.kind == "u" else array


def _needed(leaves: list[mlir.Value]) -> set[mlir.Operation]:
    needed: set[mlir.Operation] = set()
    stack = [defining_op(leaf) for leaf in leaves]
    while stack:
        op = stack.pop()
        if op is None or op in needed:
            continue
        needed.add(op)
        stack += [defining_op(value) for value in nested_operands(op)]
    return needed


def _clone(op: mlir.Operation, clones: dict[mlir.Value, mlir.Value]) -> None:
    copy = op.clone().operation
    remap_operands(copy, clones)
    clones.update(zip(op.results, copy.results, strict=True))
