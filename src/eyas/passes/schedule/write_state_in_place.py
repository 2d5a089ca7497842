"""`write-state-in-place`: the dispatch that makes a state variable's new value writes it where the old one is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.codegen.common.analysis import Analysis
from eyas.dialects import codegen, flow, stream
from eyas.ir.walk import defining_op, entry_block, find_ops, functions, is_tensor
from eyas.passes.schedule.reuse_in_place import alias_pairs
from eyas.passes.targeted import TargetedPass
from eyas.targets import Target


@dataclass(frozen=True)
class WriteStateInPlace(TargetedPass):
    """Removes the copy at the end of a call where nobody needs the old value any more when the new one is written.

    The dispatch moves down behind the last reader of the old value if that is needed and possible. A dispatch that
    reads the old value itself may do this if its loop nests read each element only before they write it; or if it only
    changes a part of it (a row of a cache): then it becomes one that leaves the rest alone.

        %b = stream.alloc ...                        stream.dispatch(%s, %row, %s) {callee = @insert_in_place}
        stream.dispatch(%s, %row, %b) {@insert}  =>
        stream.copy %b, %s
    """

    name: ClassVar[str] = "write-state-in-place"
    disable: tuple[str, ...] = ()
    analyses: dict[str, Analysis] = field(default_factory=dict, compare=False, repr=False)

    def run(self, module: mlir.Module) -> None:
        executables = _Executables(module, self.target, self.disable, self.analyses)
        for function in [one for one in functions(module) if not flow.is_executable(one)]:
            for copy in [op for op in entry_block(function).operations if op.operation.name == "stream.copy"]:
                if copy.target.owner.name == "stream.state":
                    _write_in_place(copy, executables)
        executables.drop_unused()


LOOPS = "loops"
"""The strategy that every target has."""


class _Executables:
    """What is known of the module's executables, and their variants that work in place."""

    def __init__(self, module: mlir.Module, target: Target, disable: tuple[str, ...], analyses: dict[str, Analysis]):
        self.module, self.target, self.disable, self.analyses = module, target, disable, analyses
        self.by_name = {op.attributes["sym_name"].value: op for op in module.body.operations if flow.is_executable(op)}
        self.pairs: dict[str, list[tuple[int, int]]] = {}
        self.replaced: set[str] = set()

    def may_alias(self, name: str, operand: int, result: int) -> bool:
        if name not in self.pairs:
            self.pairs[name] = alias_pairs(self.by_name[name], self.target, self.disable, self.analyses)
        return (operand, result) in self.pairs[name]

    def updating(self, name: str, operand: int, result: int) -> str | None:
        """The executable that changes a part of an operand in place; None when this one makes the whole anew."""
        function = self.by_name[name]
        tensors = [argument for argument in entry_block(function).arguments if is_tensor(argument)]
        position = result - len(tensors)
        if flow.IN_PLACE in function.attributes or not _updates(function, tensors[operand], position):
            return None
        variant = f"{name}_in_place_{operand}_{position}"
        if variant not in self.by_name:
            with mlir.InsertionPoint(function), function.operation.location:
                copy = function.operation.clone()
            copy.attributes["sym_name"] = mlir.StringAttr.get(variant)
            copy.attributes[flow.IN_PLACE] = mlir.DenseI64ArrayAttr.get([operand, position])
            # The other strategies write every element of a result.
            strategy = codegen.StrategyAttr.get(mlir.StringAttr.get(LOOPS), mlir.DictAttr.get({}))
            copy.attributes[codegen.STRATEGY] = strategy
            if codegen.TUNED in copy.attributes:
                del copy.attributes[codegen.TUNED]
            reason = mlir.StringAttr.get("others: only a part of the result is written")
            copy.attributes[codegen.REJECTED] = mlir.ArrayAttr.get([reason])
            self.by_name[variant] = copy.opview
        return variant

    def drop_unused(self) -> None:
        """Removes executables that variants have replaced everywhere."""
        used = {op.callee.value for op in find_ops(self.module, "stream.dispatch")}
        for name in self.replaced - used:
            self.by_name.pop(name).operation.erase()


def _updates(function: mlir.OpView, argument: mlir.Value, position: int) -> bool:
    """Whether a result is an argument with parts inserted."""
    value = list(entry_block(function).operations)[-1].operands[position]
    while value != argument:
        op = defining_op(value)
        if op is None:
            return False
        if op.name == "tensor.insert_slice":
            value = op.operands[1]
        elif op.name == "scf.for":
            value = op.operands[3 + list(op.results).index(value)]
        elif op.name == "scf.if":
            index = list(op.results).index(value)
            ends = [list(region.blocks[0].operations)[-1].operands[index] for region in op.regions]
            unchanged = [end for end in ends if (maker := defining_op(end)) is None or maker.block not in _blocks(op)]
            if not unchanged:
                return False
            value = unchanged[0]
        else:
            return False
    return True


def _blocks(op: mlir.Operation) -> list[mlir.Block]:
    return [block for region in op.regions for block in region.blocks]


def _write_in_place(copy: mlir.OpView, executables: _Executables) -> None:
    new, state = copy.source, copy.target
    alloc = new.owner
    if alloc.name != "stream.alloc" or alloc.attributes["kind"].value != "transient":
        return
    dispatch = _maker(new)
    if dispatch is None or not _come_after_readers(dispatch, state, copy.operation):
        return
    resources = list(dispatch.resources)
    result = resources.index(new)
    reads = [position for position, one in enumerate(resources) if _root(one) == state]
    if len(reads) > 1 or (reads and resources[reads[0]] != state):
        return
    if reads and not executables.may_alias(dispatch.callee.value, reads[0], result):
        name = dispatch.callee.value
        variant = executables.updating(name, reads[0], result)
        if variant is None:
            return
        dispatch.attributes["callee"] = mlir.FlatSymbolRefAttr.get(variant)
        access = list(dispatch.access)
        access[reads[0]] = stream.READ | stream.WRITE
        dispatch.attributes["access"] = mlir.DenseI64ArrayAttr.get(access)
        executables.replaced.add(name)
    copy.operation.erase()
    new.replace_all_uses_with(state)
    alloc.erase()


def _maker(resource: mlir.Value) -> mlir.OpView | None:
    """The one dispatch that writes a buffer."""
    writers = [op for op in _users(resource) if _touches(op, resource, writes=True)]
    return writers[0].opview if len(writers) == 1 and writers[0].name == "stream.dispatch" else None


def _come_after_readers(dispatch: mlir.OpView, state: mlir.Value, copy: mlir.Operation) -> bool:
    """Moves the dispatch behind all that reads the old value; False when something stands against it."""
    op = dispatch.operation
    readers = [user for user in _users(state) if user not in (op, copy) and not user.is_before_in_block(op)]
    if not readers:
        return True
    last = readers[0]
    for reader in readers:
        last = reader if last.is_before_in_block(reader) else last
    written = [one for one, access in zip(dispatch.resources, dispatch.access, strict=True) if access & stream.WRITE]
    between = _between(op, last)
    for other in between:
        if any(_touches(other, one) for one in dict.fromkeys(written)):
            return False
        if any(_touches(other, one, writes=True) for one in dict.fromkeys(dispatch.resources)):
            return False
    op.move_after(last)
    return True


def _between(first: mlir.Operation, last: mlir.Operation) -> list[mlir.Operation]:
    """The ops after `first` up to and with `last`."""
    ops = [view.operation for view in first.block.operations]
    return ops[ops.index(first) + 1 : ops.index(last) + 1]


def _users(resource: mlir.Value) -> list[mlir.Operation]:
    """Ops that use a buffer, as a whole or in part."""
    found: list[mlir.Operation] = []
    for use in resource.uses:
        user = use.owner.operation
        found += _users(user.results[0]) if user.name == "stream.view" else [user]
    return list(dict.fromkeys(found))


def _touches(op: mlir.Operation, resource: mlir.Value, writes: bool = False) -> bool:
    """Whether an op uses the buffer that `resource` is part of; with `writes`, whether it changes it."""
    root = _root(resource)
    if op.name in ("stream.dispatch", *stream.HOST_CALLS) and writes:
        view = op.opview
        return any(
            access & stream.WRITE and _root(one) == root
            for one, access in zip(view.resources, view.access, strict=True)
        )
    if op.name == "stream.copy" and writes:
        return _root(op.operands[1]) == root
    if writes or op.name == "stream.view":
        return False
    return any(_root(value) == root for value in op.operands if value.type == resource.type)


def _root(resource: mlir.Value) -> mlir.Value:
    owner = resource.owner
    while not isinstance(owner, mlir.Block) and owner.name == "stream.view":
        resource = owner.operands[0]
        owner = resource.owner
    return resource
