"""`torch.compile(model, backend="eyas")`.

Dynamo hands over one graph for each part of the model between graph breaks. Under `torch.no_grad()` its parameters are
taken as constants, so that they are laid out for the kernels at compile time; with gradients the forward and backward
graphs that AOTAutograd makes are compiled with everything as arguments. A graph is compiled when it is first called
with shapes that it has not seen.

What Dynamo does not trace runs in PyTorch. By default that are recurrent layers and ops whose results have a size that
the data says; `torch._dynamo.config.allow_rnn` and `capture_dynamic_output_shape_ops` bring them here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv, free_unbacked_symbols
from torch.utils._python_dispatch import _disable_current_modes

from eyas.frontends.torch.decompositions import decomposition_table
from eyas.frontends.torch.effects import resolve_effects
from eyas.frontends.torch.result_views import Views
from eyas.frontends.torch.specialize import has_bodies, specialize
from eyas.frontends.torch.tensors import from_numpy

Inputs = Sequence[Any]


def eyas_backend(
    graph: torch.fx.GraphModule, example_inputs: Inputs, *, options: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """The Dynamo backend. `options` are keyword arguments of `eyas.compile`, such as `threads` or `disable`."""
    options = dict(options or {})
    if torch.is_grad_enabled() and any(_wants_gradient(value) for value in example_inputs):
        compile_graph = lambda module, inputs: _flat(_by_shape(module, inputs, options, freeze=False))  # noqa: E731
        trained = aot_autograd(
            fw_compiler=compile_graph, bw_compiler=compile_graph, decompositions=decomposition_table()
        )
        # Without recurrent layers as kernels whose gradients nobody else has.
        with warnings.catch_warnings(action="ignore"), torch.backends.mkldnn.flags(enabled=False):
            return trained(graph, list(example_inputs))
    return _by_shape(graph, example_inputs, options, freeze=True)


def _wants_gradient(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def _flat(call: Callable[..., Any]) -> Callable[..., Any]:
    """AOTAutograd passes its arguments as one list and clears it to free memory early."""

    def boxed(arguments: list[Any]) -> Any:
        copied = list(arguments)
        arguments.clear()
        return call(*copied)

    boxed._boxed_call = True
    return boxed


def _by_shape(graph: torch.fx.GraphModule, inputs: Inputs, options: dict[str, Any], freeze: bool) -> Callable[..., Any]:
    """A function that compiles the graph once for each combination of weights, shapes, types and numbers it meets."""
    constant = {position for position, value in enumerate(inputs) if freeze and isinstance(value, torch.nn.Parameter)}
    compiled: dict[tuple, _Compiled] = {}

    def call(*arguments: Any) -> Any:
        key = tuple(
            _identity(a) if i in constant else (a.shape, a.dtype) if isinstance(a, torch.Tensor) else a
            for i, a in enumerate(arguments)
        )
        if key not in compiled:
            compiled[key] = _Compiled(graph, arguments, constant, options)
        return compiled[key](arguments)

    return call


def _identity(weight: torch.Tensor) -> tuple[int, int]:
    """Which weight this is, and how often it was written to. Layers of one kind share a graph that Dynamo made of the
    first of them; a compiled module keeps its weights alive, so that no other comes to lie in their place."""
    return weight.data_ptr(), 0 if weight.is_inference() else weight._version


class _Frozen(torch.nn.Module):
    """A graph with some inputs fixed: parameters become its own, numbers become constants."""

    def __init__(self, graph: torch.fx.GraphModule, arguments: Inputs, constant: set[int]):
        super().__init__()
        self.graph_module = graph
        self.fixed = {i: a for i, a in enumerate(arguments) if not isinstance(a, torch.Tensor)}
        for position in constant:
            self.register_parameter(f"p{position}", arguments[position])
        self.order = [
            ("parameter" if i in constant else "number" if i in self.fixed else "input", i)
            for i in range(len(arguments))
        ]

    def forward(self, *inputs: torch.Tensor) -> Any:
        given = iter(inputs)
        values = [
            getattr(self, f"p{i}") if kind == "parameter" else self.fixed[i] if kind == "number" else next(given)
            for kind, i in self.order
        ]
        return self.graph_module(*values)


class _Compiled:
    """The graph for one combination of shapes."""

    def __init__(self, graph: torch.fx.GraphModule, arguments: Inputs, constant: set[int], options: dict[str, Any]):
        import eyas

        if has_bodies(graph):
            graph = specialize(graph, {i: a for i, a in enumerate(arguments) if not isinstance(a, torch.Tensor)})
        resolve_effects(graph.graph)
        _resolve_lazy_views(graph.graph)
        graph.recompile()
        frozen = _Frozen(graph, arguments, constant)
        self.positions = [i for kind, i in frozen.order if kind == "input"]
        with torch.no_grad(), warnings.catch_warnings(), _disable_current_modes():
            warnings.simplefilter("ignore")
            self.output = _OutputPlan(graph, arguments)
            if self.output.is_empty:
                self.module = None
                return
            examples = tuple(_plain(arguments[i]) for i in self.positions)
            self.module = eyas.compile(self.output.wrap(frozen).eval(), examples, **options)

    def __call__(self, arguments: Inputs) -> Any:
        inputs = [_plain(arguments[i]) for i in self.positions]
        made = () if self.module is None else self.module(*inputs)
        return self.output.rebuild(made if isinstance(made, (tuple, list)) else (made,), arguments)


def _resolve_lazy_views(graph: torch.fx.Graph) -> None:
    """Conjugates and negates at once where AOTAutograd has views that do it when they are read."""
    for node in graph.nodes:
        node.target = _RESOLVED.get(node.target, node.target)


_RESOLVED = {
    torch.ops.aten._conj.default: torch.ops.aten._conj_physical.default,
    torch.ops.aten._neg_view.default: torch.ops.aten.neg.default,
}


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Without gradients, and with the numbers in memory as they are: torch has views that conjugate or negate."""
    return tensor.detach().resolve_conj().resolve_neg()


class _OutputPlan:
    """Dynamo's graphs may return None and numbers among tensors; only tensors go through the compiled module. Numbers
    that depend on data, such as the count of chosen elements, are returned as scalars. Views are made by torch."""

    def __init__(self, graph: torch.fx.GraphModule, arguments: Inputs):
        node = next(node for node in graph.graph.nodes if node.op == "output")
        outputs = node.args[0] if isinstance(node.args[0], (tuple, list)) else (node.args[0],)
        self.views = Views(outputs)
        self.placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self.kinds = ["view" if i in self.views.made else _kind(out) for i, out in enumerate(outputs)]
        self.values = list(outputs)
        if any(
            kind == "value" and isinstance(out, torch.fx.Node) for kind, out in zip(self.kinds, outputs, strict=True)
        ):
            self.values = _numbers(graph, arguments)

    @property
    def is_empty(self) -> bool:
        return all(kind in ("value", "view") for kind in self.kinds)

    def wrap(self, frozen: torch.nn.Module) -> torch.nn.Module:
        return _TensorsOnly(frozen, self.kinds)

    def rebuild(self, tensors: Sequence[Any], arguments: Inputs) -> tuple[Any, ...]:
        made = iter(tensors)
        results = [
            value
            if kind in ("value", "view")
            else _as_tensor(next(made))
            if kind == "tensor"
            else _as_tensor(next(made)).item()
            for kind, value in zip(self.kinds, self.values, strict=True)
        ]
        return tuple(self.views.rebuild(dict(zip(self.placeholders, arguments, strict=True)), results))


def _kind(output: Any) -> str:
    """A tensor, a number that depends on data, or a value that shapes alone say."""
    if not isinstance(output, torch.fx.Node):
        return "value"
    value = output.meta.get("val", output.meta.get("example_value"))
    if value is None or isinstance(value, torch.Tensor):
        return "tensor"
    return "number" if free_unbacked_symbols(value) else "value"


def _as_tensor(value: Any) -> torch.Tensor:
    """A module that is called without tensors does not know that torch calls it."""
    return value if isinstance(value, torch.Tensor) else from_numpy(value)


def _numbers(graph: torch.fx.GraphModule, arguments: Inputs) -> list[Any]:
    """All results for arguments of these shapes, to take those from it that are computed from sizes."""
    with FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv()) as mode:
        fake = [
            mode.from_tensor(value, static_shapes=True) if isinstance(value, torch.Tensor) else value
            for value in arguments
        ]
        return list(graph(*fake))


class _TensorsOnly(torch.nn.Module):
    """A graph without the results that no module computes."""

    eyas_description = "a graph of torch.compile"

    def __init__(self, frozen: torch.nn.Module, kinds: list[str]):
        super().__init__()
        self.frozen, self.kinds = frozen, kinds

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        outputs = self.frozen(*inputs)
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        return tuple(
            out if kind == "tensor" else torch.scalar_tensor(out, dtype=torch.int64)
            for out, kind in zip(outputs, self.kinds, strict=True)
            if kind not in ("value", "view")
        )
