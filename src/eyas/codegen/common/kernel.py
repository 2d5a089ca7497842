"""A dispatch function as loop nests: the form in which strategies match, choose and lower it.

    in:   func.func on tensors, whose ops are linalg.generic, tensor.pad, tensor.extract_slice, tensor.empty, constants
    out:  Kernel(storages, nests), each nest a statement with loops, linear accesses and a scalar body

Nothing of it changes once it is made: strategies may try any number of choices on one kernel.

An access is linear in the loop indices: element = offset + sum(stride[l] * index[l]). Unit loops vanish, permutations,
broadcasts, strided windows and slices are all just strides. What is not linear is `Unsupported` here and goes to the
plain-loops strategy instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from torch_mlir import ir as mlir

from eyas.codegen.common.sizes import Size, product, row_major_strides


class Unsupported(Exception):
    """This function cannot be expressed as loop nests; the text says why."""


@dataclass(frozen=True, eq=False)
class Storage:
    """Where a tensor's elements are: a binding of the dispatch, memory local to the workgroup, or a small matrix whose
    `values` code is made from."""

    name: str
    element: mlir.Type
    shape: tuple[Size, ...]
    binding: int | None = None
    is_output: bool = False
    in_blocks: bool = False
    in_scratch: bool = False
    values: np.ndarray | None = None
    start: tuple[Size, ...] = ()
    step: Size = Size(0)
    """Of rows of a larger tensor, one for each step of the kernel: the first begins at the sum of `start`, each of the
    others `step` elements after the one before it."""

    @property
    def strides(self) -> tuple[Size, ...]:
        return row_major_strides(self.shape)


@dataclass(frozen=True)
class Guard:
    """An access is inside its tensor only while `0 <= shift + sum(coefficients[l] * index[l]) < extent`."""

    coefficients: tuple[int, ...]
    shift: int
    extent: Size


@dataclass(frozen=True)
class Access:
    """Linear access to a storage from a nest's loops.

    With guards it reads the storage only inside them, and `otherwise` (a scalar or another access) outside: that is how
    padding, concatenation and insertion are read in place. `lane_stride` is the distance between neighbours within a
    block of lanes, where it differs from the loop's stride from block to block (weights in panels).
    """

    storage: Storage
    offset: tuple[Size, ...]
    strides: tuple[Size, ...]
    guards: tuple[Guard, ...] = ()
    otherwise: mlir.Value | Access | None = None
    lane_stride: Size | None = None

    def stride_of_lanes(self, loop: int) -> Size:
        """How far apart the lanes of a block along `loop` are."""
        return self.strides[loop] if self.lane_stride is None else self.lane_stride


@dataclass(frozen=True, eq=False)
class Statement:
    """One linalg op over loops of a nest; without a body it copies its input.

    `inputs` are accesses, scalars, (statement, output) of an earlier statement of the nest, kept in registers, or None
    for one that the body does not read.
    `inits[i]` is a constant (a scalar value defined outside), an Access, or None when the old value is not read.
    """

    body: mlir.Block | None
    inputs: tuple[Access | mlir.Value | tuple[int, int] | None, ...]
    outputs: tuple[Access | None, ...]
    inits: tuple[mlir.Value | Access | None, ...]
    reductions: tuple[int, ...]
    loop_of_index: Mapping[int, int | None] = field(default_factory=dict)
    """The nest's loop of each dimension that `linalg.index` names; None for one that is always 0."""
    location: mlir.Location | None = None

    @property
    def element_types(self) -> list[mlir.Type]:
        """The type of each output's elements."""
        if self.body is None:
            return [output.storage.element for output in self.outputs if output is not None]
        return [operand.type for operand in list(self.body.operations)[-1].operands]

    def map_accesses(self, change: Callable[[Access], Access]) -> Statement:
        """The same statement with other accesses."""

        def apply(items: tuple) -> tuple:
            return tuple(change(item) if isinstance(item, Access) else item for item in items)

        return replace(self, inputs=apply(self.inputs), outputs=apply(self.outputs), inits=apply(self.inits))


@dataclass(frozen=True, eq=False)
class Nest:
    """Loops (extents) with statements that run at each point, values between them in registers.

    At points outside of the `guards` nothing is stored, and only the first statement may run: tiles that stick out.
    """

    loops: tuple[Size, ...]
    statements: tuple[Statement, ...]
    guards: tuple[Guard, ...] = ()

    @property
    def reductions(self) -> set[int]:
        return {loop for statement in self.statements for loop in statement.reductions}

    @property
    def parallel(self) -> list[int]:
        reductions = self.reductions
        return [loop for loop in range(len(self.loops)) if loop not in reductions]

    @property
    def accesses(self) -> list[Access]:
        found = []
        for statement in self.statements:
            candidates = [*statement.inputs, *statement.outputs, *statement.inits]
            found += [access for access in candidates if isinstance(access, Access)]
        return found

    @property
    def all_accesses(self) -> list[Access]:
        """Also those to what is read where a guard does not hold."""
        found = []
        for access in self.accesses:
            while isinstance(access, Access):
                found.append(access)
                access = access.otherwise
        return found

    @property
    def points(self) -> int | None:
        """Iterations, when static."""
        return product(self.loops).static

    def map_accesses(self, change: Callable[[Access], Access]) -> Nest:
        """The same nest with other accesses."""
        return replace(self, statements=tuple(statement.map_accesses(change) for statement in self.statements))


@dataclass(frozen=True, eq=False)
class Steps:
    """Nests `first` to `last` (exclusive) run `count` times, one step after the other; `index` is the value that counts
    the steps, from 0."""

    count: Size
    first: int
    last: int
    index: mlir.Value


@dataclass(frozen=True, eq=False)
class Kernel:
    """All nests of one dispatch, in order. The first `shared` loops of every nest are the same parallel loops.

    With `steps`, some of the nests run again and again, inside of the shared loops and of blocks: a step of a recurrent
    layer. What they carry from step to step is in locals.

    With a `block`, which a schedule decides, the nests from `first` on have one more loop in common, which runs in
    blocks of so many points: all of them work on a block before the next begins, each with loops and tiles of its own
    inside. The nests before `first` make what all blocks read. `scalar_arguments` become push constants; `tensors` are
    those that bodies read at computed positions.
    """

    storages: tuple[Storage, ...]
    nests: tuple[Nest, ...]
    shared: int
    scalar_arguments: tuple[mlir.Value, ...]
    tensors: Mapping[mlir.Value, Storage]
    block: int = 0
    first: int = 0
    steps: Steps | None = None

    @property
    def common(self) -> int:
        """Leading loops that are the same in all nests from the first on."""
        return self.shared + (1 if self.block else 0)

    def common_of(self, number: int) -> int:
        """Leading loops of a nest that are not its own."""
        return self.common if number >= self.first else self.shared


@dataclass(frozen=True)
class LinearExpr:
    """An affine map result as `constant + sum(coefficient[d] * d)`."""

    coefficients: dict[int, int]
    constant: int


def linear_expr(expr: mlir.AffineExpr) -> LinearExpr:
    """Decomposes an affine expression; floordiv, mod and symbols are unsupported."""
    if isinstance(expr, mlir.AffineDimExpr):
        return LinearExpr({expr.position: 1}, 0)
    if isinstance(expr, mlir.AffineConstantExpr):
        return LinearExpr({}, expr.value)
    if isinstance(expr, mlir.AffineAddExpr):
        left, right = linear_expr(expr.lhs), linear_expr(expr.rhs)
        merged = dict(left.coefficients)
        for loop, coefficient in right.coefficients.items():
            merged[loop] = merged.get(loop, 0) + coefficient
        return LinearExpr(merged, left.constant + right.constant)
    if isinstance(expr, mlir.AffineMulExpr):
        left, right = linear_expr(expr.lhs), linear_expr(expr.rhs)
        if left.coefficients and right.coefficients:
            raise Unsupported(f"index expression {expr} is not linear")
        scale, other = (left.constant, right) if not left.coefficients else (right.constant, left)
        return LinearExpr({loop: c * scale for loop, c in other.coefficients.items()}, other.constant * scale)
    raise Unsupported(f"index expression {expr} is not linear")


def generic_maps(op: mlir.OpView) -> list[mlir.AffineMap]:
    return [mlir.AffineMapAttr(attr).value for attr in mlir.ArrayAttr(op.attributes["indexing_maps"])]


def generic_iterators(op: mlir.OpView) -> list[str]:
    """'parallel' or 'reduction' per loop."""
    return [
        "reduction" if "reduction" in str(attr) else "parallel"
        for attr in mlir.ArrayAttr(op.attributes["iterator_types"])
    ]
