"""`reuse-in-place`: a dispatch writes its result over an operand that nobody needs afterwards."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.codegen.backends import backend_of
from eyas.codegen.common.analysis import Analysis, analysis_of
from eyas.codegen.common.kernel import Access, Storage
from eyas.dialects import flow, stream
from eyas.ir.walk import find_ops
from eyas.passes.targeted import TargetedPass
from eyas.targets import Target


@dataclass(frozen=True)
class ReuseInPlace(TargetedPass):
    """Merges two buffers where the executable reads an element only before it writes the element at the same place.

    Whether that holds is asked of the executable's loop nests; an executable that has none never works in place.

        %b = stream.alloc ...
        stream.dispatch(%a, %b) {access = [1, 2]}   =>   stream.dispatch(%a, %a) {access = [1, 2]}
    """

    name: ClassVar[str] = "reuse-in-place"
    disable: tuple[str, ...] = ()
    analyses: dict[str, Analysis] = field(default_factory=dict, compare=False, repr=False)

    def run(self, module: mlir.Module) -> None:
        executables = [op for op in module.body.operations if flow.is_executable(op)]
        pairs = {
            op.attributes["sym_name"].value: alias_pairs(op, self.target, self.disable, self.analyses)
            for op in executables
        }
        for function in module.body.operations:
            if flow.is_executable(function):
                continue
            for dispatch in find_ops(function, "stream.dispatch"):
                _reuse(dispatch, pairs[dispatch.callee.value])


def _reuse(dispatch: stream.DispatchOp, pairs: list[tuple[int, int]]) -> None:
    resources = list(dispatch.resources)
    placed: set[int] = set()
    for operand, result in pairs:
        old, new = resources[operand], resources[result]
        if result in placed or resources.count(old) != 1:
            continue
        if not _is_transient(old) or not _is_transient(new) or not _same_size(old, new):
            continue
        if _is_used_after(old, dispatch.operation):
            continue
        placed.add(result)
        resources[result] = old
        alloc = new.owner
        new.replace_all_uses_with(old)
        alloc.erase()


def _is_transient(value: mlir.Value) -> bool:
    owner = value.owner
    return owner.name == "stream.alloc" and owner.attributes["kind"].value == "transient"


def _same_size(left: mlir.Value, right: mlir.Value) -> bool:
    a, b = left.owner.operands[0], right.owner.operands[0]
    if a == b:
        return True
    constants = [value.owner for value in (a, b)]
    if all(not isinstance(op, mlir.Block) and op.name == "arith.constant" for op in constants):
        return constants[0].attributes["value"] == constants[1].attributes["value"]
    return False


def _is_used_after(value: mlir.Value, op: mlir.Operation) -> bool:
    for use in value.uses:
        user = use.owner.operation
        if user.name == "stream.view" or (user != op and not user.is_before_in_block(op)):
            return True
    return False


def alias_pairs(
    function: mlir.OpView, target: Target, disable: tuple[str, ...], analyses: dict[str, Analysis]
) -> list[tuple[int, int]]:
    """(operand, result) positions among the bindings that may share memory, whatever the schedule."""
    if flow.IN_PLACE in function.attributes:
        return []  # lowered to plain loops
    found = analysis_of(function, analyses, target.near_bytes)
    if found.raw is None or found.raw.steps is not None:  # a later step may read what an earlier one wrote over
        return []
    inputs = [storage for storage in found.raw.storages if not storage.is_output]
    outputs = [storage for storage in found.raw.storages if storage.is_output]
    pairs = [
        (source.binding, made.binding)
        for made in outputs
        for source in inputs
        if source.binding is not None and made.binding is not None
        if source.shape == made.shape and source.element == made.element and _may_alias(found, source, made)
    ]
    works = pairs and backend_of(target).works_in_place(function, target, frozenset(disable), found)
    return pairs if works else []


def _may_alias(found: Analysis, source: Storage, target: Storage) -> bool:
    kernel = found.raw
    assert kernel is not None
    if any(storage is source for storage in kernel.tensors.values()):
        return False
    writes = [
        (index, position, access)
        for index, nest in enumerate(kernel.nests)
        for position, statement in enumerate(nest.statements)
        for access in statement.outputs
        if access is not None and access.storage is target
    ]
    if len(writes) != 1:
        return False
    nest_index, position, written = writes[0]
    for index, nest in enumerate(kernel.nests):
        for at, statement in enumerate(nest.statements):
            for access in [*statement.inputs, *statement.inits]:
                storage = getattr(access, "storage", None)
                if getattr(access, "guards", ()) and _reads_anywhere(access, source):
                    return False
                if storage is not source:
                    continue
                if index == nest_index:
                    if at > position or access.strides != written.strides or access.offset != written.offset:
                        return False
                elif index > nest_index or not _same_rows(found, index, access, written):
                    return False
    return True


def _reads_anywhere(access: object, source: Storage) -> bool:
    while access is not None and hasattr(access, "storage"):
        if access.storage is source:
            return True
        access = access.otherwise
    return False


def _same_rows(found: Analysis, index: int, read: Access, written: Access) -> bool:
    """An earlier nest, number `index`, has finished reading the row when it is written, in whatever blocks rows go
    through the nests. What is read before all blocks is still read by other workgroups while one writes."""
    assert found.raw is not None
    first = max(found.firsts, default=0)
    shared = found.raw.shared + (1 if first else 0)
    if shared == 0 or index < first or read.offset or written.offset:
        return False
    return read.strides[:shared] == written.strides[:shared] == read.storage.strides[:shared]
