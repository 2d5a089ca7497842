"""`externalize-parameters`: weights leave the IR and are known by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eyas.dialects import flow
from eyas.ir import Pass, mlir
from eyas.program.literals import LARGEST_INLINE_BYTES, array_of, resource_name

# The module attribute that holds the values of constants that became parameters, until `take_values` moves them out.
VALUES = "flow.parameter_values"


@dataclass(frozen=True)
class ExternalizeParameters(Pass):
    """Turns named resources and large dense constants into `flow.parameter`s.

    A resource keeps its name as the key. A dense constant over `max_inline_bytes` that is not a splat gets a name from
    its number, type and shape. Values that were inside the IR move to one module attribute, so that the text stays
    complete; the frontend takes them from there.

        %0 = arith.constant dense_resource<"fc.weight"> : tensor<10x64xf32>
        %1 = arith.constant dense<[[0.1, ...]]> : tensor<8x64xf32>
    becomes
        %0 = "flow.parameter"() {key = "fc.weight"} : () -> tensor<10x64xf32>
        %1 = "flow.parameter"() {key = "constant_0_f32_8x64"} : () -> tensor<8x64xf32>
    """

    name: ClassVar[str] = "externalize-parameters"
    max_inline_bytes: int = LARGEST_INLINE_BYTES

    def run(self, module: mlir.Module) -> None:
        constants = _tensor_constants(module)
        values: dict[str, mlir.Attribute] = {}
        resources = None
        known: dict[mlir.Attribute, str] = {}
        for op in constants:
            attribute = op.attributes["value"]
            key = resource_name(attribute)
            if key is not None:
                if resources is None:
                    resources = _resources_with_data(module)
                if key in resources and key not in values:
                    values[key] = _dense(resources[key], attribute.type)
            elif self._is_large(attribute):
                key = known.get(attribute)
                if key is None:
                    type_ = mlir.RankedTensorType(attribute.type)
                    shape = "x".join(map(str, type_.shape))
                    key = known[attribute] = f"constant_{len(known)}_{type_.element_type}_{shape}"
                    values[key] = attribute
            else:
                continue
            with mlir.InsertionPoint(op), op.location:
                parameter = flow.ParameterOp(key=mlir.StringAttr.get(key), value=attribute.type)
            op.results[0].replace_all_uses_with(parameter.value)
            op.erase()
        if values:
            attributes = module.operation.attributes
            before = dict(_items(attributes[VALUES])) if VALUES in attributes else {}
            attributes[VALUES] = mlir.DictAttr.get({**before, **values})

    def _is_large(self, attribute: mlir.Attribute) -> bool:
        if not isinstance(attribute, mlir.DenseElementsAttr) or attribute.is_splat:
            return False
        type_ = mlir.RankedTensorType(attribute.type)
        return int(np.prod(type_.shape)) * _bytes_per_element(type_.element_type) > self.max_inline_bytes


def take_values(module: mlir.Module) -> dict[str, np.ndarray]:
    """Moves the values that the pass found inside the IR out of the module."""
    attributes = module.operation.attributes
    if VALUES not in attributes:
        return {}
    values = {key: array_of(attribute) for key, attribute in _items(attributes[VALUES])}
    del attributes[VALUES]
    return values


def _tensor_constants(module: mlir.Module) -> list[mlir.Operation]:
    found: list[mlir.Operation] = []

    def visit(op: mlir.Operation) -> mlir.WalkResult:
        if op.name == "arith.constant":
            type_ = op.results[0].type
            # The binding cannot hold an attribute of complex numbers; such constants stay where they are.
            if isinstance(type_, mlir.RankedTensorType) and not isinstance(type_.element_type, mlir.ComplexType):
                found.append(op)
        return mlir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def _items(attribute: mlir.Attribute) -> list[tuple[str, mlir.Attribute]]:
    dictionary = mlir.DictAttr(attribute)
    return [(dictionary[index].name, dictionary[index].attr) for index in range(len(dictionary))]


def _bytes_per_element(type_: mlir.Type) -> int:
    text = str(type_)
    digits = re.search(r"\d+", text)
    bits = int(digits.group()) if digits else 64
    return max(1, bits // 8) * (2 if text.startswith("complex") else 1)


def _resources_with_data(module: mlir.Module) -> dict[str, bytes]:
    """Resources whose bytes the module carries. The binding cannot read them, but the printer writes them as hex."""
    text = module.operation.get_asm(large_elements_limit=1)
    _, marker, section = text.rpartition("{-#")
    if not marker:
        return {}
    entries = re.findall(r'^\s+("(?:[^"\\]|\\.)*"|[\w.$-]+): "0x([0-9A-Fa-f]*)"', section, re.MULTILINE)
    # The first four bytes are the blob's alignment.
    return {name.strip('"'): bytes.fromhex(data)[4:] for name, data in entries}


def _dense(data: bytes, type_: mlir.Type) -> mlir.Attribute:
    return mlir.DenseElementsAttr.get(np.frombuffer(data, np.uint8), type=type_)
