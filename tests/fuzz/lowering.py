"""A graph as a model of each framework, imported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tests.fuzz import data
from tests.fuzz.graph import Graph, Node, TensorType
from tests.fuzz.ops import TABLE, Op
from tests.fuzz.shadow import DTYPES, Shadow, exact

CALL_SEEDS = 100_000
AXES = {"axis", "axes"}
OPSET = 23


def leaf_values(graph: Graph, call: int) -> dict[int, np.ndarray]:
    """Arguments, other ones in each call, and constants."""
    values = {}
    for index, node in enumerate(graph.nodes):
        if node.is_leaf:
            seed = node.attrs["seed"] + (CALL_SEEDS * call if node.op == "input" else 0)
            values[index] = data.make(node.type.dtype, node.type.at(call), node.attrs["kind"], seed)
    return values


def evaluate(graph: Graph, call: int) -> list[Shadow]:
    """What the results should be in one call, with bounds."""
    values: list[Any] = [None] * len(graph.nodes)
    for index, array in leaf_values(graph, call).items():
        values[index] = exact(array)
    for index, node in enumerate(graph.nodes):
        if not node.is_leaf:
            values[index] = TABLE[node.op].evaluate([values[i] for i in node.inputs], dict(node.attrs))
    return [values[index] for index in graph.results]


def written(graph: Graph, node: Node) -> dict[str, Any]:
    """Attributes as a program writes them: now and then axes count from the end."""
    attrs = dict(node.attrs)
    if attrs.pop("from_end", False):
        rank = graph.nodes[node.inputs[0]].type.rank + TABLE[node.op].new_axes
        for name in AXES & attrs.keys():
            given = attrs[name]
            attrs[name] = given - rank if isinstance(given, int) else tuple(axis - rank for axis in given)
    return attrs


def _interpret(graph: Graph, field: str, inputs: Sequence[Any], constants: dict[int, Any]) -> tuple[Any, ...]:
    values = dict(constants) | dict(zip(graph.inputs, inputs, strict=True))
    for index, node in enumerate(graph.nodes):
        if not node.is_leaf:
            values[index] = getattr(TABLE[node.op], field)([values[i] for i in node.inputs], written(graph, node))
    return tuple(values[index] for index in graph.results)


def _constants(graph: Graph) -> dict[int, np.ndarray]:
    return {index: value for index, value in leaf_values(graph, 0).items() if graph.nodes[index].op == "constant"}


# PyTorch


def torch_tensor(array: np.ndarray) -> Any:
    import torch

    if array.dtype == DTYPES["bf16"]:
        return torch.from_numpy(np.array(array.view(np.int16))).view(torch.bfloat16)
    return torch.from_numpy(np.array(array))


def from_torch_tensor(tensor: Any) -> np.ndarray:
    import torch

    if tensor.dtype == torch.bfloat16:
        return tensor.contiguous().view(torch.int16).numpy().view(DTYPES["bf16"])
    return tensor.numpy()


def torch_model(graph: Graph) -> Any:
    """A module with the constants as buffers and one named argument for each input."""
    import torch

    known = _constants(graph)  # here, because samples of torch's database cannot be drawn in a trace

    class Program(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for index, array in known.items():
                self.register_buffer(f"constant_{index}", torch_tensor(array))

        def run(self, *inputs: Any) -> tuple[Any, ...]:
            constants = {index: getattr(self, f"constant_{index}") for index in known}
            return _interpret(graph, "torch", inputs, constants)

    names = ", ".join(f"x{index}" for index in graph.inputs)
    scope: dict[str, Any] = {}
    exec(f"def forward(self, {names}): return self.run({names})", scope)  # torch.export wants to know the arguments
    Program.forward = scope["forward"]
    return Program().eval()


def _import_torch(graph: Graph) -> Any:
    import torch

    from eyas.frontends import import_model

    values = leaf_values(graph, 0)
    examples = [torch_tensor(values[index]) for index in graph.inputs]
    dims = {name: torch.export.Dim(name, min=0, max=64) for name in graph.symbols}
    shapes = {}
    for index in graph.inputs:
        named = {axis: graph.symbol(dim) for axis, dim in enumerate(graph.nodes[index].type.shape)}
        shapes[f"x{index}"] = {axis: dims[name] for axis, name in named.items() if name}
    return import_model(torch_model(graph), *examples, dynamic_shapes=shapes if graph.symbols else None)


# JAX


def _jax_inputs(graph: Graph) -> list[Any]:
    import jax

    scope = jax.export.SymbolicScope()
    structs = []
    for index in graph.inputs:
        kind = graph.nodes[index].type
        text = ",".join(graph.symbol(dim) or str(dim) for dim in kind.shape)
        shape = jax.export.symbolic_shape(text, scope=scope) if graph.symbols and kind.rank else kind.at(0)
        structs.append(jax.ShapeDtypeStruct(shape, DTYPES[kind.dtype]))
    return structs


def _jax_function(graph: Graph) -> Any:
    import jax.numpy as jnp

    constants = {index: jnp.asarray(array) for index, array in _constants(graph).items()}

    def function(*inputs: Any) -> tuple[Any, ...]:
        return _interpret(graph, "jax", inputs, constants)

    return function


def _import_jax(graph: Graph) -> Any:
    from eyas.frontends import import_model

    return import_model(_jax_function(graph), *_jax_inputs(graph))


def _import_mlir(graph: Graph) -> Any:
    """The StableHLO text that JAX writes, as a user would pass a file."""
    import jax

    from eyas.frontends import import_model
    from eyas.frontends.jax.importer import PLATFORM

    function, inputs = jax.jit(_jax_function(graph), keep_unused=True), _jax_inputs(graph)
    if graph.symbols:
        text = jax.export.export(function, platforms=[PLATFORM])(*inputs).mlir_module()
    else:
        text = function.trace(*inputs).lower(lowering_platforms=(PLATFORM,)).as_text()
    return import_model(text)


# ONNX


class Emitter:
    """Collects nodes and initializers; calling it adds a node and returns the name of its result."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.dtypes: dict[str, str] = {}
        self.shapes: dict[str, tuple[Any, ...]] = {}

    def __call__(self, op: str, inputs: Sequence[str], outputs: int = 1, **attrs: Any) -> Any:
        from onnx import helper

        names = [f"t{len(self.nodes)}_{index}" for index in range(outputs)]
        self._check(op, inputs)
        self.nodes.append(helper.make_node(op, list(inputs), names, **attrs))
        return names[0] if outputs == 1 else names

    def _check(self, op: str, inputs: Sequence[str]) -> None:
        """Refuses an element type that ONNX's own definition of the op leaves out."""
        from onnx import defs, helper

        slots = defs.get_schema(op, OPSET).inputs
        for place, name in enumerate(inputs):
            if name in self.dtypes:
                kind = helper.tensor_dtype_to_string(self.dtype(self.dtypes[name])).removeprefix("TensorProto.").lower()
                allowed = slots[min(place, len(slots) - 1)].types
                if f"tensor({kind})" not in allowed:
                    raise ValueError(f"{op} has no {kind}")

    def array(self, array: np.ndarray) -> str:
        from onnx import numpy_helper

        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def integers(self, values: Sequence[int]) -> str:
        return self.array(np.array(list(values), np.int64))

    def scalar_like(self, name: str, value: float) -> str:
        return self.array(np.array(value).astype(DTYPES[self.dtypes[name]]))

    @staticmethod
    def dtype(name: str) -> int:
        from onnx import helper

        return helper.np_dtype_to_tensor_dtype(DTYPES[name])


def onnx_model(graph: Graph) -> Any:
    from onnx import helper

    emit = Emitter()
    names: dict[int, str] = {}

    def know(index: int, name: str) -> None:
        kind = graph.nodes[index].type
        names[index], emit.dtypes[name], emit.shapes[name] = name, kind.dtype, kind.shape

    for index, array in _constants(graph).items():
        know(index, emit.array(array))

    def info(name: str, index: int) -> Any:
        kind = graph.nodes[index].type
        shape = [dim if isinstance(dim, int) else graph.symbol(dim) for dim in kind.shape]
        return helper.make_tensor_value_info(name, emit.dtype(kind.dtype), shape)

    inputs = [info(f"v{index}", index) for index in graph.inputs]
    for index, node in enumerate(graph.nodes):
        if node.op == "input":
            know(index, f"v{index}")
        elif not node.is_leaf:
            know(index, TABLE[node.op].onnx(emit, [names[i] for i in node.inputs], written(graph, node)))
    outputs = []
    for place, index in enumerate(graph.results):
        emit.nodes.append(helper.make_node("Identity", [names[index]], [f"r{place}"]))
        outputs.append(info(f"r{place}", index))
    body = helper.make_graph(emit.nodes, "graph", inputs, outputs, emit.initializers)
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=11)


def takes(frontend: str, op: Op, types: Sequence[TensorType], attrs: dict[str, Any], made: TensorType) -> bool:
    """Whether a framework has the op for these types."""
    if frontend == "onnx":
        emit = Emitter()
        for place, kind in enumerate(types):
            emit.dtypes[f"v{place}"], emit.shapes[f"v{place}"] = kind.dtype, kind.shape
        try:
            op.onnx(emit, [f"v{place}" for place in range(len(types))], attrs)
        except ValueError:
            return False
    if frontend == "torch" and any(kind.dtype in ("u16", "u64") for kind in (*types, made)):
        return False  # not of the importer's types
    if frontend == "torch" and any(kind.dtype == "u32" for kind in types):
        try:
            op.torch([torch_tensor(np.zeros(kind.at(0), DTYPES[kind.dtype])) for kind in types], attrs)
        except (RuntimeError, TypeError, ZeroDivisionError):
            return False
    return True


def _import_onnx(graph: Graph) -> Any:
    from eyas.frontends import import_model

    return import_model(onnx_model(graph))


_IMPORTERS = {"torch": _import_torch, "jax": _import_jax, "mlir": _import_mlir, "onnx": _import_onnx}


def import_graph(graph: Graph) -> Any:
    """The graph through its frontend."""
    return _IMPORTERS[graph.options.frontend](graph)
