"""What the importer sees of a torch program: the ops that no decomposition takes apart.

The IR has signless integers, and the importer's lowerings take most of them for signed ones of 32 bits or more: a byte
of 200 is less than one of 100, True is less than False, and some of the narrow ones end the process. So integers that
are unsigned or narrow are held and moved as they are, and computed with in wider ones. That is so for every op but the
few of `_MOVES`, which ask nothing of a number: an op that nobody thought of is slower, not wrong. Likewise, what is
more than elementwise is computed of f16 and bf16 in f32, as torch's kernels do: the squares of a norm overflow in f16
where the norm does not. `_IN_HALVES` are the ops that are right as they are.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import fx
from torch._decomp import decomposition_table
from torch._ops import OpOverload
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from eyas.errors import UnsupportedOpError

aten, prims = torch.ops.aten, torch.ops.prims

_WIDE = {
    torch.bool: torch.int32,
    torch.uint8: torch.int32,
    torch.int8: torch.int32,
    torch.int16: torch.int32,
    torch.uint16: torch.int32,
    torch.uint32: torch.int64,
}
"""What each type is computed in."""

_MOVES = frozenset(
    {
        # Views and copies.
        *(aten.alias, aten.as_strided, aten.clone, aten.contiguous, aten.copy, aten.detach, aten.lift_fresh_copy),
        *(aten.expand, aten.permute, aten.reshape, aten.select, aten.slice, aten.split, aten.split_with_sizes),
        *(aten.squeeze, aten.t, aten.transpose, aten.unbind, aten.unfold, aten.unsqueeze, aten.view, aten._unsafe_view),
        *(aten.cat, aten.diagonal, aten.flip, aten.repeat, aten.roll, aten.stack, aten.view_as_real),
        *(aten.embedding, aten.gather, aten.index, aten.index_select, aten.scatter, aten.select_scatter),
        *(aten.slice_scatter, aten.where, aten.masked_fill, aten._local_scalar_dense),
        # Conversions, which know what they convert.
        *(aten._to_copy, aten.to, prims.convert_element_type),
        *(aten.logical_and, aten.logical_not, aten.logical_or, aten.logical_xor),
        # Sizes and checks.
        *(aten.sym_size, aten.sym_numel, aten.sym_stride, aten._assert_async, aten._assert_scalar),
        aten._assert_tensor_metadata,
        # Products of bytes, which are an op of their own.
        aten._int_mm,
        # Constants of no dimensions, which torch makes.
        *(aten.full, aten.scalar_tensor),
    }
)
_HALVES = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
_IN_HALVES = frozenset(
    {
        # Sums are accumulated in f32 later.
        *(aten.addmm, aten.baddbmm, aten.bmm, aten.convolution, aten.linear, aten.matmul, aten.mm, aten.sum),
        # Choices among elements.
        *(aten.amax, aten.amin, aten.argmax, aten.argmin, aten.max, aten.min, aten.kthvalue, aten.sort),
        *(aten.topk, aten.nonzero, aten.max_pool2d, aten.max_pool2d_with_indices, aten.max_pool3d_with_indices),
        # Constants and what surrounds elements.
        *(aten.arange, aten.constant_pad_nd, aten.empty, aten.empty_like, aten.full, aten.full_like, aten.rand),
        *(aten.randn, aten.scalar_tensor, aten.bernoulli, aten.empty_strided, aten.new_empty_strided),
    }
)
_BITS = frozenset({aten.bitwise_and, aten.bitwise_not, aten.bitwise_or, aten.bitwise_xor})
"""What asks nothing of numbers of one type."""

_OF_TRUTHS = frozenset({aten.all, aten.any, aten.nonzero})
"""What moves truths only."""

_DIMS = frozenset({"dim", "dims", "dim0", "dim1", "dim2", "dimension"})
_OF_RESULT = frozenset({aten.unsqueeze, aten.stack, aten.diag_embed})
"""Ops whose dimensions are those of a result that has one more."""


def prepare_leaves(program: torch.export.ExportedProgram) -> None:
    """Rewrites the program's graphs in place: no dimension is counted from the end, and see above."""
    for module in program.graph_module.modules():
        if isinstance(module, fx.GraphModule):
            _prepare(module.graph)
            module.recompile()
    outputs = cast(Any, program.graph.output_node().args[0])
    # The signature knows results by the names of nodes.
    for spec, result in zip(program.graph_signature.output_specs, outputs, strict=True):
        if isinstance(result, fx.Node):
            spec.arg.name = result.name


def _prepare(graph: fx.Graph) -> None:
    with fake_mode(graph):
        widener = _Widener(graph)
        for node in list(graph.nodes):
            if isinstance(node.target, OpOverload) and node.target.namespace in ("aten", "prims"):
                _count_from_the_start(node)
                widener.visit(node)
        widener.finish()


def fake_mode(graph: fx.Graph) -> Any:
    """Sizes that vary are symbols of the program's own mode."""
    values = (value for node in graph.nodes for value in pytree.tree_leaves(node.meta.get("val")))
    return next((value.fake_mode for value in values if isinstance(value, FakeTensor)), nullcontext())


# Dimensions.


def _count_from_the_start(node: fx.Node) -> None:
    """Some lowerings index memory with a negative dimension; also one that is a default."""
    schema = node.target._schema.arguments
    wanted = [(place, argument) for place, argument in enumerate(schema) if argument.name in _DIMS]
    rank = _rank(node) if wanted else 0
    for place, argument in wanted:
        given = argument.default_value if argument.has_default_value() else None
        is_positional = place < len(node.args)
        given = node.args[place] if is_positional else node.kwargs.get(argument.name, given)
        counted = _counted(given, rank)
        if counted == given or counted is None:
            continue
        if is_positional:
            node.update_arg(place, counted)
        else:
            node.update_kwarg(argument.name, counted)


def _rank(node: fx.Node) -> int:
    tensors = [value for value in _values(node.args) if isinstance(value, torch.Tensor)]
    own = max((tensor.dim() for tensor in tensors[:1]), default=0)
    if node.target.overloadpacket in (aten.cat, aten.stack):
        own = max((tensor.dim() for tensor in tensors), default=0)
    return own + 1 if node.target.overloadpacket in _OF_RESULT else max(own, 1)


def _counted(dims: Any, rank: int) -> Any:
    if isinstance(dims, (list, tuple)):
        return [_counted(dim, rank) for dim in dims]
    is_negative = isinstance(dims, int) and not isinstance(dims, bool) and dims < 0
    return dims + rank if is_negative else dims


def _values(arguments: Any) -> Iterator[Any]:
    for leaf in pytree.tree_leaves(arguments):
        yield leaf.meta.get("val") if isinstance(leaf, fx.Node) else leaf


# Signs and widths.


class _Widener:
    """Puts conversions around ops; each value is converted once."""

    def __init__(self, graph: fx.Graph) -> None:
        self.graph = graph
        self._converted: dict[tuple[fx.Node, torch.dtype], fx.Node] = {}

    def visit(self, node: fx.Node) -> bool:
        """Whether the node was replaced by one on wider operands."""
        if not node.target._schema.returns or _moves(node):
            return False
        types = _types(node)
        if types is None:
            return False
        with self.graph.inserting_before(node):
            try:
                args, kwargs = self._arguments(node, types)
                value = _result(node, args, kwargs)
            except _TORCH_ERRORS as error:
                if all(_is_mask(value) for value in _values(node.args) if _is_narrow(value)):
                    return False  # truths that choose, which must be truths
                raise UnsupportedOpError(f"'{node.target}' at node '{node.name}' is not supported: {error}") from error
            wide = self.graph.call_function(cast(Any, node.target), args, kwargs)
            wide.meta = {**_where(node), "val": value}
            self._bind(node, wide)
        return True

    def finish(self) -> None:
        """Takes out conversions that nothing needed after all."""
        for node in reversed(list(self._converted.values())):
            if not node.users:
                self.graph.erase_node(node)

    def _arguments(self, node: fx.Node, types: Types) -> tuple[tuple[Any, ...], dict[str, Any]]:
        def convert(leaf: Any, slot: Any) -> Any:
            if isinstance(leaf, fx.Node) and isinstance(value := leaf.meta.get("val"), torch.Tensor):
                for dtype in types.of_tensor(value):
                    leaf = self._convert(leaf, dtype)
                return leaf
            return types.of_number(leaf) if _is_number(slot, leaf) else leaf

        schema = node.target._schema.arguments
        slots = {slot.name: slot for slot in schema}
        args = [
            pytree.tree_map(lambda leaf, slot=slot: convert(leaf, slot), arg)
            for arg, slot in zip(node.args, schema, strict=False)
        ]
        kwargs = {
            name: pytree.tree_map(lambda leaf, name=name: convert(leaf, slots[name]), arg)
            for name, arg in node.kwargs.items()
        }
        if kwargs.get("dtype") in types.asked:
            kwargs["dtype"] = types.asked[kwargs["dtype"]]
        return tuple(args), kwargs

    def _convert(self, node: fx.Node, to: torch.dtype) -> fx.Node:
        if node.meta["val"].dtype == to:
            return node
        if (node, to) not in self._converted:
            where = node.next
            while where.op == "placeholder":
                where = where.next
            with self.graph.inserting_before(where):
                self._converted[node, to] = self._call(aten._to_copy.default, (node,), {"dtype": to}, node)
        return self._converted[node, to]

    def _call(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], like: fx.Node) -> fx.Node:
        node = self.graph.call_function(target, args, kwargs)
        node.meta = {**_where(like), "val": target(*_fake(args), **_fake(kwargs))}
        return node

    def _bind(self, node: fx.Node, wide: fx.Node) -> None:
        """Users of the node get what it promised."""
        promised = node.meta["val"]
        if isinstance(promised, (tuple, list)):
            for user in list(node.users):
                assert user.target is operator.getitem, "several results are taken one by one"
                self._narrow(user, self._call(operator.getitem, (wide, user.args[1]), {}, node))
        else:
            self._narrow(node, wide)
        if isinstance(promised, (tuple, list)):
            self.graph.erase_node(node)

    def _narrow(self, node: fx.Node, wide: fx.Node) -> None:
        promised = node.meta["val"]
        if isinstance(promised, torch.Tensor) and wide.meta["val"].dtype != promised.dtype:
            wide = self._call(aten._to_copy.default, (wide,), {"dtype": promised.dtype}, node)
        node.replace_all_uses_with(wide)
        self.graph.erase_node(node)


# Kernels of torch that read sizes as numbers; what it has in Python does not.
_READ_SIZES = (aten.constant_pad_nd.default,)
_TORCH_ERRORS = (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError)
_UNSIZED = (torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output)


def _where(node: fx.Node) -> dict[str, Any]:
    """What is known of the user's line."""
    return {key: node.meta[key] for key in ("stack_trace", "nn_module_stack", "source_fn_stack") if key in node.meta}


def _result(node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the op makes of wider operands. A size that depends on data is the same symbol as before."""
    if any(tag in node.target.tags for tag in _UNSIZED):
        return node.meta["val"]
    args, kwargs = _fake(args), _fake(kwargs)
    if node.target in _READ_SIZES:
        return decomposition_table[node.target](*args, **kwargs)
    return cast(Any, node.target)(*args, **kwargs)


def _fake(arguments: Any) -> Any:
    return pytree.tree_map_only(fx.Node, lambda node: node.meta["val"], arguments)


def _is_narrow(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in _WIDE


def _is_mask(value: Any) -> bool:
    return value.dtype == torch.bool


def _is_number(slot: Any, value: Any) -> bool:
    """Whether an argument is a number to compute with, not a size or a choice."""
    return _holds_numbers(slot) and isinstance(value, (bool, int, float))


def _holds_numbers(slot: Any) -> bool:
    """A number may be given for a tensor too."""
    return any(kind in str(slot.type) for kind in ("number", "Number", "Tensor"))


def _moves(node: fx.Node) -> bool:
    packet = node.target.overloadpacket
    if packet is aten.index_put:
        return not (node.args[3] if len(node.args) > 3 else node.kwargs.get("accumulate", False))
    if packet in _OF_TRUTHS:
        return all(_is_mask(value) for value in _values(node.args) if isinstance(value, torch.Tensor))
    if packet in _BITS:
        return len({value.dtype for value in _values(node.args) if isinstance(value, torch.Tensor)}) == 1
    return packet in _MOVES


@dataclass(frozen=True)
class Types:
    """What operands become: each of its wide type, or in an elementwise op all of one."""

    common: torch.dtype | None = None
    wide: Mapping[torch.dtype, torch.dtype] = field(default_factory=lambda: _WIDE)

    first: torch.dtype | None = None
    """What operands are converted to before: a half is no truth when it is 0, as a whole number is."""

    @property
    def asked(self) -> Mapping[torch.dtype, torch.dtype]:
        """What is asked for instead of a type."""
        return self.wide

    def of_tensor(self, value: torch.Tensor) -> Sequence[torch.dtype]:
        """The types that it is converted to, one after the other: 300 beside bytes is 44."""
        if self.first is not None:
            return self.first, self.wide.get(self.first, self.first)
        if self.common is None:
            return (self.wide.get(value.dtype, value.dtype),)
        return self.common, self.wide.get(self.common, self.common)

    def of_number(self, value: Any) -> Any:
        if self.common is None or self.common.is_floating_point or isinstance(value, float):
            return int(value) if isinstance(value, bool) else value
        if self.common == torch.bool:
            return int(bool(value))
        limits = torch.iinfo(self.common)
        return (int(value) - limits.min) % (1 << limits.bits) + limits.min


def _types(node: fx.Node) -> Types | None:
    """Nothing where all is well."""
    tensors = [value for value in _values((node.args, node.kwargs)) if isinstance(value, torch.Tensor)]
    if any(tensor.is_complex() or tensor.is_quantized for tensor in tensors):
        return None
    made, asked = node.meta["val"], node.kwargs.get("dtype")
    if torch.Tag.pointwise in node.target.tags and isinstance(made, torch.Tensor) and tensors and asked is None:
        types = Types(_common_type(node, tensors, made.dtype))
        numbers = [value for slot, value in _given(node) if _is_number(slot, value)]
        is_odd = any(map(_is_narrow, tensors)) or any(_is_odd(number, types) for number in numbers)
        if any(_leaves_range(number, types.common) for number in numbers):
            types, is_odd = Types(types.common, {**_WIDE, **_HALVES}), True
        return types if is_odd and not made.is_complex() else None
    wide = _WIDE if node.target.overloadpacket in _IN_HALVES else {**_WIDE, **_HALVES}
    types = Types(wide=wide, first=torch.bool if asked == torch.bool else None)
    return types if any(tensor.dtype in types.wide for tensor in tensors) or asked in types.asked else None


def _is_odd(number: Any, types: Types) -> bool:
    made = types.of_number(number)
    return made != number or type(made) is not type(number)


def _leaves_range(number: Any, dtype: torch.dtype | None) -> bool:
    """Whether a number is infinite or nothing in half precision; torch has numbers in single precision there."""
    if dtype not in _HALVES or not math.isfinite(number) or number == 0:
        return False
    limits = torch.finfo(dtype)
    return not limits.tiny <= abs(number) <= limits.max


def _common_type(node: fx.Node, tensors: Sequence[torch.Tensor], made: torch.dtype) -> torch.dtype:
    """What torch computes an elementwise op in: a float result in its own type, all else in what operands share."""
    numbers = [
        1.0 if isinstance(value, (float, torch.SymFloat)) else value if isinstance(value, bool) else 1
        for slot, value in _given(node)
        if _holds_numbers(slot) and isinstance(value, (bool, int, float, torch.SymInt, torch.SymFloat))
    ]
    kind = ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT
    _, common = elementwise_dtypes(*tensors, *numbers, type_promotion_kind=kind)
    return made if made.is_floating_point and not common.is_floating_point else common


def _given(node: fx.Node) -> Iterator[tuple[Any, Any]]:
    """Positional arguments with what the schema says of them."""
    for slot, value in zip(node.target._schema.arguments, node.args, strict=False):
        yield slot, value.meta.get("val") if isinstance(value, fx.Node) else value
