"""Structured control flow and calls as branches: what `Translator` does with scf, cf and func."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch_mlir import ir as mlir

from eyas.codegen.vmvx.arithmetic import constant_of

if TYPE_CHECKING:
    from eyas.codegen.vmvx.translate import Translator

_ALLOCATE = ("malloc", "aligned_alloc")


def _for(t: Translator, op: mlir.Operation) -> None:
    low, high, step = (t.scalar(operand) for operand in list(op.operands)[:3])
    inits = [t.get(operand) for operand in list(op.operands)[3:]]
    block = op.regions[0].blocks[0]
    carried = [t.fresh(init) for init in inits]
    t.move(carried, inits)
    t.values.update(zip(list(block.arguments)[1:], carried, strict=True))
    bounds = [constant_of(operand) for operand in list(op.operands)[:2]]
    runs = bounds[0] is not None and bounds[1] is not None and bounds[0] < bounds[1]
    with t.asm.loop_over(low, high, step, at_least_once=runs) as index:
        t.values[block.arguments[0]] = index
        t.move(carried, t.block(block))
    t.values.update(zip(op.results, carried, strict=True))


def _while(t: Translator, op: mlir.Operation) -> None:
    before, after = (region.blocks[0] for region in op.regions)
    inits = [t.get(operand) for operand in op.operands]
    carried = [t.fresh(init) for init in inits]
    t.move(carried, inits)
    t.values.update(zip(before.arguments, carried, strict=True))
    top, end = t.asm.bind(t.asm.label()), t.asm.label()
    condition, *passed = t.block(before)
    # Results have registers of their own: those of the loop may be set again before they are read.
    results = [t.fresh(one) for one in passed]
    t.move(results, passed)
    t.asm.br_ifnot(t.flat(condition)[0], end)
    t.values.update(zip(after.arguments, results, strict=True))
    t.move(carried, t.block(after))
    t.asm.br(top)
    t.asm.bind(end)
    t.values.update(zip(op.results, results, strict=True))


def _if(t: Translator, op: mlir.Operation) -> None:
    otherwise, end = t.asm.label(), t.asm.label()
    t.asm.br_ifnot(t.scalar(op.operands[0]), otherwise)
    yielded = t.block(op.regions[0].blocks[0])
    results = [t.fresh(one) for one in yielded]
    t.move(results, yielded)
    if list(op.regions[1].blocks):
        t.asm.br(end)
        t.asm.bind(otherwise)
        t.move(results, t.block(op.regions[1].blocks[0]))
    else:
        t.asm.bind(otherwise)
    t.asm.bind(end)
    t.values.update(zip(op.results, results, strict=True))


def _switch(t: Translator, op: mlir.Operation) -> None:
    """The first region is the default, the others are for one value each."""
    end, chosen = t.asm.label(), t.scalar(op.operands[0])
    results: list[Any] | None = None
    cases = list(mlir.DenseI64ArrayAttr(op.attributes["cases"]))
    for number, region in [*zip(cases, list(op.regions)[1:], strict=True), (None, op.regions[0])]:
        following = t.asm.label()
        if number is not None:
            t.asm.br_ifnot(t.asm.eq(None, chosen, t.asm.const(number)), following)
        yielded = t.block(region.blocks[0])
        results = [t.fresh(one) for one in yielded] if results is None else results
        t.move(results, yielded)
        t.asm.br(end)
        t.asm.bind(following)
    t.asm.bind(end)
    t.values.update(zip(op.results, results or [], strict=True))


def _inlined(t: Translator, op: mlir.Operation, region: mlir.Region) -> None:
    """A region that is entered here and left behind it."""
    end, results = t.asm.label(), [t.asm.scalar() for _ in op.results]
    left = t.region(region, end, results)
    if len(list(region.blocks)) == 1:
        results = left
    t.asm.bind(end)
    t.values.update(zip(op.results, results, strict=True))


def _execute(t: Translator, op: mlir.Operation) -> None:
    _inlined(t, op, op.regions[0])


def _call(t: Translator, op: mlir.Operation) -> None:
    name = mlir.FlatSymbolRefAttr(op.attributes["callee"]).value
    if name in _ALLOCATE:
        t.values[op.results[0]] = t.asm.local(None, t.scalar(list(op.operands)[-1]))
    elif name == "free":
        t.asm.release(t.scalar(op.operands[0]))
    else:
        callee = t.symbols[name]
        arguments = callee.regions[0].blocks[0].arguments
        t.values.update(zip(arguments, [t.get(one) for one in op.operands], strict=True))
        _inlined(t, op, callee.regions[0])


def _check(t: Translator, op: mlir.Operation) -> None:
    t.asm.check(t.scalar(op.operands[0]))


HANDLERS: dict[str, Callable[[Translator, mlir.Operation], None]] = {
    "scf.for": _for,
    "scf.while": _while,
    "scf.if": _if,
    "scf.index_switch": _switch,
    "scf.execute_region": _execute,
    "func.call": _call,
    "llvm.call": _call,
    "cf.assert": _check,
}
