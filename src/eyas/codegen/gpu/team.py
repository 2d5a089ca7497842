"""Threads that work on one row together: each sums up a share of it. Threads of a subgroup hand their shares to each
other, subgroups by way of shared memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu, scf

from eyas.codegen.common.emission.tile_loads import Block
from eyas.codegen.common.joint import Joint, joint_of
from eyas.codegen.common.kernel import Nest, Statement
from eyas.codegen.common.sizes import Size, product
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.points import decode
from eyas.codegen.gpu.shared_values import SharedValues
from eyas.codegen.gpu.shuffle import can_shuffle, shuffle
from eyas.codegen.gpu.thread_tile import Ahead, ThreadTile, points_along

# Shares that each thread joins for itself, instead of waiting for others to do it.
_READ_BY_ALL = 8


class Team:
    """`size` threads with neighbouring numbers; this one has the number `rank` among them. `lanes` neighbours can be
    asked for what they have in registers; 1: none."""

    def __init__(self, memory: Memory, size: int, lanes: int = 1):
        at = memory.at
        self.memory, self.size, self.subgroup = memory, size, lanes
        self.lanes = min(size, lanes)
        alone = size == 1
        self.rank = at.index(0) if alone else arith.RemUIOp(at.thread, at.index(size)).result
        self._shares: dict[tuple[int, str], SharedValues] = {}

    def join(self, joint: Joint, share: list[mlir.Value], joined: int = 1) -> list[mlir.Value]:
        """What the shares of all threads of the team are together, for each of them, where so many neighbours have
        `joined` theirs already. All threads of the workgroup come here together."""
        reach = self.lanes if all(can_shuffle(value.type) for value in share) else 1
        if joined == 1:
            share = self.join_lanes(joint, share, reach)
        reach = max(reach, joined)
        return share if reach == self.size else self._join_shares(joint, share, reach)

    def join_lanes(self, joint: Joint, share: list[mlir.Value], among: int) -> list[mlir.Value]:
        """What `among` neighbours of a subgroup have together in registers, for each of them."""
        at, reach = self.memory.at, 1
        while reach < among:
            others = [shuffle(at, one, reach, self.subgroup) for one in share]
            left, right = share, others
            if joint.in_order:
                bit = arith.AndIOp(self.rank, at.index(reach)).result
                is_left = arith.CmpIOp(arith.CmpIPredicate.eq, bit, at.index(0)).result
                pairs = list(zip(share, others, strict=True))
                left = [arith.SelectOp(is_left, mine, theirs).result for mine, theirs in pairs]
                right = [arith.SelectOp(is_left, theirs, mine).result for mine, theirs in pairs]
            share = joint.join(self.memory, left, right)
            reach *= 2
        return share

    def _join_shares(self, joint: Joint, share: list[mlir.Value], lanes: int) -> list[mlir.Value]:
        """What groups of `lanes` threads, which have the same share each, have together. All threads of the workgroup
        come here together."""
        at = self.memory.at
        places = [self._place(number, value.type) for number, value in enumerate(share)]

        def load(thread: mlir.Value) -> list[mlir.Value]:
            return [place.load(thread) for place in places]

        def store(values: list[mlir.Value]) -> None:
            for place, value in zip(places, values, strict=True):
                place.store(value, at.thread)

        store(share)
        gpu.BarrierOp()
        first = arith.SubIOp(at.thread, self.rank).result
        count = self.size // lanes
        if 2 < count <= lanes:  # each lane reads another share, and they join again
            near = arith.RemUIOp(self.rank, at.index(count)).result
            number = arith.MulIOp(near, at.index(lanes)).result
            total = self.join_lanes(joint, load(arith.AddIOp(first, number).result), count)
        elif count <= _READ_BY_ALL:
            total = load(first)
            for number in range(lanes, self.size, lanes):
                total = joint.join(self.memory, total, load(arith.AddIOp(first, at.index(number)).result))
        else:
            reach = lanes  # neighbours first, so that what is joined always comes in the order of the threads
            while reach < self.size:
                left = arith.AndIOp(self.rank, at.index(2 * reach - 1)).result
                active = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.eq, left, at.index(0)).result)
                with mlir.InsertionPoint(active.then_block):
                    other = arith.AddIOp(at.thread, at.index(reach)).result
                    store(joint.join(self.memory, load(at.thread), load(other)))
                    scf.YieldOp([])
                gpu.BarrierOp()
                reach *= 2
            total = load(first)
        gpu.BarrierOp()  # before the memory is used again
        return total

    def _place(self, number: int, type_: mlir.Type) -> SharedValues:
        key = (number, str(type_))
        if key not in self._shares:
            self._shares[key] = SharedValues(self.memory.at, type_, self.memory.at.threads)
        return self._shares[key]

    @property
    def is_first(self) -> mlir.Value:
        return arith.CmpIOp(arith.CmpIPredicate.eq, self.rank, self.memory.at.index(0)).result


class TeamTile(ThreadTile):
    """One point of a nest, whose first statement the threads of a team sum up together."""

    def __init__(self, memory: Memory, nest: Nest, team: Team):
        super().__init__(memory, nest)
        self.team = team

    def _reduce(self, statement: Statement, block: Block, made: dict) -> list:
        joint = joint_of(statement)
        assert joint is not None, "the strategy checked this"
        outer = self._loads(block)
        olds = [old[0][0] for old in self._initial(statement, block, outer)]
        *others, along = statement.reductions
        points = points_along(self.nest, along)
        last = self.nest.loops[along]
        sizes = [*(self.nest.loops[loop] for loop in others), Size(last.factor // points, last.symbols)]

        def step(number: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
            """Neighbours, one after the other, loaded at once."""
            indices = list(block.indices)
            for loop, index in zip(statement.reductions, decode(self.memory, number, sizes), strict=True):
                indices[loop] = index
            first = self.memory.multiply(indices[along], points)
            ahead = Ahead(along, points)
            for lane in range(points):
                self.ahead = replace(ahead, step=lane) if points > 1 else None
                indices[along] = self.memory.add(first, self.at.index(lane))
                inner = Block(list(indices), 1, 1, None)
                values = self._apply(statement, inner, self._loads(inner, outer), made, [[[one]] for one in carried])
                carried = [value[0][0] for value in values]
            self.ahead = None
            return carried

        first = joint.first(self.memory, olds)
        share = self._share(self.memory.size(product(sizes)), joint.in_order, first, step)
        total = self.team.join(joint, share)
        return [[[value]] for value in joint.last(self.memory, olds, total)]

    def _share(self, count: mlir.Value, in_order: bool, first: list[mlir.Value], step: Callable) -> list[mlir.Value]:
        """This thread's share: every so manieth number from its rank on; or, where shares must come in order,
        neighbours."""
        team, at = self.team, self.at
        if not in_order:
            return self._carry(team.rank, count, team.size, first, step)
        each = arith.CeilDivUIOp(count, at.index(team.size)).result
        low = arith.MulIOp(team.rank, each).result
        high = arith.MinUIOp(arith.AddIOp(low, each).result, count).result
        return self._carry(arith.MinUIOp(low, high).result, high, 1, first, step)


def why_not_together(nest: Nest) -> str | None:
    """Why a team cannot share what the points of a nest sum up, or None."""
    first = nest.statements[0]
    if not first.reductions or any(statement.reductions for statement in nest.statements[1:]):
        return "it is not the nest's first statement alone that sums up"
    if joint_of(first) is None:
        return "shares of the sum cannot be joined"
    if first.body is not None and any(op.operation.name == "cf.assert" for op in first.body.operations):
        return "it asserts something of each element"
    return None
