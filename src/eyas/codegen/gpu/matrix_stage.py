"""An operand's way to the fragments of a product: from memory through registers into shared memory, 16 bytes at a time.

Elements that are neighbours in memory stay neighbours, so that vectors are copied as they are; fragments are read along
rows or along columns. Lines of shared memory have an odd number of 16 bytes, so that the lines of a fragment begin in
different banks. Where neighbours lie along the sum, a line has the same row of every fragment:

    line r, from left to right:  row r of fragment 0, of fragment 1, ...     each `depth` long
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu, memref, scf, vector

from eyas.codegen.common.emission.tile_body import with_index
from eyas.codegen.common.emission.tile_loads import Block, Indices, TileContext
from eyas.codegen.common.expressions import Number, odd
from eyas.codegen.common.kernel import Access, Nest
from eyas.codegen.common.sizes import ONE, Size, product
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.points import decode
from eyas.codegen.gpu.thread_tile import ThreadLoads
from eyas.ir.structured import constant_scalar
from eyas.ir.values import element_bytes

GROUP_BYTES = 16
"""What one thread copies at once; shared memory consists of vectors of that size."""


def group_type() -> mlir.VectorType:
    return mlir.VectorType.get([GROUP_BYTES // 4], mlir.IntegerType.get_signless(32))


def staged_groups(extent: Number, depth: Number, fragment: Number, element: mlir.Type, is_deep: bool) -> Any:
    """Groups of shared memory that one operand takes."""
    lines, count = _lines(extent, depth, fragment, GROUP_BYTES // element_bytes(element), is_deep)
    return lines * odd(count)


def is_deep(access: Access, sum_: int) -> bool:
    """Whether neighbours in memory lie along the sum."""
    return access.strides[sum_] == ONE


def _lines(extent: Any, depth: Any, fragment: Any, per: int, deep: bool) -> tuple[Any, Any]:
    """How many lines there are, and how many groups of `per` elements each has."""
    return (fragment, extent // fragment * (depth // per)) if deep else (depth, extent // per)


@dataclass(frozen=True)
class Side:
    """One factor: the input that it is, the loops along which it moves and the other does not, as one that counts
    through all of them, and how much of that a workgroup has."""

    access: Access
    loops: tuple[int, ...]
    extent: int


class Staged(Protocol):
    """What a stage belongs to: a product, the loop of its sum, how much of that is in shared memory, and where."""

    @property
    def memory(self) -> Memory: ...
    @property
    def nest(self) -> Nest: ...
    @property
    def sum(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def shared(self) -> mlir.Value: ...


class MatrixStage:
    """The part of a factor that a workgroup has in shared memory. `fragment` is how much of the factor's loops one
    fragment has; `base` is where it begins in each buffer of shared memory, in groups."""

    def __init__(self, tile: Staged, side: Side, corner: mlir.Value, fragment: int, base: int):
        self.tile, self.side, self.corner, self.fragment, self.base = tile, side, corner, fragment, base
        access, nest = side.access, tile.nest
        self.element = access.storage.element
        self.per = GROUP_BYTES // element_bytes(self.element)
        self.is_deep = is_deep(access, tile.sum)
        self.lines, self.line_groups = _lines(side.extent, tile.depth, fragment, self.per, self.is_deep)
        self.pitch = self.line_groups | 1
        self.size = self.lines * self.pitch
        along = tile.sum if self.is_deep else side.loops[-1]
        self.width = _width(access, along, nest.loops[along], self.per, tile.memory)
        self.groups = self.lines * self.line_groups
        self.rounds = -(-self.groups // tile.memory.at.threads)
        self.is_whole = self.groups % tile.memory.at.threads == 0
        steps = nest.loops[tile.sum]
        self.ends_early = steps.static is None or steps.static % tile.depth != 0
        self.points = product([nest.loops[loop] for loop in side.loops])
        self.sticks_out = self.points.static is None or self.points.static % side.extent != 0
        self._rows: list[list[ThreadLoads]] = []
        self._steps: list[mlir.Value] = []

    # --- from memory to registers -------------------------------------------------------------------------------------

    def prepare(self, indices: Indices) -> None:
        """Computes what does not change in the course of the sum: where the rows or columns of this thread's groups
        begin, and which step of those in shared memory each has."""
        self._rows, self._steps = [], []
        at, memory = self.tile.memory.at, self.tile.memory
        for number in range(self.rounds):
            row, step = self._origin(number)
            pieces = 1 if self.is_deep else self.per // self.width
            starts = [memory.add(row, at.index(piece * self.width)) for piece in range(pieces)]
            self._rows.append([self._row(indices, start) for start in starts])
            self._steps.append(step)

    def _row(self, indices: Indices, row: mlir.Value) -> ThreadLoads:
        """Loads from a row or column on. What lies beyond the last is read from there, and never stored."""
        tile, memory = self.tile, self.tile.memory
        position = arith.AddIOp(self.corner, row).result
        if self.sticks_out:
            last = 1 if self.is_deep else self.width
            beyond = arith.SubIOp(memory.size(self.points), tile.memory.at.index(last)).result
            position = arith.MinUIOp(position, beyond).result
        sizes = [tile.nest.loops[loop] for loop in self.side.loops]
        for loop, index in zip(self.side.loops, decode(memory, position, sizes), strict=True):
            indices = with_index(indices, loop, index)
        loads = ThreadLoads(TileContext(memory, None, None), Block(indices, 1, 1, None), None, None)
        loads.prepare([self.side.access])
        return loads

    def load(self, indices: Indices, start: mlir.Value, number: int) -> mlir.Value:
        """This thread's group with a number of the elements from `start` on in the sum; `indices` are those of the
        other loops that are summed up."""
        words: list[mlir.Value] = []
        parts: list[mlir.Value] = []
        for piece in range(self.per // self.width):
            step = self._steps[number]
            if self.is_deep:
                step = self.tile.memory.add(step, self.tile.memory.at.index(piece * self.width))
            row = self._rows[number][0 if self.is_deep else piece]
            found = self._piece(row, indices, arith.AddIOp(start, step).result)
            if found.type == group_type():
                return found
            if isinstance(found.type, mlir.VectorType):
                words += [vector.ExtractOp(found, [], [lane]).result for lane in range(found.type.shape[0])]
            elif found.type == mlir.IntegerType.get_signless(32):
                words.append(found)
            else:
                parts.append(found)
        words += self._packed(parts)
        return vector.FromElementsOp(group_type(), words).result

    def _origin(self, number: int) -> tuple[mlir.Value, mlir.Value]:
        """Of this thread's group with a number: where it begins along the operand's loop, and in the sum."""
        at = self.tile.memory.at
        line, place = self._slot(number)
        if not self.is_deep:
            return arith.MulIOp(place, at.index(self.per)).result, line
        side = at.index(self.tile.depth // self.per)
        row = arith.MulIOp(arith.DivUIOp(place, side).result, at.index(self.fragment)).result
        return (
            arith.AddIOp(row, line).result,
            arith.MulIOp(arith.RemUIOp(place, side).result, at.index(self.per)).result,
        )

    def _slot(self, number: int) -> tuple[mlir.Value, mlir.Value]:
        """Line, and place in it, of this thread's group with a number: neighbouring threads have neighbours."""
        at, count = self.tile.memory.at, self.line_groups
        thread, ahead = at.thread, number * at.threads
        if not self.is_whole and number == self.rounds - 1:
            group = arith.AddIOp(thread, at.index(ahead)).result
            thread, ahead = arith.MinUIOp(group, at.index(self.groups - 1)).result, 0
        line, place = (op(thread, at.index(count)).result for op in (arith.DivUIOp, arith.RemUIOp))
        if ahead % count == 0:
            return self.tile.memory.add(line, at.index(ahead // count)), place
        group = arith.AddIOp(thread, at.index(ahead)).result
        return arith.DivUIOp(group, at.index(count)).result, arith.RemUIOp(group, at.index(count)).result

    def _piece(self, row: ThreadLoads, indices: Indices, point: mlir.Value) -> mlir.Value:
        """`width` neighbours, as words where they fill some; zeros behind the end of the sum."""
        tile, memory, inside = self.tile, self.tile.memory, None
        if self.ends_early:
            steps = memory.size(tile.nest.loops[tile.sum])
            inside = arith.CmpIOp(arith.CmpIPredicate.ult, point, steps).result
            last = arith.SubIOp(steps, tile.memory.at.index(self.width if self.is_deep else 1)).result
            point = arith.MinUIOp(point, last).result
        known = zip(row.block.indices, with_index(indices, tile.sum, point), strict=True)
        merged = [one if one is not None else other for one, other in known]
        context = TileContext(memory, None, None)
        found = self._read(ThreadLoads(context, Block(merged, 1, 1, None), row, None))
        return found if inside is None else arith.SelectOp(inside, found, memory.zero_like(found)).result

    def _read(self, loads: ThreadLoads) -> mlir.Value:
        memory, access = self.tile.memory, self.side.access
        if self.width == 1:
            value = loads.get(access, 0, 0)
            bits = mlir.IntegerType.get_signless(8 * element_bytes(self.element))
            return value if value.type == bits else arith.BitcastOp(bits, value).result
        assert access.storage.binding is not None, "only bindings have neighbours"
        i32, words = mlir.IntegerType.get_signless(32), self.width * element_bytes(self.element) // 4
        view = memory.at.view(access.storage.binding, i32 if words == 1 else mlir.VectorType.get([words], i32))
        address = loads.address(access, 0, 0)
        inside = loads._guard(access, 0, 0, 1) if access.guards else None
        if inside is not None:
            address = arith.SelectOp(inside, address, memory.at.index(0)).result
        found = memref.LoadOp(view, [arith.DivUIOp(address, memory.at.index(self.width)).result]).result
        return found if inside is None else arith.SelectOp(inside, found, memory.zero_like(found)).result

    def _packed(self, parts: list[mlir.Value]) -> list[mlir.Value]:
        """Words of integers that are narrower, the first in the lowest bits."""
        i32, words, bits = mlir.IntegerType.get_signless(32), [], 8 * element_bytes(self.element)
        for first in range(0, len(parts), 32 // bits):
            word = arith.ExtUIOp(i32, parts[first]).result
            for number in range(1, 32 // bits):
                part = arith.ExtUIOp(i32, parts[first + number]).result
                shifted = arith.ShLIOp(part, self.tile.memory.at.constant(i32, number * bits)).result
                word = arith.OrIOp(word, shifted).result
            words.append(word)
        return words

    # --- to shared memory, and from there to fragments ----------------------------------------------------------------

    def store(self, group: mlir.Value, number: int, buffer: mlir.Value) -> None:
        """Puts what `load` gave into the buffer of shared memory that begins at `buffer`."""
        memory, at = self.tile.memory, self.tile.memory.at
        line, place = self._slot(number)
        address = memory.add(arith.MulIOp(line, at.index(self.pitch)).result, place)
        address = memory.add(memory.add(buffer, address), at.index(self.base))
        self._if_mine(number, lambda: memref.StoreOp(group, self.tile.shared, [address]))

    def _if_mine(self, number: int, run: Callable[[], object]) -> None:
        at = self.tile.memory.at
        if self.is_whole or number < self.rounds - 1:
            run()
            return
        group = arith.AddIOp(at.thread, at.index(number * at.threads)).result
        branch = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ult, group, at.index(self.groups)).result)
        with mlir.InsertionPoint(branch.then_block):
            run()
            scf.YieldOp([])

    def first_of(self, place: mlir.Value, step: mlir.Value) -> mlir.Value:
        """Where the fragments of a subgroup begin whose first is number `place` of the tile, from a step on."""
        memory, at = self.tile.memory, self.tile.memory.at
        each = self.tile.depth // self.per if self.is_deep else self.fragment // self.per
        first = memory.add(arith.MulIOp(place, at.index(each)).result, at.index(self.base))
        if self.is_deep:
            return memory.add(first, arith.DivUIOp(step, at.index(self.per)).result)
        return memory.add(first, arith.MulIOp(step, at.index(self.pitch)).result)

    def read(self, first: mlir.Value, number: int, slice_: int, steps: int, is_left: bool) -> mlir.Value:
        """Fragment `number` of a subgroup, of which the first begins at `first`, at the slice with that number of the
        steps that are in shared memory."""
        at = self.tile.memory.at
        if self.is_deep:
            ahead = number * (self.tile.depth // self.per) + slice_ * steps // self.per
        else:
            ahead = number * self.fragment // self.per + slice_ * steps * self.pitch
        shape = f"{self.fragment}x{steps}" if is_left else f"{steps}x{self.fragment}"
        return gpu.SubgroupMmaLoadMatrixOp(
            mlir.Type.parse(f'!gpu.mma_matrix<{shape}x{fragment_element(self.element)}, "{"AB"[not is_left]}Op">'),
            self.tile.shared,
            [self.tile.memory.add(first, at.index(ahead))],
            self.pitch,
            transpose=True if is_left != self.is_deep else None,
        ).result


def fragment_element(element: mlir.Type) -> str:
    """As the GPU dialect has it: it knows no bf16, which the last step puts back (`MATRIX_ELEMENT`)."""
    if isinstance(element, mlir.IntegerType):
        return f"s{element}"
    return "f16" if isinstance(element, mlir.BF16Type) else str(element)


def _width(access: Access, loop: int, extent: Size, per: int, memory: Memory) -> int:
    """How many neighbours along `loop` one load brings: at most `per`, at least a word of them, or 1."""
    if access.strides[loop] != ONE or not memory.has_vectors(access.storage):
        return 1
    if any(guard.coefficients[loop] for guard in access.guards) or isinstance(access.otherwise, Access):
        return 1
    if access.guards and not _is_zero(access.otherwise):
        return 1
    others = [stride for at, stride in enumerate(access.strides) if at != loop]
    others += [*access.offset, *access.storage.start, access.storage.step, extent]
    width = per
    while width > 1 and any(one.factor % width for one in others):
        width //= 2
    return width if width * element_bytes(access.storage.element) >= 4 else 1


def _is_zero(value: object) -> bool:
    """Whether what is read outside of a tensor has no bit set."""
    constant = constant_scalar(value) if isinstance(value, mlir.Value) else None
    return constant == 0 and not str(constant).startswith("-")
