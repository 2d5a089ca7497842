"""The call of an exported torch program: how arguments and results nest, their names, types and dynamic sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, SymIntArgument
from torch.utils import _pytree as pytree

from eyas.errors import FrontendError
from eyas.frontends.torch.nothing import TRUE_TYPE
from eyas.module import trees
from eyas.program.dtypes import short_name
from eyas.program.program import Argument, Signature

_NUMBERS = {bool: "bool", torch.SymBool: "bool", float: "f64", torch.SymFloat: "f64"}
"""What numbers that are no whole ones are held in."""


def call_trees(
    program: torch.export.ExportedProgram, names: tuple[str, ...] | None
) -> tuple[trees.CallTree, trees.Tree]:
    """The trees of arguments and results. `names` are the forward function's parameters, when it is known."""
    signature = program.graph_signature
    inputs = [spec.arg for spec in signature.input_specs if spec.kind == InputKind.USER_INPUT]
    outputs = [spec.arg for spec in signature.output_specs if spec.kind == OutputKind.USER_OUTPUT]
    in_spec, out_spec = program.call_spec.in_spec, program.call_spec.out_spec
    assert in_spec is not None and out_spec is not None
    positional, keywords = in_spec.children()
    leaves = iter(inputs)
    arguments = _tree(positional, leaves)
    keyword_arguments = _tree(keywords, leaves)
    count = len(arguments.children)
    if names is None or len(names) < count:
        names = tuple(_argument_names(positional, inputs))
    return (
        trees.CallTree(arguments, names[:count], keyword_arguments),
        _tree(out_spec, iter(outputs)),
    )


def _argument_names(positional: pytree.TreeSpec, inputs: Sequence[Any]) -> list[str]:
    """Names for positional arguments from the exported graph's own: a nested one has no single name."""
    names, leaf = [], 0
    for index, child in enumerate(positional.children()):
        names.append(inputs[leaf].name if child.is_leaf() else f"argument_{index}")
        leaf += child.num_leaves
    return names


def _tree(spec: pytree.TreeSpec, leaves: Iterator[Any]) -> trees.Tree:
    if spec.is_leaf():
        argument = next(leaves)
        return trees.constant(argument.value) if isinstance(argument, ConstantArgument) else trees.LEAF
    children = tuple(_tree(child, leaves) for child in spec.children())
    kind, context = spec.type, spec.context
    if kind in (tuple, list):
        return trees.Tree(kind.__name__, children)
    if kind is dict:
        return trees.Tree("dict", children, tuple(context))
    type_ = context if isinstance(context, type) else kind
    keys = _field_names(type_, context, children)
    if issubclass(type_, tuple) and not keys:
        return trees.Tree("tuple", children)  # sizes, which have no fields
    return trees.Tree(
        "namedtuple" if issubclass(type_, tuple) else "object", children, keys, f"{type_.__module__}:{type_.__name__}"
    )


def _field_names(kind: type, context: Any, children: Sequence[trees.Tree]) -> tuple[Any, ...]:
    """Field names of a node that torch's pytree registry knows: a named tuple, a dataclass, a ModelOutput."""
    if issubclass(kind, tuple):
        return tuple(getattr(kind, "_fields", None) or getattr(kind, "__match_args__", ()))
    candidates = [context, *(context if isinstance(context, (tuple, list)) else ())]
    for names in candidates:
        if isinstance(names, (list, tuple)) and len(names) == len(children) and all(isinstance(n, str) for n in names):
            return tuple(names)
    raise FrontendError(
        f"cannot take a {kind.__module__}.{kind.__qualname__} apart; use tuples, lists, dicts, dataclasses or tensors"
        " as arguments and results"
    )


def make_signature(
    program: torch.export.ExportedProgram, in_tree: trees.CallTree, out_tree: trees.Tree, dynamic_shapes: Any
) -> Signature:
    """Names, types and sizes. Dynamic sizes are named by the user's `Dim`s in `dynamic_shapes`, where given."""
    dim_names = _dim_names(program, in_tree, dynamic_shapes)
    nodes = {node.name: node for node in program.graph.nodes}
    signature = program.graph_signature
    inputs = [spec.arg for spec in signature.input_specs if spec.kind == InputKind.USER_INPUT]
    inputs = [argument for argument in inputs if not isinstance(argument, ConstantArgument)]
    outputs = [spec.arg for spec in signature.output_specs if spec.kind == OutputKind.USER_OUTPUT]
    result_names = trees.result_names(out_tree)
    symbols = {
        dim_names.get(str(symbol), str(symbol)): _range(bounds)
        for symbol, bounds in program.range_constraints.items()
        if "oo" not in str(bounds.lower)  # a number that is no size
    }

    def describe(names: Sequence[str], arguments: Sequence[Any]) -> tuple[Argument, ...]:
        pairs = zip(names, arguments, strict=True)
        return tuple(_argument(name, nodes[argument.name], argument, dim_names) for name, argument in pairs)

    return Signature(describe(in_tree.paths(), inputs), describe(result_names, outputs), symbols)


def _argument(name: str, node: torch.fx.Node, argument: Any, dim_names: Mapping[str, str]) -> Argument:
    value = node.meta["val"]
    if isinstance(argument, SymIntArgument) or not isinstance(value, torch.Tensor):
        return Argument(name, _NUMBERS.get(type(value), "i64"), ())
    dims = tuple(dim if isinstance(dim, int) else _dim_text(dim, dim_names) for dim in value.shape)
    return Argument(name, short_name(str(node.meta.get(TRUE_TYPE, value.dtype)), f"'{name}'"), dims)


def _dim_text(dim: torch.SymInt, dim_names: Mapping[str, str]) -> str:
    return re.sub(r"\b[su]\d+\b", lambda match: dim_names.get(match.group(), match.group()), str(dim))


def _range(bounds: Any) -> tuple[int, int | None]:
    """What a size may be. A number that a tensor holds has bounds too, which need be none."""
    largest = None if "oo" in str(bounds.upper) or int(bounds.upper) >= 2**62 else int(bounds.upper)
    return 0 if "oo" in str(bounds.lower) else int(bounds.lower), largest


def _dim_names(program: torch.export.ExportedProgram, in_tree: trees.CallTree, dynamic_shapes: Any) -> dict[str, str]:
    """torch's symbols (`s92`) to the names of the user's `Dim`s."""
    if not dynamic_shapes:
        return {}
    nodes = {node.name: node for node in program.graph.nodes}
    inputs = [spec.arg for spec in program.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT]
    names: dict[str, str] = {}
    for path, argument in zip(
        in_tree.paths(), [arg for arg in inputs if not isinstance(arg, ConstantArgument)], strict=True
    ):
        spec = _at_path(dynamic_shapes, path, in_tree)
        value = nodes[argument.name].meta.get("val")
        if spec is None or not isinstance(value, torch.Tensor):
            continue
        items = spec.items() if isinstance(spec, dict) else enumerate(spec)
        for index, dim in items:
            symbol, name = str(value.shape[index]), getattr(dim, "__name__", dim if isinstance(dim, str) else None)
            if name and re.fullmatch(r"[su]\d+", symbol) and name.isidentifier():
                names[symbol] = name
    return names


def _at_path(shapes: Any, path: str, in_tree: trees.CallTree) -> Any:
    """The entry of a nested `dynamic_shapes` for one leaf, by the leaf's dotted path."""
    parts = path.split(".")
    if isinstance(shapes, (tuple, list)):
        order = [*in_tree.names, *in_tree.keywords.keys]
        shapes = dict(zip(order, shapes, strict=False))
    for part in parts:
        if isinstance(shapes, Mapping):
            shapes = shapes.get(part)
        elif isinstance(shapes, (tuple, list)) and part.isdigit() and int(part) < len(shapes):
            shapes = shapes[int(part)]
        else:
            return None
    return shapes if isinstance(shapes, (dict, tuple, list)) else None
