"""Sums of products of bytes by instructions that multiply neighbours and add them up.

A step of the reduction takes a group of neighbours: pairs of 16-bit numbers (`pmaddwd`), or fours of bytes (VNNI's
`vpdpbusd`), which multiplies unsigned bytes with signed ones and does not saturate. The operand that is the same for
all lanes lies in groups already; that of the lanes is interleaved in registers. For fours the former gets 128 added,
and what that adds to each lane is summed up beside it and taken away at the end:

    sum a b  =  sum (a + 128) b  -  sum 128 b
"""

from __future__ import annotations

from dataclasses import dataclass

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, vector

from eyas.codegen.common.emission.tile_loads import TileLoads
from eyas.codegen.common.kernel import Access, Nest, Statement
from eyas.codegen.common.schedule import Tile
from eyas.codegen.common.sizes import Size
from eyas.codegen.llvm_cpu.memory import Memory

INTRINSICS = {
    (2, 4): "llvm.x86.sse2.pmadd.wd",
    (2, 8): "llvm.x86.avx2.pmadd.wd",
    (2, 16): "llvm.x86.avx512.pmaddw.d.512",
    (4, 4): "llvm.x86.avx512.vpdpbusd.128",
    (4, 8): "llvm.x86.avx512.vpdpbusd.256",
    (4, 16): "llvm.x86.avx512.vpdpbusd.512",
}
"""By numbers in a group and lanes."""

_BODY = ["arith.extsi", "arith.extsi", "arith.muli", "arith.addi"]


@dataclass(frozen=True)
class Dot:
    """The operands of a sum of products: one is the same for all lanes, and contiguous along the loop `along`."""

    shared: Access
    lanes: Access
    along: int


def why_no_dots(nest: Nest, tile: Tile, group: int) -> str | None:
    """Why a nest cannot multiply groups of neighbours, or None."""
    if (group, tile.width) not in INTRINSICS:
        return f"there is no instruction for {group} numbers in {tile.width} lanes"
    found = dot_of(nest.statements[0], tile)
    if isinstance(found, str):
        return found
    extent = nest.loops[found.along].static
    return None if extent is not None and extent % group == 0 else f"the sum is not of whole groups of {group}"


def dot_of(statement: Statement, tile: Tile) -> Dot | str:
    """The operands, or why a statement is no sum of products of bytes."""
    loop, rows = tile.loop, tile.unroll_loop
    if statement.body is None or not statement.reductions or loop is None or loop in statement.reductions:
        return "it is no sum in lanes"
    operations = [view.operation for view in statement.body.operations]
    if [op.name for op in operations[:-1]] != _BODY or len(statement.inputs) != 2:
        return "it does more than multiply two signed numbers"
    extended = [operations[0].operands[0], operations[1].operands[0]]
    arguments = list(statement.body.arguments)
    if sorted(arguments.index(value) for value in extended) != [0, 1] or arguments[2] not in list(
        operations[3].operands
    ):
        return "it does more than multiply two signed numbers"
    if any(str(value.type) != "i8" for value in arguments[:2]) or str(arguments[2].type) != "i32":
        return "it does not add up products of bytes in i32"
    along = statement.reductions[-1]
    accesses = [one for one in statement.inputs if isinstance(one, Access) and not one.guards]
    shared = [one for one in accesses if one.stride_of_lanes(loop) == Size(0) and one.strides[along] == Size(1)]
    lanes = [one for one in accesses if one.stride_of_lanes(loop) == Size(1)]
    if len(shared) != 1 or len(lanes) != 1 or (rows is not None and lanes[0].strides[rows] != Size(0)):
        return "its operands are not contiguous"
    return Dot(shared[0], lanes[0], along)


class DotEmitter:
    """Emits steps of a sum; `carried` are rows * vectors sums, and for fours what is too much in each vector."""

    def __init__(self, memory: Memory, tile: Tile, dot: Dot, extent: int):
        self.memory, self.dot = memory, dot
        self.group, self.width = tile.dot, tile.width
        # Pairs are widened several at a time, which costs as much as one.
        self.groups = next(count for count in (4, 2, 1) if extent % (count * tile.dot) == 0) if tile.dot == 2 else 1
        self.reach = self.group * self.groups
        self.element = mlir.IntegerType.get_signless(8 if tile.dot == 4 else 16)
        self.i32 = mlir.IntegerType.get_signless(32)

    def extras(self, vectors: int) -> list[mlir.Value]:
        return [self.memory.zeros(self.i32, self.width)] * (vectors if self.group == 4 else 0)

    def step(self, loads: TileLoads, carried: list[mlir.Value], rows: int, vectors: int) -> list[mlir.Value]:
        sums = carried[: rows * vectors]
        words = [self._words(loads, row) for row in range(rows)]
        columns: list[mlir.Value] = []
        for place in range(self.groups):
            columns = [self._columns(loads, vector, place) for vector in range(vectors)]
            for row in range(rows):
                left = self._neighbours(words[row], place)
                for v in range(vectors):
                    sums[row * vectors + v] = self._add(sums[row * vectors + v], left, columns[v])
        if self.group == 2:
            return sums
        most = self.memory.at.constant(self.i32, -0x7F7F7F80)  # 128 in each byte
        too_much = self._as_group(self.memory.splat(most, self.width))
        return sums + [self._add(carried[rows * vectors + v], too_much, columns[v]) for v in range(vectors)]

    def finish(self, carried: list[mlir.Value], rows: int, vectors: int) -> list[mlir.Value]:
        sums, extras = carried[: rows * vectors], carried[rows * vectors :]
        if not extras:
            return sums
        return [arith.SubIOp(total, extras[index % vectors]).result for index, total in enumerate(sums)]

    def _words(self, loads: TileLoads, row: int) -> mlir.Value:
        """What a row of the shared operand has for this step, a group in each word."""
        access = self.dot.shared
        value = self.memory.load(access.storage, loads.address(access, row, 0), self.reach, Size(1), None)
        if self.group == 2:
            value = arith.ExtSIOp(mlir.VectorType.get([self.reach], self.element), value).result
        return vector.BitCastOp(mlir.VectorType.get([self.groups], self.i32), value).result

    def _neighbours(self, words: mlir.Value, place: int) -> mlir.Value:
        """One group of the shared operand in every lane."""
        word = vector.extract(words, [], [place])
        if self.group == 4:
            word = arith.XOrIOp(word, self.memory.at.constant(self.i32, -0x7F7F7F80)).result
        return self._as_group(self.memory.splat(word, self.width))

    def _columns(self, loads: TileLoads, number: int, place: int) -> mlir.Value:
        """Groups of the other operand, one of each lane after the other."""
        memory, access, width = self.memory, self.dot.lanes, self.width
        start, step = loads.address(access, 0, number), access.strides[self.dot.along]
        addresses = [memory.add(start, memory.size(step * (place * self.group + k))) for k in range(self.group)]
        rows = [memory.load(access.storage, one, width, Size(1), loads.block.mask_of(number)) for one in addresses]
        both = [index for lane in range(width) for index in (lane, width + lane)]
        halves = [vector.ShuffleOp(rows[k], rows[k + 1], both).result for k in range(0, self.group, 2)]
        if self.group == 2:
            return arith.ExtSIOp(mlir.VectorType.get([2 * width], self.element), halves[0]).result
        pairs = [2 * lane + part + half * 2 * width for lane in range(width) for half in range(2) for part in range(2)]
        return vector.ShuffleOp(halves[0], halves[1], pairs).result

    def _as_group(self, words: mlir.Value) -> mlir.Value:
        return vector.BitCastOp(mlir.VectorType.get([self.group * self.width], self.element), words).result

    def _add(self, total: mlir.Value, left: mlir.Value, right: mlir.Value) -> mlir.Value:
        operands = [left, right] if self.group == 2 else [total, left, right]
        attributes = {
            "intrin": mlir.StringAttr.get(INTRINSICS[self.group, self.width]),
            "op_bundle_sizes": mlir.DenseI32ArrayAttr.get([]),
            "operandSegmentSizes": mlir.DenseI32ArrayAttr.get([len(operands), 0]),
        }
        made = mlir.Operation.create("llvm.call_intrinsic", [total.type], operands, attributes).results[0]
        return made if self.group == 4 else arith.AddIOp(total, made).result
