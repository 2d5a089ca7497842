"""Softmax between two products, recognised in the loop nests of a dispatch.

    scores = rows of queries times keys, then anything elementwise     nests with loops (heads, row, key)
    weights = exp(scores - maximum of a row)
    sum = sum of the weights of a row, then anything that it alone decides
    result = weights times values, divided by the sum before or after  loops (heads, row, width, key)

Only in exactly this form may a row be taken in pieces: with another maximum, what was summed up is scaled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch_mlir import ir as mlir

from eyas.codegen.common.combine import combiner_of
from eyas.codegen.common.kernel import Access, Kernel, Nest, Statement, Storage
from eyas.codegen.common.sizes import ONE, ZERO
from eyas.codegen.common.softmax import Kind, NotSoftmax, constant_kind, folded_kind, made_kind
from eyas.ir.structured import constant_scalar

_OF_POINTS = (Kind.SCORE, Kind.SHIFTED, Kind.WEIGHT, Kind.SHARE)
"""What there is one of for each row and key, and not one for each row."""


@dataclass(frozen=True)
class AttentionForm:
    """The nests of attention. `row` is the loop of query rows, the loops before it are heads; keys are the next loop of
    the scores, and so is the width of the values in the last nest."""

    row: int
    scores: tuple[Nest, ...]
    """The first product, and elementwise nests after it."""
    score: Storage
    """What the last of them writes."""
    sums: Nest
    """Its first statement sums up weights."""
    values: Nest
    """Its first statement multiplies weights and values."""
    weight: Storage
    """Where the last nest would read weights."""
    divisor: Storage | None
    """The sums by which weights are divided before the last nest reads them."""

    @property
    def inner(self) -> int:
        """The loop of keys in the scores, and of the width in the result."""
        return self.row + 1

    @property
    def row_count(self) -> int:
        return self._static(self.values, self.row)

    @property
    def key_count(self) -> int:
        return self._static(self.scores[0], self.inner)

    @property
    def width(self) -> int:
        return self._static(self.values, self.inner)

    @property
    def element(self) -> mlir.Type:
        """Of scores, maxima and sums."""
        return self.score.element

    @staticmethod
    def _static(nest: Nest, loop: int) -> int:
        size = nest.loops[loop].static
        assert size is not None, "attention_form asks for that"
        return size


def attention_form(kernel: Kernel) -> AttentionForm | str:
    """The form of attention that a kernel has, or why it has none."""
    if kernel.steps is not None or len(kernel.nests) < 5:
        return "no softmax between two products"
    if not kernel.shared:
        return "its loop nests have no rows in common"
    try:
        return _Reader(kernel).read()
    except NotSoftmax as reason:
        return str(reason)


class _Reader:
    """Goes through the nests in order, and notes what kind of value each storage has."""

    def __init__(self, kernel: Kernel):
        self.nests, self.shared = kernel.nests, kernel.shared
        self.kinds: dict[int, Kind] = {}
        self.found: dict[Kind, Nest] = {}
        self.scores: list[Nest] = []
        self.score: Storage | None = None
        self.divisor: Storage | None = None

    def read(self) -> AttentionForm:
        for nest in self.nests:
            if nest.guards:
                raise NotSoftmax("small tiles of a nest stick out of their tensor")
            if any(size.static is None or size.static < 1 for size in nest.loops):
                raise NotSoftmax("sizes are not known")
        first, *middle, last = self.nests
        self._scores(first, (self.shared + 1,))
        for nest in middle:
            if not nest.reductions and Kind.MAXIMUM not in self.found:
                self._scores(nest, ())
            elif nest.reductions:
                self._fold(nest)
            else:
                self._interpret(nest, {}, 0)
        weight = self._last(last)
        assert self.score is not None
        sums = self.found[Kind.SUM]
        if Kind.GUARDED not in self.kinds.values() and len(sums.statements) > 1:
            raise NotSoftmax("sums of rows without scores are minded, their maxima are not")
        divisor = self.divisor if self.kinds[id(weight)] is Kind.SHARE else None
        return AttentionForm(self.shared - 1, tuple(self.scores), self.score, sums, last, weight, divisor)

    def _scores(self, nest: Nest, reductions: tuple[int, ...]) -> None:
        """A nest that makes scores, in whichever way."""
        first, *rest = nest.statements
        if first.reductions != reductions or any(statement.reductions for statement in rest):
            raise NotSoftmax("scores are no sums along one loop")
        if any(id(access.storage) not in self.kinds for access in _locals_read(nest)):
            raise NotSoftmax("something is made before the scores")
        outputs = _outputs(nest)
        if len(outputs) != 1 or outputs[0].storage.binding is not None:
            raise NotSoftmax("scores are handed to more than the softmax")
        self.score = outputs[0].storage
        self._aligned(nest, outputs[0])
        self.kinds = {id(self.score): Kind.SCORE}
        self.scores.append(nest)

    def _fold(self, nest: Nest) -> None:
        """The maximum or the sum of rows."""
        first = nest.statements[0]
        source, start = first.inputs[0], first.inits[0]
        if first.body is None or not isinstance(source, Access) or isinstance(start, Access):
            raise NotSoftmax("rows are folded other than for a softmax")
        made = folded_kind(first.body, self.kinds.get(id(source.storage)), start)
        if made in self.found or first.reductions != (self.shared,):
            raise NotSoftmax("rows are folded twice, or along more than keys")
        assert self.score is not None
        if {first.element_types[0], source.storage.element} != {self.score.element}:
            raise NotSoftmax("rows are folded in another type than scores have")
        self._aligned(nest, source)
        self.found[made] = nest
        self._interpret(nest, {(0, 0): made}, 1)

    def _interpret(self, nest: Nest, known: dict[tuple[int, int], Kind], start: int) -> None:
        """Notes the kinds of what the statements of a nest make."""
        for position, statement in enumerate(nest.statements):
            if position >= start:
                known[position, 0] = self._kind_made(statement, known)
            output = statement.outputs[0]
            if output is not None:
                if output.storage.binding is not None:
                    raise NotSoftmax("something of the softmax is a result")
                self.kinds[id(output.storage)] = known[position, 0]
        for access in nest.accesses:
            if self.kinds[id(access.storage)] in _OF_POINTS:
                self._aligned(nest, access)

    def _kind_made(self, statement: Statement, known: dict[tuple[int, int], Kind]) -> Kind:
        if statement.body is None or len(statement.outputs) != 1 or statement.inits[0] is not None:
            raise NotSoftmax("an op between the products is not of a softmax")
        return made_kind(statement.body, [self._kind_read(source, known) for source in statement.inputs])

    def _kind_read(self, source: object, known: dict[tuple[int, int], Kind]) -> Kind | None:
        if isinstance(source, tuple):
            return known[source]
        if isinstance(source, mlir.Value):
            return constant_kind(source)
        if not isinstance(source, Access):
            return None
        kind = self.kinds.get(id(source.storage))
        if kind is None:
            raise NotSoftmax("a tensor is read between the scores and the second product")
        if kind is Kind.SUM:
            self.divisor = source.storage
        return kind

    def _last(self, nest: Nest) -> Storage:
        """The second product; returns what it reads as weights."""
        first, *rest = nest.statements
        weights = [one for one in first.inputs if isinstance(one, Access) and id(one.storage) in self.kinds]
        start = first.inits[0] if len(first.inits) == 1 else None
        zero = isinstance(start, mlir.Value) and constant_scalar(start) == 0
        if set(self.found) != {Kind.MAXIMUM, Kind.SUM} or len(weights) != 1 or not zero:
            raise NotSoftmax("the last loop nest is no product of a softmax")
        if first.reductions != (self.shared + 1,) or any(statement.reductions for statement in rest):
            raise NotSoftmax("the second product has other than rows, a width and keys")
        if self.kinds[id(weights[0].storage)] not in (Kind.WEIGHT, Kind.SHARE):
            raise NotSoftmax("what the second product reads is not made by a softmax")
        if not _is_linear(first, first.inputs.index(weights[0])):
            raise NotSoftmax("the second product is no sum of products")
        if weights[0].strides[self.shared :] != (ZERO, ONE) or weights[0].guards:
            raise NotSoftmax("the second product reads weights in another order")
        if weights[0].storage.shape[self.shared :] != nest.loops[self.shared + 1 :]:
            raise NotSoftmax("the second product reads weights in part")
        read = [access for access in _locals_read(nest) if access is not weights[0]]
        if any(self.kinds.get(id(access.storage)) is not Kind.SUM for access in read):
            raise NotSoftmax("scores are used after the second product")
        return weights[0].storage

    def _aligned(self, nest: Nest, access: Access) -> None:
        """Points of a nest and of what it reads or writes must be the same."""
        if access.guards or access.strides[self.shared] != ONE or len(access.storage.shape) != self.shared + 1:
            raise NotSoftmax("scores are read in another order than they are made")
        if access.storage.shape[self.shared] != nest.loops[self.shared]:
            raise NotSoftmax("scores are read in part")


def _outputs(nest: Nest) -> list[Access]:
    return [output for statement in nest.statements for output in statement.outputs if output is not None]


def _locals_read(nest: Nest) -> list[Access]:
    """What a nest reads that another one has made."""
    sources: Sequence = [source for statement in nest.statements for source in (*statement.inputs, *statement.inits)]
    return [one for one in sources if isinstance(one, Access) and one.storage.binding is None]


def _is_linear(statement: Statement, weight: int) -> bool:
    """Whether a body adds the product of a weight, which is its input with this number, and something else to a sum."""
    body = statement.body
    if body is None or combiner_of(body, len(statement.inputs)) is None:
        return False
    names = sorted(view.operation.name for view in body.operations if view.operation.name != "arith.extf")
    return names == ["arith.addf", "arith.mulf", "linalg.yield"] and len(list(body.arguments[weight].uses)) == 1
