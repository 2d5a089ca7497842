"""`codegen`: how an executable will be lowered, as an attribute that can be read, edited and tuned.

func.func private @main_dispatch_0_matmul(...) attributes {flow.executable,
    codegen.strategy = #codegen.strategy<"contraction", {grid = [[0, 8]], tiles = [[16, 1, 2, 0, 4]]}>}
"""

from torch_mlir import ir as mlir

from eyas.ir.dialect import Dialect

STRATEGY = "codegen.strategy"

REJECTED = "codegen.rejected"
"""On an executable: strategies that did not apply, each with the reason."""

REMARKS = "codegen.remarks"
"""On an executable: what its schedule leaves on the table, for people."""

PACKABLE = "codegen.packable"
"""On an executable: bindings that its strategy would read faster in panels, when they are weights."""

COPIES_RESULTS = "codegen.copies_results"
"""On an executable: plain loops compute a result in memory of its own, since it may lie where an operand does."""


class Codegen(Dialect, name="codegen"):
    pass


class StrategyAttr(Codegen.Attribute, name="strategy"):
    """The strategy's name, and its schedule: per nest a tile (width, vector loop, vectors, unroll loop, unroll, loops
    inside the lanes; -1 for no loop), per grid axis a loop and the piece of one workgroup, and the bindings that lie in
    panels. Whether a schedule is legal for a kernel is checked by `check_schedule` of the target's `schedule.py` when
    it is used."""

    strategy: mlir.StringAttr
    schedule: mlir.DictAttr
