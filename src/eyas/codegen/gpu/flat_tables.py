"""The rule for tables of constants: they are written to scratch memory where they are first used.

A dispatch has few and small ones: others are parameters of the program.
"""

from __future__ import annotations

from dataclasses import replace

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith
from torch_mlir.dialects import complex as complex_

from eyas.codegen.common.sizes import Size
from eyas.codegen.gpu.flat_memory import View
from eyas.codegen.gpu.flatten import Flattener
from eyas.ir.walk import find_ops
from eyas.program.literals import array_of


def get_global(flat: Flattener, op: mlir.Operation) -> None:
    name = mlir.FlatSymbolRefAttr(op.attributes["name"]).value
    if name not in flat.tables:
        flat.tables[name] = _write(flat, mlir.MemRefType(op.results[0].type), _initial_value(op, name))
    flat.views[op.results[0]] = flat.tables[name]


def _initial_value(op: mlir.Operation, name: str) -> mlir.Attribute:
    module = op
    while module.parent is not None:
        module = module.parent.operation
    declared = find_ops(module, "memref.global")
    (table,) = [one for one in declared if mlir.StringAttr(one.attributes["sym_name"]).value == name]
    return table.attributes["initial_value"]


def _write(flat: Flattener, type_: mlir.MemRefType, value: mlir.Attribute) -> View:
    shape = list(type_.shape) if type_.rank else []
    sizes = [flat.at.index(size) for size in shape]
    view = flat.spans.allocate(type_.element_type, sizes, [(Size(size),) for size in shape])
    numbers = array_of(value).reshape(-1)
    if isinstance(value, mlir.DenseElementsAttr) and value.is_splat:
        flat.share(sizes, lambda indices: view.store(_constant(type_.element_type, numbers[0].item()), indices))
        return view

    def write() -> None:
        for place, number in enumerate(numbers):
            at = replace(view, offset=arith.addi(view.offset, flat.at.index(place)), sizes=(), strides=())
            at.store(_constant(type_.element_type, number.item()), [])

    flat.alone(write)
    return view


def _constant(element: mlir.Type, number: bool | int | float | complex) -> mlir.Value:
    if isinstance(element, mlir.ComplexType):
        parts = [arith.constant(element.element_type, part) for part in (number.real, number.imag)]
        return complex_.CreateOp(element, *parts).result
    return arith.constant(element, number)
