"""One dispatch of a model as a small program, in the `stream` dialect: what it would be after the schedule phase.

    main        the dispatch on arguments and weights; `main_1`, `main_2`, ... are the same on copies of the weights
    canvas      the same, but each result lies inside of a larger argument that is copied first: what is written beside
                it, or not written at all, can be seen

Weights that are constant in the model are parameters here, so that they are packed as they are there. Sizes that the
model leaves open are those of one of its calls; the executable keeps them open.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch_mlir import ir as mlir

from eyas.codegen.common.places import DIM_ARGS
from eyas.dialects import flow
from eyas.errors import UsageError
from eyas.ir.walk import entry_block, is_tensor
from eyas.pipelines.signatures import signature_to_text
from eyas.program.dtypes import numpy_dtype
from eyas.program.program import Argument, Signature

MAIN, CANVAS = "main", "canvas"
GUARD_BYTES = 4096
"""Around a result in a canvas; every device can bind a buffer at a multiple of it."""
WEIGHT, CANVAS_WEIGHT = "w", "g"
_DTYPES = {"i1": "bool", "complex<f32>": "c64", "complex<f64>": "c128"}
_KNOWN = ("f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", *_DTYPES)


@dataclass(frozen=True)
class Tensor:
    """An operand or a result: its short type, and its sizes in the call that is repeated."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * numpy_dtype(self.dtype).itemsize

    def __str__(self) -> str:
        return "x".join([*map(str, self.shape), self.dtype])


@dataclass(frozen=True)
class Operand:
    """What a dispatch reads: a weight of the model, by its key, or a value that is not constant."""

    tensor: Tensor
    weight: str | None = None


def entry_name(copy: int) -> str:
    """The entry point that reads this copy of the weights."""
    return f"{MAIN}_{copy}" if copy else MAIN


def weight_name(binding: int, copy: int | None) -> str:
    """The parameter of an operand: of a copy, or of the canvas."""
    return f"{CANVAS_WEIGHT}{binding}" if copy is None else f"{WEIGHT}{binding}.{copy}"


def canvas_bytes(tensor: Tensor) -> int:
    """A result with a guard before and behind it, which begins at a multiple of the guard's bytes."""
    return 2 * GUARD_BYTES + -(-tensor.nbytes // GUARD_BYTES) * GUARD_BYTES


def tensors_of(function: mlir.OpView, constants: Sequence[int]) -> tuple[list[Tensor], list[Tensor]]:
    """The operands and results of a dispatch function, open sizes from the push constants of a call."""
    block = entry_block(function)
    values = [argument.type for argument in block.arguments if is_tensor(argument)]
    results = list(mlir.FunctionType(function.attributes["function_type"].value).results)
    places = iter(mlir.DenseI64ArrayAttr(function.attributes[DIM_ARGS]) if DIM_ARGS in function.attributes else ())
    made = [_tensor(mlir.RankedTensorType(type_), places, constants) for type_ in [*values, *results]]
    return made[: len(values)], made[len(values) :]


def _tensor(type_: mlir.RankedTensorType, places: object, constants: Sequence[int]) -> Tensor:
    element = str(type_.element_type)
    if element not in _KNOWN:
        raise UsageError(f"elements of type {element} cannot be given from outside; known are {', '.join(_KNOWN)}")
    dynamic = [type_.is_dynamic_dim(index) for index in range(type_.rank)]
    shape = tuple(
        constants[next(places)] if is_open else type_.shape[index]  # pyright: ignore[reportArgumentType]
        for index, is_open in enumerate(dynamic)
    )
    return Tensor(_DTYPES.get(element, element), shape)


def small_program(
    function: mlir.OpView,
    operands: Sequence[Operand],
    results: Sequence[Tensor],
    constants: Sequence[int],
    copies: int = 1,
) -> str:
    """The text of the program after the schedule phase. Values that are not constant are arguments, in order."""
    name = mlir.StringAttr(function.attributes["sym_name"]).value
    pairs = _in_place(function)
    entries = [
        _function(entry_name(copy), name, operands, results, constants, pairs, lambda b, c=copy: weight_name(b, c))
        for copy in range(copies)
    ]
    entries.append(_function(CANVAS, name, operands, results, constants, pairs, lambda b: weight_name(b, None)))
    # With its aliases for maps in front: the module that holds just this function.
    single = mlir.Module.create(mlir.Location.unknown(function.operation.context))
    with mlir.InsertionPoint(single.body):
        function.operation.clone()
    text = single.operation.get_asm(enable_debug_info=False)
    head, brace, body = text.partition("module {\n")
    assert brace, "a module without attributes"
    return head + brace + "\n".join(entries) + "\n" + body


def _in_place(function: mlir.OpView) -> dict[int, int]:
    """For each result that is one buffer with an operand: that operand."""
    if flow.IN_PLACE not in function.attributes:
        return {}
    numbers = list(mlir.DenseI64ArrayAttr(function.attributes[flow.IN_PLACE]))
    return dict(zip(numbers[1::2], numbers[::2], strict=True))


class _Writer:
    """Lines of a function, with a name for each value."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._indices: dict[int, str] = {}

    def make(self, op: str, operands: Sequence[str], types: str, attributes: str, result: str) -> str:
        name = f"%v{len(self.lines)}"
        has = f" {{{attributes}}}" if attributes else ""
        self.lines.append(f'{name} = "{op}"({", ".join(operands)}){has} : ({types}) -> {result}')
        return name

    def do(self, op: str, operands: Sequence[str], types: Sequence[str], attributes: str = "") -> None:
        has = f" {{{attributes}}}" if attributes else ""
        self.lines.append(f'"{op}"({", ".join(operands)}){has} : ({", ".join(types)}) -> ()')

    def index(self, value: int) -> str:
        if value not in self._indices:
            self._indices[value] = name = f"%v{len(self.lines)}"
            self.lines.append(f"{name} = arith.constant {value} : index")
        return self._indices[value]


_RESOURCE = "!stream.resource"


def _function(name, callee, operands, results, constants, pairs, weight_of) -> str:  # noqa: ANN001
    out, arguments, resources = _Writer(), [], []
    for binding, operand in enumerate(operands):
        if operand.weight is not None:
            resources.append(out.make("stream.parameter", (), "", f'key = "{weight_of(binding)}"', _RESOURCE))
        else:
            index = f"index = {len(arguments)} : i64"
            resources.append(out.make("stream.argument", (), "", index, _RESOURCE))
            arguments.append(Argument(f"x{binding}", operand.tensor.dtype, operand.tensor.shape))
    made, given = [], []
    for position, tensor in enumerate(results):
        buffer, result = _result(out, name, tensor, arguments, position)
        if position in pairs:
            out.do("stream.copy", (resources[pairs[position]], buffer), (_RESOURCE, _RESOURCE))
            resources[pairs[position]] = buffer
        made.append(buffer)
        given.append(result)
    if any('"stream.copy"' in line for line in out.lines):
        out.do("stream.barrier", (), ())
    access = [3 if resource in made else 1 for resource in resources] + [2] * len(made)
    numbers = [out.index(constant) for constant in constants]
    buffers = [*resources, *made]
    attributes = (
        f"access = array<i64: {', '.join(map(str, access))}>, callee = @{callee},"
        f" operandSegmentSizes = array<i32: {len(numbers)}, {len(buffers)}>"
    )
    types = ["index"] * len(numbers) + [_RESOURCE] * len(buffers)
    out.do("stream.dispatch", [*numbers, *buffers], types, attributes)
    described = []
    for position, (resource, argument) in enumerate(given):
        sizes = [out.index(int(size)) for size in argument.dims]
        attributes = f"index = {position} : i64, operandSegmentSizes = array<i32: 1, {len(sizes)}>"
        out.do("stream.result", [resource, *sizes], [_RESOURCE] + ["index"] * len(sizes), attributes)
        described.append(argument)
    signature = signature_to_text(Signature(tuple(arguments), tuple(described)))
    body = "\n    ".join([*out.lines, "return"])
    return f'  func.func @{name}() attributes {{flow.signature = "{signature}"}} {{\n    {body}\n  }}'


def _result(
    out: _Writer, name: str, tensor: Tensor, arguments: list[Argument], position: int
) -> tuple[str, tuple[str, Argument]]:
    """The buffer that a dispatch writes, and what is given to the caller: the same, or the canvas around it."""
    if name != CANVAS:
        buffer = out.make("stream.alloc", [out.index(tensor.nbytes)], "index", 'kind = "result"', _RESOURCE)
        return buffer, (buffer, Argument(f"y{position}", tensor.dtype, tensor.shape))
    size = canvas_bytes(tensor)
    drawn = out.make("stream.argument", (), "", f"index = {len(arguments)} : i64", _RESOURCE)
    arguments.append(Argument(f"canvas{position}", "u8", (size,)))
    whole = out.make("stream.alloc", [out.index(size)], "index", 'kind = "result"', _RESOURCE)
    out.do("stream.copy", (drawn, whole), (_RESOURCE, _RESOURCE))
    place = [whole, out.index(GUARD_BYTES), out.index(tensor.nbytes)]
    view = out.make("stream.view", place, f"{_RESOURCE}, index, index", "", _RESOURCE)
    return view, (whole, Argument(f"y{position}", "u8", (size,)))
