"""Elementwise ops, reductions, normalisations and softmax: rows in vectors, everything between ops kept near.

Several ops that share their outer loops run row by row, so that a row of intermediates stays in the first-level cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.distribute import distribute
from eyas.codegen.common.kernel import Access, Nest, Statement
from eyas.codegen.common.schedule import Schedule, Tile
from eyas.codegen.common.sizes import Size
from eyas.codegen.common.strategies.nests import NO_NESTS
from eyas.codegen.llvm_cpu.schedule import nest_is_scalar, why_not_across_lanes
from eyas.codegen.llvm_cpu.strategies.base import NestStrategy
from eyas.targets import Target

_REDUCTION_ACCUMULATORS = 4
# Walks that are under way at once: enough to hide the loads of each behind those of the others, and few enough for the
# registers of a CPU with 16 of them.
_WALKS = 12
# Bodies that are repeated for each row of a square of registers.
_MAX_TRANSPOSED_OPS = 12


@dataclass(frozen=True)
class Rows(NestStrategy):
    name: ClassVar[str] = "rows"

    @classmethod
    def choose(cls, found: Analysis, target: Target) -> Rows | str:
        block = found.block_of_products
        kernel = found.kernel(block)
        if isinstance(kernel, str):
            return NO_NESTS
        tiles = [choose_tile(nest, target, kernel.common_of(number)) for number, nest in enumerate(kernel.nests)]
        return cls(kernel, Schedule(tuple(tiles), distribute(kernel, tiles, target), block=block))


def choose_tile(nest: Nest, target: Target, shared: int = 0) -> Tile:
    """Lanes along the loop in which memory is contiguous: a parallel one, or else a reduction.

    The first `shared` loops are outside of all nests, so they cannot be lanes.
    """
    if nest_is_scalar(nest):
        return Tile()
    if _chases(nest):
        walks = [loop for loop in nest.parallel if loop >= shared]
        return Tile(unroll_loop=walks[-1], unroll=_fitting(nest.loops[walks[-1]], _WALKS)) if walks else Tile()
    parallel = _contiguous_loop(nest, [loop for loop in nest.parallel if loop >= shared])
    reduction = _lane_reduction(nest)
    if reduction is not None and (parallel is None or _is_strided(nest, parallel)):
        width = vector_width(nest, reduction, target)
        if width > 1:
            extent = nest.loops[reduction].static
            vectors = _REDUCTION_ACCUMULATORS
            while extent is not None and vectors > 1 and extent < 2 * width * vectors:
                vectors //= 2
            return Tile(width, reduction, vectors)
    if parallel is None:
        return Tile()
    width = vector_width(nest, parallel, target)
    transposed = _transposed_loop(nest, parallel, width, shared)
    if transposed is not None:
        return Tile(width, parallel, 1, transposed, width)
    return Tile(width, parallel, _accumulators(nest, parallel, width))


def _chases(nest: Nest) -> bool:
    """Whether each step of a reduction reads where the step before it says, as walks through trees do. Loads that wait
    for loads are faster one by one than as gathers."""
    statement = nest.statements[0]
    if not statement.reductions or statement.body is None:
        return False
    arguments = list(statement.body.arguments)
    found = set(arguments[len(statement.inputs) :])
    for view in statement.body.operations:
        op = view.operation
        if any(operand in found for operand in op.operands):
            if op.name == "tensor.extract":
                return True
            found.update(op.results)
    return False


def _fitting(extent: Size, most: int) -> int:
    """How many points at a time leave few over at the end."""
    if extent.static is None:
        return most
    rest = {count: -(-extent.static // count) * count - extent.static for count in range(most // 2 + 1, most + 1)}
    return min(rest, key=lambda count: (rest[count], -count)) if extent.static > most else max(extent.static, 1)


def _transposed_loop(nest: Nest, lanes: int, width: int, shared: int) -> int | None:
    """A loop along which an input is contiguous that is not so along the lanes: as many rows of it as there are lanes
    are loaded together and transposed in registers."""
    if (
        nest.reductions
        or width < 4
        or sum(_body_size(statement) for statement in nest.statements) > _MAX_TRANSPOSED_OPS
    ):
        return None
    inputs = [source for statement in nest.statements for source in statement.inputs if isinstance(source, Access)]
    for loop in (loop for loop in nest.parallel if loop >= shared and loop != lanes):
        extent, step = nest.loops[loop].static, [source.strides for source in inputs if not source.guards]
        if extent is not None and extent >= width and any(s[loop] == Size(1) and s[lanes].factor > 1 for s in step):
            return loop
    return None


def _body_size(statement: Statement) -> int:
    return 1 if statement.body is None else len(list(statement.body.operations))


def _accumulators(nest: Nest, loop: int, width: int) -> int:
    """Vectors that reduce side by side: one alone would wait for each of its sums."""
    extent = nest.loops[loop].static
    if not nest.statements[0].reductions or extent is None:
        return 1
    vectors = _REDUCTION_ACCUMULATORS
    while vectors > 1 and extent < width * vectors:
        vectors //= 2
    return vectors


def vector_width(nest: Nest, loop: int, target: Target) -> int:
    """Lanes for a loop: the register by the widest stored element, and no wider than the loop needs."""
    bits = max([32] + [_bits(type_) for statement in nest.statements for type_ in statement.element_types])
    width = target.lanes(bits)
    extent = nest.loops[loop].static
    while extent is not None and width > 1 and width // 2 >= extent:
        width //= 2
    return width


def _bits(type_: mlir.Type) -> int:
    return type_.width if isinstance(type_, mlir.FloatType | mlir.IntegerType) else 64


def _contiguous_loop(nest: Nest, loops: list[int]) -> int | None:
    """The loop in which all outputs advance by one element."""
    outputs = [output for statement in nest.statements for output in statement.outputs if output is not None]
    for loop in reversed(loops):
        if outputs and all(output.strides[loop] == Size(1) for output in outputs):
            return loop
    return None


def _is_strided(nest: Nest, loop: int) -> bool:
    """Whether some input jumps from lane to lane."""
    inputs = [source for statement in nest.statements for source in statement.inputs if isinstance(source, Access)]
    return any(source.strides[loop] not in (Size(0), Size(1)) for source in inputs)


def _lane_reduction(nest: Nest) -> int | None:
    """A reduction that may run across lanes: contiguous or constant inputs, and a combiner that allows it."""
    statement = nest.statements[0]
    for loop in reversed(statement.reductions):
        if why_not_across_lanes(nest, loop) is not None:
            return None
        inputs = [source for source in statement.inputs if isinstance(source, Access)]
        if inputs and all(source.strides[loop] in (Size(0), Size(1)) for source in inputs):
            if any(source.strides[loop] == Size(1) for source in inputs):
                return loop
    return None
