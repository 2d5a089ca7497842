"""Registers of a VMVX function: what is live where, what nobody reads, and which of the machine's registers holds what.

Assemblers write instructions on as many registers as they like, each with a number of its own. `allocate` drops
instructions whose results nobody reads and gives each register a place that it shares with others of other times.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from eyas.module.vmvx_isa import Kind, Op

_REGISTERS = (Kind.SCALAR_DST, Kind.SCALAR, Kind.TILE_DST, Kind.TILE)
_IN_PLACE = ("unary", "integer_unary", "binary", "integer_binary", "fma")
"""Families whose result has elements of the operands' size, so that it may be written over one of the same shape."""


@dataclass
class Instruction:
    """One instruction before registers have their places. A label operand is the number of the instruction it means."""

    op: Op
    operands: list[int]

    def registers(self, kinds: Sequence[Kind] = _REGISTERS) -> list[int]:
        return [value for o, value in zip(self.op.operands, self.operands, strict=True) if o.kind in kinds]

    @property
    def written(self) -> list[int]:
        return self.registers((Kind.SCALAR_DST, Kind.TILE_DST))

    @property
    def read(self) -> list[int]:
        """Accumulators and the index of `loop` are written, and read before."""
        found = self.registers((Kind.SCALAR, Kind.TILE))
        if reads_what_it_writes(self.op):
            found.append(self.operands[0])
        return found

    @property
    def target(self) -> int | None:
        return next((v for o, v in zip(self.op.operands, self.operands, strict=True) if o.kind is Kind.LABEL), None)

    @property
    def only_computes(self) -> bool:
        """Whether nothing happens but that its result is written."""
        return bool(self.written) and self.target is None


def reads_what_it_writes(op: Op) -> bool:
    return op.name == "loop" or bool(op.operands) and op.operands[0].name == "acc"


def drop_unread(code: list[Instruction]) -> list[bool]:
    """Which instructions to keep: all but those that only compute what no kept one reads."""
    live = _Liveness(code)
    return live.kept()


def fold_moves(code: list[Instruction]) -> list[bool]:
    """Lets an instruction write its result where a `mov` in the same block would take it, and says which instructions
    to keep: all but those moves. Loops carry values that way."""
    kept = [True] * len(code)
    writers: dict[int, list[int]] = {}
    readers: dict[int, int] = {}
    for at, instruction in enumerate(code):
        for register in instruction.written:
            writers.setdefault(register, []).append(at)
        for register in instruction.read:
            readers[register] = readers.get(register, 0) + 1
    targets = {instruction.target for instruction in code}
    for at, instruction in enumerate(code):
        if instruction.op.name != "mov":
            continue
        target, source = instruction.operands
        if readers[source] != 1 or len(writers.get(source, ())) != 1:
            continue
        maker = writers[source][0]
        # An accumulator would have to begin in the new place.
        if maker >= at or reads_what_it_writes(code[maker].op) or not kept[maker]:
            continue
        between = code[maker + 1 : at]
        if any(n in targets for n in range(maker + 1, at + 1)) or any(i.target is not None for i in between):
            continue
        if any(target in (*other.read, *other.written) for other in between):
            continue
        code[maker].operands[0] = target
        writers[target] = [maker if one == at else one for one in writers[target]]
        kept[at] = False
    return kept


def allocate(code: list[Instruction], scalars: set[int]) -> dict[int, int]:
    """A place for each register, counted from 0 in its bank. Registers in `scalars` are scalars, others are tiles."""
    intervals = _Liveness(code).intervals()
    return {**_scan(code, {r: i for r, i in intervals.items() if r in scalars}),
            **_scan(code, {r: i for r, i in intervals.items() if r not in scalars})}  # fmt: skip


class _Liveness:
    """Blocks of the code and which registers are live where they begin and end, as sets of bits."""

    def __init__(self, code: list[Instruction]) -> None:
        self.code = code
        starts = {0} | {i.target for i in code if i.target is not None}
        starts |= {n + 1 for n, i in enumerate(code) if i.op.terminator or i.target is not None}
        bounds = sorted(s for s in starts if s < len(code)) + [len(code)]
        self.blocks = list(zip(bounds, bounds[1:], strict=False))
        number = {first: n for n, (first, _) in enumerate(self.blocks)}
        self.next: list[list[int]] = []
        for _, end in self.blocks:
            last, after = code[end - 1], []
            if not last.op.terminator and end in number:
                after.append(number[end])
            if last.target is not None and last.target in number:
                after.append(number[last.target])
            self.next.append(after)
        self.live_in = [0] * len(self.blocks)
        self._solve([True] * len(code))

    def _through(self, block: int, kept: Sequence[bool]) -> int:
        """What is live at the block's beginning; only what kept instructions read counts."""
        live = self._live_out(block)
        first, end = self.blocks[block]
        for at in range(end - 1, first - 1, -1):
            if not kept[at]:
                continue
            for register in self.code[at].written:
                live &= ~(1 << register)
            for register in self.code[at].read:
                live |= 1 << register
        return live

    def _live_out(self, block: int) -> int:
        live = 0
        for after in self.next[block]:
            live |= self.live_in[after]
        return live

    def _solve(self, kept: Sequence[bool]) -> None:
        self.live_in = [0] * len(self.blocks)
        changed = True
        while changed:
            changed = False
            for block in range(len(self.blocks) - 1, -1, -1):
                live = self._through(block, kept)
                if live != self.live_in[block]:
                    self.live_in[block], changed = live, True

    def kept(self) -> list[bool]:
        """Starts from what has an effect, and keeps what writes a register that something kept reads later."""
        kept = [not instruction.only_computes for instruction in self.code]
        while True:
            self._solve(kept)
            grew = False
            for block, (first, end) in enumerate(self.blocks):
                live = self._live_out(block)
                for at in range(end - 1, first - 1, -1):
                    instruction = self.code[at]
                    if not kept[at] and any(live >> register & 1 for register in instruction.written):
                        kept[at] = grew = True
                    if kept[at]:
                        for register in instruction.written:
                            live &= ~(1 << register)
                        for register in instruction.read:
                            live |= 1 << register
            if not grew:
                return kept

    def intervals(self) -> dict[int, tuple[int, int]]:
        """From where to where a register is in use: instruction n reads at 2n and writes at 2n + 1."""
        found: dict[int, tuple[int, int]] = {}

        def use(register: int, at: int) -> None:
            first, last = found.get(register, (at, at))
            found[register] = (min(first, at), max(last, at))

        for n, instruction in enumerate(self.code):
            for register in instruction.read:
                use(register, 2 * n)
            for register in instruction.written:
                use(register, 2 * n + 1)
        for block, (first, end) in enumerate(self.blocks):
            for bits, at in ((self.live_in[block], 2 * first), (self._live_out(block), 2 * end - 1)):
                while bits:
                    lowest = bits & -bits
                    use(lowest.bit_length() - 1, at)
                    bits ^= lowest
        return found


def _scan(code: list[Instruction], intervals: dict[int, tuple[int, int]]) -> dict[int, int]:
    """Linear scan: the lowest place that is free from the register's first use to its last."""
    places: dict[int, int] = {}
    active: list[tuple[int, int]] = []  # (last use, place)
    free: list[int] = []
    count = 0
    for register, (first, last) in sorted(intervals.items(), key=lambda item: item[1]):
        while active and active[0][0] < first and _may_follow(code, active[0][0], first):
            heapq.heappush(free, heapq.heappop(active)[1])
        if free:
            place = heapq.heappop(free)
        else:
            place, count = count, count + 1
        places[register] = place
        heapq.heappush(active, (last, place))
    return places


def _may_follow(code: list[Instruction], last: int, first: int) -> bool:
    """Whether a place that is read for the last time at `last` can be written at `first`. Within one instruction
    scalars are read before any is written; a tile must have the result's shape and size of elements."""
    if last // 2 != first // 2:
        return True
    instruction = code[first // 2]
    op = instruction.op
    if all(o.kind is not Kind.TILE_DST for o in op.operands):
        return True
    if op.family not in _IN_PLACE:
        return False
    modes = instruction.operands[-1]
    count = sum(o.kind is Kind.TILE for o in op.operands)
    return all((modes >> 2 * n & 3) == modes >> 6 for n in range(count))
