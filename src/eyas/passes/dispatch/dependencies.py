"""Who needs whom while groups are formed: whether two may become one without a cycle."""

from __future__ import annotations

from torch_mlir import ir as mlir

from eyas.dialects import flow
from eyas.ir.walk import defining_op, is_tensor, nested_operands


class Dependencies:
    """The graph of ops and groups, with all that each needs as a set of bits.

    A node is a group, or an op that is in none. Ops are added in program order and then joined to groups. A question
    is a test of a bit for each direct predecessor; joining adds bits to those nodes alone that gain some. `visits`
    counts the nodes that were touched, for tests of how the work grows.
    """

    def __init__(self) -> None:
        self._node_of: dict[mlir.Operation, int] = {}
        self._into: list[int] = []
        self._direct: list[set[int]] = []
        self._users: list[set[int]] = []
        self._needs: list[int] = []
        self.visits = 0

    def add(self, op: mlir.Operation) -> None:
        """A node of its own for an op, whose operands were added before."""
        node = len(self._into)
        self._node_of[op] = node
        self._into.append(node)
        self._direct.append(set())
        self._users.append(set())
        self._needs.append(0)
        for value in self._needed_values(op):
            owner = defining_op(value)
            if owner is not None and owner in self._node_of and owner != op:
                self._direct[node].add(self._find(self._node_of[owner]))
        for other in self._direct[node]:
            self._users[other].add(node)
            self._needs[node] |= self._needs[other] | 1 << other
            self.visits += 1

    def _needed_values(self, op: mlir.Operation) -> list[mlir.Value]:
        """Operands, and the sizes of results, which a dispatch must know beforehand."""
        values = list(nested_operands(op))
        for result in op.results:
            if is_tensor(result) and not mlir.RankedTensorType(result.type).has_static_shape:
                for use in result.uses:
                    if isinstance(use.owner.opview, flow.TieShapeOp):
                        values += list(use.owner.opview.dims)
        return values

    def are_apart(self, first: mlir.Operation, second: mlir.Operation) -> bool:
        """Whether one needs the other by way of a third: as one node they would need themselves."""
        a, b = self._node(first), self._node(second)
        return a != b and (self._needs_through_others(a, b) or self._needs_through_others(b, a))

    def _needs_through_others(self, node: int, other: int) -> bool:
        self.visits += 1
        if not self._needs[node] >> other & 1:
            return False
        between = self._direct_of(node) - {other}
        self.visits += len(between)
        return any(self._needs[direct] >> other & 1 for direct in between)

    def join(self, first: mlir.Operation, second: mlir.Operation) -> None:
        """Makes one node of two, which are not apart."""
        kept, gone = self._node(first), self._node(second)
        if kept == gone:
            return
        self._into[gone] = kept
        self._direct[kept] = (self._direct_of(kept) | self._direct_of(gone)) - {kept}
        self._users[kept] |= self._users[gone]
        both = 1 << kept | 1 << gone
        needs = (self._needs[kept] | self._needs[gone]) & ~both
        self._needs[kept] = needs
        pending = [self._find(user) for user in self._users[kept]]
        while pending:
            node = pending.pop()
            grown = self._needs[node] | needs | both
            self.visits += 1
            if node != kept and grown != self._needs[node]:
                self._needs[node] = grown
                pending += [self._find(user) for user in self._users[node]]

    def _direct_of(self, node: int) -> set[int]:
        self._direct[node] = {self._find(other) for other in self._direct[node]} - {node}
        return self._direct[node]

    def _node(self, op: mlir.Operation) -> int:
        return self._find(self._node_of[op])

    def _find(self, node: int) -> int:
        while self._into[node] != node:
            self._into[node] = self._into[self._into[node]]
            node = self._into[node]
        return node
