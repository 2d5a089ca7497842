"""What was once wrong is in the space of random graphs: the graph passes, and the generator draws ones like it.

Each row is a graph with one op, as small as the finding was; the generator is asked for that op on that element type by
drawing until it comes, with every other op left out.
"""

from __future__ import annotations

import random

import pytest

pytest.importorskip("torch")

from tests.fuzz.builder import Builder  # noqa: E402
from tests.fuzz.graph import Node  # noqa: E402
from tests.fuzz.ops import TABLE  # noqa: E402
from tests.fuzz.strategies import ops_of  # noqa: E402


def negative(node: Node, builder: Builder) -> bool:
    return node.attrs.get("dim", 0) < 0 or bool(node.attrs.get("from_end"))


def uneven(node: Node, builder: Builder) -> bool:
    sizes = builder.type(node.inputs[0]).shape[-len(node.attrs["size"]) :]
    return any(have % want for have, want in zip(sizes, node.attrs["size"], strict=True))


def dynamic(node: Node, builder: Builder) -> bool:
    return not isinstance(builder.type(node.inputs[0]).shape[0], int)


def anything(node: Node, builder: Builder) -> bool:
    return True


FINDINGS = {
    "fused diagonals": ("diagonal_of_square", "f32", lambda node, b: node.attrs["add"]),
    "traces": ("trace", "f32", anything),
    "einsum of diagonals": ("einsum_trace", "f32", anything),
    "floats to bytes": ("quantized", "f32", lambda node, b: node.attrs["dtype"] == "u8"),
    "adaptive max pooling of one dimension": ("adaptive_max_pool1d", "f32", uneven),
    "adaptive max pooling of two dimensions": ("adaptive_max_pool2d", "f32", uneven),
    "norms of f16": ("vector_norm", "f16", anything),
    "normalisation of f16": ("rms_norm", "f16", anything),
    "logcumsumexp": ("logcumsumexp", "f32", anything),
    "order of truths": ("torch_sort", "i1", anything),
    "bounds that are bytes": ("clamp_tensor", "u8", anything),
    "bounds that are truths": ("clamp_tensor", "i1", anything),
    "kthvalue of bytes": ("kthvalue", "u8", anything),
    "products of bytes": ("prod_all", "u8", anything),
    "scatters of greatest bytes": ("scatter_reduce", "u8", lambda node, b: node.attrs["reduce"] == "amax"),
    "reductions of bytes at places": ("index_reduce", "u8", lambda node, b: node.attrs["reduce"] == "amin"),
    "pooling of bytes": ("torch_max_pool2d", "u8", anything),
    "sums of truths at places": ("scatter_add_along", "i1", anything),
    "sums of truths of rows": ("index_add", "i1", anything),
    "truths that are put": ("index_put_add", "i1", anything),
    "powers of truths": ("pow_number", "i1", lambda node, b: node.attrs["number"] == 2),
    "squares of truths": ("any_square", "i1", anything),
    "counts with whole weights": ("bincount", "i64", lambda node, b: b.type(node.inputs[1]).dtype == "i64"),
    "scatters with dimensions from the end": ("scatter_value", "f32", negative),
    "sums at places from the end": ("scatter_add_along", "f32", negative),
    "ranges of bytes": ("arange", "f32", lambda node, b: node.attrs["dtype"] == "u8"),
    "pooling of whole numbers in three dimensions": ("torch_max_pool3d", "i64", anything),
    "rows that a list names": ("rows_of_list", "f32", dynamic),
    "rows that a tensor names": ("rows_of_tensor", "f32", dynamic),
    "tables of sizes that vary": ("embedding", "i64", lambda node, b: b.type(node.inputs[1]).is_static is False),
    "adaptive average pooling in three dimensions": ("adaptive_avg_pool3d", "f32", anything),
    "places of adaptive max pooling": ("adaptive_max_pool3d", "f32", lambda node, b: node.attrs["indices"]),
    "areas in three dimensions": ("interpolate3d", "f32", lambda node, b: node.attrs["mode"] == "area"),
    "numbers of tensors": ("times_own_number", "f32", anything),
    "splits at a tensor": ("tensor_split", "f32", anything),
    "shifts of bytes": ("bitwise_right_shift_number", "u8", anything),
    "reductions of no dimensions": ("max_dim", "f32", lambda node, b: b.type(node.inputs[0]).rank == 0),
    "empty tensors": ("sum_dim", "f32", lambda node, b: 0 in b.type(node.inputs[0]).shape),
}


@pytest.mark.parametrize("name", FINDINGS)
def test_finding_is_drawn(name):
    op, dtype, holds = FINDINGS[name]
    assert op in ops_of("torch")
    rng = random.Random(0)
    for _ in range(600):
        builder = Builder(lambda largest: rng.randint(0, max(largest, 0)), {"n": (5, 1, 3)}, [dtype], "torch")
        if builder.apply(TABLE[op]) and builder.type(builder.nodes[-1].inputs[0]).dtype == dtype:
            if holds(builder.nodes[-1], builder):
                return
    raise AssertionError(f"{op} of {dtype} is never drawn")


def test_every_op_of_the_database_is_drawn():
    """Names and types are chosen evenly, so that all come up."""
    from tests.fuzz.ops import database

    assert {"linalg.norm", "nn.functional.embedding", "logcumsumexp"} <= set(database.names())
    assert len(database.names()) > 500
