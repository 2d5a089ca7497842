"""Depthwise convolutions and pooling by `twindow`: columns are channels, each by itself."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.codegen.common.combine import combiner_of
from eyas.codegen.common.kernel import Access, Nest, Unsupported
from eyas.codegen.common.schedule import Tile
from eyas.codegen.common.sizes import ONE, ZERO
from eyas.codegen.vmvx.builder import Tile as Value
from eyas.codegen.vmvx.emit import Bounds, KernelEmitter
from eyas.codegen.vmvx.emit_sum import SumEmitter
from eyas.codegen.vmvx.memory import View
from eyas.codegen.vmvx.types import is_bool, rounding, tile_type
from eyas.ir.walk import defining_op
from eyas.module.vmvx_isa import BY_NAME

LEVELS = 2
_KINDS = {
    "arith.addf": "add", "arith.addi": "add", "arith.maximumf": "maximum", "arith.minimumf": "minimum",
    "arith.maxnumf": "maxnum", "arith.minnumf": "minnum", "arith.maxsi": "maximum", "arith.minsi": "minimum",
}  # fmt: skip


@dataclass(frozen=True)
class Pooled:
    """`out[row, lane] = out[row, lane] (op) image[row, lane] * filter[lane]`, by an instruction `twindow_<kind>`."""

    kind: str
    image: Access
    filter: Access | None


def pooled_of(nest: Nest, lane: int, row: int | None) -> Pooled | str:
    """The windows that a nest begins with, for channels along `lane`; or why it is none."""
    statement = nest.statements[0]
    combiner = combiner_of(statement.body, len(statement.inputs))
    if combiner is None or combiner.op_name not in _KINDS or statement.body is None or lane in statement.reductions:
        return "no window that is summed up"
    type_ = statement.element_types[0]
    if rounding(type_) is not None or is_bool(type_):
        return "a sum in a type without an instruction"
    arguments = list(statement.body.arguments)
    combine = defining_op(list(statement.body.operations)[-1].operands[0])
    assert combine is not None
    (added,) = (operand for operand in combine.operands if operand != arguments[len(statement.inputs)])
    times = defining_op(added)
    factors, kind = [added], _KINDS[combiner.op_name]
    if times is not None and times.name in ("arith.mulf", "arith.muli") and kind == "add":
        factors, kind = list(times.operands), "muladd"
    if any(factor not in arguments for factor in factors):
        return "a factor is computed"
    accesses = [statement.inputs[arguments.index(factor)] for factor in factors]
    for image, filter_ in (accesses, accesses[::-1]) if len(accesses) == 2 else [(accesses[0], None)]:
        if not isinstance(image, Access) or not (filter_ is None or isinstance(filter_, Access)):
            return "a factor is not in memory"
        if image.storage.element != type_ or (filter_ is not None and filter_.storage.element != type_):
            return "a factor of another type"
        if image.strides[lane] != ONE or (filter_ is not None and filter_.strides[lane] != ONE):
            continue
        if filter_ is None or row is None or filter_.strides[row] == ZERO:
            name = f"{kind}_{tile_type(type_).name.lower()}"
            return Pooled(name, image, filter_) if f"twindow_{name}" in BY_NAME else "a type without an instruction"
    return "no channels that are neighbours"


class WindowEmitter(SumEmitter):
    levels = LEVELS

    def __init__(self, parent: KernelEmitter, nest: Nest, tile: Tile, bounds: Bounds):
        super().__init__(parent, nest, tile, bounds)
        found = pooled_of(self.nest, self.lane, tile.unroll_loop)
        if isinstance(found, str):
            raise Unsupported(found)
        self.pooled = found

    def _sum(self, total: Value, view: View, loops: list[int]) -> None:
        one, zero = self.builder.const(1), self.builder.const(0)
        image, filter_ = self.pooled.image, self.pooled.filter
        row_bytes, _ = self.memory.steps(image, view)
        weights = zero if filter_ is None else self.memory.address(filter_, view)
        operands = [self.memory.address(image, view), row_bytes, weights, *self._levels(loops, image, filter_)]
        shape = (view.rows or one, view.columns or one)
        self.builder.change(total, f"twindow_{self.pooled.kind}", operands, shape)
