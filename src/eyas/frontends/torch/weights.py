"""What the torch importer asks of us: weights by name instead of by value, and locations that name the user's node."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch_mlir.extras.fx_importer import (
    TORCH_DTYPE_TO_MLIR_TYPE_ASM,
    ContextCache,
    FxImporterHooks,
)

from eyas.frontends.torch.control_flow import ControlFlowImporter
from eyas.frontends.torch.tensors import as_numpy, identity
from eyas.ir import mlir
from eyas.program.dtypes import short_name
from eyas.program.literals import LARGEST_INLINE_BYTES, by_name, by_value, literal
from eyas.program.parameters import Parameter

_SIGNED = {
    (torch.uint8, False): torch.int8,
    (torch.uint8, True): torch.int32,
    (torch.uint32, False): torch.int32,
    (torch.uint32, True): torch.int64,
}
"""What holds unsigned integers, by whether it must be wider than they are."""


class Weights(FxImporterHooks):
    """Replaces weights by their names. Tied weights, which share memory, share the first of their names."""

    def __init__(self, program: torch.export.ExportedProgram):
        self.parameters: dict[str, Parameter] = {}
        self._attributes: dict[Any, mlir.Attribute] = {}
        self._names: dict[Any, str] = {}
        self._returned: set[Any] = set()
        results = _returned_as_they_are(program.graph)
        returned = {spec.target for spec in program.graph_signature.input_specs if spec.arg.name in results}
        for name, value in [*program.state_dict.items(), *program.constants.items()]:
            if isinstance(value, torch.Tensor):
                self._names.setdefault(identity(value), name)
                if name in returned:
                    self._returned.add(identity(value))

    def resolve_input(self, gni: Any, value: Any, info: Any) -> mlir.Value | None:
        return self._literal(gni, value) if isinstance(value, torch.Tensor) else None

    def resolve_literal(self, gni: Any, literal: Any, info: Any) -> mlir.Value | None:
        return self._literal(gni, literal) if isinstance(literal, torch.Tensor) else None

    def _literal(self, gni: Any, tensor: torch.Tensor) -> mlir.Value | None:
        if isinstance(tensor, FakeTensor):
            return None
        memory = identity(tensor)
        name = self._names.get(memory)
        if tensor.layout != torch.strided or tensor.is_quantized:
            raise NotImplementedError(f"tensor '{name}' is {tensor.layout}; only dense tensors are supported")
        # Unsigned integers are held as signed ones; `literal` says why. The importer would lose the conversion of those
        # that are a result as they are, unless it is a real one.
        is_wide = not tensor.numel() or memory in self._returned
        signed = _SIGNED.get((tensor.dtype, is_wide))
        values = tensor if signed is None else tensor.to(signed) if is_wide else tensor.view(signed)
        element_type = TORCH_DTYPE_TO_MLIR_TYPE_ASM[values.dtype]
        attribute = self._attributes.get(memory)
        if attribute is None:
            if signed is None and tensor.numel() * tensor.element_size() <= LARGEST_INLINE_BYTES:
                attribute = by_value(as_numpy(tensor), element_type)
            else:
                key = self._unique(name or f"tensor_{len(self.parameters)}")
                dtype = short_name(str(values.dtype), f"parameter '{key}'")
                self.parameters[key] = Parameter(key, dtype, tuple(tensor.shape), lambda: as_numpy(values))
                attribute = by_name(key, tuple(tensor.shape), element_type)
            self._attributes[memory] = attribute
        return literal(attribute, gni._cc.tensor_to_vtensor_type(tensor))

    def _unique(self, name: str) -> str:
        key, number = name, 0
        while key in self.parameters:
            number += 1
            key = f"{name}_{number}"
        return key


def _returned_as_they_are(graph: torch.fx.Graph) -> set[str]:
    """Names of arguments that are results, also after ops that may be nothing, such as a copy."""
    names = set()
    for node in graph.output_node().all_input_nodes:
        while node.op == "call_function" and len(node.all_input_nodes) == 1:
            made, given = (one.meta.get("val") for one in (node, node.all_input_nodes[0]))
            if not isinstance(made, torch.Tensor) or not isinstance(given, torch.Tensor):
                break
            # Constants have known sizes, and a symbol must not be asked what it is.
            if made.dtype != given.dtype or not all(isinstance(size, int) for size in (*made.shape, *given.shape)):
                break
            if made.shape != given.shape:
                break
            node = node.all_input_nodes[0]
        names.add(node.name)
    return names


class LiteralImporter(ControlFlowImporter):
    """Asks the hook for every literal tensor; the base class would first copy booleans to bytes."""

    def _import_literal(self, py_value: Any, info: Any = None) -> mlir.Value:
        value = self.fx_importer._hooks.resolve_literal(self, py_value, info)
        return value if value is not None else super()._import_literal(py_value, info)


class Locations(ContextCache):
    """Names ops by module path and node, `layer1.0.conv1/convolution_3`, over the line of the user's source."""

    latest: torch.fx.Node | None = None
    """The node that was asked for last, which is the one that is imported."""

    def get_node_location(self, node: torch.fx.Node) -> mlir.Location | None:
        self.latest = node
        if node.op == "placeholder":
            return None
        name, frame = place_of(node)
        child = mlir.Location.file(*frame, 0, context=self._c) if frame else None
        return mlir.Location.name(name, child, context=self._c)


def place_of(node: torch.fx.Node) -> tuple[str, tuple[str, int] | None]:
    """A node's module path with its own name, and the file and line of the user's source."""
    frames = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    # The user's own line is the innermost that is not torch's.
    own = [frame for frame in frames if "/torch/" not in frame[0] and not frame[0].startswith("torch/")]
    file, line = (own or frames or [("", "0")])[-1]
    stack = [path for path, _ in (node.meta.get("nn_module_stack") or {}).values() if not path.startswith("_empty")]
    path = f"{stack[-1]}/" if stack and stack[-1] else ""
    return f"{path}{node.name}", (file, int(line)) if file else None
