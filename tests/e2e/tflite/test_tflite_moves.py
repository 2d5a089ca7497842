"""Operators of TFLite that move elements, reduce, order or convert them, against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite", reason="the schema package is not installed")
pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")

from tests.tools.tflite_compare import INTEGERS, Program, check  # noqa: E402

COMMON = ("FLOAT32", "INT8", "UINT8", "INT32")


def joins(program: Program) -> None:
    """Concatenations, splits, packs."""
    for kind in (*COMMON, "INT16"):
        for axis, shapes in ((0, ((2, 3), (4, 3), (1, 3))), (-1, ((2, 5, 2), (2, 5, 7)))):
            parts = [program.input(shape, kind) for shape in shapes]
            total = list(shapes[0])
            total[axis] = sum(shape[axis] for shape in shapes)
            program.op(f"CONCATENATION {kind} {axis}", "CONCATENATION", parts, (total, kind), Axis=axis)
        pair = program.input((2, 3), kind), program.input((2, 3), kind)
        program.op(f"PACK {kind}", "PACK", pair, ((2, 2, 3), kind), Axis=1, ValuesCount=2)
        x = program.input((2, 3, 4), kind)
        program.op(f"UNPACK {kind}", "UNPACK", [x], *[((2, 4), kind)] * 3, Axis=1, Num=3)
        program.op(f"SPLIT {kind}", "SPLIT", [program.constant(np.int32(-1)), x], *[((2, 3, 2), kind)] * 2, NumSplits=2)
        sizes = program.constant(np.int32([1, -1])), program.constant(np.int32(1))
        program.op(f"SPLIT_V {kind}", "SPLIT_V", [x, *sizes], ((2, 1, 4), kind), ((2, 2, 4), kind), NumSplits=2)
    scales = ((0.03, 4), (0.1, -20), (0.05, 7))
    parts = [program.input((3, 4), "UINT8", scale=scale, zero=zero + 100) for scale, zero in scales]
    program.op("CONCATENATION rescaled UINT8", "CONCATENATION", parts, ((3, 12), "UINT8", 0.1, 80), Axis=1)


def shapes(program: Program) -> None:
    for kind in COMMON:
        x = program.input((2, 3, 4), kind)
        program.op(
            f"RESHAPE {kind}", "RESHAPE", [x, program.constant(np.int32([4, -1]))], ((4, 6), kind), NewShape=[4, -1]
        )
        program.op(f"TRANSPOSE {kind}", "TRANSPOSE", [x, program.constant(np.int32([2, 0, 1]))], ((4, 2, 3), kind))
        program.op(f"EXPAND_DIMS {kind}", "EXPAND_DIMS", [x, program.constant(np.int32(-2))], ((2, 3, 1, 4), kind))
        program.op(f"TILE {kind}", "TILE", [x, program.constant(np.int32([2, 1, 3]))], ((4, 3, 12), kind))
        program.op(f"REVERSE_V2 {kind}", "REVERSE_V2", [x, program.constant(np.int32([1]))], ((2, 3, 4), kind))
        program.op(
            f"BROADCAST_TO {kind}", "BROADCAST_TO", [x, program.constant(np.int32([5, 2, 3, 4]))], ((5, 2, 3, 4), kind)
        )
        program.op(
            f"SLICE {kind}",
            "SLICE",
            [x, program.constant(np.int32([0, 1, 2])), program.constant(np.int32([2, 2, -1]))],
            ((2, 2, 2), kind),
        )
        narrow = program.input((2, 1, 3, 1), kind)
        program.op(f"SQUEEZE {kind}", "SQUEEZE", [narrow], ((2, 3, 1), kind), SqueezeDims=[1])
        limits = [program.constant(np.int32(one)) for one in ((0, -1, 0), (2, -4, 3), (1, -1, 2))]
        program.op(f"STRIDED_SLICE {kind}", "STRIDED_SLICE", [x, *limits], ((2, 3, 2), kind), BeginMask=0)
        limits = [program.constant(np.int32(one)) for one in ((1, 0, 1), (2, 0, 0), (1, 1, 1))]
        program.op(
            f"STRIDED_SLICE {kind} masks",
            "STRIDED_SLICE",
            [x, *limits],
            ((3, 3), kind),
            BeginMask=2,
            EndMask=6,
            ShrinkAxisMask=1,
        )
        limits = [program.constant(np.int32(one)) for one in ((0, 1), (0, 3), (1, 2))]
        program.op(f"STRIDED_SLICE {kind} ellipsis", "STRIDED_SLICE", [x, *limits], ((2, 3, 1), kind), EllipsisMask=1)
        picture = program.input((2, 4, 6, 4), kind)
        program.op(f"SPACE_TO_DEPTH {kind}", "SPACE_TO_DEPTH", [picture], ((2, 2, 3, 16), kind), BlockSize=2)
        program.op(f"DEPTH_TO_SPACE {kind}", "DEPTH_TO_SPACE", [picture], ((2, 8, 12, 1), kind), BlockSize=2)
        block = program.constant(np.int32([2, 3]))
        crops = program.constant(np.int32([[1, 1], [0, 3]]))
        program.op(f"SPACE_TO_BATCH_ND {kind}", "SPACE_TO_BATCH_ND", [picture, block, crops], ((12, 3, 3, 4), kind))
        batch = program.input((6, 2, 2, 3), kind)
        crops = program.constant(np.int32([[1, 0], [0, 2]]))
        program.op(f"BATCH_TO_SPACE_ND {kind}", "BATCH_TO_SPACE_ND", [batch, block, crops], ((1, 3, 4, 3), kind))
        pairs = program.constant(np.int32([[0, 1], [2, 0], [1, 3]]))
        program.op(f"PAD {kind}", "PAD", [x, pairs], ((3, 5, 8), kind))
        scale, zero = INTEGERS.get(kind, (None, 0))
        fill = program.constant(program.array((), kind), scale=scale, zero=zero)
        program.op(f"PADV2 {kind}", "PADV2", [x, pairs, fill], ((3, 5, 8), kind))
        pairs = program.constant(np.int32([[0, 1], [2, 0], [1, 3]]))
        for mode in (0, 1):
            program.op(f"MIRROR_PAD {kind} {mode}", "MIRROR_PAD", [x, pairs], ((3, 5, 8), kind), Mode=mode)


def gathers(program: Program) -> None:
    for kind in COMMON:
        scale, zero = INTEGERS.get(kind, (None, 0))
        x = program.input((5, 3, 4), kind)
        index = program.input((2, 3), "INT32", value=np.int32([[4, 0, 1], [2, 2, 3]]))
        program.op(f"GATHER {kind}", "GATHER", [x, index], ((2, 3, 3, 4), kind), Axis=0)
        small = program.input((5, 2), "INT32", value=np.int32([[0, 1], [2, 0], [1, 1], [0, 2], [2, 2]]))
        program.op(f"GATHER {kind} batch", "GATHER", [x, small], ((5, 2, 4), kind), Axis=1, BatchDims=1)
        places = program.input((3, 2), "INT32", value=np.int32([[0, 1], [4, 2], [3, 0]]))
        program.op(f"GATHER_ND {kind}", "GATHER_ND", [x, places], ((3, 4), kind))
        flags = program.input((5, 3, 4), "BOOL")
        other = program.input((5, 3, 4), kind)
        program.op(f"SELECT {kind}", "SELECT", [flags, x, other], ((5, 3, 4), kind))
        wide = program.input((5, 1, 4), "BOOL")
        program.op(f"SELECT_V2 {kind}", "SELECT_V2", [wide, x, other], ((5, 3, 4), kind))
        hot = [
            program.constant(np.int32(4)),
            program.constant(program.array((), kind)),
            program.constant(program.array((), kind)),
        ]
        spots = program.input((2, 3), "INT32", value=np.int32([[0, 3, -1], [4, 1, 2]]))
        if kind != "UINT8":
            program.op(f"ONE_HOT {kind}", "ONE_HOT", [spots, *hot], ((2, 3, 4), kind, None), Axis=-1)
        lengths = program.input((5,), "INT32", value=np.int32([0, 1, 2, 3, 2]))
        if kind != "INT8":
            program.op(
                f"REVERSE_SEQUENCE {kind}", "REVERSE_SEQUENCE", [x, lengths], ((5, 3, 4), kind), SeqDim=1, BatchDim=0
            )
        if kind != "INT32":
            table = program.constant(program.array((7, 3), kind), scale=scale, zero=zero)
            rows = program.input((4,), "INT32", value=np.int32([6, 0, 3, 3]))
            program.op(f"EMBEDDING_LOOKUP {kind}", "EMBEDDING_LOOKUP", [rows, table], ((4, 3), kind))
        update, at = program.input((2, 1, 2), kind), program.input((3,), "INT32", value=np.int32([4, 1, 2]))
        if kind != "UINT8":
            program.op(f"DYNAMIC_UPDATE_SLICE {kind}", "DYNAMIC_UPDATE_SLICE", [x, update, at], ((5, 3, 4), kind))
        if kind in ("FLOAT32", "INT32"):
            program.op(f"ZEROS_LIKE {kind}", "ZEROS_LIKE", [x], ((5, 3, 4), kind))
    value = program.input((), "FLOAT32")
    program.op("FILL", "FILL", [program.constant(np.int32([2, 5])), value], ((2, 5), "FLOAT32"))
    updates = program.input((4, 3)), program.constant(np.int32([6, 3]))
    spots = program.input((4, 1), "INT32", value=np.int32([[5], [0], [5], [2]]))
    program.op("SCATTER_ND", "SCATTER_ND", [spots, *updates][:1] + [updates[0], updates[1]], ((6, 3), "FLOAT32"))
    values, default = program.input((3,)), program.constant(np.float32(7))
    spots = program.constant(np.int32([[0, 1], [1, 4], [2, 0]]))
    program.op(
        "SPARSE_TO_DENSE",
        "SPARSE_TO_DENSE",
        [spots, program.constant(np.int32([3, 5])), values, default],
        ((3, 5), "FLOAT32"),
    )
    diagonal = program.input((2, 3))
    program.op("MATRIX_DIAG", "MATRIX_DIAG", [diagonal], ((2, 3, 3), "FLOAT32"))
    for rows, columns in ((3, 5), (5, 3)):
        program.op(
            f"MATRIX_SET_DIAG {rows}",
            "MATRIX_SET_DIAG",
            [program.input((2, rows, columns)), diagonal],
            ((2, rows, columns), "FLOAT32"),
        )
    program.op("SHAPE", "SHAPE", [program.input((2, 7))], ((2,), "INT32"), OutType=2)
    program.op("RANK", "RANK", [program.input((2, 7))], ((), "INT32"))


def reductions(program: Program) -> None:
    for op, kinds in (
        ("SUM", "FLOAT32 INT8 UINT8 INT16 INT32 INT64"),
        ("MEAN", "FLOAT32 INT8 UINT8 INT16 INT32 INT64"),
        ("REDUCE_MAX", "FLOAT32 INT8 UINT8 INT16 INT32"),
        ("REDUCE_MIN", "FLOAT32 INT8 UINT8 INT16 INT32"),
        ("REDUCE_PROD", "FLOAT32 INT32"),
        ("REDUCE_ANY", "BOOL"),
        ("REDUCE_ALL", "BOOL"),
    ):
        for kind in kinds.split():
            for shape, axes, keep in (((2, 5, 6, 4), (1, 2), False), ((3, 7), (-1,), True), ((4, 3, 5), (0, 2), True)):
                result = [1 if i - len(shape) in axes or i in axes else size for i, size in enumerate(shape)]
                result = result if keep else [size for i, size in enumerate(shape) if i not in axes]
                more = ()
                if op == "SUM" and kind in INTEGERS:
                    more = (INTEGERS[kind][0] * 4, INTEGERS[kind][1])
                elif op == "MEAN" and kind in INTEGERS:
                    more = (INTEGERS[kind][0] / 2, INTEGERS[kind][1])
                x = program.input(shape, kind)
                program.op(
                    f"{op} {kind} {shape} {axes}",
                    op,
                    [x, program.constant(np.int32(axes))],
                    (result, kind, *more),
                    KeepDims=keep,
                )
    for op in ("ARG_MAX", "ARG_MIN"):
        for kind in COMMON:
            x = program.input((3, 9, 2), kind)
            program.op(f"{op} {kind}", op, [x, program.constant(np.int32(1))], ((3, 2), "INT32"), OutputType=2)
    for kind in COMMON:
        x = program.input((3, 19), kind, -1000, 1000)
        program.op(f"TOPK_V2 {kind}", "TOPK_V2", [x, program.constant(np.int32(5))], ((3, 5), kind), ((3, 5), "INT32"))
    for kind in ("FLOAT32", "INT32", "INT64"):
        for exclusive, reverse in ((False, False), (True, False), (False, True)):
            given = [program.input((4, 6), kind), program.constant(np.int32(1))]
            program.op(
                f"CUMSUM {kind} {exclusive} {reverse}",
                "CUMSUM",
                given,
                ((4, 6), kind),
                Exclusive=exclusive,
                Reverse=reverse,
            )
    ids = program.constant(np.int32([0, 2, 2, 4, 0]))
    for op in ("SUM", "PROD", "MAX", "MIN"):
        given = [program.input((5, 3)), ids, program.constant(np.int32(6))]
        program.op(f"UNSORTED_SEGMENT_{op}", f"UNSORTED_SEGMENT_{op}", given, ((6, 3), "FLOAT32"))
    ids = program.constant(np.int32([0, 0, 1, 2, 2]))
    program.op("SEGMENT_SUM", "SEGMENT_SUM", [program.input((5, 3)), ids], ((3, 3), "FLOAT32"))


def norms(program: Program) -> None:
    for kind, (scale, zero) in {"INT8": (1 / 256, -128), "UINT8": (1 / 256, 0), "INT16": (1 / 32768, 0)}.items():
        for shape in ((3, 10), (2, 3, 4, 5), (1, 1000)):
            x = program.input(shape, kind, scale=0.05 if kind != "INT16" else 10 / 32768, zero=INTEGERS[kind][1])
            if kind != "INT16":
                program.op(f"SOFTMAX {kind} {shape}", "SOFTMAX", [x], (shape, kind, scale, zero), Beta=1.0)
        if kind != "INT16":
            x = program.input((4, 9), kind, scale=0.05, zero=INTEGERS[kind][1])
            program.op(
                f"LOG_SOFTMAX {kind}", "LOG_SOFTMAX", [x], ((4, 9), kind, 16 / 256, 127 if kind == "INT8" else 255)
            )
            zero_ = INTEGERS[kind][1]
            program.op(
                f"L2_NORMALIZATION {kind}",
                "L2_NORMALIZATION",
                [x],
                ((4, 9), kind, 1 / 128, 0 if kind == "INT8" else 128),
            )
            alpha = program.constant(program.array((1, 9), kind), scale=0.01, zero=zero_)
            y = program.input((4, 5, 9), kind)
            alpha3 = program.constant(program.array((1, 1, 9), kind), scale=0.01, zero=zero_)
            program.op(f"PRELU {kind}", "PRELU", [y, alpha3], ((4, 5, 9), kind))
            del alpha
    for shape in ((3, 10), (2, 3, 4, 5), (1, 1000)):
        x = program.input(shape)
        program.op(f"SOFTMAX {shape}", "SOFTMAX", [x], (shape, "FLOAT32"), Beta=0.7)
        program.op(f"LOG_SOFTMAX {shape}", "LOG_SOFTMAX", [x], (shape, "FLOAT32"))
        program.op(f"L2_NORMALIZATION {shape}", "L2_NORMALIZATION", [x], (shape, "FLOAT32"))
    x = program.input((2, 3, 4, 9))
    options = {"Radius": 2, "Bias": 1.5, "Alpha": 0.3, "Beta": 0.6}
    program.op(
        "LOCAL_RESPONSE_NORMALIZATION", "LOCAL_RESPONSE_NORMALIZATION", [x], ((2, 3, 4, 9), "FLOAT32"), **options
    )
    alpha = program.constant(program.array((1, 1, 9)))
    program.op("PRELU", "PRELU", [x, alpha], ((2, 3, 4, 9), "FLOAT32"))


def conversions(program: Program) -> None:
    for kind in ("FLOAT32", "INT32", "INT64", "INT8", "UINT8", "INT16", "BOOL"):
        for wanted in ("FLOAT32", "INT32", "INT64", "INT8", "UINT8", "INT16", "BOOL", "FLOAT16"):
            low = 0 if wanted == "UINT8" else -100
            value = program.array((3, 7), "FLOAT32", low, 100) if kind == "FLOAT32" else None
            x = program.input((3, 7), kind, low, 100, value=value, scale=None)
            program.op(f"CAST {kind} {wanted}", "CAST", [x], ((3, 7), wanted, None))
    for kind in ("INT8", "UINT8", "INT16"):
        x = program.input((4, 31), "FLOAT32", -9, 9)
        program.op(f"QUANTIZE {kind}", "QUANTIZE", [x], ((4, 31), kind))
        y = program.input((4, 31), kind)
        program.op(f"DEQUANTIZE {kind}", "DEQUANTIZE", [y], ((4, 31), "FLOAT32"))
        for wanted, scale, zero in (("INT8", 0.1, -7), ("INT16", 0.001, 0)):
            program.op(f"QUANTIZE {kind} {wanted}", "QUANTIZE", [y], ((4, 31), wanted, scale, zero))
    half = program.constant(program.array((3, 5), "FLOAT16"))
    program.op("DEQUANTIZE FLOAT16", "DEQUANTIZE", [half], ((3, 5), "FLOAT32"))


PROGRAMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "joins": (joins, {}),
    "shapes": (shapes, {}),
    "gathers": (gathers, {}),
    "reductions": (reductions, {}),
    "norms": (norms, {}),
    "conversions": (conversions, {}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_moves(name: str, tmp_path) -> None:
    build, options = PROGRAMS[name]
    check(build, tmp_path, **options)
