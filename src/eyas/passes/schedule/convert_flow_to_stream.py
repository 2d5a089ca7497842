"""`convert-flow-to-stream`: tensors become resources with sizes, dispatches become work in order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, func

from eyas.dialects import flow, stream
from eyas.errors import CompileError
from eyas.ir import Pass, describe_location
from eyas.ir.dialect import integers
from eyas.ir.values import element_bytes, i64_attribute, index_constant
from eyas.ir.walk import constant_int, entry_block, functions, is_tensor
from eyas.passes.dispatch.grouping import Role, role_of
from eyas.passes.dispatch.shapes import dims_of


@dataclass(frozen=True)
class ConvertFlowToStream(Pass):
    """Gives every dispatch result a buffer and every reshape the buffer of its source.

    A result of the program is allocated as such and written by the dispatch that makes it, so nothing is copied at the
    end; only an argument or parameter that is returned unchanged needs a copy. New values of state variables are copied
    into them after everything else; `write-state-in-place` removes most of these copies.

        %1 = call @relu(%0) {flow.dispatch} : (tensor<4xf32>) -> tensor<4xf32>
      becomes
        %1 = stream.alloc %c16 {kind = "transient"}
        stream.dispatch (%0, %1) {callee = @relu, access = [1, 2]}
    """

    name: ClassVar[str] = "convert-flow-to-stream"

    def run(self, module: mlir.Module) -> None:
        for function in functions(module):
            if not flow.is_executable(function):
                _FunctionConversion(function).run()


class _FunctionConversion:
    def __init__(self, function: mlir.OpView):
        self.function, self.block = function, entry_block(function)
        self.resources: dict[mlir.Value, mlir.Value] = {}
        self.states: dict[str, mlir.Value] = {}
        self.type = stream.ResourceType.get()

    def run(self) -> None:
        ops = list(self.block.operations)
        returned = list(ops[-1].operands)
        for op in ops:
            with mlir.InsertionPoint(op), op.operation.location:
                self._convert(op, returned)
        self._finish(ops)

    def _convert(self, op: mlir.OpView, returned: list[mlir.Value]) -> None:
        name = op.operation.name
        if flow.is_dispatch(op):
            self._convert_dispatch(op, returned)
        elif flow.is_loop(op):
            self._convert_loop(op, returned)
        elif flow.is_branch(op):
            self._convert_branch(op, returned)
        elif flow.is_while(op):
            self._convert_while(op, returned)
        elif name == "flow.parameter":
            self.resources[op.value] = stream.ParameterOp(op.key, self.type).result
        elif name == "flow.state":
            self.resources[op.value] = self._state(op.key.value, op.value)
        elif name == "flow.reshape":
            self.resources[op.result] = self._resource(op.source)
        elif name == "flow.slice":
            self._convert_slice(op)
        elif name == "func.return":
            for position, value in enumerate(returned):
                self._return(position, value)
            self._set_states([one for one in self.block.operations if one.operation.name == "flow.set_state"])
        elif name == "tensor.extract":
            self._convert_extract(op)
        elif name not in ("flow.tie_shape", "flow.set_state") and role_of(op.operation) not in (Role.CLONED, Role.HOST):
            raise CompileError(f"{name} at {describe_location(op.operation.location)} is in no dispatch")

    def _resource(self, value: mlir.Value) -> mlir.Value:
        if value not in self.resources:
            if not isinstance(value.owner, mlir.Block):
                if value.owner.name == "tensor.empty":  # what folding leaves of a tensor without elements
                    size = _bytes_of(value)
                    self.resources[value] = stream.AllocOp(size, mlir.StringAttr.get("transient"), self.type).result
                    return self.resources[value]
                where = describe_location(value.owner.location)
                raise CompileError(f"a tensor made by {value.owner.name} at {where} has no buffer")
            with mlir.InsertionPoint.at_block_begin(self.block), mlir.Location.unknown():
                index = mlir.BlockArgument(value).arg_number
                self.resources[value] = stream.ArgumentOp(i64_attribute(index), self.type).result
        return self.resources[value]

    def _convert_dispatch(self, op: mlir.OpView, returned: list[mlir.Value]) -> None:
        tensors = [value for value in op.operands if is_tensor(value)]
        constants = [value for value in op.operands if not is_tensor(value)]
        resources = [self._resource(value) for value in tensors]
        for result in op.results:
            self.resources[result] = self._allocate(result, returned)
            resources.append(self.resources[result])
        access = [stream.READ] * len(tensors) + [stream.WRITE] * len(op.results)
        symbol = mlir.FlatSymbolRefAttr.get(op.attributes["callee"].value)
        stream.DispatchOp(constants, resources, symbol, mlir.DenseI64ArrayAttr.get(access))

    def _convert_loop(self, op: mlir.OpView, returned: list[mlir.Value]) -> None:
        """States that are not rows as well have two buffers that steps write in turn; the last one holds the result."""
        attributes = op.operation.attributes
        trips = mlir.IntegerAttr(attributes[flow.TRIPS]).value
        reads, rows, states = (
            _groups(attributes[key], size) for key, size in ((flow.READS, 2), (flow.ROWS, 3), (flow.STATES, 1))
        )
        operands, results = list(op.operands), list(op.results)
        resources = [self._resource(value) for value in operands]
        access = [stream.READ] * len(resources)
        wholes = {}
        for value, (made, *_) in zip(results, rows, strict=False):
            self.resources[value] = wholes[made] = self._allocate(value, returned)
            resources.append(wholes[made])
            access.append(stream.WRITE)
        for value, (made,) in zip(results[len(rows) :], states, strict=True):
            if made in wholes:
                number = next(i for i, row in enumerate(rows) if row[0] == made)
                last = rows[number][1] + rows[number][2] * (trips - 1)
                offset = index_constant(last * _row_bytes(results[number]))
                self.resources[value] = stream.ViewOp(wholes[made], offset, _bytes_of(value), self.type).result
                continue
            kind = mlir.StringAttr.get("transient")
            pair = [self._allocate(value, returned), stream.AllocOp(_bytes_of(value), kind, self.type).result]
            self.resources[value] = pair[0]
            resources += pair if trips % 2 else pair[::-1]
            access += [stream.READ | stream.WRITE] * 2
        stream.LoopOp(
            resources,
            attributes[flow.LOOP],
            attributes[flow.TRIPS],
            integers([len(reads), len(states), len(operands) - len(reads) - len(states), len(rows)]),
            integers([n for value, row in zip(operands, reads, strict=False) for n in (*row, _row_bytes(value))]),
            integers([n for value, row in zip(results, rows, strict=False) for n in (*row, _row_bytes(value))]),
            integers(made for (made,) in states),
            integers(access),
        )

    def _convert_branch(self, op: mlir.OpView, returned: list[mlir.Value]) -> None:
        condition, *taken = op.operands
        resources = [self._resource(value) for value in taken]
        for result in op.results:
            self.resources[result] = self._allocate(result, returned)
            resources.append(self.resources[result])
        stream.BranchOp(
            condition,
            [size for value in taken for size in dims_of(value)],
            resources,
            *op.operation.attributes[flow.BRANCHES],
            i64_attribute(len(op.results)),
            _places(taken),
            integers([stream.READ] * len(taken) + [stream.WRITE] * len(op.results)),
        )

    def _convert_while(self, op: mlir.OpView, returned: list[mlir.Value]) -> None:
        """Which buffer the last step has written is not known before: what is needed of it is copied."""
        condition, *taken = op.operands
        resources = [self._resource(value) for value in taken]
        kind = mlir.StringAttr.get("transient")
        resources.append(stream.AllocOp(index_constant(1), kind, self.type).result)
        for value in taken[: len(op.results)]:
            resources += [stream.AllocOp(_bytes_of(value), kind, self.type).result for _ in range(2)]
        access = [stream.READ] * len(taken) + [stream.READ | stream.WRITE] * (1 + 2 * len(op.results))
        kept = [number for number, value in enumerate(op.results) if list(value.uses)]
        for number in kept:
            resources.append(self._allocate(op.results[number], returned))
            self.resources[op.results[number]] = resources[-1]
            access.append(stream.WRITE)
        stream.WhileOp(
            condition,
            [size for value in taken for size in dims_of(value)],
            resources,
            op.operation.attributes[flow.WHILE],
            i64_attribute(len(op.results)),
            integers(kept),
            _places(taken),
            integers(access),
        )

    def _allocate(self, value: mlir.Value, returned: list[mlir.Value]) -> mlir.Value:
        kind = "result" if self._is_returned(value, returned) else "transient"
        return stream.AllocOp(_bytes_of(value), mlir.StringAttr.get(kind), self.type).result

    def _is_returned(self, value: mlir.Value, returned: list[mlir.Value]) -> bool:
        """Whether this buffer leaves the program, as itself or reshaped, exactly once."""
        aliases = [value]
        for alias in aliases:
            for use in alias.uses:
                user = use.owner.operation
                if user.name == "flow.reshape":
                    aliases.append(user.results[0])
        return sum(returned.count(alias) for alias in aliases) == 1

    def _convert_slice(self, op: flow.SliceOp) -> None:
        element = element_bytes(mlir.RankedTensorType(op.source.type).element_type)
        offset = index_constant(op.offset.value * element)
        source = self._resource(op.source)
        self.resources[op.result] = stream.ViewOp(source, offset, _bytes_of(op.result), self.type).result

    def _convert_dim(self, op: mlir.OpView) -> None:
        argument = op.operands[0]
        index = op.operands[1].owner
        if not isinstance(argument.owner, mlir.Block) or index.name != "arith.constant":
            raise CompileError(f"the size of a tensor at {describe_location(op.operation.location)} depends on data")
        number = mlir.BlockArgument(argument).arg_number
        dim = stream.ArgumentDimOp(
            i64_attribute(number), i64_attribute(index.attributes["value"].value), mlir.IndexType.get()
        )
        op.results[0].replace_all_uses_with(dim.result)

    def _convert_extract(self, op: mlir.OpView) -> None:
        """An element that the host program needs (a size, say) is read back; one that only dispatches use is dead."""
        if not any(role_of(use.owner.operation) is Role.HOST for use in _uses_through_scalars(op.result)):
            return
        type_ = mlir.RankedTensorType(op.operands[0].type)
        indices = [constant_int(value) for value in list(op.operands)[1:]]
        where = describe_location(op.operation.location)
        held = type_.element_type
        if isinstance(held, mlir.FloatType) and not isinstance(held, mlir.ComplexType):
            held = mlir.IntegerType.get_signless(held.width)
        if None in indices or not type_.has_static_shape or not isinstance(held, mlir.IntegerType):
            raise CompileError(f"the host program needs a {type_.element_type} at a computed position (at {where})")
        offset = 0
        for index, size in zip(indices, type_.shape, strict=True):
            offset = offset * size + index
        i64 = mlir.IntegerType.get_signless(64)
        element = mlir.StringAttr.get(str(held))
        position = i64_attribute(offset * element_bytes(type_.element_type))
        loaded = stream.LoadOp(self._resource(op.operands[0]), position, element, i64).result
        value = loaded if held == i64 else arith.TruncIOp(held, loaded).result
        if held != type_.element_type:
            # Registers hold integers: a float comes as its bits.
            value = arith.BitcastOp(type_.element_type, value).result
        op.result.replace_all_uses_with(value)

    def _return(self, position: int, value: mlir.Value) -> None:
        resource = self._resource(value)
        dims = _all_dims(value)
        owner = resource.owner
        is_result = owner.name == "stream.alloc" and owner.attributes["kind"].value == "result"
        if not is_result:
            target = stream.AllocOp(_bytes_of(value), mlir.StringAttr.get("result"), self.type).result
            stream.CopyOp(resource, target)
            resource = target
        stream.ResultOp(resource, dims, i64_attribute(position))

    def _state(self, key: str, value: mlir.Value) -> mlir.Value:
        if key not in self.states:
            with mlir.InsertionPoint.at_block_begin(self.block), value.location:
                self.states[key] = stream.StateOp(_bytes_of(value), mlir.StringAttr.get(key), self.type).result
        return self.states[key]

    def _set_states(self, ops: list[mlir.OpView]) -> None:
        """Copies new values into the variables. What comes out of another variable is saved before that one changes."""
        pairs = []
        for op in ops:
            source, target = self._resource(op.value), self._state(op.key.value, op.value)
            if source == target:
                continue
            if _root(source) in self.states.values():
                saved = stream.AllocOp(_bytes_of(op.value), mlir.StringAttr.get("transient"), self.type).result
                stream.CopyOp(source, saved)
                source = saved
            pairs.append((source, target))
        for source, target in pairs:
            stream.CopyOp(source, target)

    def _finish(self, ops: list[mlir.OpView]) -> None:
        """Removes the tensor program, last op first, and the function's tensor arguments."""
        with mlir.InsertionPoint(ops[-1]), mlir.Location.unknown():
            func.ReturnOp([])
        ops = [op for op in ops if op.operation.name != "tensor.dim"]
        for op in [op for op in self.block.operations if op.operation.name == "tensor.dim"]:  # some are new
            with mlir.InsertionPoint(op), op.operation.location:
                self._convert_dim(op)
            op.operation.erase()
        for op in reversed(ops):
            if any(is_tensor(v) for v in [*op.results, *op.operands]) or op.operation.name in ("func.return",):
                op.operation.erase()
            elif op.results and not any(list(result.uses) for result in op.results):
                op.operation.erase()
        while len(self.block.arguments):
            self.block.erase_argument(0)
        self.function.attributes["function_type"] = mlir.TypeAttr.get(mlir.FunctionType.get([], []))
        for name in ("arg_attrs", "res_attrs"):
            if name in self.function.attributes:
                del self.function.attributes[name]


def _root(resource: mlir.Value) -> mlir.Value:
    while resource.owner.name == "stream.view":
        resource = resource.owner.operands[0]
    return resource


def _uses_through_scalars(value: mlir.Value) -> list[mlir.OpOperand]:
    """Uses of a scalar, and of what is computed from it."""
    found, waiting, seen = list[mlir.OpOperand](), [value], {value}
    while waiting:
        for use in waiting.pop().uses:
            found.append(use)
            fresh = [result for result in use.owner.operation.results if not is_tensor(result) and result not in seen]
            seen.update(fresh)
            waiting += fresh
    return found


def _all_dims(value: mlir.Value) -> list[mlir.Value]:
    """Every dimension of a tensor as an index value."""
    type_ = mlir.RankedTensorType(value.type)
    dynamic = iter(dims_of(value))
    return [
        next(dynamic) if type_.is_dynamic_dim(i) else index_constant(type_.get_dim_size(i)) for i in range(type_.rank)
    ]


def _bytes_of(value: mlir.Value) -> mlir.Value:
    """The size of a tensor's buffer as an index value, constant when the shape is."""
    type_ = mlir.RankedTensorType(value.type)
    static = [type_.get_dim_size(i) for i in range(type_.rank) if not type_.is_dynamic_dim(i)]
    total = index_constant(math.prod(static) * element_bytes(type_.element_type))
    for dim in dims_of(value):
        total = arith.MulIOp(total, dim).result
    return total


def _places(values: list[mlir.Value]) -> mlir.DenseI64ArrayAttr:
    """(number of the value, dimension) of each size that varies."""
    places = [(number, dim) for number, value in enumerate(values) for _, dim in flow.dynamic_dims([value])]
    return integers(number for place in places for number in place)


def _row_bytes(value: mlir.Value) -> int:
    type_ = mlir.RankedTensorType(value.type)
    return math.prod(type_.shape[1:]) * element_bytes(type_.element_type)


def _groups(attribute: mlir.Attribute, size: int) -> list[tuple[int, ...]]:
    numbers = list(mlir.DenseI64ArrayAttr(attribute))
    return [tuple(numbers[first : first + size]) for first in range(0, len(numbers), size)]
