"""Programs of many TFLite operators side by side, compared with LiteRT: integers within a step, floats closely."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tests.tools.tflite_models import KINDS, Graph, write

INTEGERS = {"INT8": (0.05, 7), "UINT8": (0.05, 128), "INT16": (0.0002, 0)}


@dataclass
class Program:
    """A graph with values for its inputs, and a label for each result. `exact` has real results that stand in for
    LiteRT's, where it is further than a step from them."""

    seed: int = 0
    graph: Graph = field(default_factory=Graph)
    values: dict[int, np.ndarray] = field(default_factory=dict)
    labels: dict[int, str] = field(default_factory=dict)
    exact: dict[int, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    def array(self, shape: Sequence[int], kind: str = "FLOAT32", low: float = -4, high: float = 4) -> np.ndarray:
        """Random numbers: of floats those between the bounds, of integers all, of 16 bits all that symmetry allows."""
        dtype = np.dtype(KINDS[kind])
        if dtype.kind == "f":
            return self.random.uniform(low, high, shape).astype(dtype)
        if dtype.kind == "b":
            return self.random.integers(0, 2, shape).astype(dtype)
        if dtype.itemsize > 2:
            return self.random.integers(int(low), int(high), shape).astype(dtype)
        limits = np.iinfo(dtype)
        return self.random.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)

    def input(
        self,
        shape: Sequence[int],
        kind: str = "FLOAT32",
        low: float = -4,
        high: float = 4,
        value: np.ndarray | None = None,
        **more: Any,
    ) -> int:
        if kind in INTEGERS and "scale" not in more:
            more["scale"], more["zero"] = INTEGERS[kind]
        index = self.graph.input(shape, kind, **more)
        self.values[index] = self.array(shape, kind, low, high) if value is None else value
        return index

    def op(
        self, label: str, name: str, inputs: Sequence[int], *outputs: tuple[Any, ...] | int, **options: Any
    ) -> list[int]:
        """Adds an operator whose results are outputs of the program: each a shape, a kind, and perhaps a scale and a
        zero point."""
        made = []
        for one in outputs:
            if isinstance(one, int):
                made.append(one)
                continue
            shape, kind, *quantization = one
            if not quantization and kind in INTEGERS:
                quantization = list(INTEGERS[kind])
            scale, zero = (*quantization, None, 0)[:2] if quantization else (None, 0)
            made.append(self.graph.tensor(shape, kind, scale=scale, zero=zero))
        self.graph.op(name, inputs, made, **options)
        for place, index in enumerate(made):
            self.graph.output(index)
            self.labels[index] = f"{label}[{place}]" if len(made) > 1 else label
        return made

    def constant(self, array: Any, kind: str | None = None, **more: Any) -> int:
        return self.graph.constant(array, kind, **more)

    def bytes(self, *others: Graph) -> bytes:
        return write(self.graph, *others)


def litert(data: bytes, values: Sequence[np.ndarray], times: int = 1) -> list[np.ndarray]:
    """The results in LiteRT of the last of some equal calls; without XNNPACK where that cannot run a file."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    for resolver in (OpResolverType.AUTO, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES):
        try:
            interpreter = Interpreter(model_content=data, experimental_op_resolver_type=resolver)
            interpreter.allocate_tensors()
            for _ in range(times):
                for detail, value in zip(interpreter.get_input_details(), values, strict=True):
                    interpreter.set_tensor(detail["index"], value)
                interpreter.invoke()
            return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
        except RuntimeError:
            if resolver is not OpResolverType.AUTO:
                raise
    raise AssertionError("unreachable")


def compare(
    program: Program, results: Sequence[np.ndarray], expected: Sequence[np.ndarray], rtol: float = 1e-5, steps: int = 1
) -> list[str]:
    """What differs, a line for each result that does. Integers without a scale are equal."""
    wrong = []
    for index, one, other in zip(program.graph.outputs, results, expected, strict=True):
        label, tensor = program.labels[index], program.graph.tensors[index]
        one = np.asarray(one)
        if index in program.exact:
            limits = np.iinfo(tensor.dtype)
            other = np.clip(np.rint(program.exact[index] / tensor.scale) + tensor.zero, limits.min, limits.max)
            other = other.astype(tensor.dtype)
        if one.shape != other.shape or one.dtype != other.dtype:
            wrong.append(f"{label}: {one.dtype}{one.shape} instead of {other.dtype}{other.shape}")
        elif other.dtype.kind in "iu":
            apart = np.abs(one.astype(np.int64) - other.astype(np.int64))
            if apart.max(initial=0) > (steps if tensor.scale is not None else 0):
                wrong.append(f"{label}: up to {apart.max()} apart, {np.count_nonzero(apart)} of {apart.size}")
        elif other.dtype.kind == "b":
            if not np.array_equal(one, other):
                wrong.append(f"{label}: {np.count_nonzero(one != other)} of {one.size} differ")
        else:
            finite = np.isfinite(other)
            same = np.array_equal(one[~finite], other[~finite], equal_nan=True) and np.isfinite(one[finite]).all()
            scale = np.abs(other[finite]).max(initial=1e-30)
            error = np.abs(one[finite] - other[finite]).max(initial=0) / scale
            if not same or error > rtol:
                wrong.append(f"{label}: differs by {error:.1e}" + ("" if same else ", or in what is not finite"))
    return wrong


def check(build: Callable[[Program], None], folder: Path, times: int = 1, **tolerances: Any) -> None:
    """Compiles the program that `build` makes and compares it with LiteRT; called several times, variables move on."""
    import eyas

    program = Program()
    build(program)
    data, values = program.bytes(), [program.values[index] for index in program.graph.inputs]
    expected = litert(data, values, times)
    path = folder / "model.tflite"
    path.write_bytes(data)
    module = eyas.compile(path, cache=False)
    for _ in range(times):
        results = module(*values)
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    wrong = compare(program, results, expected, **tolerances)
    assert not wrong, "\n".join(wrong)
