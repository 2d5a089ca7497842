"""`propagate-transposes`: transposes move towards the results and cancel on the way."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import tensor

from eyas.dialects import flow
from eyas.ir import Pass, run_upstream
from eyas.ir.structured import (
    copy_body,
    element_type,
    empty_like,
    generic,
    is_elementwise,
    permutation_of,
    split_operands,
    transpose,
)
from eyas.ir.walk import defining_op, find_ops
from eyas.passes.dispatch.grouping import Role, indexing_maps, role_of
from eyas.passes.optimize.views import pull_back

_FEW_CHANNELS = 4
"""Images as cameras give them; lanes along so few channels would be mostly empty."""


@dataclass(frozen=True)
class PropagateTransposes(Pass):
    """Applies one rule at a time to each transpose and one of its users, until none applies.

    transpose of a transpose: one transpose, or none;
    elementwise op: computed in the source's order, its result transposed instead, if most operands agree;
    reduction: reads the source in another order;
    convolution of few channels: reads the source in another order;
    padding, concatenation: done in the source's order, the result transposed instead;
    a transpose that moves only unit dimensions: a reshape.

    Where an op's operands are all needed in the transposed order as well, it is then computed there after all: one
    tensor is turned instead of two.
    """

    name: ClassVar[str] = "propagate-transposes"

    def run(self, module: mlir.Module) -> None:
        changed = True
        while changed:
            changed = False
            waiting = deque(op.operation for op in find_ops(module, "linalg.transpose"))
            while waiting:
                op = waiting.popleft()
                if (replacement := _simplify(op)) is None:
                    continue
                changed = True
                # At once, and not in another round over the whole program: the op for its other users, and the
                # transpose behind what was its user.
                waiting += [op, *replacement]
            run_upstream(module, "canonicalize")
        run_upstream(module, "cse")
        for op in find_ops(module, "linalg.transpose", "flow.reshape"):
            pull_back(op.operation)
        run_upstream(module, "canonicalize,cse")


def _simplify(op: mlir.Operation) -> list[mlir.Operation] | None:
    """Applies one rule; returns the transposes that it left, or None if no rule applies. What is replaced stays behind
    without users, and later clean-up removes it."""
    uses = list(op.results[0].uses)
    if not uses:
        return None
    permutation = permutation_of(op)
    for use in uses:
        user = use.owner.operation
        if user.results and not any(list(result.uses) for result in user.results):
            continue
        with mlir.InsertionPoint(user), user.location:
            rule = _RULES.get(user.name)
            users = [(use.owner, use.operand_number) for result in user.results for use in result.uses]
            if rule is not None and rule(op, user, permutation):
                made = dict.fromkeys(defining_op(owner.operands[number]) for owner, number in users)
                return [one for one in made if one is not None and one.name == "linalg.transpose"]
    if _moves_unit_dims_only(op, permutation) and _is_used(op):  # last: a reshape stops at the next op
        _replace_by_reshape(op)
        return []
    return None


def _is_used(op: mlir.Operation) -> bool:
    """Whether an op has a user that was not replaced."""
    return any(
        not (owner := use.owner.operation).results or any(list(result.uses) for result in owner.results)
        for use in op.results[0].uses
    )


def _moves_unit_dims_only(op: mlir.Operation, permutation: list[int]) -> bool:
    shape = mlir.RankedTensorType(op.operands[0].type).shape
    moved = [p for p in permutation if shape[p] != 1]
    return moved == sorted(moved) and mlir.ShapedType(op.results[0].type).has_static_shape


def _replace_by_reshape(op: mlir.Operation) -> None:
    with mlir.InsertionPoint(op), op.location:
        view = flow.ReshapeOp(op.operands[0], [], op.results[0].type)
    op.results[0].replace_all_uses_with(view.result)


def _compose(op: mlir.Operation, user: mlir.Operation, permutation: list[int]) -> bool:
    outer = permutation_of(user)
    combined = [permutation[p] for p in outer]
    source = op.operands[0]
    value = source if combined == sorted(combined) else transpose(source, combined)
    user.results[0].replace_all_uses_with(value)
    return True


def _through_pad(op: mlir.Operation, user: mlir.Operation, permutation: list[int]) -> bool:
    if len(user.operands) != 1:
        return False  # dynamic amounts
    inverse = _inverse(permutation)
    amounts = {}
    for name in ("static_low", "static_high"):
        old = list(mlir.DenseI64ArrayAttr(user.attributes[name]))
        amounts[name] = [old[p] for p in inverse]
    shape = mlir.RankedTensorType(user.results[0].type).shape
    type_ = mlir.RankedTensorType.get([shape[p] for p in inverse], element_type(op.operands[0]))
    pad = tensor.PadOp(
        type_,
        op.operands[0],
        [],
        [],
        amounts["static_low"],
        amounts["static_high"],
        nofold=user.attributes.get("nofold"),
    )
    index = mlir.IndexType.get()
    block = pad.operation.regions[0].blocks.append(
        *[index] * len(permutation), arg_locs=[user.location] * len(permutation)
    )
    old_block = user.regions[0].blocks[0]
    values: dict[mlir.Value, mlir.Value] = {}
    with mlir.InsertionPoint(block):
        for view in old_block.operations:
            if view.operation.name == "tensor.yield":
                tensor.YieldOp(values.get(view.operands[0], view.operands[0]))
            else:
                copy = view.operation.clone().operation
                values.update(zip(view.operation.results, copy.results, strict=True))
    user.results[0].replace_all_uses_with(transpose(pad.result, permutation))
    return True


def _through_generic(op: mlir.Operation, user: mlir.Operation, permutation: list[int]) -> bool:
    if is_elementwise(user):
        return _through_elementwise(op, user, permutation)
    if role_of(user) is Role.REDUCTION:
        return _absorb(op, user, permutation)
    return False


def _through_elementwise(op: mlir.Operation, user: mlir.Operation, permutation: list[int]) -> bool:
    """The same op in the order of the transpose's source."""
    maps = indexing_maps(user)
    assert maps is not None
    inputs, inits = split_operands(user)
    rank = maps[-1].n_dims
    if rank != len(permutation) or _uses_index(user):
        return False
    identity = mlir.AffineMap.get_identity(rank)
    whole = [value for value, map_ in zip(inputs, maps, strict=False) if map_ == identity and _is_ranked(value, rank)]
    agreeing = [value for value in whole if _source_of(value, permutation) is not None]
    # A strict majority: with a tie the transpose of the other operand would be pushed back through, for ever.
    if op.results[0] not in agreeing or len(agreeing) * 2 <= len(whole):
        return False
    # Loop i of the op is loop permutation[i] of the new one.
    renamed = mlir.AffineMap.get(rank, 0, [mlir.AffineDimExpr.get(p) for p in permutation])
    new_inputs, new_maps = [], []
    for value, map_ in zip(inputs, maps, strict=False):
        if value in whole:
            source = _source_of(value, permutation)
            new_inputs.append(source if source is not None else transpose(value, _inverse(permutation)))
            new_maps.append(identity)
        else:
            new_inputs.append(value)
            new_maps.append(mlir.AffineMap.get(rank, 0, [expr.compose(renamed) for expr in map_.results]))
    inverse = _inverse(permutation)
    shape = mlir.RankedTensorType(user.results[0].type).shape
    reads_init = list(user.regions[0].blocks[0].arguments[len(inputs)].uses)
    if reads_init:
        output = transpose(inits[0], inverse)
    else:
        output = empty_like(inits[0], [shape[p] for p in inverse], inverse)
    new = generic(new_inputs, [output], [*new_maps, identity], ["parallel"] * rank)
    copy_body(user, new)
    user.results[0].replace_all_uses_with(transpose(new.results[0], permutation))
    return True


def _absorb(op: mlir.Operation, user: mlir.Operation, permutation: list[int]) -> bool:
    """A generic may read the transpose's source directly, through another map."""
    maps = indexing_maps(user)
    assert maps is not None
    inputs, inits = split_operands(user)
    new_maps, new_inputs = list(maps), list(inputs)
    for position, value in enumerate(inputs):
        if value == op.results[0]:
            results = list(maps[position].results)
            by_source = [results[i] for i in _inverse(permutation)]
            new_maps[position] = mlir.AffineMap.get(maps[position].n_dims, 0, by_source)
            new_inputs[position] = op.operands[0]
    if op.results[0] in inits:
        return False
    written = {e.position for e in maps[-1].results if isinstance(e, mlir.AffineDimExpr)}
    kinds = ["parallel" if loop in written else "reduction" for loop in range(maps[-1].n_dims)]
    new = generic(new_inputs, inits, new_maps, kinds)
    copy_body(user, new)
    for old, fresh in zip(user.results, new.results, strict=True):
        old.replace_all_uses_with(fresh)
    return True


def _through_concat(op: mlir.Operation, user: mlir.Operation, permutation: list[int]) -> bool:
    sources = [_source_of(value, permutation) for value in user.operands]
    # A strict majority, as for elementwise ops; the others are transposed by themselves.
    if 2 * sum(source is not None for source in sources) <= len(sources):
        return False
    inverse = _inverse(permutation)
    parts = [
        source if source is not None else transpose(value, inverse)
        for source, value in zip(sources, user.operands, strict=True)
    ]
    dim = permutation[user.attributes["dim"].value]
    shape = mlir.RankedTensorType(user.results[0].type).shape
    type_ = mlir.RankedTensorType.get([shape[p] for p in inverse], element_type(user.results[0]))
    new = tensor.ConcatOp(type_, dim, parts)
    user.results[0].replace_all_uses_with(transpose(new.result, permutation))
    return True


def _into_conv(op: mlir.Operation, user: mlir.Operation, permutation: list[int]) -> bool:
    """A convolution of few channels reads the image in its own order: each pixel is a scalar to it anyway."""
    maps = indexing_maps(user)
    channels = mlir.RankedTensorType(user.operands[0].type).shape[3]
    if maps is None or user.operands[0] != op.results[0] or not 0 < channels <= _FEW_CHANNELS:
        return False
    if permutation != [0, 2, 3, 1]:
        return False
    return _absorb(op, user, permutation)


_RULES = {
    "linalg.conv_2d_nhwc_hwcf": _into_conv,
    "linalg.transpose": _compose,
    "tensor.pad": _through_pad,
    "linalg.generic": _through_generic,
    "tensor.concat": _through_concat,
}


def _source_of(value: mlir.Value, permutation: list[int]) -> mlir.Value | None:
    """x when `value` is x transposed by `permutation`."""
    op = defining_op(value)
    if op is None or op.name != "linalg.transpose" or permutation_of(op) != permutation:
        return None
    return op.operands[0]


def _is_ranked(value: mlir.Value, rank: int) -> bool:
    return isinstance(value.type, mlir.RankedTensorType) and value.type.rank == rank


def _uses_index(op: mlir.Operation) -> bool:
    return any(view.operation.name == "linalg.index" for view in op.regions[0].blocks[0].operations)


def _inverse(permutation: list[int]) -> list[int]:
    inverse = [0] * len(permutation)
    for index, p in enumerate(permutation):
        inverse[p] = index
    return inverse
