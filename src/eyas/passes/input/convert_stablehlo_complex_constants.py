"""`convert-stablehlo-complex-constants`: complex constants are made from real ones."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eyas.ir import Pass, mlir
from eyas.ir.walk import find_ops


@dataclass(frozen=True)
class ConvertStablehloComplexConstants(Pass):
    """Makes a complex constant from two real ones, because the bindings cannot read a complex attribute.

        %c = stablehlo.constant dense<(1.0, 2.0)> : tensor<4xcomplex<f32>>
    becomes
        %re = stablehlo.constant dense<1.0> : tensor<4xf32>
        %im = stablehlo.constant dense<2.0> : tensor<4xf32>
        %c = stablehlo.complex %re, %im : tensor<4xcomplex<f32>>
    """

    name: ClassVar[str] = "convert-stablehlo-complex-constants"

    def run(self, module: mlir.Module) -> None:
        for view in find_ops(module, "stablehlo.constant"):
            op = view.operation
            type_ = mlir.RankedTensorType(op.results[0].type)
            if not isinstance(type_.element_type, mlir.ComplexType):
                continue
            with mlir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(_complex(op, type_))
            op.erase()


def _complex(op: mlir.Operation, type_: mlir.RankedTensorType) -> mlir.Value:
    element = mlir.ComplexType(type_.element_type).element_type
    real = mlir.RankedTensorType.get(type_.shape, element)
    parts = []
    for array in _values(op, type_, np.float64 if isinstance(element, mlir.F64Type) else np.float32):
        if array.size == 1:
            attribute = mlir.DenseElementsAttr.get_splat(real, mlir.FloatAttr.get(element, float(array[0])))
        else:
            attribute = mlir.DenseElementsAttr.get(array.reshape(type_.shape), type=element)
        constant = mlir.Operation.create("stablehlo.constant", results=[real], attributes={"value": attribute})
        parts.append(constant.results[0])
    return mlir.Operation.create("stablehlo.complex", results=[type_], operands=parts).results[0]


def _values(op: mlir.Operation, type_: mlir.RankedTensorType, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """Real and imaginary parts, one element each for a splat, read from the op's text."""
    text = op.get_asm(large_elements_limit=1 << 30, use_local_scope=True)
    if packed := re.search(r'dense<"0x([0-9A-Fa-f]+)">', text):
        numbers = np.frombuffer(bytes.fromhex(packed.group(1)), dtype)
    else:
        pairs = re.findall(r"\(([^(),]+),([^(),]+)\)", text[text.index("dense<") : text.rindex(": tensor")])
        numbers = np.array([_number(part.strip(), dtype) for pair in pairs for part in pair], dtype)
    return np.ascontiguousarray(numbers[0::2]), np.ascontiguousarray(numbers[1::2])


def _number(text: str, dtype: type) -> float:
    if text.startswith("0x"):
        return float(np.array(int(text, 16), np.uint64 if dtype is np.float64 else np.uint32).view(dtype))
    return float(text)
