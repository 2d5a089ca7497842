"""`convert-random`: random numbers are drawn from a seed that is state of the module."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch_mlir.dialects import arith, linalg, tensor

from eyas.errors import UnsupportedOpError
from eyas.ir import Pass, mlir
from eyas.ir.locations import describe_location
from eyas.ir.structured import generic, index_constant
from eyas.ir.walk import defining_op, entry_block
from eyas.passes.input.threefry import Pair, normal, threefry, uniform, word
from eyas.passes.input.torch_values import builtin_type, find_operators, operator_name, replace_by_tensor, to_tensor

OPERATOR = "eyas.random"
DRAWS = "flow.draws"
"""Marks a function whose last argument and result are the state that random numbers come from."""

# As the torch importer spells it: sizes, whether they are normally distributed, and a tensor type.
TORCH_OPERATOR = "torch.eyas.random"


@dataclass(frozen=True)
class ConvertRandom(Pass):
    """Turns `eyas.random` into elementwise ops on a counter (Threefry), so that any element is drawn by itself.

    The state has a seed and the number of calls so far. From both, and the place of the op in the program, come a key
    for each op; from the key and the position in the tensor comes the element. A call with the same seed after as many
    calls gives the same numbers.

        %1 = torch.operator "eyas.random"(%0) {torch.onnx.distribution = "normal"}
      becomes
        func.func @main(..., %state: tensor<2xi64>) attributes {flow.draws}
        %keys = linalg.generic ins(%state, %streams) outs(%empty : tensor<1x2xi32>) { threefry }
        %1 = linalg.generic ins(%key0, %key1 : tensor<i32>, tensor<i32>) outs(%empty2) { linalg.index; threefry; ... }
        return ..., %next : tensor<2xi64>

    Upstream takes no state, so that it is the last argument and result until the frontend binds it.
    """

    name: ClassVar[str] = "convert-random"

    def run(self, module: mlir.Module) -> None:
        ops = find_operators(module, OPERATOR, TORCH_OPERATOR)
        if not ops:
            return
        function = _function_of(ops[0])
        for op in ops:
            if _function_of(op) != function:
                where = describe_location(op.location)
                raise UnsupportedOpError(f"random numbers at {where} are drawn in the body of a loop or branch")
        with module.context, function.location:
            state = _add_state(function)
            with mlir.InsertionPoint.at_block_begin(entry_block(function)):
                keys = _make_keys(state, [_stream(op, ordinal) for ordinal, op in enumerate(ops)])
        for ordinal, op in enumerate(ops):
            with mlir.InsertionPoint(op), op.location:
                _draw(op, keys, ordinal)


def _add_state(function: mlir.Operation) -> mlir.Value:
    """The state as one more argument, and its next value as one more result."""
    block = entry_block(function)
    type_ = mlir.RankedTensorType.get([2], mlir.IntegerType.get_signless(64))
    state = block.add_argument(type_, function.location)
    end = list(block.operations)[-1]
    with mlir.InsertionPoint(end), end.location:
        results = [*end.operands, _next(state)]
        mlir.Operation.create("func.return", operands=results)
    end.operation.erase()
    inputs = [argument.type for argument in block.arguments]
    made = mlir.FunctionType.get(inputs, [result.type for result in results])
    function.attributes["function_type"] = mlir.TypeAttr.get(made)
    for name in ("arg_attrs", "res_attrs"):
        if name in function.attributes:
            attributes = [*mlir.ArrayAttr(function.attributes[name]), mlir.DictAttr.get({})]
            function.attributes[name] = mlir.ArrayAttr.get(attributes)
    function.attributes[DRAWS] = mlir.UnitAttr.get()
    return state


def _function_of(op: mlir.Operation) -> mlir.Operation:
    while op.name != "func.func":
        op = op.parent.operation
    return op


def _stream(op: mlir.Operation, ordinal: int) -> int:
    """What tells ops apart: their places, or the seeds that a model gives them itself."""
    if "torch.onnx.seed" in op.attributes:
        return struct.unpack("<i", struct.pack("<f", mlir.FloatAttr(op.attributes["torch.onnx.seed"]).value))[0]
    return ordinal


def _make_keys(state: mlir.Value, streams: list[int]) -> mlir.Value:
    """Two words for each op."""
    i32 = mlir.IntegerType.get_signless(32)
    numbers = arith.ConstantOp(
        mlir.RankedTensorType.get([len(streams)], i32),
        mlir.DenseElementsAttr.get(np.array(streams, np.int32)),
    ).result
    seed, calls = (_element(state, [at]) for at in range(2))
    init = tensor.EmptyOp([len(streams), 2], i32).result
    d0, none = mlir.AffineExpr.get_dim(0), mlir.AffineMap.get(2, 0, [])
    rows, identity = mlir.AffineMap.get(2, 0, [d0]), mlir.AffineMap.get_identity(2)
    op = generic([seed, calls, numbers], [init], [none, none, rows, identity], ["parallel"] * 2)
    body = op.regions[0].blocks[0]
    with mlir.InsertionPoint(body):
        low, high = _words(body.arguments[0])
        count, overflow = _words(body.arguments[1])
        made = threefry((low, arith.xori(high, overflow)), (count, body.arguments[2]))
        first = arith.cmpi(arith.CmpIPredicate.eq, linalg.IndexOp(1).result, index_constant(0))
        linalg.YieldOp([arith.select(first, *made)])
    return op.results[0]


def _next(state: mlir.Value) -> mlir.Value:
    """The state of the next call."""
    type_ = mlir.RankedTensorType(state.type)
    step = arith.ConstantOp(type_, mlir.DenseElementsAttr.get(np.array([0, 1], np.int64))).result
    identity = mlir.AffineMap.get_identity(1)
    init = tensor.EmptyOp([2], type_.element_type).result
    op = generic([state, step], [init], [identity] * 3, ["parallel"])
    with mlir.InsertionPoint(op.regions[0].blocks[0]):
        linalg.YieldOp([arith.addi(*op.regions[0].blocks[0].arguments[:2])])
    return op.results[0]


def _draw(op: mlir.Operation, keys: mlir.Value, ordinal: int) -> None:
    type_ = builtin_type(op.results[0].type)
    if type_ is None:
        raise UnsupportedOpError(f"random numbers at {describe_location(op.location)} have an unknown rank")
    sizes = _sizes(op, type_)
    key = [_element(keys, [ordinal, at]) for at in range(2)]
    rank = type_.rank
    init = tensor.EmptyOp(sizes, type_.element_type).result
    none, identity = mlir.AffineMap.get(rank, 0, []), mlir.AffineMap.get_identity(rank)
    trips = _trips(op)
    made = generic(key, [init], [none, none, identity], ["parallel"] * rank)
    body = made.regions[0].blocks[0]
    with mlir.InsertionPoint(body):
        low, high = _position(sizes)
        bits = threefry(
            (body.arguments[0], body.arguments[1]), (low, high if trips is None else arith.addi(high, trips))
        )
        linalg.YieldOp([(normal if _is_normal(op) else uniform)(bits, type_.element_type)])
    replace_by_tensor(op, made.results[0])


def _sizes(op: mlir.Operation, type_: mlir.RankedTensorType) -> list[int | mlir.Value]:
    """Of the result; those that are not known are read from the operand, a list of sizes or a tensor of that shape."""
    sizes: list[int | mlir.Value] = list(type_.shape)
    unknown = [at for at in range(type_.rank) if type_.is_dynamic_dim(at)]
    if not unknown:
        return sizes
    listed = defining_op(op.operands[0])
    for at in unknown:
        if listed is not None and listed.name == "torch.prim.ListConstruct":
            i64 = mlir.IntegerType.get_signless(64)
            size = mlir.Operation.create("torch_c.to_i64", results=[i64], operands=[listed.operands[at]]).result
            sizes[at] = arith.index_cast(mlir.IndexType.get(), size)
        else:
            sizes[at] = tensor.DimOp(to_tensor(op.operands[0]), index_constant(at)).result
    return sizes


def _is_normal(op: mlir.Operation) -> bool:
    if operator_name(op) == OPERATOR:
        return mlir.StringAttr(op.attributes["torch.onnx.distribution"]).value == "normal"
    owner = defining_op(op.operands[1])
    assert owner is not None and owner.name == "torch.constant.bool", op
    return bool(mlir.IntegerAttr(owner.attributes["value"]).value)


def _trips(op: mlir.Operation) -> mlir.Value | None:
    """A word that differs for each trip of the loops around an op."""
    made = None
    parent = op.parent
    while parent is not None and parent.operation.name != "func.func":
        if parent.operation.name == "torch.prim.Loop":
            trip = parent.operation.regions[0].blocks[0].arguments[0]
            i64 = mlir.IntegerType.get_signless(64)
            count = mlir.Operation.create("torch_c.to_i64", results=[i64], operands=[trip]).result
            here = arith.trunci(mlir.IntegerType.get_signless(32), count)
            here = arith.muli(here, word(0x9E3779B1))
            made = here if made is None else arith.addi(arith.muli(made, word(0x85EBCA6B)), here)
        parent = parent.operation.parent
    return made


def _position(sizes: list[int | mlir.Value]) -> Pair:
    """The number of the element that a body computes, as two words."""
    if not sizes:
        return word(0), word(0)
    flat = linalg.IndexOp(0).result
    for at, size in enumerate(sizes[1:], 1):
        wide = index_constant(size) if isinstance(size, int) else size
        flat = arith.addi(arith.muli(flat, wide), linalg.IndexOp(at).result)
    if all(isinstance(size, int) for size in sizes) and int(np.prod([int(s) for s in sizes], dtype=object)) < 2**31:
        return arith.index_cast(mlir.IntegerType.get_signless(32), flat), word(0)
    return _words(arith.index_cast(mlir.IntegerType.get_signless(64), flat))


def _words(value: mlir.Value) -> Pair:
    """The low and the high half of an i64."""
    i32, i64 = mlir.IntegerType.get_signless(32), mlir.IntegerType.get_signless(64)
    shift = arith.ConstantOp(i64, mlir.IntegerAttr.get(i64, 32)).result
    return arith.trunci(i32, value), arith.trunci(i32, arith.shrui(value, shift))


def _element(value: mlir.Value, position: list[int]) -> mlir.Value:
    """One element of a tensor as a tensor of no dimensions."""
    element = mlir.RankedTensorType(value.type).element_type
    ones = mlir.DenseI64ArrayAttr.get([1] * len(position))
    return tensor.ExtractSliceOp(mlir.RankedTensorType.get([], element), value, [], [], [], position, ones, ones).result
