"""Recurrent layers of TFLite, called twice so that their states count, against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite", reason="the schema package is not installed")
pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed")

from tests.tools.tflite_compare import Program, check  # noqa: E402

BATCH, TIME, INPUTS, UNITS = 2, 5, 4, 6
RELU, TANH = 1, 4
LEFT_OUT = -1


def real(program: Program, *shape: int, scale: float = 0.5) -> int:
    return program.constant(program.array(shape, low=-scale, high=scale))


def gates(
    program: Program, inputs: int, outputs: int, units: int, *, coupled: bool, peepholes: bool, kind: str
) -> list[int]:
    """Weights, recurrent weights, peepholes and biases of the four gates."""

    def matrix(columns: int) -> int:
        if kind == "FLOAT32":
            return real(program, units, columns)
        return program.constant(
            program.random.integers(-127, 128, (units, columns)).astype(np.int8), scale=0.004, zero=0
        )

    skipped = [LEFT_OUT] if coupled else []
    first = [*skipped, *(matrix(inputs) for _ in range(4 - len(skipped)))]
    second = [*skipped, *(matrix(outputs) for _ in range(4 - len(skipped)))]
    holes = [real(program, units) for _ in range(3)] if peepholes else [LEFT_OUT] * 3
    if coupled and peepholes:
        holes[0] = LEFT_OUT
    biases = [*skipped, *(real(program, units) for _ in range(4 - len(skipped)))]
    return [*first, *second, *holes, *biases]


def state(program: Program, *shape: int) -> int:
    return program.graph.tensor(shape, variable=True)


def lstms(program: Program) -> None:
    for label, options in {
        "plain": {},
        "peepholes": {"peepholes": True},
        "coupled": {"coupled": True, "peepholes": True},
        "projected": {"outputs": 3},
        "clipped": {"clip": 0.2},
        "normed": {"norms": True},
        "time first": {"time_first": True},
        "one step": {"step": True},
    }.items():
        lstm(program, label, **options)


def lstm(
    program: Program,
    label: str,
    *,
    coupled: bool = False,
    peepholes: bool = False,
    outputs: int = 0,
    clip: float = 0.0,
    norms: bool = False,
    time_first: bool = False,
    step: bool = False,
    kind: str = "FLOAT32",
) -> None:
    shape = (BATCH, INPUTS) if step else (TIME, BATCH, INPUTS) if time_first else (BATCH, TIME, INPUTS)
    width = outputs or UNITS
    given = [program.input(shape, low=-1, high=1)]
    given += gates(program, INPUTS, width, UNITS, coupled=coupled, peepholes=peepholes, kind=kind)
    given += [real(program, outputs, UNITS), real(program, outputs)] if outputs else [LEFT_OUT] * 2
    given += [state(program, BATCH, width), state(program, BATCH, UNITS)]
    given += [real(program, UNITS) for _ in range(4)] if norms else [LEFT_OUT] * 4
    more = {"CellClip": clip, "ProjClip": clip, "FusedActivationFunction": TANH}
    if step:
        program.op(f"LSTM {label}", "LSTM", given, ((BATCH, width), "FLOAT32"), **more)
    else:
        result = ((*shape[:2], width), "FLOAT32")
        program.op(f"LSTM {label}", "UNIDIRECTIONAL_SEQUENCE_LSTM", given, result, TimeMajor=time_first, **more)


def both_ways(program: Program) -> None:
    for merged in (False, True):
        batch = 1 if merged else BATCH  # LiteRT mixes up larger ones that are merged
        given = [program.input((batch, TIME, INPUTS), low=-1, high=1)]
        for _ in range(2):
            given += gates(program, INPUTS, UNITS, UNITS, coupled=False, peepholes=False, kind="FLOAT32")
            given += [LEFT_OUT, LEFT_OUT]
        given += [state(program, batch, UNITS) for _ in range(4)] + [LEFT_OUT] * 9
        one = ((batch, TIME, UNITS * (2 if merged else 1)), "FLOAT32")
        options = {"MergeOutputs": merged, "FusedActivationFunction": TANH}
        name = "BIDIRECTIONAL_SEQUENCE_LSTM"
        program.op(f"LSTM both {merged}", name, given, *[one] * (1 if merged else 2), TimeMajor=False, **options)
        given = [program.input((BATCH, TIME, INPUTS), low=-1, high=1)]
        for _ in range(2):
            given += [real(program, UNITS, INPUTS), real(program, UNITS, UNITS), real(program, UNITS)]
            given += [state(program, BATCH, UNITS)]
        given += [LEFT_OUT] * 3
        one = ((BATCH, TIME, UNITS * (2 if merged else 1)), "FLOAT32")
        name = "BIDIRECTIONAL_SEQUENCE_RNN"
        program.op(f"RNN both {merged}", name, given, *[one] * (1 if merged else 2), **options)


def rnns(program: Program) -> None:
    for name, shape, activation in (
        ("RNN", (BATCH, INPUTS), TANH),
        ("UNIDIRECTIONAL_SEQUENCE_RNN", (BATCH, TIME, INPUTS), RELU),
        ("UNIDIRECTIONAL_SEQUENCE_RNN", (BATCH, TIME, INPUTS), TANH),
    ):
        given = [program.input(shape, low=-1, high=1), real(program, UNITS, INPUTS), real(program, UNITS, UNITS)]
        given += [real(program, UNITS), state(program, BATCH, UNITS)]
        result = ((*shape[:-1], UNITS), "FLOAT32")
        program.op(f"{name} {activation}", name, given, result, FusedActivationFunction=activation)
    for rank, memory in ((1, 4), (2, 3)):
        given = [
            program.input((BATCH, INPUTS)),
            real(program, UNITS * rank, INPUTS),
            real(program, UNITS * rank, memory),
        ]
        given += [real(program, UNITS), state(program, BATCH, UNITS * rank * memory)]
        program.op(f"SVDF {rank}", "SVDF", given, ((BATCH, UNITS), "FLOAT32"), Rank=rank, FusedActivationFunction=RELU)


def hybrids(program: Program) -> None:
    """Weights of 8 bits, the rest float: LiteRT rounds the inputs to 8 bits too, we do not."""
    lstm(program, "hybrid", kind="INT8")


def integers(program: Program) -> None:
    """All of 8 bits, but a cell state of 16."""
    source = {"scale": 0.01, "zero": 3}
    given = [program.input((BATCH, TIME, INPUTS), "INT8", **source)]
    for columns in (INPUTS, UNITS):
        for _ in range(4):
            weights = program.random.integers(-127, 128, (UNITS, columns)).astype(np.int8)
            given.append(program.constant(weights, scale=0.004, zero=0))
    given += [LEFT_OUT] * 3
    for _ in range(4):
        bias = program.random.integers(-9000, 9000, UNITS).astype(np.int32)
        given.append(program.constant(bias, scale=0.01 * np.float32(0.004), zero=0))
    given += [LEFT_OUT] * 2
    given.append(program.graph.tensor((BATCH, UNITS), "INT8", scale=1 / 128, zero=-2, variable=True))
    given.append(program.graph.tensor((BATCH, UNITS), "INT16", scale=2.0**-11, zero=0, variable=True))
    given += [LEFT_OUT] * 4
    inside = [program.graph.tensor((), "INT16", scale=2.0**-12, zero=0) for _ in range(4)]
    inside.append(program.graph.tensor((), "INT8", scale=1 / 128, zero=-2))
    options: dict[str, Any] = {"FusedActivationFunction": TANH, "Intermediates": inside}
    result = ((BATCH, TIME, UNITS), "INT8", 1 / 128, -2)
    program.op("LSTM INT8", "UNIDIRECTIONAL_SEQUENCE_LSTM", given, result, **options)


def integer_svdf(program: Program) -> None:
    given = [program.input((BATCH, INPUTS), "INT8", scale=0.02, zero=-5)]
    given.append(program.constant(program.array((UNITS, INPUTS), "INT8"), scale=0.01, zero=0))
    given.append(
        program.constant(program.random.integers(-9999, 9999, (UNITS, 4)).astype(np.int16), scale=0.0001, zero=0)
    )
    given.append(
        program.constant(program.random.integers(-90, 90, UNITS).astype(np.int32), scale=0.001 * 0.0001, zero=0)
    )
    given.append(program.graph.tensor((BATCH, UNITS * 4), "INT16", scale=0.001, zero=0, variable=True))
    result = ((BATCH, UNITS), "INT8", 0.1, 4)
    program.op("SVDF INT8", "SVDF", given, result, Rank=1, FusedActivationFunction=RELU)


PROGRAMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "lstms": (lstms, {}),
    "both ways": (both_ways, {}),
    "rnns": (rnns, {}),
    "hybrids": (hybrids, {"rtol": 2e-2}),
    "integers": (integers, {}),
    "integer svdf": (integer_svdf, {}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_recurrent(name: str, tmp_path) -> None:
    build, options = PROGRAMS[name]
    check(build, tmp_path, times=2, **options)
