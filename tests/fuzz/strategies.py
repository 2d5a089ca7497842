"""Graphs with compile options: from any source of numbers, and as a hypothesis strategy."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st
from tests.fuzz.builder import Builder, Draw
from tests.fuzz.graph import Graph, Options
from tests.fuzz.ops import TABLE
from tests.fuzz.shadow import DTYPES, REALS

MAX_OPS = 7
FRONTENDS = ("jax", "torch", "onnx", "mlir")
_DRAWN = ("jax", "torch", "onnx", "jax", "mlir", "jax")
"""JAX more often: its import is the fastest."""

# Sizes of two symbols in three calls: usual ones, then those that fold dimensions away. JAX's sizes are at least 1.
SYMBOLS = {
    "jax": {"n": (5, 1, 3), "m": (4, 7, 1)},
    "mlir": {"n": (5, 1, 3), "m": (4, 7, 1)},
    "torch": {"n": (5, 1, 0), "m": (4, 7, 1)},
    "onnx": {"n": (5, 1, 0), "m": (4, 7, 1)},
}

OPTIONAL = (
    "skip-inserted-zeros",
    "convert-conv-layout",
    "propagate-transposes",
    "trim-windows",
    "evaluate-constants",
    "compose-copies",
    "unify-dimensions",
    "fold-index-ranges",
    "deduplicate-executables",
    "reuse-in-place",
    "plan-memory",
    "contraction",
    "windows",
    "rows",
    "fuse-attention",
    "pack-weights",
    "microkernels",
    "attention",
)
"""What is switched off now and then; not `widen-accumulators`, without which sums of narrow floats have other
bounds."""


def ops_of(frontend: str) -> list[str]:
    """Names of the table that a frontend has, each as often as it is to be drawn."""
    field = "jax" if frontend == "mlir" else frontend
    return [op.name for op in TABLE.values() if getattr(op, field) is not None for _ in range(op.weight)]


_OPS = {frontend: ops_of(frontend) for frontend in FRONTENDS}


@st.composite
def graphs(draw: Any, frontend: str | None = None, max_ops: int = MAX_OPS) -> Graph:
    """The strategy. Each number is one choice, so a list of numbers is an example that hypothesis can shrink."""

    def number(largest: int) -> int:
        return draw(st.integers(0, largest)) if largest > 0 else 0

    graph = make_graph(number, frontend, max_ops)
    assume(graph is not None)
    return graph


def random_graph(seed: int, frontend: str | None = None, target: str = "llvm-cpu") -> tuple[Graph | None, list[int]]:
    """A graph from uniform numbers, and the numbers. hypothesis' own search makes many graphs that are alike."""
    rng, choices = random.Random(seed), []

    def number(largest: int) -> int:
        if largest <= 0:
            return 0
        choices.append(rng.randint(0, largest))
        return choices[-1]

    return make_graph(number, frontend, target=target), choices


def make_graph(
    number: Draw, frontend: str | None = None, max_ops: int = MAX_OPS, target: str = "llvm-cpu"
) -> Graph | None:
    """A valid graph with options, or None where the numbers lead to no op."""
    frontend = frontend or _DRAWN[number(len(_DRAWN) - 1)]
    symbols: dict[str, tuple[int, ...]] = {}
    if number(3) == 3:
        names = ["n", "m"][: 1 + number(1)]
        symbols = {name: SYMBOLS[frontend][name] for name in names}
    # A few types in a graph, so that values meet others of their type.
    known = REALS if frontend == "onnx" else tuple(DTYPES)
    if frontend == "torch":
        known = tuple(name for name in known if name not in ("u16", "u64"))  # not of the importer's types
    usual = ("f32", "i32", "f32", "i1", "i64")
    dtypes = sorted({known[number(len(known) - 1)], usual[number(4)], ("f32", "u8", "f32", "f16")[number(3)]})
    builder = Builder(number, symbols, dtypes, frontend)
    names = _OPS[frontend]
    # A long chain now and then: more buffers live at once.
    count = 1 + number(max_ops - 1) + (number(2 * max_ops) if max_ops == MAX_OPS and number(9) == 9 else 0)
    for _ in range(count):
        builder.apply(TABLE[names[number(len(names) - 1)]])
    made = [index for index, node in enumerate(builder.nodes) if not node.is_leaf]
    used = {index for node in builder.nodes for index in node.inputs}
    results = [index for index in made if index not in used or number(5) == 5]
    # Now and then an argument, a constant, or the same value twice.
    if builder.nodes and number(7) == 7:
        results.append(number(len(builder.nodes) - 1))
    options = Options(
        frontend,
        tuple(name for name in OPTIONAL if number(3) == 3) if number(3) == 3 else (),
        ("local-sync", "local-task")[number(1)],
        1 + number(1),
        (0, 1 << 20)[number(1)],
        ("arrays", "arrays", "strided", "tensors" if frontend == "torch" else "arrays")[number(3)],
    ).for_target(target)
    graph = Graph(tuple(builder.nodes), tuple(builder.permutation(results)), symbols, options).pruned()
    if not made or not graph.inputs:
        return None
    # A symbol that no argument has left cannot be dynamic.
    dims = {dim for index in graph.inputs for dim in graph.nodes[index].type.shape}
    kept = {name: sizes for name, sizes in symbols.items() if sizes in dims}
    return Graph(graph.nodes, graph.results, kept, options)
