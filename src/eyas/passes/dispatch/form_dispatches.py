"""`form-dispatches`: groups ops around roots into regions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import scf

from eyas.codegen.common.traffic import held_bytes
from eyas.dialects import flow
from eyas.errors import CompileError
from eyas.ir import describe_location
from eyas.ir.walk import defining_op, entry_block, functions, is_tensor, nested_operands, remap_operands
from eyas.passes.dispatch.grouping import MAX_TENSORS, Group, Role, form_groups, role_of
from eyas.passes.dispatch.long_rows import passes_along_rows
from eyas.passes.dispatch.shapes import dims_of
from eyas.passes.targeted import TargetedPass
from eyas.targets import Target


@dataclass(frozen=True)
class FormDispatches(TargetedPass):
    """Wraps each group of ops in a region; what is cheap (fills, splats, scalars) is copied inside.

    Grouping is decided by `grouping.py`; here regions are built and the block is put into a legal order.

        %0 = linalg.matmul ...                  %1 = scf.execute_region {
        %1 = linalg.generic (relu) %0     =>      %0 = linalg.matmul ...
                                                  %r = linalg.generic (relu) %0
                                                  scf.yield %r }

    With `fuse=false` each op is a group of its own, for bisecting.
    """

    name: ClassVar[str] = "form-dispatches"
    fuse: bool = True
    max_bindings: int = MAX_TENSORS

    def run(self, module: mlir.Module) -> None:
        for function in functions(module):
            block = entry_block(function)
            most = min(self.max_bindings, MAX_TENSORS)
            groups, reasons = form_groups(block, self.target, self.fuse, most)
            for op, reason in reasons.items():
                op.attributes[flow.NOT_FUSED] = mlir.StringAttr.get(reason)
            _sort(block, groups)
            roles = _Roles()
            for group in groups:
                _wrap(group, self.target, roles)


def _sort(block: mlir.Block, groups: list[Group]) -> None:
    """Moves ops so that each group is contiguous and everything is defined before it is used."""
    ops = [view.operation for view in block.operations]
    node_of: dict[mlir.Operation, int] = {}
    members: list[list[mlir.Operation]] = []
    grouped = {op: group for group in groups for op in group.ops}
    index_of_group: dict[int, int] = {}
    for op in ops:
        group = grouped.get(op)
        if group is not None and group.ordinal in index_of_group:
            node = index_of_group[group.ordinal]
        else:
            node = len(members)
            members.append([])
            if group is not None:
                index_of_group[group.ordinal] = node
        members[node].append(op)
        node_of[op] = node

    done: set[int] = set()
    order: list[mlir.Operation] = []

    def needs(node: int) -> set[int]:
        found = set()
        for op in members[node]:
            for value in _needed_values(op):
                owner = defining_op(value)
                if owner is not None and owner in node_of and node_of[owner] != node:
                    found.add(node_of[owner])
        return found

    def visit(root: int) -> None:
        stack = [(root, iter(sorted(needs(root))))]
        open_nodes = {root}
        while stack:
            node, pending = stack[-1]
            following = next((other for other in pending if other not in done), None)
            if following is not None:
                if following in open_nodes:
                    where = describe_location(members[following][0].location)
                    raise CompileError(f"the size of a tensor made at {where} depends on itself")
                stack.append((following, iter(sorted(needs(following)))))
                open_nodes.add(following)
                continue
            stack.pop()
            open_nodes.remove(node)
            done.add(node)
            order.extend(members[node])

    for node in range(len(members)):
        if node not in done:
            visit(node)
    terminator = ops[-1]
    for op in order:
        if op != terminator:
            op.move_before(terminator)


def _needed_values(op: mlir.Operation) -> list[mlir.Value]:
    """Operands, and the dynamic dimensions of results, which a region must know beforehand."""
    values = list(nested_operands(op))
    for result in op.results:
        if is_tensor(result) and role_of(op) not in (Role.HOST, Role.CLONED):
            values += dims_of(result)
    return values


class _Roles:
    """Roles of ops while groups are wrapped. That of a constant follows from all of its users, and stays when
    some of them are wrapped: it is found once, though each of many users asks for it."""

    def __init__(self) -> None:
        self._constants: dict[mlir.Operation, Role] = {}

    def of(self, op: mlir.Operation) -> Role:
        if op.name != "arith.constant":
            return role_of(op)
        if op not in self._constants:
            self._constants[op] = role_of(op)
        return self._constants[op]


def _wrap(group: Group, target: Target, roles: _Roles) -> None:
    inside = set(group.ops)
    made = [result for op in group.ops for result in op.results]
    results = [result for result in made if _escapes(result, inside) or _is_spilled(group, result, target)]
    if not results:
        if all(_is_dead(op) for op in group.ops):
            for op in reversed(group.ops):
                op.erase()  # an assert inside kept it from being removed before
            return
        results = list(group.ops[-1].results)
    shapes = [dims_of(result) for result in results]
    on_host = _computed_by_the_host(group.ops, made, roles)
    last = group.ops[-1]
    with mlir.InsertionPoint.after(last), last.location:
        region = scf.ExecuteRegionOp([result.type for result in results], no_inline=True)
        for outer, dims in zip(region.results, shapes, strict=True):
            if dims:
                flow.TieShapeOp(outer, dims)
        body = region.regions[0].blocks.append()
    with mlir.InsertionPoint(body), last.location:
        end = scf.YieldOp(results)
    for result in made:
        for use in list(result.uses):
            if use.owner.operation.name == "flow.tie_shape":
                use.owner.operation.erase()
    for op in group.ops:
        op.move_before(end.operation)
        if flow.GROUP in op.attributes:
            del op.attributes[flow.GROUP]  # equal dispatches are then equal text
    for result, outer in zip(results, region.results, strict=True):
        for use in list(result.uses):
            user = use.owner.operation
            if user == end.operation or user.name == "flow.tie_shape" or _is_inside(user, region):
                continue
            user.operands[use.operand_number] = outer
    _clone_cheap_producers(group.ops, region.operation.block, on_host, roles)


def _computed_by_the_host(ops: list[mlir.Operation], made: list[mlir.Value], roles: _Roles) -> set[mlir.Value]:
    """Integers that the host program has before the dispatch begins, because it must know the sizes of tensors: these
    sizes, and what they are computed from."""
    block = ops[0].block
    read = [value for op in ops for value in nested_operands(op) if _has_sizes_on_host(value, block, roles)]
    pending = [dim for value in dict.fromkeys([*made, *read]) if is_tensor(value) for dim in dims_of(value)]
    found: set[mlir.Value] = set()
    while pending:
        value = pending.pop()
        if value in found or not isinstance(value.type, mlir.IndexType | mlir.IntegerType):
            continue
        found.add(value)
        owner = defining_op(value)
        pending += list(owner.operands) if owner is not None else []
    return found


def _has_sizes_on_host(value: mlir.Value, block: mlir.Block, roles: _Roles) -> bool:
    """Whether a tensor of open sizes was made in the host program: an argument's sizes depend on no data, and what is
    copied into a dispatch is not made outside."""
    if not is_tensor(value) or mlir.RankedTensorType(value.type).has_static_shape:
        return False
    owner = defining_op(value)
    return owner is not None and owner.block == block and roles.of(owner) is not Role.CLONED


def _escapes(value: mlir.Value, inside: set[mlir.Operation]) -> bool:
    for use in value.uses:
        user = use.owner.operation
        if user.name == "flow.tie_shape":
            continue
        while user is not None and user not in inside:
            parent = user.parent
            user = parent.operation if parent is not None and parent.operation.name not in ("func.func",) else None
        if user is None:
            return True
    return False


def _is_spilled(group: Group, value: mlir.Value, target: Target) -> bool:
    """An intermediate of a row group of unknown size, or so large that two of them are not near, goes through the arena
    instead of a workgroup's stack; unless nothing of it is kept at all."""
    if group.rows is None or not is_tensor(value):
        return False
    if target.reads_rows_again and passes_along_rows(group.ops, group.rows):
        return False
    shaped = mlir.ShapedType(value.type)
    elements = 1
    for dim in range(group.rows, shaped.rank):
        if shaped.is_dynamic_dim(dim):
            return True
        elements *= shaped.get_dim_size(dim)
    return 2 * held_bytes(elements, shaped.element_type) > target.near_bytes


def _is_dead(op: mlir.Operation) -> bool:
    return all(not list(result.uses) for result in op.results) and op.name != "scf.while"


def _is_inside(op: mlir.Operation, region: mlir.OpView) -> bool:
    current: mlir.Operation | None = op
    while current is not None:
        if current == region.operation:
            return True
        current = current.parent.operation if current.parent is not None else None
    return False


def _clone_cheap_producers(
    ops: list[mlir.Operation], outer: mlir.Block, on_host: set[mlir.Value], roles: _Roles
) -> None:
    """Fills, empties and constants are made again inside, so that they never take memory of their own. So are scalars
    that depend on data, except those that are `on_host`: codegen knows sizes that are given to a dispatch."""
    clones: dict[mlir.Value, mlir.Value] = {}

    def stays_outside(value: mlir.Value, owner: mlir.Operation) -> bool:
        return roles.of(owner) is not Role.CLONED or (value in on_host and owner.name != "arith.constant")

    def clone(value: mlir.Value) -> mlir.Value:
        owner = defining_op(value)
        if value in clones or owner is None or stays_outside(value, owner):
            return clones.get(value, value)
        for operand in nested_operands(owner):
            clone(operand)
        with mlir.InsertionPoint(anchor):
            copy = owner.clone().operation
        remap_operands(copy, clones)
        for old, new in zip(owner.results, copy.results, strict=True):
            clones[old] = new
        return clones[value]

    def visit(op: mlir.Operation) -> None:
        for position, value in enumerate(op.operands):
            owner = defining_op(value)
            if owner is not None and owner.block == outer and not stays_outside(value, owner):
                op.operands[position] = clone(value)
        for region in op.regions:
            for block in region.blocks:
                for inner in block.operations:
                    visit(inner.operation)

    anchor = ops[0]
    for op in ops:
        visit(op)
