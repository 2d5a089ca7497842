"""Which ops run together: the rules of dispatch formation, as an analysis that changes nothing.

A group grows from its first op. Elementwise ops join the group that makes their operand, so that they run on values in
registers. Reductions and elementwise ops that walk the same rows join too, so that a row of intermediates stays in
cache (softmax, layer norm). Contractions and convolutions start groups of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from functools import cmp_to_key

from torch_mlir import ir as mlir
from torch_mlir.dialects import linalg

from eyas.codegen.common.segments import segments_of
from eyas.codegen.common.traffic import held_bytes
from eyas.dialects import flow
from eyas.ir.structured import is_elementwise
from eyas.ir.transforms import is_matrix_of_transforms, is_transform
from eyas.ir.walk import defining_op, is_tensor, nested_operands, ops_behind
from eyas.passes.dispatch.dependencies import Dependencies
from eyas.passes.dispatch.long_rows import passes_along_rows
from eyas.passes.dispatch.window_padding import reads_padding_in_place
from eyas.targets import Target

# Shorter rows do not fill a vector, and each of them is a loop of its own; where there are many, that costs more than
# further dispatches.
_MIN_ROW_ELEMENTS = 8
_MANY_ROWS = 1024
# Fewer rows than this starve the cores when there is much work in each.
_MIN_ROWS = 16
_SMALL_WORK = 65_536
# What a dimension has that is known only at run time.
_ASSUMED = 64

MAX_TENSORS = 24
"""Tensors of one dispatch, where the target does not ask for fewer: more make long code and gain nothing."""


class Role(Enum):
    """What an op is to dispatch formation."""

    HOST = "stays in the host program"
    CLONED = "copied into each dispatch that uses it"
    ELEMENTWISE = "one value out of values at the same place"
    REDUCTION = "folds some dimensions of its input"
    CONTRACTION = "products summed: matmul, convolution, and windows"
    OPAQUE = "runs alone"


@dataclass
class Group:
    """Ops of one future dispatch, in program order. `rows` leading dimensions are common to all intermediates."""

    ordinal: int
    ops: list[mlir.Operation] = field(default_factory=list)
    root: Role = Role.OPAQUE
    rows: int | None = None
    tensors: set[mlir.Value] = field(default_factory=set)
    """All that its ops read and make."""


def role_of(op: mlir.Operation) -> Role:
    """Classifies one op of a function body."""
    name = op.name
    if name in ("tensor.empty", "complex.constant") or (name == "arith.constant" and not _is_big_constant(op)):
        return Role.CLONED
    if name == "linalg.fill" and not _needs_buffer(op.results[0]):
        return Role.CLONED
    if name == "tensor.pad" and _is_read_in_place(op):
        return Role.CLONED
    if name.startswith("flow.") or name in ("tensor.dim", "func.return", "cf.assert") or flow.is_host_call(op):
        return Role.HOST
    if name == "tensor.extract" or _is_scalar_of_data(op) or _is_float_scalar(op):
        return Role.CLONED
    if not _has_tensors(op) and not op.regions:
        return Role.HOST
    if name == "linalg.generic" or name.startswith("linalg."):
        return _role_of_structured(op)
    return Role.OPAQUE


def _is_read_in_place(op: mlir.Operation) -> bool:
    """Padding that only transforms of tiles read, which test for its edges tile by tile, or windows, which do so tap by
    tap."""
    return len(op.operands) == 1 and all(
        is_transform(user) or reads_padding_in_place(user, op) for user in _readers(op)
    )


def _readers(op: mlir.Operation) -> list[mlir.Operation]:
    """The users of an op's result, but for what states its sizes."""
    users = [use.owner.operation for use in op.results[0].uses]
    return [user for user in users if user.name != "flow.tie_shape"]


def _is_scalar_of_data(op: mlir.Operation) -> bool:
    """Scalar arithmetic on an element of a tensor: cheaper to repeat in a dispatch than to bring to the host."""
    if not _is_scalar_arithmetic(op):
        return False
    behind = (other for value in op.operands for other in ops_behind(value, _is_scalar_arithmetic))
    return any(other.name == "tensor.extract" for other in behind)


def _is_scalar_arithmetic(op: mlir.Operation) -> bool:
    return op.name.startswith(("arith.", "math.", "complex.")) and not _has_tensors(op)


def _has_tensors(op: mlir.Operation) -> bool:
    return any(is_tensor(value) for value in [*op.results, *op.operands])


def _is_float_scalar(op: mlir.Operation) -> bool:
    """Scalar arithmetic with floats, on sizes: the host passes only integers to a dispatch."""
    values = [*op.results, *op.operands]
    return (
        op.name.startswith(("arith.", "math."))
        and not any(is_tensor(value) for value in values)
        and any(isinstance(value.type, mlir.FloatType) for value in values)
    )


def _is_big_constant(op: mlir.Operation) -> bool:
    type_ = op.results[0].type
    if not isinstance(type_, mlir.ShapedType):
        return False
    attribute = op.attributes["value"]
    if isinstance(attribute, mlir.DenseElementsAttr) and attribute.is_splat:
        return _needs_buffer(op.results[0])
    return not is_matrix_of_transforms(op)


def _needs_buffer(value: mlir.Value) -> bool:
    """Whether a value leaves the program, or is seen through a view."""
    for use in value.uses:
        user = use.owner.operation
        # A tie says the sizes only.
        if (
            user.name == "func.return"
            or flow.is_host_call(user)
            or (user.name.startswith("flow.") and user.name != "flow.tie_shape")
        ):
            return True
    return False


def _role_of_structured(op: mlir.Operation) -> Role:
    maps = indexing_maps(op)
    if maps is None or len(op.results) == 0:
        return Role.OPAQUE
    if is_transform(op):
        return Role.CONTRACTION
    parallel = _dims_in(maps[-1])
    reduction = maps[-1].n_dims - len(parallel)
    if reduction == 0:
        return Role.CLONED if _is_inner_broadcast(op, maps) else Role.ELEMENTWISE
    if linalg.isa_contraction_op(op) or linalg.isa_convolution_op(op) or "pooling" in op.name:
        return Role.CONTRACTION
    return Role.REDUCTION


def _is_inner_broadcast(op: mlir.Operation, maps: list[mlir.AffineMap]) -> bool:
    """A copy that only repeats its input, for other linalg ops: they read the input instead, with strides of zero."""
    if len(maps) != 2 or not is_plain_copy(op) or not is_tensor(op.operands[0]):
        return False
    if not all(isinstance(expr, mlir.AffineDimExpr | mlir.AffineConstantExpr) for expr in maps[0].results):
        return False
    dims = [expr.position for expr in maps[0].results if isinstance(expr, mlir.AffineDimExpr)]
    if len(dims) == maps[0].n_dims or dims != sorted(dims) or maps[1] != mlir.AffineMap.get_identity(maps[1].n_dims):
        return False
    return all(user.name.startswith("linalg.") for user in _readers(op))


def is_plain_copy(op: mlir.Operation) -> bool:
    """Whether the body of a linalg op yields its first argument."""
    body = op.regions[0].blocks[0]
    first = next(iter(body.operations)).operation
    return first.name == "linalg.yield" and first.operands[0] == body.arguments[0]


def indexing_maps(op: mlir.Operation) -> list[mlir.AffineMap] | None:
    """Maps of a linalg op, inputs then outputs; None when it has none (softmax, pack)."""
    if "indexing_maps" in op.attributes:
        attributes = op.attributes["indexing_maps"]
    else:
        attributes = linalg.get_indexing_maps(op)
    return None if attributes is None else [mlir.AffineMapAttr(attribute).value for attribute in attributes]


def _dims_in(map_: mlir.AffineMap) -> set[int]:
    return {expr.position for expr in map_.results if isinstance(expr, mlir.AffineDimExpr)}


def form_groups(
    block: mlir.Block, target: Target, fuse: bool = True, max_tensors: int = MAX_TENSORS
) -> tuple[list[Group], dict[mlir.Operation, str]]:
    """Groups in order of their first op, and why ops did not join the group of an operand (for `eyas explain`).

    Without `fuse` each op stays alone."""
    forming = Forming(target, fuse, max_tensors)
    for view in block.operations:
        forming.visit(view.operation)
    return [group for group in forming.groups if group.ops], forming.reasons


class Forming:
    """Groups so far, as the ops of a block are visited in order."""

    def __init__(self, target: Target, fuse: bool = True, max_tensors: int = MAX_TENSORS):
        self.target, self.fuse, self.max_tensors = target, fuse, max_tensors
        self.groups: list[Group] = []
        self.reasons: dict[mlir.Operation, str] = {}
        self.dependencies = Dependencies()
        self._group_of: dict[mlir.Operation, Group] = {}
        self._marked: dict[mlir.Attribute, Group] = {}
        self._walks: dict[mlir.Operation, tuple[int, ...] | None] = {}

    def visit(self, op: mlir.Operation) -> None:
        """Puts an op into a group that makes one of its operands, or a new one."""
        self.dependencies.add(op)
        role = role_of(op)
        if role in (Role.HOST, Role.CLONED):
            return
        group = self._chosen(op, role) if self.fuse else None
        if group is None:
            group = Group(len(self.groups), root=role)
            self.groups.append(group)
        if group.ops:
            self.dependencies.join(group.ops[0], op)
        group.ops.append(op)
        group.tensors |= _tensors_of(op)
        self._group_of[op] = group
        if self.fuse and role is Role.ELEMENTWISE:
            self._merge_siblings(op, group)

    def _chosen(self, op: mlir.Operation, role: Role) -> Group | None:
        if _is_corner_of_transform(op):
            return self._group_of[op.operands[0].owner.operation]
        if flow.GROUP in op.attributes:
            return self._marked_group(op)
        if role not in (Role.ELEMENTWISE, Role.REDUCTION):
            return None
        for group in self._candidates(op):
            refusal = self._why_not_join(op, role, group)
            if refusal is None:
                return group
            self.reasons[op] = refusal
        return None

    def _marked_group(self, op: mlir.Operation) -> Group:
        """The group of ops that a pass has put together. Its rows are all but the last dimension of the first op's."""
        mark = op.attributes[flow.GROUP]
        if mark not in self._marked:
            rows = mlir.ShapedType(op.results[0].type).rank - 1
            self._marked[mark] = Group(len(self.groups), root=Role.OPAQUE, rows=rows)
            self.groups.append(self._marked[mark])
        return self._marked[mark]

    def _candidates(self, op: mlir.Operation) -> list[Group]:
        """Groups that make an operand, latest first: it has the most of what the op needs."""
        found = {}
        for value in op.operands:
            owner = defining_op(value)
            if owner is not None and owner in self._group_of:
                found[self._group_of[owner].ordinal] = self._group_of[owner]
        return [found[ordinal] for ordinal in sorted(found, reverse=True)]

    def _why_not_join(self, op: mlir.Operation, role: Role, group: Group) -> str | None:
        """The reason against joining, or None. May narrow `group.rows`."""
        if group.root is Role.OPAQUE:
            return "its producer runs alone"
        if self.dependencies.are_apart(group.ops[0], op):
            return "it also needs a later result that depends on the same producer"
        if self._bindings_of(group.tensors | _tensors_of(op)) > self.max_tensors:
            return f"the dispatch would have more than {self.max_tensors} tensors"
        return _why_not_fit(op, role, group, self.target)

    def _bindings_of(self, tensors: set[mlir.Value]) -> int:
        return sum(segments_of(value.type, self.target) if is_tensor(value) else 1 for value in tensors)

    def _merge_siblings(self, op: mlir.Operation, joined: Group) -> None:
        """Groups of elementwise ops that one op brings together run as one: `a * b + c * d` stores nothing between."""
        if not self._walks_alike(joined, op):
            return
        for other in self._candidates(op):
            if other is joined or not self._walks_alike(other, op):
                continue
            merged = _in_order(joined.ops + other.ops)
            extracted = {defining_op(value) for member in merged for value in _extracted_tensors(member)}
            tensors = joined.tensors | other.tensors
            if self._bindings_of(_bound_tensors(merged, tensors)) > self.max_tensors or extracted & set(merged):
                continue
            if self.dependencies.are_apart(joined.ops[0], other.ops[0]):
                continue
            self.dependencies.join(joined.ops[0], other.ops[0])
            joined.ops[:], joined.tensors = merged, tensors
            for member in other.ops:
                self._group_of[member] = joined
            other.ops.clear()

    def _walks_alike(self, group: Group, op: mlir.Operation) -> bool:
        """Whether all ops of a group are elementwise, with the loops of `op` in the same order."""
        if group.root is not Role.ELEMENTWISE or group.rows is not None or len(op.results) != 1:
            return False
        type_ = mlir.RankedTensorType(op.results[0].type)
        return type_.has_static_shape and all(self._walk_of(member) == tuple(type_.shape) for member in group.ops)

    def _walk_of(self, op: mlir.Operation) -> tuple[int, ...] | None:
        """The loops of an op that makes one value out of values at one place, found once; None for any other."""
        if op not in self._walks:
            alike = is_elementwise(op) or op.name == "linalg.transpose"
            self._walks[op] = tuple(mlir.RankedTensorType(op.results[0].type).shape) if alike else None
        return self._walks[op]


def _in_order(ops: list[mlir.Operation]) -> list[mlir.Operation]:
    """Ops of one block as they stand there."""
    return sorted(ops, key=cmp_to_key(lambda left, right: -1 if left.is_before_in_block(right) else 1))


def _is_corner_of_transform(op: mlir.Operation) -> bool:
    """A slice that cuts off what tiles have beyond the edge: the transform does not write that at all."""
    source = defining_op(op.operands[0]) if op.name == "tensor.extract_slice" else None
    if source is None or not is_transform(source) or len(_readers(source)) != 1:
        return False
    shapes = [mlir.RankedTensorType(value.type) for value in (op.operands[0], op.results[0])]
    offsets, strides = (
        list(mlir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("offsets", "strides")
    )
    return shapes[0].rank == shapes[1].rank and not any(offsets) and set(strides) == {1}


def _why_not_fit(op: mlir.Operation, role: Role, group: Group, target: Target) -> str | None:
    """What an op and a group have against each other, dependencies apart."""
    extracted = [defining_op(value) for value in _extracted_tensors(op)]
    if any(owner is not None and owner in group.ops for owner in extracted):
        return "it reads its producer at computed positions"
    edges = [value for value in op.operands if (owner := defining_op(value)) is not None and owner in group.ops]
    maps = indexing_maps(op)
    if maps is None:
        return "it has no loops"
    if role is Role.ELEMENTWISE and all(_reads_in_place(op, maps, value) for value in edges):
        if group.root is Role.CONTRACTION:
            return None
        if group.rows is None:
            return None
    if group.root is Role.CONTRACTION:
        return "it reads a contraction's result in another order"
    return _why_not_share_rows(op, group, edges, maps, target)


def _extracted_tensors(op: mlir.Operation) -> list[mlir.Value]:
    """Tensors that the op's body reads with `tensor.extract`."""
    bodies = [view.operation for region in op.regions for block in region.blocks for view in block.operations]
    return [inner.operands[0] for inner in bodies if inner.name == "tensor.extract"]


def _reads_in_place(op: mlir.Operation, maps: list[mlir.AffineMap], value: mlir.Value) -> bool:
    """Whether the op reads `value` exactly at the point that it writes: same loops, each once."""
    for operand, map_ in zip(op.operands, maps, strict=False):
        if operand == value and not (map_.is_permutation and map_ == maps[-1]):
            return False
    return True


def _why_not_share_rows(
    op: mlir.Operation, group: Group, edges: list, maps: list[mlir.AffineMap], target: Target
) -> str | None:
    rows = group.rows if group.rows is not None else 99
    for value in edges:
        for operand, map_ in zip(op.operands, maps, strict=False):
            if operand == value:
                rows = min(rows, _common_prefix(map_, maps[-1]))
    if group.rows is None:
        for member in group.ops:  # the members so far ran in registers; now they must agree on rows
            rows = min(rows, mlir.ShapedType(member.results[0].type).rank)
    if rows == 0:
        return "they have no rows in common"
    shapes = [mlir.ShapedType(value.type) for value in edges]
    row_count, row_size = 1, 1
    for dim in range(shapes[0].rank):
        size = _ASSUMED if shapes[0].is_dynamic_dim(dim) else shapes[0].get_dim_size(dim)
        if dim < rows:
            row_count *= size
        else:
            row_size *= size
    made = [result for member in group.ops for result in member.results]
    too_long = any(_row_bytes(value, rows) > target.workgroup_bytes for value in [*edges, *made])
    if too_long and not (target.reads_rows_again and passes_along_rows([*group.ops, op], rows)):
        return f"a row of {row_size} elements is too long to keep near"
    if row_count >= _MANY_ROWS and _longest_row([*group.ops, op], row_count) < _MIN_ROW_ELEMENTS:
        return f"{row_count} rows of a few elements: lanes run along the rows instead"
    made = mlir.ShapedType(op.results[0].type)
    work = math.prod(made.shape) if made.has_static_shape else 0
    if row_count < _MIN_ROWS and max(work, row_count * row_size) > _SMALL_WORK:
        return f"only {row_count} rows: too few to share among cores"
    group.rows = rows
    return None


def _row_bytes(value: mlir.Value, rows: int) -> int:
    """What a row of a tensor takes near a core."""
    shaped = mlir.ShapedType(value.type)
    sizes = [_ASSUMED if shaped.is_dynamic_dim(dim) else shaped.get_dim_size(dim) for dim in range(rows, shaped.rank)]
    return held_bytes(math.prod(sizes), shaped.element_type)


def _longest_row(ops: list[mlir.Operation], row_count: int) -> float:
    """Elements that a row has of the largest tensor that ops read or make."""
    types = [value.type for op in ops for value in [*op.operands, *op.results] if is_tensor(value)]
    if not all(mlir.ShapedType(type_).has_static_shape for type_ in types):
        return math.inf
    return max(math.prod(mlir.ShapedType(type_).shape) for type_ in types) / max(row_count, 1)


def _common_prefix(read: mlir.AffineMap, written: mlir.AffineMap) -> int:
    """How many leading dimensions are the same plain loop in both maps."""
    count = 0
    for left, right in zip(read.results, written.results, strict=False):
        if not isinstance(left, mlir.AffineDimExpr) or left != right:
            break
        count += 1
    return count


def _bound_tensors(ops: list[mlir.Operation], tensors: set[mlir.Value]) -> set[mlir.Value]:
    """What a group of elementwise ops reads from others, and what others read of it; the rest is in registers."""
    members = set(ops)
    inside = {result for op in ops for result in op.results}
    seen = {result for result in inside if any(use.owner.operation not in members for use in result.uses)}
    return (tensors - inside) | seen


def _tensors_of(op: mlir.Operation) -> set[mlir.Value]:
    return {value for value in nested_operands(op) if is_tensor(value)} | set(op.results)
