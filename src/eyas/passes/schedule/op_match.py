"""What tuning specs match: facts of a dispatch's root op, as data, as attributes and as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from torch_mlir import ir as mlir

from eyas.codegen.common.analysis import Analysis, analysis_of
from eyas.codegen.common.kernel import Kernel, Unsupported
from eyas.dialects.tuning import ANY, DYNAMIC, MULTIPLE
from eyas.ir.transforms import is_transform
from eyas.ir.walk import entry_block, is_tensor
from eyas.passes.dispatch.grouping import Role, indexing_maps, role_of
from eyas.passes.dispatch.naming import kind_of, root_of
from eyas.targets import Target
from eyas.targets.pattern import pattern_of

Size = int | str
"""A number, or "any", "multiple of 16", "dynamic"."""


@dataclass(frozen=True)
class OpMatch:
    """What an entry asks of a dispatch (see `dialects/tuning.py`); None asks nothing. Types and maps are MLIR text."""

    target: str | None = None
    kind: str | None = None
    sizes: tuple[Size, ...] | None = None
    types: tuple[str, ...] | None = None
    maps: tuple[str, ...] | None = None
    nests: tuple[tuple[Size, ...], ...] | None = None
    bindings: tuple[int, ...] | None = None

    def items(self) -> dict[str, str]:
        """What it says, by name, as the text of attributes."""
        said = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: _TEXTS[name](value) for name, value in said.items() if value is not None}

    def attribute(self) -> mlir.DictAttr:
        """The same as one attribute of the current context; targets are text."""
        return mlir.DictAttr.get({name: mlir.Attribute.parse(text) for name, text in self.items().items()})

    @staticmethod
    def of_attributes(attributes: dict[str, mlir.Attribute]) -> OpMatch:
        """The inverse, for attributes that were checked (`check_match`)."""
        return OpMatch(**{name: _READERS[name](attribute) for name, attribute in attributes.items()})

    def covers(self, other: OpMatch) -> bool:
        """Whether it matches whatever the other one does. Targets count as equal or not."""
        pairs = [(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)]
        return all(mine is None or _covers(mine, its) for mine, its in pairs)


def match_of(function: mlir.OpView, target: Target, found: Analysis | None = None) -> OpMatch:
    """All that is true of an executable: what a spec that was made for it alone would ask. `found` is what is known of
    its loop nests, if somebody read them before."""
    if found is None:
        with function.operation.context, function.operation.location:
            found = analysis_of(function, {}, target.near_bytes)
    return _match(root_op(function), function, target, found)


def root_op(function: mlir.OpView) -> mlir.Operation:
    """The op of an executable that specs match and annotate."""
    return root_of([view.operation for view in entry_block(function).operations])


def _match(root: mlir.Operation, function: mlir.OpView, target: Target, found: Analysis) -> OpMatch:
    maps = indexing_maps(root) if root.name.startswith("linalg.") else None
    tensors = [value for value in [*root.operands, *([] if maps else root.results)] if maps or is_tensor(value)]
    bindings = [argument for argument in entry_block(function).arguments if is_tensor(argument)]
    inputs = [value for value in root.operands if is_tensor(value)]
    return OpMatch(
        target=pattern_of(target),
        kind=_kind(root, function, maps),
        sizes=_loops(root, maps) if maps else _shape(tensors[0]) if tensors else (),
        types=tuple(str(getattr(value.type, "element_type", value.type)) for value in tensors),
        maps=tuple(f"affine_map<{map_}>" if "affine_map" not in str(map_) else str(map_) for map_ in maps or ()),
        nests=_nests(found),
        bindings=tuple(bindings.index(value) if value in bindings else -1 for value in inputs),
    )


def _kind(root: mlir.Operation, function: mlir.OpView, maps: Sequence[mlir.AffineMap] | None) -> str:
    ops = [view.operation for view in entry_block(function).operations]
    named = kind_of(root, ops)
    if named in ("attention", "softmax", "norm", "reduction"):
        return named
    if maps is None:
        return root.name
    if is_transform(root):
        return "transform"
    if role_of(root) is Role.CONTRACTION:
        plain = (mlir.AffineDimExpr, mlir.AffineConstantExpr)
        windows = any(not isinstance(expr, plain) for map_ in maps for expr in map_.results)
        return "convolution" if windows else "contraction"
    return "elementwise"


def _loops(root: mlir.Operation, maps: Sequence[mlir.AffineMap]) -> tuple[Size, ...]:
    """The extent of each loop, read off an operand that has it as a dimension."""
    sizes: dict[int, Size] = {}
    for value, map_ in zip(root.operands, maps, strict=False):
        for size, expr in zip(_shape(value), map_.results, strict=False):
            if isinstance(expr, mlir.AffineDimExpr):
                sizes.setdefault(expr.position, size)
    return tuple(sizes.get(loop, DYNAMIC) for loop in range(maps[0].n_dims))


def _shape(value: mlir.Value) -> tuple[Size, ...]:
    if not is_tensor(value):
        return ()
    type_ = mlir.RankedTensorType(value.type)
    return tuple(DYNAMIC if type_.is_dynamic_dim(i) else type_.get_dim_size(i) for i in range(type_.rank))


def _nests(found: Analysis) -> tuple[tuple[Size, ...], ...]:
    try:
        kernel = found.unkept
    except Unsupported:
        return ()
    if not isinstance(kernel, Kernel):
        return ()
    return tuple(tuple(DYNAMIC if size.static is None else size.static for size in n.loops) for n in kernel.nests)


# --- text and attributes ----------------------------------------------------------------------------------------------


def check_match(attributes: dict[str, mlir.Attribute]) -> str | None:
    """Why attributes are no `tuning.match`, or None."""
    for name, attribute in attributes.items():
        if name not in _READERS:
            return f"has '{name}'; it may have {', '.join(_READERS)}"
        try:
            _READERS[name](attribute)
        except ValueError as error:
            return f"has {name} = {attribute}; {error}"
    return None


def _quoted(text: str) -> str:
    return f'"{text}"'


def _print_sizes(sizes: Sequence[Size]) -> str:
    return "[" + ", ".join(str(size) if isinstance(size, int) else _quoted(size) for size in sizes) + "]"


def _print_list(texts: Sequence[object]) -> str:
    return "[" + ", ".join(map(str, texts)) + "]"


_TEXTS = {
    "target": _quoted,
    "kind": _quoted,
    "sizes": _print_sizes,
    "types": _print_list,
    "maps": _print_list,
    "nests": lambda nests: _print_list([_print_sizes(nest) for nest in nests]),
    "bindings": _print_list,
}


def _read_text(attribute: mlir.Attribute) -> str:
    if not isinstance(attribute, mlir.StringAttr):
        raise ValueError('it must be text, such as "contraction"')
    return attribute.value


def _read_array(attribute: mlir.Attribute) -> list[mlir.Attribute]:
    if not isinstance(attribute, mlir.ArrayAttr):
        raise ValueError("it must be a list, [...]")
    return list(attribute)


def _read_size(attribute: mlir.Attribute) -> Size:
    if isinstance(attribute, mlir.IntegerAttr) and attribute.value >= 0:
        return attribute.value
    text = attribute.value if isinstance(attribute, mlir.StringAttr) else ""
    factor = text.removeprefix(MULTIPLE)
    if text in (ANY, DYNAMIC) or (factor != text and factor.isdecimal() and int(factor)):
        return text
    raise ValueError(f'{attribute} is no size: a number, "{ANY}", "{MULTIPLE}16" or "{DYNAMIC}"')


def _read_sizes(attribute: mlir.Attribute) -> tuple[Size, ...]:
    return tuple(map(_read_size, _read_array(attribute)))


def _read_nests(attribute: mlir.Attribute) -> tuple[tuple[Size, ...], ...]:
    return tuple(map(_read_sizes, _read_array(attribute)))


def _read_types(attribute: mlir.Attribute) -> tuple[str, ...]:
    types = _read_array(attribute)
    if not all(isinstance(one, mlir.TypeAttr) for one in types):
        raise ValueError("it must be a list of types, such as [f32, f32, f32]")
    return tuple(map(str, types))


def _read_maps(attribute: mlir.Attribute) -> tuple[str, ...]:
    maps = _read_array(attribute)
    if not all(isinstance(one, mlir.AffineMapAttr) for one in maps):
        raise ValueError("it must be a list of maps, such as [affine_map<(d0, d1) -> (d0)>]")
    return tuple(map(str, maps))


def _read_bindings(attribute: mlir.Attribute) -> tuple[int, ...]:
    numbers = _read_array(attribute)
    if not all(isinstance(one, mlir.IntegerAttr) for one in numbers):
        raise ValueError("it must be a list of numbers, -1 for what is no binding")
    return tuple(mlir.IntegerAttr(one).value for one in numbers)


_READERS = {
    "target": _read_text,
    "kind": _read_text,
    "sizes": _read_sizes,
    "types": _read_types,
    "maps": _read_maps,
    "nests": _read_nests,
    "bindings": _read_bindings,
}


def _covers(mine: object, its: object) -> bool:
    if mine == its or mine == ANY:
        return True
    if isinstance(mine, tuple) and isinstance(its, tuple):
        return len(mine) == len(its) and all(map(_covers, mine, its))
    if isinstance(mine, str) and mine.startswith(MULTIPLE):
        factor = int(mine.removeprefix(MULTIPLE))
        if isinstance(its, str) and its.startswith(MULTIPLE):
            return int(its.removeprefix(MULTIPLE)) % factor == 0
        return isinstance(its, int) and its % factor == 0
    return False
