"""How a kernel is run: the data that strategies choose, people edit, a tuner varies, and emitters obey.

As text it is the second part of `#codegen.strategy<"name", {...}>` (see `dialects/codegen.py`). What is said there is
checked against the kernel wherever it comes from: `check_schedule` of `constraints.py` has what holds for every target,
`schedule.py` of each target the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch_mlir import ir as mlir

from eyas.codegen.common.fields import Fields

MAX_GRID_AXES = 3


@dataclass(frozen=True)
class Tile:
    """The register tile of one nest.

    `loop` runs in vectors of `width` lanes, `vectors` of them at a time; `unroll_loop` advances `unroll` points at a
    time, so that operands which do not depend on it are loaded once. A reduction may be the vector loop: then partial
    results are combined across lanes at the end. The loops `inside` run within a block of lanes, the others around it:
    a panel of weights then serves all of an image before the next panel is read. A step of the innermost reduction
    takes `dot` points at once, by instructions that multiply neighbours and add them up.
    """

    width: int = 1
    loop: int | None = None
    vectors: int = 1
    unroll_loop: int | None = None
    unroll: int = 1
    inside: tuple[int, ...] = ()
    dot: int = 1

    @property
    def lanes(self) -> int:
        """Points of the vector loop in one block."""
        return self.width * self.vectors


@dataclass(frozen=True)
class GridAxis:
    """One axis of the grid: each workgroup has `tile` points of `loop`."""

    loop: int
    tile: int


@dataclass(frozen=True)
class Panels:
    """A binding whose elements lie in panels of `lanes` columns (see `panels.py`)."""

    binding: int
    lanes: int


@dataclass(frozen=True)
class Block:
    """Rows go through the nests from number `nest` on in blocks of `rows`."""

    nest: int
    rows: int


@dataclass(frozen=True)
class Schedule:
    """A tile for each nest, and up to three grid axes (x fastest), whose loops are shared by all nests.

    `packed` says which bindings lie in panels, and how wide these are: it describes memory that others have written.
    `staged` are bindings of which each block of lanes first copies its panel into the worker's scratch memory: only a
    single nest may have them. `block` is how rows go through several nests; without it they go one by one. With
    `panels` 0, weights are not to be packed; `prefetch` is how many panels ahead of the one that is read memory is
    asked for the next, 0 for none. Points of a window are written out while they are at most `taps`.
    """

    tiles: tuple[Tile, ...]
    grid: tuple[GridAxis, ...] = ()
    packed: tuple[Panels, ...] = ()
    staged: tuple[int, ...] = ()
    block: Block | None = None
    panels: int = 1
    prefetch: int = 1
    taps: int = 25

    @property
    def packed_bindings(self) -> tuple[int, ...]:
        return tuple(panels.binding for panels in self.packed)

    @property
    def pieces(self) -> dict[int, int]:
        """Points of each loop that one workgroup has, where workgroups divide it."""
        return {axis.loop: axis.tile for axis in self.grid}

    def to_attribute(self) -> mlir.DictAttr:
        """As named fields; those that have their default are left out."""
        entries: dict[str, mlir.Attribute] = {
            "tiles": mlir.ArrayAttr.get([_tile_to_attribute(tile) for tile in self.tiles]),
            "grid": mlir.ArrayAttr.get([_dictionary(loop=axis.loop, tile=axis.tile) for axis in self.grid]),
        }
        if self.packed:
            entries["packed"] = panels_to_attribute(self.packed)
        if self.staged:
            entries["staged"] = _integers(self.staged)
        if self.block is not None:
            entries["block"] = _dictionary(nest=self.block.nest, rows=self.block.rows)
        i64 = mlir.IntegerType.get_signless(64)
        for name, default in _WHOLE.items():
            if getattr(self, name) != default:
                entries[name] = mlir.IntegerAttr.get(i64, getattr(self, name))
        return mlir.DictAttr.get(entries)

    @staticmethod
    def from_attribute(attribute: mlir.Attribute) -> Schedule:
        """Reads what `to_attribute` writes, and what people make of it; raises FieldError."""
        fields = Fields(attribute, "", ("tiles", "grid", "packed", "staged", "block", *_WHOLE))
        block = Fields(fields.entries["block"], "block", ("nest", "rows")) if "block" in fields.entries else None
        return Schedule(
            fields.items("tiles", _read_tile),
            fields.items("grid", _read_axis),
            fields.items("packed", _read_panels),
            fields.integers("staged"),
            None if block is None else Block(block.integer("nest", 0), block.integer("rows")),
            **{name: fields.integer(name, default) for name, default in _WHOLE.items()},
        )


def panels_to_attribute(panels: Sequence[Panels]) -> mlir.ArrayAttr:
    return mlir.ArrayAttr.get([_dictionary(binding=one.binding, lanes=one.lanes) for one in panels])


def packed_of(schedule: mlir.Attribute) -> list[Panels]:
    """The bindings that a noted schedule of any strategy reads in panels."""
    entries = {entry.name: entry.attr for entry in mlir.DictAttr(schedule)}
    return panels_from_attribute(entries["packed"]) if "packed" in entries else []


def panels_from_attribute(attribute: mlir.Attribute) -> list[Panels]:
    return [_read_panels(one, f"panels[{number}]") for number, one in enumerate(mlir.ArrayAttr(attribute))]


_WHOLE = {"panels": 1, "prefetch": 1, "taps": 25}
"""Fields of a schedule that are numbers, and what they are when left out."""

_NUMBERS = {"width": 1, "vectors": 1, "unroll": 1, "dot": 1}
"""Fields of a tile that are numbers, and what they are when left out."""


def _tile_to_attribute(tile: Tile) -> mlir.DictAttr:
    loops = {name: value for name in ("loop", "unroll_loop") if (value := getattr(tile, name)) is not None}
    numbers = {name: getattr(tile, name) for name, default in _NUMBERS.items() if getattr(tile, name) != default}
    inside = {"inside": _integers(tile.inside)} if tile.inside else {}
    return _dictionary(**loops, **numbers, **inside)


def _read_tile(attribute: mlir.Attribute, where: str) -> Tile:
    fields = Fields(attribute, where, ("loop", "width", "vectors", "unroll_loop", "unroll", "inside", "dot"))
    numbers = {name: fields.integer(name, default) for name, default in _NUMBERS.items()}
    return Tile(
        loop=fields.loop("loop"),
        unroll_loop=fields.loop("unroll_loop"),
        inside=fields.integers("inside"),
        **numbers,
    )


def _read_axis(attribute: mlir.Attribute, where: str) -> GridAxis:
    fields = Fields(attribute, where, ("loop", "tile"))
    return GridAxis(fields.integer("loop"), fields.integer("tile"))


def _read_panels(attribute: mlir.Attribute, where: str) -> Panels:
    fields = Fields(attribute, where, ("binding", "lanes"))
    return Panels(fields.integer("binding"), fields.integer("lanes"))


def _dictionary(**fields: int | mlir.Attribute) -> mlir.DictAttr:
    i64 = mlir.IntegerType.get_signless(64)
    return mlir.DictAttr.get(
        {name: mlir.IntegerAttr.get(i64, value) if isinstance(value, int) else value for name, value in fields.items()}
    )


def _integers(values: tuple[int, ...]) -> mlir.ArrayAttr:
    i64 = mlir.IntegerType.get_signless(64)
    return mlir.ArrayAttr.get([mlir.IntegerAttr.get(i64, value) for value in values])
