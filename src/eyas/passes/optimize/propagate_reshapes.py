"""`propagate-reshapes`: elementwise ops run in the shape in which a contraction makes their operand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import linalg, tensor

from eyas.ir import Pass, run_upstream
from eyas.ir.structured import copy_body, element_type, fill_value, generic, is_elementwise, split_operands
from eyas.ir.walk import defining_op, find_ops, is_tensor
from eyas.passes.dispatch.grouping import Role, indexing_maps, is_plain_copy, role_of

Groups = list[list[int]]
"""Which dimensions of the expanded tensor each dimension of the source became."""


@dataclass(frozen=True)
class PropagateReshapes(Pass):
    """Moves an expansion of a contraction's result behind the elementwise ops that follow.

    Frameworks flatten a batch before a product and restore it afterwards; bias, activation and residual come after
    that. Only where they read the product in its own shape can they run on its registers.

        %0 = linalg.matmul ...                               %0 = linalg.matmul ...
        %1 = tensor.expand_shape %0 [[0, 1], [2]]     =>     %1 = linalg.generic (gelu) %0
        %2 = linalg.generic (gelu) %1                        %2 = tensor.expand_shape %1 [[0, 1], [2]]

    Unit dimensions and repetitions stand between the ops of a norm or softmax, too: reductions make the dimensions, and
    readers skip both.
    """

    name: ClassVar[str] = "propagate-reshapes"

    def run(self, module: mlir.Module) -> None:
        changed = True
        while changed:
            changed = False
            for view in find_ops(module, "tensor.expand_shape"):
                op = view.operation
                if not _is_static(op):
                    continue
                if _keep_unit_dims(op):
                    changed = True
                elif _follows_contraction(op.operands[0]):
                    users = [use.owner.operation for use in op.results[0].uses]
                    changed |= any([_sink(op, user) for user in dict.fromkeys(users)])
            for view in find_ops(module, "tensor.collapse_shape"):
                if _is_static(view.operation):
                    changed |= _read_with_unit_dims(view.operation)
            for view in find_ops(module, "linalg.generic"):
                changed |= _read_unrepeated(view.operation)
            run_upstream(module, "canonicalize,cse")


def _is_static(op: mlir.Operation) -> bool:
    return all(mlir.ShapedType(value.type).has_static_shape for value in [op.operands[0], op.results[0]])


def _groups(op: mlir.Operation) -> Groups:
    return [
        [int(mlir.IntegerAttr(dim).value) for dim in mlir.ArrayAttr(group)] for group in op.attributes["reassociation"]
    ]


def _follows_contraction(value: mlir.Value) -> bool:
    """Whether a contraction makes the value, directly or through elementwise ops."""
    seen: set[mlir.Operation] = set()
    stack = [value]
    while stack:
        op = defining_op(stack.pop())
        if op is None or op in seen or not op.name.startswith("linalg."):
            continue
        seen.add(op)
        if role_of(op) is Role.CONTRACTION:
            return True
        if is_elementwise(op):
            stack += split_operands(op)[0]
    return False


def _keep_unit_dims(op: mlir.Operation) -> bool:
    """A reduction whose result gets unit dimensions makes them itself, so that nothing stands between it and readers
    that share its rows."""
    reduction = defining_op(op.operands[0])
    if reduction is None or reduction.name != "linalg.generic" or len(reduction.results) != 1:
        return False
    inputs, inits = split_operands(reduction)
    fill = fill_value(inits[0])
    if role_of(reduction) is not Role.REDUCTION or fill is None or len(list(reduction.results[0].uses)) != 1:
        return False
    result = list(mlir.RankedTensorType(op.results[0].type).shape)
    maps = indexing_maps(reduction)
    assert maps is not None
    written = [mlir.AffineConstantExpr.get(0)] * len(result)
    for expr, group in zip(maps[-1].results, _groups(op), strict=True):
        long = [dim for dim in group if result[dim] != 1]
        if len(long) > 1:
            return False
        written[(long or group)[0]] = expr
    with mlir.InsertionPoint(op), reduction.location:
        empty = tensor.EmptyOp(result, element_type(op.results[0])).result
        init = linalg.fill(fill, outs=[empty])
        kinds = [
            "reduction" if "reduction" in str(kind) else "parallel" for kind in reduction.attributes["iterator_types"]
        ]
        new = generic(inputs, [init], [*maps[:-1], mlir.AffineMap.get(maps[-1].n_dims, 0, written)], kinds)
        copy_body(reduction, new)
    op.results[0].replace_all_uses_with(new.results[0])
    return True


def _read_with_unit_dims(op: mlir.Operation) -> bool:
    """Generics that repeat a computed tensor, and read it without its unit dimensions, read it with them."""
    producer = defining_op(op.operands[0])
    shape = list(mlir.RankedTensorType(op.operands[0].type).shape)
    groups = _groups(op)
    if producer is None or not producer.name.startswith("linalg.") or role_of(producer) is Role.CONTRACTION:
        return False
    if any(sum(shape[dim] != 1 for dim in group) > 1 for group in groups):
        return False
    # Which dimension of the source each of the result's is.
    kept = [next((dim for dim in group if shape[dim] != 1), group[0]) for group in groups]
    changed = False
    for user in dict.fromkeys(use.owner.operation for use in op.results[0].uses):
        maps = indexing_maps(user) if user.name == "linalg.generic" else None
        inputs = split_operands(user)[0] if maps is not None else []
        for position, value in enumerate(inputs):
            # What is not repeated is better read without them, in the shape of a contraction.
            if value != op.results[0] or maps is None or maps[position].n_dims <= len(groups):
                continue
            exprs = [mlir.AffineConstantExpr.get(0)] * len(shape)
            for dim, expr in zip(kept, maps[position].results, strict=True):
                exprs[dim] = expr
            maps[position] = mlir.AffineMap.get(maps[position].n_dims, 0, exprs)
            user.operands[position] = op.operands[0]
            user.attributes["indexing_maps"] = mlir.ArrayAttr.get([mlir.AffineMapAttr.get(map_) for map_ in maps])
            changed = True
    return changed


def _read_unrepeated(op: mlir.Operation) -> bool:
    """Reads what a copy repeats instead of the copy."""
    maps = indexing_maps(op)
    assert maps is not None
    changed = False
    for position, value in enumerate(split_operands(op)[0]):
        copy = defining_op(value)
        if copy is None or not is_elementwise(copy) or len(copy.operands) != 2 or not is_plain_copy(copy):
            continue
        source = indexing_maps(copy)
        if source is None or not is_tensor(copy.operands[0]) or source[0] == source[1]:
            continue
        if not all(isinstance(expr, mlir.AffineDimExpr | mlir.AffineConstantExpr) for expr in source[0].results):
            continue
        exprs = [expr.compose(maps[position]) for expr in source[0].results]
        composed = [*maps[:position], mlir.AffineMap.get(maps[position].n_dims, 0, exprs), *maps[position + 1 :]]
        walked = {expr.position for map_ in composed for expr in map_.results if isinstance(expr, mlir.AffineDimExpr)}
        if len(walked) != maps[position].n_dims:
            continue  # only the copy says how long a loop is
        maps[position] = composed[position]
        op.operands[position] = copy.operands[0]
        op.attributes["indexing_maps"] = mlir.ArrayAttr.get([mlir.AffineMapAttr.get(map_) for map_ in maps])
        changed = True
    return changed


def _comes_back(value: mlir.Value, source: mlir.Operation | None) -> bool:
    """Whether a value needs `source` through more than elementwise ops.

    A norm or a softmax reduces what it scales; its ops share rows in the shape that they have."""
    seen: set[tuple[mlir.Operation, bool]] = set()
    stack = [(value, False)]
    while stack and source is not None:
        current, reduced = stack.pop()
        op = defining_op(current)
        if op is None or op.block != source.block or op.is_before_in_block(source) or (op, reduced) in seen:
            continue
        if op == source and reduced:
            return True
        seen.add((op, reduced))
        reduced = reduced or not (is_elementwise(op) or op.name in ("tensor.expand_shape", "tensor.collapse_shape"))
        stack += [(operand, reduced) for operand in op.operands]
    return False


def _sink(op: mlir.Operation, user: mlir.Operation) -> bool:
    """Computes `user` in the shape of the expansion's source, and expands its result instead."""
    if not is_elementwise(user) or not list(user.results[0].uses):
        return False
    inputs, _ = split_operands(user)
    maps, body = indexing_maps(user), user.regions[0].blocks[0]
    assert maps is not None
    if any(view.operation.name == "linalg.index" for view in body.operations) or list(body.arguments[-1].uses):
        return False
    extents = list(mlir.RankedTensorType(op.results[0].type).shape)
    groups = _groups(op)
    if maps[-1].n_dims != len(extents) or list(mlir.RankedTensorType(user.results[0].type).shape) != extents:
        return False
    plans = []
    for value, map_ in zip(inputs, maps, strict=False):
        if value == op.results[0]:
            plan = _Plan(tuple(range(len(groups))), ())
        else:
            plan = _plan(map_, value, groups, extents) if is_tensor(value) else _Plan((), ())
        if plan is None:
            return False
        plans.append(plan)
    identity = mlir.AffineMap.get_identity(len(extents))
    own = [map_ for value, map_ in zip(inputs, maps, strict=False) if value == op.results[0]]
    if any(map_ != identity for map_ in own):
        return False
    if any(_comes_back(value, defining_op(op.operands[0])) for value in inputs if value != op.results[0]):
        return False
    with mlir.InsertionPoint(user), user.location:
        shape = list(mlir.RankedTensorType(op.operands[0].type).shape)
        new_inputs = [
            op.operands[0] if value == op.results[0] else _collapse(value, plan.parts) if is_tensor(value) else value
            for value, plan in zip(inputs, plans, strict=True)
        ]
        new_maps = [
            mlir.AffineMap.get(len(groups), 0, [mlir.AffineDimExpr.get(group) for group in plan.groups])
            for plan in plans
        ]
        output = tensor.EmptyOp(shape, element_type(user.results[0])).result
        all_maps = [*new_maps, mlir.AffineMap.get_identity(len(groups))]
        new = generic(new_inputs, [output], all_maps, ["parallel"] * len(groups))
        copy_body(user, new)
        restored = tensor.ExpandShapeOp(
            user.results[0].type, new.results[0], op.attributes["reassociation"], [], extents
        ).result
    user.results[0].replace_all_uses_with(restored)
    return True


@dataclass(frozen=True)
class _Plan:
    """How an operand is read after collapsing: `groups` are its new dimensions, made of its old ones in `parts`."""

    groups: tuple[int, ...]
    parts: tuple[tuple[int, ...], ...]


def _plan(map_: mlir.AffineMap, value: mlir.Value, groups: Groups, extents: list[int]) -> _Plan | None:
    """None when the operand does not walk through each group as a whole, or not at all."""
    sizes = list(mlir.RankedTensorType(value.type).shape)
    if mlir.ShapedType.get_dynamic_size() in sizes:
        return None
    group_of = {dim: number for number, group in enumerate(groups) for dim in group}
    order: list[int] = []
    parts: list[list[int]] = []
    walked: dict[int, list[int]] = {}
    leading: list[int] = []  # unit dimensions before the first that matters
    for position, expr in enumerate(map_.results):
        if not isinstance(expr, mlir.AffineDimExpr | mlir.AffineConstantExpr):
            return None
        if sizes[position] == 1:
            (parts[-1] if parts else leading).append(position)
            continue
        if not isinstance(expr, mlir.AffineDimExpr) or extents[expr.position] != sizes[position]:
            return None
        group = group_of[expr.position]
        if order and order[-1] == group:
            parts[-1].append(position)
        else:
            if group in order:
                return None
            order.append(group)
            parts.append([position])
        walked.setdefault(group, []).append(expr.position)
    for group, dims in walked.items():
        if dims != [dim for dim in groups[group] if extents[dim] != 1]:
            return None
    if parts:
        parts[0] = leading + parts[0]
    return _Plan(tuple(order), tuple(tuple(part) for part in parts))


def _collapse(value: mlir.Value, parts: tuple[tuple[int, ...], ...]) -> mlir.Value:
    type_ = mlir.RankedTensorType(value.type)
    if len(parts) == type_.rank:
        return value
    shape = [math.prod(type_.shape[dim] for dim in part) for part in parts]
    collapsed = mlir.RankedTensorType.get(shape, type_.element_type)
    return tensor.CollapseShapeOp(collapsed, value, [list(part) for part in parts]).result
