"""`codegen`: how an executable will be lowered, as an attribute that can be read, edited and tuned.

func.func private @main_dispatch_0_matmul(...) attributes {flow.executable,
    codegen.strategy = #codegen.strategy<"contraction", {
      tiles = [{loop = 1, width = 16, vectors = 2, unroll_loop = 0, unroll = 4}],
      grid = [{loop = 0, tile = 24}]}>}
"""

from torch_mlir import ir as mlir

from eyas.ir.dialect import Dialect

STRATEGY = "codegen.strategy"

REJECTED = "codegen.rejected"
"""On an executable: strategies that did not apply, each with the reason."""

REMARKS = "codegen.remarks"
"""On an executable: what its schedule leaves on the table, for people."""

TUNED = "codegen.tuned"
"""On an executable: which entry of which tuning spec decided its strategy, `model.spec.mlir @matmul_64x768`."""

TUNING = "codegen.tuning"
"""On the module: what became of each tuning spec, for the manifest."""

PACKABLE = "codegen.packable"
"""On an executable: bindings that its strategy would read faster in panels, when they are weights, and their lanes:
`[{binding = 1, lanes = 64}]`."""

UNALIGNED = "codegen.unaligned"
"""On an executable: which of its bindings may begin anywhere, where a device wants offsets that are multiples of
something."""

PANELS = "codegen.panels"
"""On a parameter: its elements lie in panels of so many lanes."""

COPIES_RESULTS = "codegen.copies_results"
"""On an executable: plain loops compute a result in memory of its own, since it may lie where an operand does."""


class Codegen(Dialect, name="codegen"):
    pass


class StrategyAttr(Codegen.Attribute, name="strategy"):
    """The strategy's name and its schedule, a dictionary of these fields:

    `tiles`: for each nest, `{loop = 1, width = 16, vectors = 2, unroll_loop = 0, unroll = 4, inside = [2, 3]}`: loop 1
    runs in 2 vectors of 16 lanes, loop 0 in steps of 4, and the loops 2 and 3 inside of a block of lanes. What is left
    out is none (a loop), 1 (a number) or nothing (`inside`).
    `grid`: up to three axes, x first, `{loop = 0, tile = 24}`: each workgroup has 24 points of loop 0.
    `packed`: weights that lie in panels, `{binding = 1, lanes = 32}`; `lanes` is width * vectors of the tile.
    `staged`: bindings of which each block of lanes copies its panel into scratch memory first, `[1]`.
    `block`: `{nest = 1, rows = 24}`, rows go through the nests from number 1 on in blocks of 24.

    Numbers may be written with or without `: i64`. Loops are numbered as `eyas.codegen.common.kernel` has them: outer
    ones first, reductions last. The strategy `loops` has no fields. What does not fit is refused, with the field, what
    it has and what it may have, when the schedule is used.
    """

    strategy: mlir.StringAttr
    schedule: mlir.DictAttr
