"""`outline-control-flow`: branches and loops with real work run in the host program, what is inside are functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.codegen.backends import backend_of
from eyas.ir.walk import entry_block, functions, nested_operands
from eyas.passes.dispatch.tie_shapes import resolve_sizes
from eyas.passes.optimize.count_loops import CountLoops
from eyas.passes.optimize.counted_loops import CountedLoop, counted_steps
from eyas.passes.optimize.outlined_branches import outline_branches
from eyas.passes.optimize.outlined_steps import outline_steps
from eyas.passes.optimize.outlined_whiles import outline_while
from eyas.passes.optimize.speculate_branches import SpeculateBranches
from eyas.passes.optimize.work import points_inside, points_of
from eyas.passes.targeted import TargetedPass

# Ops of a step that the strategy `recurrence` reads.
_OPS_OF_STEPS = ("arith.", "linalg.", "math.", "tensor.e", "tensor.insert_slice", "tensor.collapse_shape", "scf.yield")
_WORDS = 4  # bytes of a weight


@dataclass(frozen=True)
class OutlineControlFlow(TargetedPass):
    """Makes functions of what is inside of branches and loops, and calls that say which of them run, and how often.

    As a function a branch or a step is optimised like any program: products with packed weights, gates fused, all cores
    at work, and one recording that is submitted when its turn comes. What is inside of the functions is looked at in
    the same way, after `speculate-branches` and `count-loops` have seen it. Branches and loops with little work stay as
    they are, one dispatch each: that the host waits for a condition, and a submission, cost more than they do.

    Where there is the strategy `recurrence`, loops that count also stay where one core does as well: steps whose
    weights its cache holds, if rows of the batch or other loops of the kind keep the other cores busy, and steps of a
    few microseconds.
    """

    name: ClassVar[str] = "outline-control-flow"
    min_work: int = 8192
    """Points of linalg loops in a step or in both branches, where sizes that vary count as 1."""
    min_work_of_cores: int = 120_000
    disable: tuple[str, ...] = ()

    def run(self, module: mlir.Module) -> None:
        done: set[str] = set()
        while waiting := [one for one in functions(module) if _name(one) not in done]:
            done |= {_name(function) for function in waiting}
            if any([self._outline_in(module, function) for function in waiting]):
                resolve_sizes(module)
                for again in (SpeculateBranches(), CountLoops()):
                    if again.name not in self.disable:
                        again.run(module)

    def _outline_in(self, module: mlir.Module, function: mlir.OpView) -> bool:
        prefix, branches, loops = _name(function), 0, 0
        for view in list(entry_block(function).operations):
            op = view.operation
            if op.name == "scf.if" and points_inside(op) >= self.min_work:
                branches += outline_branches(module, op, f"{prefix}_branch_{branches}")
            elif op.name == "scf.while" and points_inside(op) >= self.min_work:
                loops += outline_while(module, op, f"{prefix}_loop_{loops}")
            elif op.name == "scf.for":
                loop = counted_steps(op)
                if loop is not None and loop.trips > 1 and self._is_worth(loop):
                    loops += outline_steps(module, loop, f"{prefix}_loop_{loops}")
        return branches + loops > 0

    def _is_worth(self, loop: CountedLoop) -> bool:
        work = points_of(loop.body)
        ops = [view.operation.name for view in loop.body.operations]
        strategies = [strategy.name for strategy in backend_of(self.target).strategies]
        if "recurrence" not in strategies or "recurrence" in self.disable or not all(map(_is_of_steps, ops)):
            return work >= self.min_work
        rows = _rows(loop)
        apart = rows * (1 + _neighbours(loop))
        fits = work // max(rows, 1) * _WORDS <= self.target.caches.l2_bytes
        return self.target.cores > 1 and work >= self.min_work_of_cores and not (apart >= self.target.cores and fits)


def _name(function: mlir.OpView) -> str:
    return mlir.StringAttr(function.attributes["sym_name"]).value


def _is_of_steps(name: str) -> bool:
    return name.startswith(_OPS_OF_STEPS)


def _rows(loop: CountedLoop) -> int:
    """Rows of the batch: the first dimension of what steps give."""
    shapes = [mlir.RankedTensorType(loop.body.arguments[position].type).shape for position in loop.states]
    return min((shape[0] for shape in shapes if len(shape) > 1), default=1)


def _neighbours(loop: CountedLoop) -> int:
    """Loops right before and after this one that are independent of it: the other direction of the same layer."""
    found, before = 0, True
    made, needed = set(loop.op.results), set(nested_operands(loop.op))
    for view in loop.op.block.operations:
        op = view.operation
        if op == loop.op:
            before = False
        elif op.name == "scf.for":
            found += not (needed & set(op.results) if before else made & set(nested_operands(op)))
    return min(found, 1)
