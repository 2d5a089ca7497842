"""Views of tensors (transposes and reshapes) that two tensors need, where one is computed from the other."""

from __future__ import annotations

from torch_mlir import ir as mlir

from eyas.ir.structured import copy_body, element_type, empty_like, generic, is_elementwise, permutation_of
from eyas.ir.walk import defining_op, is_tensor
from eyas.passes.dispatch.grouping import indexing_maps


def pull_back(view: mlir.Operation) -> bool:
    """Computes what a view shows from views of its operands, if those exist anyway.

    %a = transpose %x                            %a = transpose %x
    %y = linalg.generic (square) %x       =>     %b = linalg.generic (square) %a
    %b = transpose %y
    """
    type_ = mlir.RankedTensorType(view.results[0].type)
    if not type_.has_static_shape or not list(view.results[0].uses):
        return False
    plan: dict[mlir.Operation, list[mlir.Value | None]] = {}
    if not _plan(view, view.operands[0], {view}, plan):
        return False
    made: dict[mlir.Operation, mlir.Value] = {}
    with mlir.InsertionPoint(view):
        for op, views in plan.items():
            made[op] = _compute(op, views, made, list(type_.shape))
    view.results[0].replace_all_uses_with(made[view.operands[0].owner.operation])
    return True


def _plan(
    view: mlir.Operation, value: mlir.Value, users: set[mlir.Operation], plan: dict[mlir.Operation, list]
) -> bool:
    """Which ops are computed anew, operands before users, each with the views of its operands: None for an operand that
    is computed anew too, and for one that is the same everywhere."""
    op = defining_op(value)
    if op is None or op.block != view.block or not is_elementwise(op):
        return False
    if any(use.owner.operation not in users for use in op.results[0].uses):
        return False  # it would be computed in both orders
    body = op.regions[0].blocks[0]
    if list(body.arguments[-1].uses) or any(inner.operation.name == "linalg.index" for inner in body.operations):
        return False
    maps = indexing_maps(op)
    assert maps is not None
    views: list[mlir.Value | None] = []
    for operand, map_ in zip(list(op.operands)[:-1], maps, strict=False):
        if not is_tensor(operand) or len(map_.results) == 0:
            views.append(None)
            continue
        if map_ != maps[-1]:
            return False
        known = _view_of(operand, view)
        if known is None and not _plan(view, operand, {*users, op}, plan):
            return False
        views.append(known)
    plan[op] = views
    return True


def _view_of(value: mlir.Value, view: mlir.Operation) -> mlir.Value | None:
    """An earlier view of a value that shows it as `view` shows another."""
    shape = list(mlir.RankedTensorType(view.results[0].type).shape)
    for use in value.uses:
        user = use.owner.operation
        if user.name != view.name or user.block != view.block or not user.is_before_in_block(view):
            continue
        if list(mlir.RankedTensorType(user.results[0].type).shape) != shape or not list(user.results[0].uses):
            continue
        if user.name == "linalg.transpose" and permutation_of(user) != permutation_of(view):
            continue
        return user.results[0]
    return None


def _compute(
    op: mlir.Operation, views: list[mlir.Value | None], made: dict[mlir.Operation, mlir.Value], shape: list[int]
) -> mlir.Value:
    maps = indexing_maps(op)
    assert maps is not None
    identity = mlir.AffineMap.get_identity(len(shape))
    inputs, new_maps = [], []
    for operand, map_, seen in zip(list(op.operands)[:-1], maps, views, strict=False):
        whole = is_tensor(operand) and len(map_.results) > 0
        inputs.append(seen if seen is not None else made[operand.owner.operation] if whole else operand)
        new_maps.append(identity if whole else mlir.AffineMap.get(len(shape), 0, []))
    with op.location:
        output = empty_like(op.results[0], shape, range(len(shape)), element_type(op.results[0]))
        new = generic(inputs, [output], [*new_maps, identity], ["parallel"] * len(shape))
        copy_body(op, new)
    return new.results[0]
