"""`check-shapes`: sizes that a program takes to agree are compared before anything runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, cf

from eyas.codegen.common.kernel import Unsupported, linear_expr
from eyas.ir import Pass, describe_location
from eyas.ir.structured import index_constant
from eyas.ir.walk import constant_int, defining_op, entry_block, functions, is_tensor
from eyas.passes.dispatch.grouping import indexing_maps
from eyas.passes.dispatch.shapes import dims_of

_Same = dict[mlir.Value, mlir.Value]
"""Sizes that were found to be equal to an earlier one, and that one."""
_RESHAPES = ("tensor.reshape", "tensor.expand_shape", "tensor.collapse_shape")


@dataclass(frozen=True)
class CheckShapes(Pass):
    """Adds a `cf.assert` in the host program for each pair of sizes that a linalg op, a concatenation or a reshape
    needs to be equal and that are not known to be, and for each padding that may be below 0: a kernel then never reads
    or writes outside a tensor, whatever a call brings. From then on the two sizes are one value, as `unify-dimensions`
    has it: loops over either can be shared.

        linalg.add ins(%x, %y : tensor<?xf32>, tensor<?xf32>)
      becomes
        cf.assert (%dim_x == %dim_y), "two sizes must be equal ..."
        linalg.add ins(%x, %y : tensor<?xf32>, tensor<?xf32>)     // and every other use of %dim_y is one of %dim_x
    """

    name: ClassVar[str] = "check-shapes"

    def run(self, module: mlir.Module) -> None:
        for function in functions(module):
            checks = Checks()
            for view in list(entry_block(function).operations):
                checks.add(view.operation)


class Checks:
    """Asserts what ops ask of sizes. Subclasses say where sizes come from and what becomes of two that must agree."""

    def __init__(self) -> None:
        self._checked: set[tuple] = set()
        self._one: _Same = {}

    def add(self, op: mlir.Operation) -> None:
        """Adds what one op asks before it."""
        if op.name != "tensor.pad" and not _has_dynamic_operand(op):
            return
        with mlir.InsertionPoint(op), op.location:
            if op.name.startswith("linalg."):
                self._check_loops(op)
            elif op.name in _RESHAPES:
                self._check_reshape(op)
            elif op.name == "tensor.concat":
                self._check_concat(op)
            elif op.name == "tensor.pad":
                self._check_pad(op)

    def dims(self, value: mlir.Value) -> list[mlir.Value]:
        """Values for the dynamic dimensions of a tensor, in order."""
        return dims_of(value)

    def require(self, holds: mlir.Value, message: str) -> None:
        cf.AssertOp(holds, message)

    def unify(self, left: mlir.Value, right: mlir.Value, message: str) -> None:
        """Compares two sizes as soon as both are known; whatever used the later one comes after that."""
        first, last = defining_op(left), defining_op(right)
        assert first is not None and last is not None
        if last.is_before_in_block(first):
            left, right, last = right, left, first
        self._one[right] = left
        right.replace_all_uses_with(left)
        with mlir.InsertionPoint.after(last):
            self.require(arith.CmpIOp(arith.CmpIPredicate.eq, left, right).result, message)

    def _check_loops(self, op: mlir.Operation) -> None:
        maps = indexing_maps(op)
        if maps is None:
            return
        extents: dict[int, mlir.Value | int] = {}
        windows: list[tuple[dict[int, int], int, mlir.Value | int]] = []
        for value, map_ in zip(op.operands, maps, strict=False):
            if not is_tensor(value):
                continue
            for size, expr in zip(self._sizes(value), map_.results, strict=True):
                try:
                    linear = linear_expr(expr)
                except Unsupported:
                    continue
                if linear.constant == 0 and list(linear.coefficients.values()) == [1]:
                    (loop,) = linear.coefficients
                    if loop in extents:
                        self._require_equal(extents[loop], size, op)
                    extents[loop] = self._first(extents.get(loop, size))
                elif linear.coefficients:
                    windows.append((linear.coefficients, linear.constant, size))
        for coefficients, constant, size in windows:
            self._require_inside(coefficients, constant, self._first(size), extents, op)

    def _check_reshape(self, op: mlir.Operation) -> None:
        """Both sides of a reshape have as many elements."""
        sides = [self._sizes(op.operands[0]), self._sizes(op.results[0])]
        dynamic = [[size for size in side if isinstance(size, mlir.Value)] for side in sides]
        static = [math.prod(size for size in side if isinstance(size, int)) for side in sides]
        for value in list(dynamic[0]):  # what both sides have cancels
            if value in dynamic[1]:
                for side in dynamic:
                    side.remove(value)
        if not dynamic[0] and not dynamic[1] and static[0] == static[1]:
            return
        products = []
        for factor, values in zip(static, dynamic, strict=True):
            product = index_constant(factor)
            for value in values:
                product = arith.MulIOp(product, value).result
            products.append(product)
        same = arith.CmpIOp(arith.CmpIPredicate.eq, *products).result
        self.require(same, f"a reshape at {describe_location(op.location)} would change the number of elements")

    def _check_concat(self, op: mlir.Operation) -> None:
        """Across the axis all operands are as long as the first, which the result takes its sizes from."""
        axis = mlir.IntegerAttr(op.attributes["dim"]).value
        first, *others = [self._sizes(value) for value in op.operands]
        for sizes in others:
            for at, (left, right) in enumerate(zip(first, sizes, strict=True)):
                if at != axis:
                    self._require_equal(left, right, op)

    def _check_pad(self, op: mlir.Operation) -> None:
        """What is added on each side is not less than nothing: that would be a cut, and write outside the result."""
        for amount in list(op.operands)[1:]:
            known = constant_int(amount)
            if (known is not None and known >= 0) or (op.name, amount) in self._checked:
                continue
            self._checked.add((op.name, amount))
            enough = arith.CmpIOp(arith.CmpIPredicate.sge, amount, index_constant(0)).result
            where = describe_location(op.location)
            self.require(enough, f"a padding at {where} is below 0; what cuts must be known when the model is compiled")

    def _sizes(self, value: mlir.Value) -> list[mlir.Value | int]:
        type_ = mlir.RankedTensorType(value.type)
        dynamic = iter(self.dims(value))
        return [next(dynamic) if type_.is_dynamic_dim(i) else type_.get_dim_size(i) for i in range(type_.rank)]

    def _require_equal(self, left: mlir.Value | int, right: mlir.Value | int, op: mlir.Operation) -> None:
        left, right = self._first(left), self._first(right)
        known = [_static(size) for size in (left, right)]
        if left is right or (None not in known and known[0] == known[1]):
            return
        message = f"two sizes must be equal for {op.name} at {describe_location(op.location)}, and are not"
        if isinstance(left, mlir.Value) and isinstance(right, mlir.Value):
            if left != right:
                self.unify(left, right, message)
            return
        key = (left, right)
        if key in self._checked:
            return
        self._checked.add(key)
        self.require(arith.CmpIOp(arith.CmpIPredicate.eq, _value(left), _value(right)).result, message)

    def _first(self, size: mlir.Value | int) -> mlir.Value | int:
        while isinstance(size, mlir.Value) and size in self._one:
            size = self._one[size]
        return size

    def _require_inside(
        self, coefficients: dict[int, int], constant: int, size: mlir.Value | int, extents: dict, op: mlir.Operation
    ) -> None:
        """The last index that the loops reach lies inside the tensor."""
        if any(loop not in extents for loop in coefficients):
            return
        if _static(size) is not None and all(_static(extents[loop]) is not None for loop in coefficients):
            return  # the op's own verifier has seen it
        last = index_constant(constant)
        for loop, coefficient in coefficients.items():
            reach = arith.SubIOp(_value(extents[loop]), index_constant(1)).result
            last = arith.AddIOp(last, arith.MulIOp(reach, index_constant(coefficient)).result).result
        inside = arith.CmpIOp(arith.CmpIPredicate.slt, last, _value(size)).result
        self.require(inside, f"a window of {op.name} at {describe_location(op.location)} reaches outside its input")


def _has_dynamic_operand(op: mlir.Operation) -> bool:
    return any(is_tensor(value) and not mlir.ShapedType(value.type).has_static_shape for value in op.operands)


def _static(size: mlir.Value | int) -> int | None:
    return size if isinstance(size, int) else constant_int(size)


def _value(size: mlir.Value | int) -> mlir.Value:
    return index_constant(size) if isinstance(size, int) else size
