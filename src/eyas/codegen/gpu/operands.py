"""The two factors of a sum of products, and along which loops they move."""

from __future__ import annotations

from eyas.codegen.common.kernel import Access, Nest
from eyas.codegen.common.sizes import ZERO


def operands_of(nest: Nest, row: int | None, column: int) -> tuple[Access, Access] | str:
    """The input that moves along the rows and the one that moves along the columns, or why there are no such two."""
    first = nest.statements[0]
    if row is None:
        return "no rows"
    inputs = [source for source in first.inputs if source is not None]  # of the others only their size is read
    if any(not isinstance(source, Access) for source in inputs) or len(inputs) != 2:
        return "other than two operands"
    if first.body is None or any(
        op.operation.name in ("linalg.index", "tensor.extract") for op in first.body.operations
    ):
        return "the sum asks for more than its operands"
    one, other = inputs
    assert isinstance(one, Access) and isinstance(other, Access)
    for rows, columns in ((one, other), (other, one)):
        if moves(rows, row) and not moves(rows, column) and moves(columns, column) and not moves(columns, row):
            return rows, columns
    return "an operand moves along rows and columns"


def moves(access: Access, loop: int) -> bool:
    """Whether what an access reads depends on a loop."""
    guards = any(guard.coefficients[loop] for guard in access.guards)
    deeper = isinstance(access.otherwise, Access) and moves(access.otherwise, loop)
    return access.strides[loop] != ZERO or guards or deeper
