"""`lower-precision`: programs in f32 multiply and remember in f16 or bf16, and add up in f32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, linalg, tensor

from eyas.dialects import flow
from eyas.errors import TargetError
from eyas.ir.structured import copy_body, element_type, elementwise, empty_like, generic, permutation_of, transpose
from eyas.ir.values import i64_attribute
from eyas.ir.walk import defining_op, entry_block, find_ops, functions
from eyas.passes.dispatch.grouping import Role, indexing_maps, role_of
from eyas.passes.optimize.half_values import (
    LARGEST,
    HalfValues,
    factors_of,
    group_of,
    is_product,
    moved_operands,
    pad_value,
)
from eyas.passes.optimize.narrow_contractions import rebuild_view
from eyas.passes.targeted import TargetedPass
from eyas.targets.gpu import GpuTarget

NEEDS = {"f16": ("f16", "storage16"), "bf16": ("i16", "storage16")}
"""What a GPU must have, by the type that is asked for; bf16 is computed with as bits and in f32."""


@dataclass(frozen=True)
class LowerPrecision(TargetedPass):
    """Factors of products and what lives while a product runs are rounded to `to`; all arithmetic stays in f32.

    A narrow tensor is widened in the body of the op that reads it, so that softmax, norms and the elementwise ops of a
    dispatch compute as they did, on half the bytes. Arguments, results and states keep their types. What is added to
    hide scores (-1e9, or the lowest f32) stays in f32; as a factor it becomes the lowest f16, never an infinity.

        %2 = linalg.matmul ins(%0, %1 : f32, f32) outs(f32)       %a = linalg.generic (truncf) %0 : f32 -> f16
        %3 = linalg.generic (maxf) %2 : f32                  =>   %b = linalg.generic (truncf) %1 : f32 -> f16
        %5 = linalg.matmul ins(%3, %4 : f32, f32)                 %2 = linalg.matmul ins(%a, %b : f16, f16) outs(f32)
                                                                  %3 = linalg.generic (maxf) %2 : f32
                                                                  %c = linalg.generic (truncf) %3 : f32 -> f16
    """

    name: ClassVar[str] = "lower-precision"
    to: str = "f16"

    def run(self, module: mlir.Module) -> None:
        check_precision(self.target, self.to)
        narrow = mlir.Type.parse(self.to)
        for function in functions(module):
            block = entry_block(function)
            _Narrowing(HalfValues.of(block), narrow).run(block)


def check_precision(target: object, to: str) -> None:
    """Refuses a GPU that cannot hold a type."""
    missing = [name for name in NEEDS[to] if isinstance(target, GpuTarget) and not target.has(name)]
    if missing:
        raise TargetError(
            f"precision {to} needs {' and '.join(repr(name) for name in missing)}, which target '{target}' does not"
            " have; compile without a precision, or for a target that has it"
        )


class _Narrowing:
    """A block on its way: `halves` has the narrow form of values so far."""

    def __init__(self, found: HalfValues, narrow: mlir.Type) -> None:
        self.found, self.narrow = found, narrow
        self.halves: dict[mlir.Value, mlir.Value] = {}
        self.wides: dict[mlir.Value, mlir.Value] = {}

    def run(self, block: mlir.Block) -> None:
        ops = [view.operation for view in block.operations]
        for argument in block.arguments:
            if argument in self.found.values:
                with mlir.InsertionPoint.at_block_begin(block), mlir.Location.unknown():
                    self.halves[argument] = self._rounded(argument, None)
        for op in ops:
            made = self._read(op)
            for value in made.results:
                if value in self.found.values and value not in self.halves:
                    with mlir.InsertionPoint.after(made), made.location:
                        self.halves[value] = self._rounded(value, group_of(made))

    def _read(self, op: mlir.Operation) -> mlir.Operation:
        """Has an op read narrow tensors where there are some; returns the op that makes its results now."""
        self._read_at_positions(op)
        read = [i for i, value in enumerate(op.operands) if value in self.halves]
        if not read or (role_of(op) is Role.HOST and op.name != "flow.reshape"):
            return op
        sources = moved_operands(op)
        if sources is not None and all(source in self.halves for source in sources):
            with mlir.InsertionPoint(op), op.location:
                self.halves[op.results[0]] = self._move(op, [self.halves[source] for source in sources])
            return op
        if is_product(op) and op.name != "linalg.generic":
            return self._multiply(op, [i for i in read if i in factors_of(op)])
        inputs = len(op.operands) - len(op.results)
        for position in read:
            value = op.operands[position]
            if not is_product(op) and self._stays_wide(value, op):
                continue
            if op.name == "linalg.generic" and position < inputs:
                self._widen_argument(op, position)
            else:
                op.operands[position] = self._widened(value)
        return op

    def _stays_wide(self, value: mlir.Value, user: mlir.Operation) -> bool:
        """Whether nothing is won by rounding a value: it does not fit, or is there already, or stays with the workgroup
        that makes it."""
        if value in self.found.large or defining_op(value) is None:
            return True
        group = group_of(user)
        return group is not None and group_of(defining_op(value)) == group

    def _widen_argument(self, op: mlir.Operation, position: int) -> None:
        body = op.regions[0].blocks[0]
        argument = body.arguments[position]
        op.operands[position] = self.halves[op.operands[position]]
        argument.set_type(self.narrow)
        with mlir.InsertionPoint.at_block_begin(body), op.location:
            wide = arith.ExtFOp(mlir.F32Type.get(), argument)
        argument.replace_all_uses_except(wide.result, wide.operation)

    def _multiply(self, op: mlir.Operation, read: list[int]) -> mlir.Operation:
        """A named product; it widens its factors itself."""
        operands = [self.halves[value] if i in read else value for i, value in enumerate(op.operands)]
        attributes = {name: op.attributes[name] for name in op.attributes}
        with mlir.InsertionPoint(op), op.location:
            new = mlir.Operation.create(op.name, [op.results[0].type], operands, attributes, regions=1)
            linalg.fill_builtin_region(new)
        old = op.results[0]
        old.replace_all_uses_with(new.results[0])
        if old in self.found.values:
            self.found.values.remove(old)
            self.found.values.add(new.results[0])
        op.erase()
        return new

    def _read_at_positions(self, op: mlir.Operation) -> None:
        """Elements of a table that are read at computed positions are widened one by one."""
        for extract in find_ops(op, "tensor.extract") if op.regions else ():
            if (half := self.halves.get(extract.operands[0])) is not None:
                with mlir.InsertionPoint(extract), extract.location:
                    element = tensor.ExtractOp(half, list(extract.operands)[1:])
                    wide = arith.ExtFOp(mlir.F32Type.get(), element.result).result
                if flow.WITHIN in extract.attributes:
                    element.operation.attributes[flow.WITHIN] = extract.attributes[flow.WITHIN]
                extract.results[0].replace_all_uses_with(wide)
                extract.operation.erase()

    def _move(self, op: mlir.Operation, sources: list[mlir.Value]) -> mlir.Value:
        """The same move of narrow tensors."""
        (source, *_) = sources
        if op.name == "tensor.concat":
            type_ = mlir.RankedTensorType.get(mlir.RankedTensorType(op.results[0].type).shape, self.narrow)
            attributes = {name: op.attributes[name] for name in op.attributes}
            return mlir.Operation.create(op.name, [type_], sources, attributes).results[0]
        if op.name == "linalg.transpose":
            moved = transpose(source, permutation_of(op))
        elif op.name == "tensor.pad":
            moved = self._pad(op, source)
        elif op.name in ("linalg.generic", "linalg.broadcast"):
            moved = self._copy(op, source)
        else:
            moved = rebuild_view(op, source)
        return _in_group(moved, group_of(op))

    def _copy(self, op: mlir.Operation, source: mlir.Value) -> mlir.Value:
        shape = list(mlir.RankedTensorType(op.results[0].type).shape)
        init = empty_like(op.operands[1], shape, range(len(shape)), self.narrow)
        maps = indexing_maps(op)
        assert maps is not None
        new = generic([source], [init], maps, ["parallel"] * maps[0].n_dims)
        copy_body(op, new)
        return new.results[0]

    def _pad(self, op: mlir.Operation, source: mlir.Value) -> mlir.Value:
        number = pad_value(op)
        assert number is not None, "it is a move"
        scalar = arith.ConstantOp(self.narrow, mlir.FloatAttr.get(self.narrow, self._in_range(number))).result
        shape = list(mlir.RankedTensorType(op.results[0].type).shape)
        result = mlir.RankedTensorType.get(shape, self.narrow)
        attributes = {name: op.attributes[name] for name in op.attributes}
        new = mlir.Operation.create(op.name, [result], [source, *list(op.operands)[1:]], attributes, regions=1)
        block = new.regions[0].blocks.append(*[mlir.IndexType.get()] * len(shape), arg_locs=[op.location] * len(shape))
        with mlir.InsertionPoint(block):
            mlir.Operation.create("tensor.yield", operands=[scalar])
        return new.results[0]

    def _in_range(self, number: float) -> float:
        if abs(number) == float("inf") or not isinstance(self.narrow, mlir.F16Type):
            return number
        return max(-LARGEST, min(LARGEST, number))

    def _rounded(self, value: mlir.Value, group: int | None) -> mlir.Value:
        """A narrow copy of a value that is where it was made."""
        clamp = value in self.found.large and isinstance(self.narrow, mlir.F16Type)

        def scalar(element: mlir.Value) -> mlir.Value:
            if clamp:
                lowest, highest = (arith.ConstantOp(element.type, bound).result for bound in (-LARGEST, LARGEST))
                element = arith.MinimumFOp(arith.MaximumFOp(element, lowest).result, highest).result
            return arith.TruncFOp(self.narrow, element).result

        return _in_group(elementwise(value, self.narrow, scalar), group)

    def _widened(self, value: mlir.Value) -> mlir.Value:
        """What an op reads that takes nothing but f32."""
        if value not in self.wides:
            half = self.halves[value]
            made = defining_op(half)
            assert made is not None, "a rounded value has been made"
            scalar: Callable[[mlir.Value], mlir.Value] = lambda one: arith.ExtFOp(element_type(value), one).result  # noqa: E731
            with mlir.InsertionPoint.after(made), made.location:
                self.wides[value] = elementwise(half, element_type(value), scalar)
        return self.wides[value]


def _in_group(value: mlir.Value, group: int | None) -> mlir.Value:
    op = defining_op(value)
    if group is not None and op is not None and op.name != "flow.reshape":
        op.attributes[flow.GROUP] = i64_attribute(group)
    return value
