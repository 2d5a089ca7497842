"""Open sizes that meet in broadcasting: what they make each other has one name, however often and in what order.

Of those that meet all are equal or 1, so that they make each other the same size everywhere: `a + b` is as large as
`b * a`, and what is as large as both stays so when one of them meets it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import onnx

from eyas.frontends.onnx.symbolic import expressions as ex
from eyas.frontends.onnx.symbolic.values import Value

_MEETING = frozenset(
    "Add And BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual MatMul Max Mean Min Mod"
    " Mul Or Pow Sub Sum Where Xor".split()
)


@dataclass
class Meetings:
    """Names by the sizes that met, and the sizes by what they made each other."""

    names: dict[frozenset[ex.Integer], ex.Poly] = field(default_factory=dict)
    _parts: dict[ex.Integer, frozenset[ex.Integer]] = field(default_factory=dict)

    def of(self, sizes: Iterable[ex.Integer], otherwise: str) -> ex.Poly:
        """What open sizes make each other; the first time it gets this name."""
        parts = frozenset(part for size in sizes for part in self._parts.get(size, (size,)))
        if parts not in self.names:
            self.names[parts] = ex.dim(otherwise)
            self._parts[self.names[parts]] = parts
        return self.names[parts]


def sizes_that_meet(node: onnx.NodeProto, inputs: Sequence[Value | None]) -> list[set[ex.Integer]] | None:
    """For each dimension of a result the open sizes that meet there, if there are several; None where none do."""
    shapes = [value.shape for value in inputs if value is not None and value.shape is not None]
    inner = 2 if node.op_type == "MatMul" else 0
    if node.op_type not in _MEETING or len(shapes) != len(inputs) or any(len(shape) < inner for shape in shapes):
        return None
    rank = max(map(len, shapes))
    result: list[set[ex.Integer]] = []
    for back in range(rank, 0, -1):
        sizes = {shape[-back] for shape in shapes if back <= len(shape)} - {1}
        is_met = back > inner and len(sizes) > 1 and not any(isinstance(size, int) for size in sizes)
        result.append(sizes if is_met else set())
    return result if any(result) else None
