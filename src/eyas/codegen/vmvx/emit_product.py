"""Sums of products by `tcontract`: a panel of columns is read once from memory, and rows stream past it.

The right operand lies in panels of 16 columns, one after the other (weights that `pack-weights` stored so), or its rows
are read where they are, or each block of columns copies its part into panels in the workgroup's memory.
"""

from __future__ import annotations

from collections.abc import Callable

from eyas.codegen.common.kernel import Access, Nest, Storage, Unsupported
from eyas.codegen.common.panels import in_panels
from eyas.codegen.common.schedule import Tile
from eyas.codegen.common.sizes import ZERO, Size, product
from eyas.codegen.vmvx.builder import Scalar
from eyas.codegen.vmvx.builder import Tile as Value
from eyas.codegen.vmvx.emit import Bounds, KernelEmitter
from eyas.codegen.vmvx.emit_sum import SumEmitter
from eyas.codegen.vmvx.memory import View
from eyas.codegen.vmvx.products import LEVELS, STEPS, Product, product_of
from eyas.codegen.vmvx.types import element_bytes
from eyas.module.vmvx_isa import MAX_ELEMENTS, PANEL, Extent, Memory, Type, modes

STAGED_BYTES = 512 * 1024
"""The largest panel that a block of columns copies, for one unit of width."""


# Elements are copied as integers of their size.
_COPIED = {
    1: (Type.I8, Memory.I8),
    2: (Type.I16, Memory.I16),
    4: (Type.I32, Memory.I32),
    8: (Type.I64, Memory.I64),
}


class ProductEmitter(SumEmitter):
    levels = LEVELS

    def __init__(self, parent: KernelEmitter, nest: Nest, tile: Tile, bounds: Bounds):
        super().__init__(parent, nest, tile, bounds)
        found = product_of(self.nest, self.lane, tile.unroll_loop)
        if isinstance(found, str):
            raise Unsupported(found)
        self.product, self.right = found, found.right
        self.step = STEPS[found.kind]
        if self.step == 1:
            self.loops = longest_inside(self.nest, found, self.loops)
        self.each = element_bytes(found.right.storage.element)
        self.panel_bytes = self.builder.const(PANEL * self.each)
        self.panels: Scalar | None = None
        self.is_packed = found.right.storage.binding in parent.schedule.packed_bindings
        if self.is_packed:
            parts = in_panels(self.nest, parent.schedule.packed_bindings, self.lane, PANEL)
            self.packed = [_right(part, found) for part in parts]
        if self.step > 1:
            self._check_neighbours(self.loops[-1])
        if not self.is_packed and (self.step > 1 or found.right.strides[self.lane] != Size(1)):
            self._stage_in_local()

    def _check_neighbours(self, loop: int) -> None:
        extent = self.nest.loops[loop].static
        if self.product.left.strides[loop] != Size(1) or extent is None or extent % self.step:
            raise Unsupported(f"the innermost sum is not one of {self.step} neighbours at a time")
        if self.is_packed or self.product.right.strides[loop] == ZERO:
            raise Unsupported("elements of a column that should lie together do not")
        if any(window.tap == loop for window in self.windows):
            raise Unsupported("the innermost sum is cut off at edges")

    def _tile_sizes(self) -> tuple[Scalar, Scalar]:
        """As many columns as the machine issues, and rows that fill the tile beside them."""
        builder, row = self.builder, self.tile.unroll_loop
        columns = builder.mul(builder.scalar("width"), builder.const(PANEL))
        extent = self._span(self.lane)
        columns = builder.min(extent, columns) if (extent.constant or 0) > PANEL else columns
        if extent.constant is not None and extent.constant <= PANEL:
            columns = extent
        if row is None:
            return builder.const(1), columns
        return self._even_rows(self._span(row), columns), columns

    def _column_blocks(self, view: View, most: Scalar, then: Callable[[View], None]) -> None:
        if not self.is_packed:
            super()._column_blocks(view, most, then)
            return
        builder, extent = self.builder, self.nest.loops[self.lane].static
        assert extent is not None, "panels are of static shape"
        low, high = self._bounds(self.lane)
        whole = extent // PANEL * PANEL
        if whole:
            rows = (product(self.product.right.storage.shape).static or 0) // extent
            self.right, self.panel_bytes = self.packed[0], builder.const(rows * PANEL * self.each)
            end = builder.min(high, builder.const(whole)) if extent > whole else high
            with builder.loop(low, end, most, self.lane in self.bounds and extent == whole) as start:
                then(view.with_columns(self.lane, start, builder.min(most, builder.sub(end, start))))
        if extent > whole:
            self.right, self.panel_bytes = self.packed[1], builder.const(0)
            with builder.loop(builder.max(low, builder.const(whole)), high, builder.const(PANEL)) as start:
                then(view.with_columns(self.lane, start, builder.const(extent - whole)))

    def _sum(self, total: Value, view: View, loops: list[int]) -> None:
        left, one = self.product.left, self.builder.const(1)
        row_bytes, _ = self.memory.steps(left, view)
        right = self.memory.address(self.right, view)
        operands = [self.memory.address(left, view), row_bytes, right, self.panel_bytes]
        levels = self._levels(loops, left, self.right, self.step)
        shape = (view.rows or one, view.columns or one)
        self.builder.change(total, f"tcontract_{self.product.kind}", [*operands, *levels], shape)

    # Panels in the workgroup's memory.

    def _stage_in_local(self) -> None:
        """The right operand becomes one in memory of the workgroup: for each panel, all steps of the sum by columns."""
        source, builder = self.product.right, self.builder
        self.staged_loops = [loop for loop in self.loops if source.strides[loop] != ZERO]
        strides, depth = [ZERO] * len(self.nest.loops), Size(PANEL)
        for loop in reversed(self.staged_loops):
            strides[loop], depth = depth, depth * self.nest.loops[loop]
        if depth.static is None or depth.static * self.each > STAGED_BYTES:
            raise Unsupported("a panel is too large for the workgroup's memory")
        storage = Storage("panels", source.storage.element, (depth,))
        self.panel_bytes = builder.const(depth.static * self.each)
        self.panels = builder.local(builder.mul(builder.scalar("width"), self.panel_bytes))
        self.memory.bases[id(storage)] = self.panels
        self.memory.kept.append(storage)
        self.right = Access(storage, (), tuple(strides))

    def _prepare(self, view: View) -> None:
        """Copies the columns of a block, panel by panel."""
        if self.panels is None:
            return
        builder, source, one = self.builder, self.product.right, self.builder.const(1)
        low = view.indices[self.lane]
        assert low is not None
        end = builder.add(low, view.columns or one)
        type_, memory = _COPIED[self.each]
        # Of `step` elements of a column that lie together, each is copied by itself, from every step-th row.
        pitch, each = builder.const(PANEL * self.step * self.each), builder.const(self.step * self.each)
        rows = self.staged_loops[-1] if self.staged_loops else None
        apart = ZERO if rows is None else source.strides[rows] * self.step
        steps = [self.memory.size(stride * self.each) for stride in (apart, source.strides[self.lane])]
        with builder.loop(low, end, builder.const(PANEL), True) as start:
            number = builder.div(builder.sub(start, low), builder.const(PANEL))
            target = builder.mul(number, self.panel_bytes)
            columns = view.with_columns(self.lane, start, builder.min(builder.const(PANEL), builder.sub(end, start)))

            def copy(inside: View, part: int) -> None:
                first = inside if rows is None else inside.at(rows, self._after(inside, rows, part))
                operands = (self.memory.address(source, first), *steps, int(memory), modes(Extent.FULL))
                shape = (inside.rows or one, inside.columns or one)
                value = builder.pure("tload", type_, inside.rows, inside.columns, operands, shape, stays=True)
                place = builder.add(self.memory.address(self.right, inside), target)
                place = builder.add(place, builder.const(part * self.each))
                builder.effect("tstore", (value, place, pitch, each, int(memory), modes(Extent.FULL), 1), shape)

            def blocks(at: View) -> None:
                if rows is None:
                    copy(at, 0)
                    return
                most = builder.const(MAX_ELEMENTS // PANEL * self.step)
                extent = self.memory.size(self.nest.loops[rows])
                with builder.loop(builder.const(0), extent, most) as first:
                    left = builder.min(most, builder.sub(extent, first))
                    inside = at.with_rows(rows, first, builder.div(left, builder.const(self.step)))
                    for part in range(self.step):
                        copy(inside, part)

            self._enter(self.staged_loops[:-1], columns, blocks)

    def _after(self, view: View, loop: int, count: int) -> Scalar:
        index = view.indices[loop]
        assert index is not None
        return self.builder.add(index, self.builder.const(count))


def longest_inside(nest: Nest, found: Product, loops: list[int]) -> list[int]:
    """The loops of a sum in the order in which the instruction runs them. Sums stay in registers during the innermost
    one, so a long one belongs there, unless the machine sees the innermost ones as one that is as long."""
    inner, extents = loops[-LEVELS:], [nest.loops[loop].static for loop in loops[-LEVELS:]]
    if len(inner) < 2 or None in extents:
        return loops
    run = extents[-1] or 0
    for outer, loop in zip(inner[-2::-1], inner[:0:-1], strict=True):
        extent = nest.loops[loop]
        if any(access.strides[outer] != access.strides[loop] * extent for access in (found.left, found.right)):
            break
        run *= nest.loops[outer].static or 0
    longest = max(inner, key=lambda loop: nest.loops[loop].static or 0)
    if (nest.loops[longest].static or 0) < 1.5 * run:
        return loops
    return [*loops[: len(loops) - len(inner)], *(loop for loop in inner if loop != longest), longest]


def _right(nest: Nest, found: Product) -> Access:
    access = nest.statements[0].inputs[found.right_input]
    assert isinstance(access, Access)
    return access
