"""`tuning`: what a tuning spec may ask of a dispatch, beside upstream's own match ops.

Loaded into a context by those who read specs, and not with the other dialects.
"""

from collections.abc import Mapping

from torch_mlir import ir as mlir

from eyas.ir.dialect import Dialect, Operand, Result
from eyas.ir.matching import AnyOp, AnyParam, matcher

FACTS = "tuning.facts"
"""On the op that a dispatch is about, while specs are applied: what is true of it, under the names of `match`'s
attributes. `sizes` and `nests` have "dynamic" for what only the call knows."""

ENTRY = "tuning.entry"
"""On an op that a spec matched: the number of the entry."""

ANY, DYNAMIC, MULTIPLE = "any", "dynamic", "multiple of "

LISTS, SIZES, TEXTS = ("types", "maps", "bindings"), ("sizes", "nests"), ("kind", "target")
NAMES = (*TEXTS, *LISTS, *SIZES)


class Tuning(Dialect, name="tuning"):
    pass


def matches(op: mlir.OpView, payload: mlir.Operation) -> bool:
    """Whether all that a `tuning.match` says is true of an op. An op without facts is not what a dispatch is about."""
    if FACTS not in payload.attributes:
        return False
    attributes = op.operation.attributes
    said = {one.name: one.attr for one in (attributes[number] for number in range(len(attributes)))}
    return true_of(said, mlir.DictAttr(payload.attributes[FACTS]))


def true_of(said: Mapping[str, mlir.Attribute], facts: mlir.DictAttr) -> bool:
    """Whether facts are as an entry says; its target was looked at when the spec was read."""
    return all(
        name == "target" or (name in facts and _holds(attribute, facts[name])) for name, attribute in said.items()
    )


def _holds(wanted: mlir.Attribute, found: mlir.Attribute) -> bool:
    """Lists element by element, sizes with their wildcards, all else equal."""
    if wanted == found:
        return True
    if isinstance(wanted, mlir.ArrayAttr) and isinstance(found, mlir.ArrayAttr):
        return len(wanted) == len(found) and all(map(_holds, wanted, found))
    if not isinstance(wanted, mlir.StringAttr):
        return False
    if wanted.value == ANY:
        return True
    size = found.value if isinstance(found, mlir.IntegerAttr) else None
    factor = wanted.value.removeprefix(MULTIPLE)
    return size is not None and factor != wanted.value and size % int(factor) == 0


class MatchOp(Tuning.Operation, name="match", traits=matcher(matches)):
    """Lets an op pass of which everything is true that it says; what it does not say may be anything.

        "tuning.match"(%op) {target = "llvm-cpu:x86_64:znver4", kind = "contraction", sizes = [64, "any", 3072],
                             types = [f32, f32, f32]} : (!transform.any_op) -> ()

    `target`: a target's text, of which only what it says must hold (`targets/pattern.py`).
    `kind`: contraction, convolution, transform, attention, softmax, norm, reduction, elementwise, or the name of an op.
    `sizes`: of the op's loops, in the order of its indexing maps: a number, "any", "multiple of 16", or "dynamic".
    `types`: element types, operands first. `maps`: indexing maps, in the same order.
    `nests`: for each loop nest of the whole dispatch the sizes of its loops, which schedules count.
    `bindings`: for each operand the binding of the dispatch that it is, or -1 for one that is made inside.
    """

    op: Operand[AnyOp]


class TestOp(Tuning.Operation, name="test", traits=matcher(matches)):
    """What `match` becomes before it runs: 1 where everything is true, else 0."""

    op: Operand[AnyOp]
    found: Result[AnyParam]
