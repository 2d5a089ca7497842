"""Goes through the nests of a row with its elements in the registers of the threads that share it.

A thread has *pieces* of a row, each some neighbours, which it loads and stores in vectors. Those that it holds in
registers are read once, whatever the nests do with them. Through the rest of a longer row it goes again and again, once
for each sum and once more for what is written, and what nests hand to each other is made again each time: nothing of it
is ever in memory, so that a row may be as long as it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu, scf

from eyas.codegen.common.emission.tile_loads import Block
from eyas.codegen.common.joint import Joint, placed_joint_of
from eyas.codegen.common.kernel import Access, Kernel, Nest, Storage
from eyas.codegen.common.sizes import ZERO, Size
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.points import decode
from eyas.codegen.gpu.row_pieces import Lanes, Piece, PieceTile, can_keep
from eyas.codegen.gpu.row_plan import Role, RowPlan
from eyas.codegen.gpu.shuffle import can_shuffle
from eyas.codegen.gpu.team import Team


class RowWalk:
    """One row, whose indices along the shared loops are `shared`; `exists` unless it is beyond the last one. A thread
    keeps the first `held` of its pieces, and has `pieces` of the others at a time."""

    def __init__(
        self,
        kernel: Kernel,
        plan: RowPlan,
        memory: Memory,
        team: Team,
        shared: Sequence[mlir.Value],
        exists: mlir.Value | None,
        held: int,
        pieces: int,
    ):
        self.kernel, self.plan, self.memory, self.team = kernel, plan, memory, team
        self.at, self.shared, self.exists, self.pieces = memory.at, list(shared), exists, pieces
        groups = plan.groups.static
        total = None if groups is None else -(-groups // team.size)
        self.is_whole = total is not None and total <= held
        """Whether the held pieces are all there are."""
        self.begin = 0 if total is None else min(held, total)
        """The first piece that is not held."""
        self.numbers: dict[Storage, Lanes] = {}
        """What is known of the row as a whole."""
        self.stores: list[Callable[[], None]] = []
        """Of these: they come last, for a longer row may be read again until then."""
        sums = [_joint(nest) for nest, role in zip(kernel.nests, plan.roles, strict=True) if role is Role.SUM]
        near = all(can_shuffle(old.type) for joint in sums if joint.in_order for old in joint.olds)
        self.lanes = team.lanes if near else 1
        self.first, self.stride = self._places()

    def emit(self) -> None:
        held = [self._piece(self.at.index(number), number) for number in range(self.begin)]
        for number, nest in enumerate(self.kernel.nests):
            self._pass(number, nest, held)
        if not self.is_whole:
            self._write_again()
        self._store_numbers()

    def _store_numbers(self) -> None:
        """By the first thread of a team."""
        if not self.stores:
            return
        if self.plan.waits and self.team.size > 1:
            gpu.BarrierOp()
        first = [self.team.is_first] if self.team.size > 1 else []
        conditions = [*first, *([] if self.exists is None else [self.exists])]
        with_condition(conditions, lambda: [store() for store in self.stores])

    def _pass(self, number: int, nest: Nest, held: list[Piece]) -> None:
        role = self.plan.roles[number]
        if role is Role.POINTS:
            self._points(nest, held, stores=True)
        elif role is Role.ROW:
            self._finish(nest, [])
        else:
            tile, joint = PieceTile(self, nest), _joint(nest)
            self._load_ahead(nest, held)
            share = self._share(tile, joint, held, self._start(tile, joint))
            self._join(tile, joint, share if self.is_whole else self._sum_again(number, tile, joint, share))

    # --- rows that do not fit into registers --------------------------------------------------------------------------

    def _sum_again(self, number: int, tile: PieceTile, joint: Joint, share: list[Lanes]) -> list[Lanes]:
        """A share with the pieces that are not held."""
        nests, outputs = self.kernel.nests, len(share[0])

        def by_lane(values: list[mlir.Value]) -> list[Lanes]:
            return [values[first : first + outputs] for first in range(0, len(values), outputs)]

        def run(passing: list[Piece], carried: list[mlir.Value]) -> list[mlir.Value]:
            for one in (*self.plan.feeds[number], number):
                self._load_ahead(nests[one], passing)
            for one in self.plan.feeds[number]:
                self._points(nests[one], passing, stores=False)
            return _flat(self._share(tile, joint, passing, by_lane(carried)))

        return by_lane(self._walk(_flat(share), run))

    def _write_again(self) -> None:
        """What nests write of the pieces that are not held."""
        nests, plan = self.kernel.nests, self.plan
        last = [number for number, nest in enumerate(nests) if plan.roles[number] is Role.POINTS and _writes(nest)]
        needed = sorted({one for number in last for one in (*plan.feeds[number], number)})

        def run(passing: list[Piece], carried: list[mlir.Value]) -> list[mlir.Value]:
            for number in needed:
                self._load_ahead(nests[number], passing)
            for number in needed:
                self._points(nests[number], passing, stores=False)
            for piece in passing:
                self._flush(piece)
            return carried

        if last:
            self._walk([], run)

    def _walk(self, carried: list[mlir.Value], run: Callable) -> list[mlir.Value]:
        """Runs code for all pieces that are not held, so many at a time: first for those that are surely inside of the
        row."""
        at, memory, size, begin, pieces = self.at, self.memory, self.team.size, self.begin, self.pieces
        groups, whole = memory.size(self.plan.groups), self.plan.groups.static
        known = None if whole is None else max(0, whole // size - begin) // pieces
        if self.plan.in_order and (whole is None or whole % size):
            known = 0  # only where they come out even are all pieces of all threads inside
        count = arith.DivUIOp(groups, at.index(size * pieces)).result if known is None else at.index(known)

        def several(number: mlir.Value, values: list[mlir.Value]) -> list[mlir.Value]:
            first = memory.multiply(number, pieces)
            return run([self._piece(memory.add(first, at.index(begin + one))) for one in range(pieces)], values)

        if known is None or known:
            carried = self._rounds(at.index(0), count, carried, several)
        if known is not None and whole is not None:
            first, total = begin + known * pieces, -(-whole // size)
            if total - first <= pieces:
                rest = [self._piece(at.index(one), one) for one in range(first, total)]
                return run(rest, carried) if rest else carried
        low = memory.add(memory.multiply(count, pieces), at.index(begin))
        high = arith.CeilDivUIOp(groups, at.index(size)).result
        return self._rounds(low, high, carried, lambda one, values: run([self._piece(one, guarded=True)], values))

    def _rounds(self, low: mlir.Value, high: mlir.Value, carried: list[mlir.Value], run: Callable) -> list[mlir.Value]:
        loop = scf.ForOp(low, high, self.at.index(1), carried)
        with mlir.InsertionPoint(loop.body):
            scf.YieldOp(run(loop.induction_variable, list(loop.inner_iter_args)))
        return list(loop.results)

    # --- pieces -------------------------------------------------------------------------------------------------------

    def _places(self) -> tuple[mlir.Value, int]:
        """Where a thread's first piece is, and how far apart they are: side by side with those of all other threads,
        or, where sums are joined in order, of its subgroup."""
        at, team = self.at, self.team
        if not self.plan.in_order:
            return team.rank, team.size
        total = arith.CeilDivUIOp(self.memory.size(self.plan.groups), at.index(team.size)).result
        group = arith.DivUIOp(team.rank, at.index(self.lanes)).result
        lane = arith.RemUIOp(team.rank, at.index(self.lanes)).result
        begin = arith.MulIOp(arith.MulIOp(group, total).result, at.index(self.lanes)).result
        return arith.AddIOp(begin, lane).result, self.lanes

    def _piece(self, index: mlir.Value, known: int | None = None, guarded: bool = False) -> Piece:
        """The thread's piece with an index, which may be `known`."""
        at, size, groups = self.at, self.team.size, self.plan.groups
        number = self.memory.add(self.first, self.memory.multiply(index, self.stride))
        if known is not None:
            assert groups.static is not None
            guarded = groups.static % size != 0 if self.plan.in_order else (known + 1) * size > groups.static
        if not guarded:
            return Piece(number, None)
        inside = arith.CmpIOp(arith.CmpIPredicate.ult, number, self.memory.size(groups)).result
        return Piece(arith.SelectOp(inside, number, at.index(0)).result, inside)

    def block(self, nest: Nest, piece: Piece) -> Block:
        """A piece as a tile of a nest."""
        own, points = nest.loops[self.plan.shared :], self.plan.points
        if not own:
            return Block(list(self.shared), 1, 1, None)
        sizes = [*own[:-1], Size(own[-1].factor // points, own[-1].symbols)]
        indices = decode(self.memory, piece.number, sizes)
        indices[-1] = self.memory.multiply(indices[-1], points)
        return Block([*self.shared, *indices], 1, points, None)

    def _load_ahead(self, nest: Nest, held: Sequence[Piece]) -> None:
        """Loads what only these rows have, for all pieces, before any of it is used."""
        tile, shared = PieceTile(self, nest), self.plan.shared
        for piece in held:
            loads = tile.loads_of(piece)
            for access in (one for statement in nest.statements for one in statement.inputs if isinstance(one, Access)):
                own = any(stride != ZERO for stride in access.strides[shared:])
                of_row = own and (not shared or any(stride != ZERO for stride in access.strides[:shared]))
                if of_row and can_keep(access) and not self.is_made(access.storage):
                    for lane in range(self.plan.points):
                        loads.get(access, 0, lane)

    def is_made(self, storage: Storage) -> bool:
        """Whether a nest makes it."""
        return storage.binding is None or storage.is_output

    # --- nests --------------------------------------------------------------------------------------------------------

    def _points(self, nest: Nest, held: Sequence[Piece], stores: bool) -> None:
        """What a nest makes of each element. Stores come last: a load cannot be moved before one."""
        tile = PieceTile(self, nest)
        self._load_ahead(nest, held)
        for piece in held:
            tile.run_piece(piece)
        for piece in held if stores else ():
            self._flush(piece)

    def _flush(self, piece: Piece) -> None:
        conditions = [one for one in (self.exists, piece.inside) if one is not None]
        with_condition(conditions, lambda: [store() for store in piece.stores])
        piece.stores.clear()

    def _start(self, tile: PieceTile, joint: Joint) -> list[Lanes]:
        """What sums begin with, for each neighbour."""
        olds = tile.olds()
        lanes = 1 if joint.in_order else self.plan.points
        return [joint.first(self.memory, olds) for _ in range(lanes)]

    def _share(self, tile: PieceTile, joint: Joint, held: Sequence[Piece], share: list[Lanes]) -> list[Lanes]:
        """The sums after some more pieces: of each neighbour by itself, or, in order, of all threads of a subgroup."""
        for piece in held:
            if not joint.in_order:
                share = _if(piece.inside, tile.sum_piece(piece, share), share)
                continue
            fresh = [joint.first(self.memory, tile.olds()) for _ in range(self.plan.points)]
            near = _if(piece.inside, tile.sum_piece(piece, fresh), fresh)
            together = self.team.join_lanes(joint, self._fold(joint, near), self.lanes)
            share = [joint.join(self.memory, share[0], together)]
        return share

    def _fold(self, joint: Joint, share: list[Lanes]) -> Lanes:
        total = share[0]
        for one in share[1:]:
            total = joint.join(self.memory, total, one)
        return total

    def _join(self, tile: PieceTile, joint: Joint, share: list[Lanes]) -> None:
        total = self._fold(joint, share)
        total = self.team.join(joint, total, self.lanes if joint.in_order else 1)
        self._finish(tile.nest, joint.last(self.memory, tile.olds(), total))

    def _finish(self, nest: Nest, sums: Lanes) -> None:
        """What follows a sum, or what is about the row alone: each thread for itself."""
        tile = PieceTile(self, nest)
        piece = Piece(self.at.index(0), None)
        tile.run_row(piece, sums)
        self.numbers.update(piece.made)
        self.stores += piece.stores


def with_condition(conditions: Sequence[mlir.Value], run: Callable[[], object]) -> None:
    """Runs code where all of some conditions hold."""
    if not conditions:
        run()
        return
    both = conditions[0] if len(conditions) == 1 else arith.AndIOp(*conditions).result
    branch = scf.IfOp(both)
    with mlir.InsertionPoint(branch.then_block):
        run()
        scf.YieldOp([])


def _joint(nest: Nest) -> Joint:
    joint = placed_joint_of(nest.statements[0])
    assert joint is not None, "the plan asked for it"
    return joint


def _writes(nest: Nest) -> bool:
    outputs = [one for statement in nest.statements for one in statement.outputs if one is not None]
    return any(one.storage.binding is not None for one in outputs)


def _flat(share: list[Lanes]) -> list[mlir.Value]:
    return [value for lane in share for value in lane]


def _if(inside: mlir.Value | None, new: list[Lanes], old: list[Lanes]) -> list[Lanes]:
    if inside is None:
        return new
    return [
        [arith.SelectOp(inside, one, other).result for one, other in zip(lane, before, strict=True)]
        for lane, before in zip(new, old, strict=True)
    ]
