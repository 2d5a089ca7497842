"""Convolutions, products, pools and resizes of TFLite, float, integer and between, against LiteRT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite", reason="the schema package is not installed")
pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")

from tests.tools.tflite_compare import INTEGERS, Program, check  # noqa: E402

SAME, VALID = 0, 1
RELU6 = 3
LEFT_OUT = -1


def weights(
    program: Program, shape: Sequence[int], kind: str, axis: int | None, channels: int
) -> tuple[int, np.ndarray]:
    """Constants and their scales; with an axis each channel has its own. Those of UINT8 have a zero point."""
    if kind in ("FLOAT32", "FLOAT16"):
        return program.constant(program.array(shape, kind, -1, 1)), np.ones(1)
    limits = {"INT4": (-7, 8), "INT8": (-127, 128), "UINT8": (0, 256)}[kind]
    data = program.random.integers(*limits, shape).astype(np.uint8 if kind == "UINT8" else np.int8)
    step = 0.1 if kind == "INT4" else 0.01
    scale = np.float32([step]) if axis is None else program.random.uniform(step / 2, step, channels).astype(np.float32)
    more = {"scale": scale, "zero": 120 if kind == "UINT8" else 0, "axis": axis or 0}
    return program.constant(data, kind, **more), scale


def bias(program: Program, channels: int, kind: str, scale: np.ndarray, source: float) -> int:
    if kind in ("FLOAT32",):
        return program.constant(program.array((channels,), "FLOAT32"))
    data = program.random.integers(-3000, 3000, channels)
    dtype = np.int64 if kind == "INT16" else np.int32
    return program.constant(data.astype(dtype), scale=scale * source, zero=0)


def step(kind: str, terms: int) -> tuple[Any, ...]:
    """A scale for sums of so many products that cuts little of them off."""
    if kind not in INTEGERS:
        return ()
    return (2.0 * terms**0.5 / 32768, 0) if kind == "INT16" else (4.0 * terms**0.5 / 256, INTEGERS[kind][1])


# (image, kernel size, output channels, stride, dilation, padding)
CONVOLUTIONS = (
    ((1, 9, 8, 3), (3, 3), 5, (1, 1), (1, 1), SAME),
    ((2, 11, 7, 16), (3, 5), 8, (2, 1), (1, 1), VALID),
    ((1, 10, 10, 4), (1, 1), 32, (1, 1), (1, 1), VALID),
    ((1, 13, 13, 2), (3, 3), 4, (1, 1), (2, 3), SAME),
    ((1, 8, 9, 3), (2, 4), 7, (2, 2), (1, 1), SAME),
)
TYPES = (
    ("FLOAT32", "FLOAT32", False),
    ("INT8", "INT8", True),
    ("INT8", "INT8", False),
    ("UINT8", "UINT8", False),
    ("INT16", "INT8", True),
)


def convolutions(program: Program) -> None:
    for kind, stored, per_channel in TYPES:
        for image, kernel, channels, stride, dilation, padding in CONVOLUTIONS:
            x = program.input(image, kind, -1, 1)
            source = INTEGERS.get(kind, (1.0,))[0]
            w, scale = weights(program, (channels, *kernel, image[3]), stored, 0 if per_channel else None, channels)
            b = bias(program, channels, kind, scale, source)
            result = convolved(image, kernel, stride, dilation, padding, channels)
            program.op(
                f"CONV_2D {kind} {image} {kernel} {'channels' if per_channel else ''}",
                "CONV_2D",
                [x, w, b],
                (result, kind, *step(kind, image[3] * kernel[0] * kernel[1])),
                **window(stride, dilation, padding),
            )
    x, (w, scale) = program.input((1, 6, 6, 8), "INT8"), weights(program, (6, 3, 3, 4), "INT8", 0, 6)
    b = bias(program, 6, "INT8", scale, 0.05)
    program.op("CONV_2D grouped", "CONV_2D", [x, w, b], ((1, 4, 4, 6), "INT8", 0.2, 0), **window((1, 1), (1, 1), VALID))


def convolved(image, kernel, stride, dilation, padding, channels) -> tuple[int, ...]:
    sizes = []
    for size, reach, by, apart in zip(image[1:3], kernel, stride, dilation, strict=True):
        sizes.append(-(-size // by) if padding == SAME else -(-(size - (reach - 1) * apart) // by))
    return (image[0], *sizes, channels)


def window(stride, dilation, padding, activation: int = 0) -> dict[str, Any]:
    return {
        "StrideH": stride[0],
        "StrideW": stride[1],
        "DilationHFactor": dilation[0],
        "DilationWFactor": dilation[1],
        "Padding": padding,
        "FusedActivationFunction": activation,
    }


def depthwise(program: Program) -> None:
    for kind, stored, per_channel in TYPES:
        for image, kernel, channels, stride, dilation, padding in CONVOLUTIONS:
            multiplier = 2 if channels == 5 else 1
            channels = image[3] * multiplier
            x = program.input(image, kind, -1, 1)
            source = INTEGERS.get(kind, (1.0,))[0]
            w, scale = weights(program, (1, *kernel, channels), stored, 3 if per_channel else None, channels)
            b = bias(program, channels, kind, scale, source)
            result = convolved(image, kernel, stride, dilation, padding, channels)
            program.op(
                f"DEPTHWISE_CONV_2D {kind} {image} {kernel} {'channels' if per_channel else ''}",
                "DEPTHWISE_CONV_2D",
                [x, w, b],
                (result, kind, *step(kind, kernel[0] * kernel[1])),
                DepthMultiplier=multiplier,
                **window(stride, dilation, padding, RELU6 if kind != "INT16" else 0),
            )


def products(program: Program) -> None:
    for kind, stored, per_channel in (*TYPES, ("INT8", "INT4", True)):
        for batch, inputs, outputs, with_bias in (((3,), 16, 10, True), ((1,), 65, 33, False), ((2, 5), 8, 7, True)):
            x = program.input((*batch, inputs), kind, -1, 1)
            w, scale = weights(program, (outputs, inputs), stored, 0 if per_channel else None, outputs)
            given = [x, w, bias(program, outputs, kind, scale, INTEGERS.get(kind, (1.0,))[0]) if with_bias else -1]
            for keep in (False, True)[: len(batch)]:
                shape = (*batch, outputs) if keep or len(batch) == 1 else (int(np.prod(batch)), outputs)
                program.op(
                    f"FULLY_CONNECTED {kind} {stored} {batch} {inputs} {outputs} {keep} {per_channel}",
                    "FULLY_CONNECTED",
                    given,
                    (shape, kind, *step(kind, inputs)),
                    KeepNumDims=keep,
                )
    for kind in ("FLOAT32", "INT8", "INT16"):
        for first, second, adjoint in (
            ((2, 3, 4), (2, 4, 5), (False, False)),
            ((2, 4, 3), (2, 5, 4), (True, True)),
            ((1, 7, 6), (6, 5), (False, False)),
            ((3, 1, 2, 4), (2, 5, 4), (False, True)),
        ):
            one, other = program.input(first, kind), program.input(second, kind)
            a = (*first[:-2], first[-1], first[-2]) if adjoint[0] else first
            b = (*second[:-2], second[-1], second[-2]) if adjoint[1] else second
            shape = (*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])
            more = {"INT8": (0.3, 2), "INT16": (0.002, 0)}.get(kind, ())
            options = {"AdjX": adjoint[0], "AdjY": adjoint[1]}
            label = f"BATCH_MATMUL {kind} {first} {second}"
            program.op(label, "BATCH_MATMUL", [one, other], (shape, kind, *more), **options)


def transposed(program: Program) -> None:
    for kind, stored, per_channel in TYPES:
        for image, kernel, channels, stride, padding, shape in (
            ((1, 4, 5, 3), (3, 3), 6, (2, 2), SAME, (8, 10)),
            ((1, 4, 4, 2), (2, 2), 5, (2, 2), VALID, (8, 8)),
            ((2, 3, 5, 4), (4, 3), 3, (2, 1), SAME, (6, 5)),
            ((1, 3, 3, 2), (2, 2), 2, (3, 3), VALID, (8, 8)),
        ):
            x = program.input(image, kind, -1, 1)
            w, scale = weights(program, (channels, *kernel, image[3]), stored, 0 if per_channel else None, channels)
            b = bias(program, channels, kind, scale, INTEGERS.get(kind, (1.0,))[0])
            result = (image[0], *shape, channels)
            program.op(
                f"TRANSPOSE_CONV {kind} {image} {kernel} {stride} {padding} {per_channel}",
                "TRANSPOSE_CONV",
                [program.constant(np.int32(result)), w, x, b],
                (result, kind, *step(kind, image[3] * kernel[0] * kernel[1])),
                StrideH=stride[0],
                StrideW=stride[1],
                Padding=padding,
            )
    for op, image, kernel, result, padding in (
        ("CONV_3D", (1, 4, 6, 5, 2), (2, 3, 3, 2, 4), (1, 4, 6, 5, 4), SAME),
        ("CONV_3D", (2, 5, 6, 5, 3), (3, 2, 2, 3, 2), (2, 3, 5, 4, 2), VALID),
        ("CONV_3D_TRANSPOSE", (1, 3, 4, 2, 3), (2, 2, 2, 4, 3), (1, 6, 8, 4, 4), SAME),
    ):
        x, w = program.input(image, low=-1, high=1), program.constant(program.array(kernel, low=-1, high=1))
        by = {f"Stride{axis}": 2 if op == "CONV_3D_TRANSPOSE" else 1 for axis in "DHW"}
        given = [program.constant(np.int32(result)), w, x] if op == "CONV_3D_TRANSPOSE" else [x, w]
        program.op(f"{op} {image}", op, given, (result, "FLOAT32"), Padding=padding, **by)


def pools(program: Program) -> None:
    for op, kinds in (
        ("AVERAGE_POOL_2D", "FLOAT32 INT8 UINT8 INT16"),
        ("MAX_POOL_2D", "FLOAT32 INT8 UINT8 INT16"),
        ("L2_POOL_2D", "FLOAT32"),
    ):
        for kind in kinds.split():
            for image, kernel, stride, padding in (
                ((1, 8, 8, 4), (2, 2), (2, 2), VALID),
                ((2, 9, 7, 3), (3, 3), (2, 2), SAME),
                ((1, 5, 5, 17), (5, 5), (1, 1), VALID),
                ((1, 7, 6, 2), (3, 2), (1, 1), SAME),
            ):
                result = convolved(image, kernel, stride, (1, 1), padding, image[3])
                program.op(
                    f"{op} {kind} {image} {kernel}",
                    op,
                    [program.input(image, kind)],
                    (result, kind),
                    StrideH=stride[0],
                    StrideW=stride[1],
                    FilterHeight=kernel[0],
                    FilterWidth=kernel[1],
                    Padding=padding,
                    FusedActivationFunction=RELU6 if stride[0] == 2 and kind in ("INT8", "FLOAT32") else 0,
                )


def resizes(program: Program) -> None:
    for op, kinds in (
        ("RESIZE_BILINEAR", "FLOAT32 INT8 UINT8 INT16"),
        ("RESIZE_NEAREST_NEIGHBOR", "FLOAT32 INT8 UINT8 INT16"),
    ):
        for kind in kinds.split():
            for image, size in (
                ((1, 4, 5, 3), (8, 10)),
                ((2, 7, 6, 2), (5, 9)),
                ((1, 9, 9, 4), (4, 3)),
                ((1, 1, 1, 2), (3, 4)),
            ):
                for corners, centers in ((False, False), (True, False), (False, True)):
                    x = program.input(image, kind)
                    program.op(
                        f"{op} {kind} {image} {size} {corners} {centers}",
                        op,
                        [x, program.constant(np.int32(size))],
                        ((image[0], *size, image[3]), kind),
                        AlignCorners=corners,
                        HalfPixelCenters=centers,
                    )


def hybrids(program: Program) -> None:
    """Floats by weights of 8 bits: both are rounded to integers, of each row or image by its own extremes."""
    for batch in (1, 3):
        for stored, per_channel in (("INT8", True), ("INT8", False), ("INT4", True)):
            x = program.input((batch, 24), low=-1, high=3)
            w, _ = weights(program, (10, 24), stored, 0 if per_channel else None, 10)
            given = [x, w, program.constant(program.array((10,)))]
            program.op(
                f"FULLY_CONNECTED {stored} {batch} {per_channel}", "FULLY_CONNECTED", given, ((batch, 10), "FLOAT32")
            )
        options = window((1, 1), (1, 1), SAME, RELU6)
        x = program.input((batch, 7, 6, 8), low=-1, high=2)
        for per_channel in (True, False):
            given = [
                x,
                weights(program, (5, 3, 3, 8), "INT8", 0 if per_channel else None, 5)[0],
                program.constant(program.array((5,))),
            ]
            program.op(f"CONV_2D {batch} {per_channel}", "CONV_2D", given, ((batch, 7, 6, 5), "FLOAT32"), **options)
        given = [x, weights(program, (1, 3, 3, 8), "INT8", 3, 8)[0], program.constant(program.array((8,)))]
        for stride in (1, 2):
            pixel = [x, weights(program, (5, 1, 1, 8), "INT8", 0, 5)[0], program.constant(program.array((5,)))]
            result = ((batch, 8 // stride if stride == 2 else 7, 6 // stride, 5), "FLOAT32")
            program.op(f"CONV_2D 1x1 {batch} {stride}", "CONV_2D", pixel, result, **window((stride,) * 2, (1, 1), SAME))
        label = f"DEPTHWISE_CONV_2D {batch}"
        program.op(label, "DEPTHWISE_CONV_2D", given, ((batch, 7, 6, 8), "FLOAT32"), DepthMultiplier=1, **options)
        shape = (batch, 14, 12, 5)
        given = [program.constant(np.int32(shape)), weights(program, (5, 3, 3, 8), "INT8", 0, 5)[0], x]
        program.op(
            f"TRANSPOSE_CONV {batch}", "TRANSPOSE_CONV", given, (shape, "FLOAT32"), StrideH=2, StrideW=2, Padding=SAME
        )
        y = program.input((batch, 8, 4), low=-1, high=2)
        program.op(
            f"BATCH_MATMUL {batch}",
            "BATCH_MATMUL",
            [
                y,
                program.constant(program.random.integers(-127, 128, (batch, 4, 6)).astype(np.int8), scale=0.01, zero=0),
            ],
            ((batch, 8, 6), "FLOAT32"),
        )
    table = program.constant(program.array((7, 4), "INT8"), scale=0.02, zero=0)
    rows = program.input((3,), "INT32", value=np.int32([6, 0, 3]))
    program.op("EMBEDDING_LOOKUP", "EMBEDDING_LOOKUP", [rows, table], ((3, 4), "FLOAT32"))
    half = program.constant(program.array((10, 24), "FLOAT16", -1, 1))
    wide = program.graph.tensor((10, 24))
    program.graph.op("DEQUANTIZE", [half], [wide])
    program.op(
        "FULLY_CONNECTED FLOAT16", "FULLY_CONNECTED", [program.input((3, 24)), wide, LEFT_OUT], ((3, 10), "FLOAT32")
    )


PROGRAMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "convolutions": (convolutions, {}),
    "depthwise": (depthwise, {}),
    "products": (products, {}),
    "hybrids": (hybrids, {}),
    "transposed": (transposed, {}),
    "pools": (pools, {}),
    "resizes": (resizes, {}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_windows(name: str, tmp_path) -> None:
    build, options = PROGRAMS[name]
    check(build, tmp_path, **options)
