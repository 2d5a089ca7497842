"""Complex numbers of a torch program become pairs of real tensors, which is what vector units compute with.

torch's own `ComplexTensor` says how each op works on pairs; here each node of an exported graph that touches complex
values is traced with it and replaced. Only arguments and results of the program stay complex.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import fx
from torch._subclasses.complex_tensor import ComplexTensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.export.graph_signature import InputKind
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from eyas.frontends.torch.refusals import refuse, where

aten = torch.ops.aten
prims = torch.ops.prims
_KEPT_META = ("stack_trace", "nn_module_stack", "source_fn_stack", "from_node")

# What moves or adds elements does the same with real and imaginary parts; torch's pairs lack some of it.
_PARTWISE = (
    aten.cumsum,
    aten.flip,
    aten.gather,
    aten.index_add,
    aten.index_copy,
    aten.index_put,
    aten.index_select,
    aten.repeat,
    aten.roll,
    aten.scatter,
    aten.scatter_add,
    aten.tril,
    aten.triu,
)


def split_complex(program: torch.export.ExportedProgram, table: dict[Any, Callable[..., Any]]) -> None:
    """Rewrites the program's graph in place, with `table` for what the parts are computed with."""
    graph = program.graph
    if not any(_is_complex(value) for node in graph.nodes for value in pytree.tree_leaves(node.meta.get("val"))):
        return
    _store_as_pairs(program)
    # Sizes that vary are symbols of the program's own mode, also for nodes that take no tensor.
    with _fake_mode(graph):
        pairs: dict[fx.Node, tuple[fx.Node, fx.Node]] = {}
        for node in list(graph.nodes):
            if node.op == "output":
                _join_results(program, node, pairs)
            elif node.op in ("placeholder", "get_attr"):
                if _is_complex(node.meta.get("val")) or "pairs" in node.meta:
                    pairs[node] = _split_argument(graph, node)
            elif node.target is aten._assert_tensor_metadata.default:
                graph.erase_node(node)  # of types, which were as they should be when the program was traced
            elif node.target is not operator.getitem and _touches_complex(node, pairs):
                _replace(graph, node, pairs, table)
    graph.eliminate_dead_code()
    program.graph_module.recompile()


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Of what the parts are computed with."""
    # The imaginary part of a conjugate is a view that negates, before torch 2.13 also in an exported program.
    return {aten.hypot.default: hypotenuse, aten._neg_view.default: torch.neg}


def hypotenuse(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The length of (x, y), which does not overflow unless the result does."""
    x, y = x.abs(), y.abs()
    longer, shorter = torch.maximum(x, y), torch.minimum(x, y)
    ratio = shorter / torch.where(longer == 0, 1.0, longer)
    infinite = (x == float("inf")) | (y == float("inf"))
    return torch.where(infinite, float("inf"), longer * torch.sqrt(1.0 + ratio * ratio))


def _store_as_pairs(program: torch.export.ExportedProgram) -> None:
    """Complex weights are stored as real ones with a last dimension of two."""
    written = {spec.target for spec in program.graph_signature.output_specs if spec.target is not None}
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    for spec in program.graph_signature.input_specs:
        if spec.kind == InputKind.USER_INPUT or spec.target is None or spec.target in written:
            continue
        for values in (program.state_dict, program.constants):
            value = values.get(spec.target)
            if isinstance(value, torch.Tensor) and _is_complex(value):
                values[spec.target] = torch.view_as_real(value.detach().resolve_conj())
                node = nodes[spec.arg.name]
                node.meta["val"] = torch.view_as_real(node.meta["val"])
                node.meta["pairs"] = True


def _fake_mode(graph: fx.Graph) -> FakeTensorMode:
    values = (value for node in graph.nodes for value in pytree.tree_leaves(node.meta.get("val")))
    return next(value.fake_mode for value in values if isinstance(value, FakeTensor))


def _is_complex(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype.is_complex


def _touches_complex(node: fx.Node, pairs: dict[fx.Node, tuple[fx.Node, fx.Node]]) -> bool:
    made = pytree.tree_leaves(node.meta.get("val"))
    return any(_is_complex(leaf) for leaf in made) or any(operand in pairs for operand in node.all_input_nodes)


def _split_argument(graph: fx.Graph, node: fx.Node) -> tuple[fx.Node, fx.Node]:
    after = node
    while after.next.op == "placeholder":
        after = after.next
    with graph.inserting_after(after):
        whole = node if "pairs" in node.meta else _call(graph, aten.view_as_real.default, (node,))
    with graph.inserting_after(after if whole is node else whole):
        imag = _call(graph, aten.select.int, (whole, -1, 1))
        real = _call(graph, aten.select.int, (whole, -1, 0))
    return real, imag


def _join_results(
    program: torch.export.ExportedProgram, output: fx.Node, pairs: dict[fx.Node, tuple[fx.Node, fx.Node]]
) -> None:
    for node in output.all_input_nodes:
        if node not in pairs or (node.op == "placeholder" and "pairs" not in node.meta):
            continue
        with program.graph.inserting_before(output):
            # A weight is stored as it is joined.
            joined = node if "pairs" in node.meta else _call(program.graph, aten.stack.default, (list(pairs[node]), -1))
            output.replace_input_with(node, _call(program.graph, aten.view_as_complex.default, (joined,)))
    # The signature knows results by the names of nodes.
    for spec, result in zip(program.graph_signature.output_specs, cast(Any, output.args[0]), strict=True):
        if isinstance(result, fx.Node):
            spec.arg.name = result.name


def _call(graph: fx.Graph, target: Any, args: tuple[Any, ...]) -> fx.Node:
    node = graph.call_function(target, args)
    node.meta["val"] = target(*pytree.tree_map_only(fx.Node, lambda operand: operand.meta["val"], args))
    return node


def _replace(
    graph: fx.Graph,
    node: fx.Node,
    pairs: dict[fx.Node, tuple[fx.Node, fx.Node]],
    table: dict[Any, Callable[..., Any]],
) -> None:
    """Puts what the node does on the parts of its operands in its place."""
    leaves, spec = pytree.tree_flatten((node.args, node.kwargs))
    operands: list[fx.Node] = []
    places: list[tuple[int, ...] | None] = []
    for leaf in leaves:
        if not isinstance(leaf, fx.Node):
            places.append(None)
            continue
        parts = pairs.get(leaf, (leaf,))
        places.append(tuple(range(len(operands), len(operands) + len(parts))))
        operands += parts

    dtype = next((parts[0].meta["val"].dtype for leaf in leaves if (parts := pairs.get(leaf))), None)
    schema = node.target._schema.arguments
    takes_number = node.target._overloadname.endswith("Scalar")

    def may_be_tensor(slot: Any) -> bool:
        return str(slot.type) == "Tensor" or (takes_number and slot.name == "other")

    def on_parts(*values: Any) -> Any:
        rebuilt = [leaf if place is None else _join(values, place) for leaf, place in zip(leaves, places, strict=True)]
        args, kwargs = pytree.tree_unflatten(rebuilt, spec)
        args = [_widened(arg, dtype, may_be_tensor(slot)) for arg, slot in zip(args, schema, strict=False)]
        result = _apply(node.target, args, kwargs)
        return [part for leaf in pytree.tree_leaves(result) for part in _parts(leaf)]

    examples = [operand.meta["val"] for operand in operands]
    try:
        traced = make_fx(on_parts, decomposition_table=table, tracing_mode="symbolic", _allow_non_fake_inputs=True)(
            *examples
        )
    except Exception as error:
        raise refuse(node, f"on complex numbers {where(node)}", "it has no rule for them") from error
    if any(inner.op == "get_attr" and not _is_single(traced, inner) for inner in traced.graph.nodes):
        raise refuse(node, f"on complex numbers {where(node)}", "it needs a table")
    results = _inline(graph, node, traced, operands)
    _bind(graph, node, results, pairs)


def _join(values: Sequence[Any], place: tuple[int, ...]) -> Any:
    return ComplexTensor(*(values[index] for index in place)) if len(place) == 2 else values[place[0]]


def _widened(value: Any, dtype: torch.dtype | None, is_tensor: bool) -> Any:
    """Numbers and real tensors beside complex ones as complex: torch would convert them in a way that is no pair."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if isinstance(value, complex) or (dtype is not None and is_tensor and is_number):
        parts = complex(value)
        return ComplexTensor(*(torch.full([], part, dtype=dtype or torch.float32) for part in (parts.real, parts.imag)))
    if isinstance(value, torch.Tensor) and not isinstance(value, ComplexTensor) and value.dtype == dtype:
        return ComplexTensor(value, torch.zeros_like(value))
    return value


def _apply(target: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The op on pairs. A complex number where the op wants a scalar goes to its form for tensors."""
    if target in (aten.full.default, aten.scalar_tensor.default):
        *sizes, value = args
        dtype = torch.float64 if kwargs.get("dtype") == torch.complex128 else torch.float32
        kwargs = {**kwargs, "dtype": dtype}
        real, imag = (value.re, value.im) if isinstance(value, ComplexTensor) else (value, 0.0)
        made = [torch.full(sizes[0] if sizes else [], 0.0, **kwargs) + part for part in (real, imag)]
        return ComplexTensor(*made)
    if target in (aten._to_copy.default, prims.convert_element_type.default):
        return _convert(*args, **kwargs)
    if target._overloadpacket in _PARTWISE:
        parts = [_apply_to(target, args, kwargs, part) for part in ("re", "im")]
        return ComplexTensor(*parts)
    if target._overloadname.endswith("Scalar") and any(isinstance(arg, ComplexTensor) for arg in args[1:]):
        target = getattr(target._overloadpacket, target._overloadname.replace("Scalar", "Tensor"))
    return target(*args, **kwargs)


def _convert(value: Any, dtype: torch.dtype | None = None, **options: Any) -> Any:
    """A real number is complex with nothing imaginary, and a complex one is real without what is imaginary."""
    real, imag = (value.re, value.im) if isinstance(value, ComplexTensor) else (value, None)
    wanted: torch.dtype = value.dtype if dtype is None else dtype
    if not wanted.is_complex:
        return real.to(wanted)
    part = wanted.to_real()
    return ComplexTensor(real.to(part), torch.zeros_like(real, dtype=part) if imag is None else imag.to(part))


def _apply_to(target: Any, args: Sequence[Any], kwargs: dict[str, Any], part: str) -> Any:
    def pick(value: Any) -> Any:
        return getattr(value, part) if isinstance(value, ComplexTensor) else value

    is_pair = lambda value: isinstance(value, ComplexTensor)  # noqa: E731
    args, kwargs = pytree.tree_map(pick, (tuple(args), dict(kwargs)), is_leaf=is_pair)
    return target(*args, **kwargs)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, ComplexTensor):
        return [value.re, value.im]
    if _is_complex(value):
        whole = torch.view_as_real(value)
        return [whole.select(-1, 0), whole.select(-1, 1)]
    return [value]


def _inline(graph: fx.Graph, node: fx.Node, traced: fx.GraphModule, operands: list[fx.Node]) -> list[Any]:
    mapping: dict[fx.Node, Any] = {}
    arguments = iter(operands)
    with graph.inserting_before(node):
        for inner in traced.graph.nodes:
            if inner.op == "placeholder":
                mapping[inner] = next(arguments)
            elif inner.op == "get_attr":
                mapping[inner] = _single(graph, getattr(traced, str(inner.target)))
            elif inner.op == "output":
                return list(pytree.tree_map_only(fx.Node, mapping.__getitem__, inner.args[0]))
            else:
                copy = mapping[inner] = graph.node_copy(inner, mapping.__getitem__)
                _convert_by_way_of_real(graph, copy)
                copy.meta.update({key: node.meta[key] for key in _KEPT_META if key in node.meta})
    raise AssertionError("a graph ends with its output")


def _is_single(traced: fx.GraphModule, node: fx.Node) -> bool:
    value = getattr(traced, str(node.target), None)
    return isinstance(value, torch.Tensor) and not value.dim() and not _is_complex(value)


def _single(graph: fx.Graph, value: torch.Tensor) -> fx.Node:
    """A number that torch's pairs made a tensor of."""
    node = graph.call_function(aten.full.default, ([], value.item()), {"dtype": value.dtype})
    node.meta["val"] = aten.full.default([], value.item(), dtype=value.dtype)
    return node


def _convert_by_way_of_real(graph: fx.Graph, node: fx.Node) -> None:
    """The importer takes whole numbers and truths as signed on their way to complex ones."""
    if node.target != prims.convert_element_type.default:
        return
    operand, dtype = cast(Any, node.args)
    if dtype.is_complex and not (operand.meta["val"].is_complex() or operand.meta["val"].is_floating_point()):
        with graph.inserting_before(node):
            node.replace_input_with(operand, _call(graph, node.target, (operand, dtype.to_real())))


def _bind(graph: fx.Graph, node: fx.Node, results: list[Any], pairs: dict[fx.Node, tuple[fx.Node, fx.Node]]) -> None:
    """Users of the node's real results get them; complex ones are noted as pairs."""
    rest = iter(results)
    if not isinstance(node.meta["val"], (tuple, list)):
        if _is_complex(node.meta["val"]):
            pairs[node] = next(rest), next(rest)
        else:
            node.replace_all_uses_with(next(rest))
        return
    made = [(next(rest), next(rest)) if _is_complex(value) else (next(rest),) for value in node.meta["val"]]
    for user in list(node.users):
        parts = made[cast(int, user.args[1])]
        if len(parts) == 2:
            pairs[user] = parts
        else:
            user.replace_all_uses_with(parts[0])
