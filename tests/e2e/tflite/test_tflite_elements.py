"""Operators on single elements of TFLite, in every type that LiteRT has them for, against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite", reason="the schema package is not installed")
pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")

from tests.tools.tflite_compare import INTEGERS, Program, check  # noqa: E402

SHAPES = (((2, 3, 5), (2, 3, 5)), ((1, 7, 4), (4,)), ((3, 1), (1, 9)), ((5,), ()))
UNARY = {
    "ABS": "FLOAT32 INT8 INT16 INT32",
    "CEIL": "FLOAT32",
    "COS": "FLOAT32",
    "ELU": "FLOAT32 INT8",
    "EXP": "FLOAT32 INT8 INT16",
    "FLOOR": "FLOAT32",
    "GELU": "FLOAT32 INT8 UINT8",
    "HARD_SWISH": "FLOAT32 INT8 UINT8",
    "LEAKY_RELU": "FLOAT32 INT8 UINT8 INT16",
    "NEG": "FLOAT32 INT32 INT64",
    "RELU": "FLOAT32 INT8 UINT8 INT16",
    "RELU6": "FLOAT32 INT8 UINT8",
    "RELU_0_TO_1": "FLOAT32 INT8 UINT8",
    "RELU_N1_TO_1": "FLOAT32 INT8 UINT8",
    "ROUND": "FLOAT32",
    "SIGN": "FLOAT32",
    "SIN": "FLOAT32",
    "SQUARE": "FLOAT32",
}
# Those with results in a fixed scale, which the format prescribes.
SQUASHING = {
    "LOGISTIC": {"INT8": (1 / 256, -128), "UINT8": (1 / 256, 0), "INT16": (1 / 32768, 0)},
    "TANH": {"INT8": (1 / 128, 0), "UINT8": (1 / 128, 128), "INT16": (1 / 32768, 0)},
}
BINARY = {
    "ADD": "FLOAT32 INT8 UINT8 INT16 INT32 INT64",
    "SUB": "FLOAT32 INT8 UINT8 INT16 INT32 INT64",
    "MUL": "FLOAT32 INT8 UINT8 INT16 INT32 INT64",
    "MAXIMUM": "FLOAT32 INT8 UINT8 INT16 INT32 INT64",
    "MINIMUM": "FLOAT32 INT8 UINT8 INT16 INT32 INT64",
    "SQUARED_DIFFERENCE": "FLOAT32 INT8 INT32",
}
COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
ACTIVATIONS = {"NONE": 0, "RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}


# LiteRT interpolates those of 16 bits in a table, some steps away.
SQUASHING_EXACT = {"LOGISTIC": lambda x: 1 / (1 + np.exp(-x)), "TANH": np.tanh}


def real(program: Program, index: int) -> np.ndarray:
    tensor = program.graph.tensors[index]
    return (program.values[index].astype(np.float64) - tensor.zero) * np.float32(tensor.scale)


def unary(program: Program) -> None:
    for op, kinds in UNARY.items():
        options: dict[str, Any] = {"Alpha": 0.3} if op == "LEAKY_RELU" else {}
        for kind in kinds.split():
            x = program.input((2, 3, 17), kind, -9, 9)
            result = ((2, 3, 17), kind, 0.06, 3 if kind != "INT16" else 0) if kind in INTEGERS else ((2, 3, 17), kind)
            if op in ("ABS",) and kind in INTEGERS:
                result = ((2, 3, 17), kind)
            (made,) = program.op(f"{op} {kind}", op, [x], result, **options)
            if op == "EXP" and kind == "INT16":
                program.exact[made] = np.exp(real(program, x))
    x = program.input((4, 9))
    program.op("GELU tanh", "GELU", [x], ((4, 9), "FLOAT32"), Approximate=True)


def squashing(program: Program) -> None:
    for op, kinds in SQUASHING.items():
        program.op(f"{op} FLOAT32", op, [program.input((3, 33), low=-30, high=30)], ((3, 33), "FLOAT32"))
        for kind, (scale, zero) in kinds.items():
            for step in (0.02, 0.1) if kind != "INT16" else (8 / 32768,):
                x = program.input((3, 40), kind, scale=step, zero=0 if kind == "INT16" else INTEGERS[kind][1])
                (made,) = program.op(f"{op} {kind} {step}", op, [x], ((3, 40), kind, scale, zero))
                if kind == "INT16":
                    program.exact[made] = SQUASHING_EXACT[op](real(program, x))
    for op, low, kinds in (("LOG", 0.01, "FLOAT32"), ("SQRT", 0.0, "FLOAT32"), ("RSQRT", 0.01, "FLOAT32 INT8")):
        for kind in kinds.split():
            value = program.array((5, 7), kind, low, 9)
            more: dict[str, Any] = {}
            if kind == "INT8":
                more, value = {"scale": 0.05, "zero": -128}, np.maximum(value, -120)
            x = program.input((5, 7), kind, value=value, **more)
            program.op(f"{op} {kind}", op, [x], ((5, 7), kind, 0.02, -128) if kind == "INT8" else ((5, 7), kind))
    flags = program.input((4, 5), "BOOL"), program.input((4, 5), "BOOL")
    program.op("LOGICAL_NOT", "LOGICAL_NOT", flags[:1], ((4, 5), "BOOL"))
    program.op("LOGICAL_AND", "LOGICAL_AND", flags, ((4, 5), "BOOL"))
    program.op("LOGICAL_OR", "LOGICAL_OR", flags, ((4, 5), "BOOL"))


def binary(program: Program) -> None:
    for op, kinds in BINARY.items():
        for kind in kinds.split():
            for first, second in SHAPES[: 2 if kind == "INT64" else 4]:
                result = np.broadcast_shapes(first, second)
                scales = {"scale": 0.03, "zero": -9} if kind == "INT8" and op[:3] in ("ADD", "SUB", "MUL") else {}
                pair = program.input(first, kind), program.input(second, kind, **scales)
                program.op(f"{op} {kind} {first} {second}", op, pair, (result, kind))


def activations(program: Program) -> None:
    for op in ("ADD", "SUB", "MUL"):
        for name, number in ACTIVATIONS.items():
            for kind in ("FLOAT32", "INT8", "UINT8"):
                if op == "SUB" and name == "RELU_N1_TO_1" and kind != "FLOAT32":
                    continue
                pair = program.input((2, 19), kind), program.input((2, 19), kind)
                program.op(f"{op} {kind} {name}", op, pair, ((2, 19), kind), FusedActivationFunction=number)
    # A constant operand, and one tensor twice.
    for kind in ("INT8", "UINT8"):
        scale, zero = INTEGERS[kind]
        x, c = program.input((2, 8, 3), kind), program.constant(program.array((3,), kind), scale=scale / 2, zero=zero)
        program.op(f"ADD {kind} constant", "ADD", [x, c], ((2, 8, 3), kind))
        program.op(f"MUL {kind} itself", "MUL", [x, x], ((2, 8, 3), kind, 0.2, zero))


def arithmetic(program: Program) -> None:
    """Quotients, powers, shifts, comparisons."""
    for op, kinds in (
        ("DIV", "FLOAT32 INT32 UINT8"),
        ("FLOOR_DIV", "FLOAT32 INT32"),
        ("FLOOR_MOD", "FLOAT32 INT32 INT64"),
    ):
        for kind in kinds.split():
            x, divisor = program.array((3, 14), kind, -40, 40), program.array((3, 14), kind, 1, 9)
            if kind == "UINT8":
                y = program.input((3, 14), kind, value=np.maximum(divisor, 140), scale=0.05, zero=128)
            else:
                y = program.input(
                    (3, 14), kind, value=divisor * np.where(np.arange(14) % 2, 1, -1).astype(divisor.dtype)
                )
            program.op(f"{op} {kind}", op, [program.input((3, 14), kind, value=x), y], ((3, 14), kind))
    for kind in ("FLOAT32", "INT32"):
        pair = program.input((17,), kind, 1, 5), program.input((17,), kind, 0, 4)
        program.op(f"POW {kind}", "POW", pair, ((17,), kind))
    pair = program.input((4, 5)), program.input((4, 5))
    program.op("ATAN2", "ATAN2", pair, ((4, 5), "FLOAT32"))
    for kind in ("INT8", "INT32", "UINT8", "INT16"):
        plain: dict[str, Any] = {"scale": None}
        x = program.input((4, 5), kind, -1000, 1000, **plain)
        places = program.constant(
            np.arange(20).reshape(4, 5).astype(program.values[x].dtype) % (7 if kind[-1] == "8" else 12)
        )
        program.op(f"RIGHT_SHIFT {kind}", "RIGHT_SHIFT", [x, places], ((4, 5), kind, None))
        y = program.input((4, 5), kind, -1000, 1000, **plain)
        program.op(f"BITWISE_XOR {kind}", "BITWISE_XOR", [x, y], ((4, 5), kind, None))
    parts = [program.input((3, 4), "FLOAT32") for _ in range(4)]
    program.op("ADD_N", "ADD_N", parts, ((3, 4), "FLOAT32"))
    x = program.input((3, 4), "FLOAT32")
    options = {"Min": -1.0, "Max": 3.0, "NumBits": 8}
    program.op("FAKE_QUANT", "FAKE_QUANT", [x], ((3, 4), "FLOAT32"), **options)


def comparisons(program: Program) -> None:
    for op in COMPARISONS:
        for kind in ("FLOAT32", "INT8", "UINT8", "INT32", "INT64"):
            for first, second in SHAPES[:3]:
                pair = program.input(first, kind), program.input(second, kind)
                result = np.broadcast_shapes(first, second)
                program.op(f"{op} {kind} {first} {second}", op, pair, (result, "BOOL"))


PROGRAMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "unary": (unary, {}),
    "squashing": (squashing, {}),
    "binary": (binary, {}),
    "activations": (activations, {}),
    "arithmetic": (arithmetic, {}),
    "comparisons": (comparisons, {}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_elements(name: str, tmp_path) -> None:
    build, options = PROGRAMS[name]
    check(build, tmp_path, **options)
