"""How a kernel is run: the data that strategies choose, the emitter obeys, and the tuner will vary."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.codegen.common.sizes import Size


@dataclass(frozen=True)
class Tile:
    """The register tile of one nest.

    `vector_loop` runs in vectors of `width` lanes, `vectors` of them at a time; `unroll_loop` advances `unroll` points
    at a time, so that operands which do not depend on it are loaded once. A reduction may be the vector loop: then
    partial results are combined across lanes at the end.
    """

    width: int = 1
    vector_loop: int | None = None
    vectors: int = 1
    unroll_loop: int | None = None
    unroll: int = 1


@dataclass(frozen=True)
class GridAxis:
    """One axis of the workgroup grid: `loop` in pieces of `tile`."""

    loop: int
    extent: Size
    tile: int


@dataclass(frozen=True)
class Schedule:
    """A tile per nest, and up to three grid axes (x fastest). Grid loops are shared by all nests."""

    tiles: tuple[Tile, ...]
    grid: tuple[GridAxis, ...] = ()
