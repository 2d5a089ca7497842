"""`outline-dispatches`: regions become executables that dispatches call by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, func

from eyas.codegen.common.places import DIM_ARGS
from eyas.dialects import flow
from eyas.errors import CompileError
from eyas.ir import Pass, describe_location
from eyas.ir.walk import defining_op, find_ops, functions, is_tensor, nested_operands, remap_operands
from eyas.passes.dispatch.grouping import Role, role_of
from eyas.passes.dispatch.naming import describe_region
from eyas.passes.dispatch.shapes import dims_of


@dataclass(frozen=True)
class OutlineDispatches(Pass):
    """Moves the body of each region into a function of its own.

    Captured tensors become arguments in the order of use. Captured scalars and the dynamic dimensions of all tensors
    become index arguments; dimensions that are one value outside are one argument inside, so that codegen may rely on
    their being equal. `dim_args` lists which index argument gives each dynamic dimension (arguments, then results).
    """

    name: ClassVar[str] = "outline-dispatches"

    def run(self, module: mlir.Module) -> None:
        for function in functions(module):
            prefix = mlir.StringAttr(function.attributes["sym_name"]).value
            for ordinal, region in enumerate(find_ops(function, "scf.execute_region")):
                _outline(module, region, prefix, ordinal)


def _outline(module: mlir.Module, region: mlir.OpView, prefix: str, ordinal: int) -> None:
    body = region.regions[0].blocks[0]
    ops = [view.operation for view in body.operations][:-1]
    name = f"{prefix}_dispatch_{ordinal}_{describe_region(ops)}"
    tensors, scalars = captures(ops, body)
    location = ops[-1].location

    indices: list[mlir.Value] = []

    def index_argument(value: mlir.Value) -> int:
        if value not in indices:
            indices.append(value)
        return indices.index(value)

    with mlir.InsertionPoint(region), location:
        as_index = {value: _to_index(value) for value in scalars}
        tensor_dims = [dim for value in tensors for dim in dims_of(value)]
    scalar_positions = {value: index_argument(as_index[value]) for value in scalars}
    result_dims = [dim for result in region.results for dim in dims_of(result)]
    dim_args = [index_argument(dim) for dim in [*tensor_dims, *result_dims]]

    with mlir.InsertionPoint(module.body), location:
        types = [value.type for value in tensors] + [mlir.IndexType.get()] * len(indices)
        results = [result.type for result in region.results]
        function = func.FuncOp(name, (types, results), visibility="private")
        function.attributes[flow.EXECUTABLE] = mlir.UnitAttr.get()
        function.attributes[DIM_ARGS] = mlir.DenseI64ArrayAttr.get(dim_args)
        entry = function.add_entry_block([location] * len(types))

    inside = dict(zip(tensors, entry.arguments, strict=False))
    with mlir.InsertionPoint(entry), location:
        for value in scalars:
            inside[value] = _from_index(entry.arguments[len(tensors) + scalar_positions[value]], value.type)
        anchor = func.ReturnOp(list(body.operations)[-1].operands)
    for op in ops:
        op.move_before(anchor.operation)
    for op in [*ops, anchor.operation]:
        remap_operands(op, inside)
    # The dispatch knows where all of its ops come from; the last comes first, as it names the dispatch in messages.
    working = [op.location for op in ops if role_of(op) is not Role.CLONED]
    everywhere = mlir.Location.fused(list(dict.fromkeys([location, *working])))
    with mlir.InsertionPoint(region), everywhere:
        call = func.CallOp(results, mlir.FlatSymbolRefAttr.get(name), [*tensors, *indices])
        call.attributes[flow.DISPATCH] = mlir.UnitAttr.get()
    for old, new in zip(region.results, call.results, strict=True):
        old.replace_all_uses_with(new)
    region.operation.erase()


def captures(ops: list[mlir.Operation], body: mlir.Block) -> tuple[list[mlir.Value], list[mlir.Value]]:
    """Tensors and scalars from outside, each once, in order of use."""
    inside: set[mlir.Value] = set()

    def note(op: mlir.Operation) -> None:
        inside.update(op.results)
        for region in op.regions:
            for block in region.blocks:
                inside.update(block.arguments)
                for inner in block.operations:
                    note(inner.operation)

    for op in ops:
        note(op)
    tensors: dict[mlir.Value, None] = {}
    scalars: dict[mlir.Value, None] = {}
    end = list(body.operations)[-1].operation
    for op in [*ops, end]:
        for value in nested_operands(op):
            if value not in inside:
                (tensors if is_tensor(value) else scalars)[value] = None
    return list(tensors), list(scalars)


def _to_index(value: mlir.Value) -> mlir.Value:
    if isinstance(value.type, mlir.IndexType):
        return value
    if isinstance(value.type, mlir.IntegerType):
        return arith.IndexCastOp(mlir.IndexType.get(), value).result
    owner = defining_op(value)
    where = describe_location(owner.location) if owner is not None else "an argument"
    raise CompileError(f"the host program computes a {value.type} at {where}; only integers can be push constants")


def _from_index(value: mlir.Value, type_: mlir.Type) -> mlir.Value:
    return value if isinstance(type_, mlir.IndexType) else arith.IndexCastOp(type_, value).result
