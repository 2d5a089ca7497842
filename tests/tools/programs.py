# ruff: noqa: E501 - lines of IR are as long as they are
"""Small linalg programs as text, and the ways to run them: as machine code and as bytecode, each with every strategy on
and with plain loops only."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from typing import Any

import cpus
import ml_dtypes
import numpy as np

import eyas

LOOPS = ("contraction", "rows")
"""Strategies to disable so that plain loops are left."""

WIDEST = next(reversed(cpus.TARGETS))

WAYS = {
    **{name: {"target": target} for name, target in cpus.TARGETS.items()},
    "loops": {"target": cpus.TARGETS[WIDEST], "disable": LOOPS},
    "vmvx": {"target": "vmvx"},
    "vmvx loops": {"target": "vmvx", "disable": ("microkernels",)},
}
"""How programs are compiled: keywords of `eyas.compile`. Machine code is made for CPUs that are named here, and not
for whatever this machine is."""


def ways_of(text: str) -> dict[str, dict[str, Any]]:
    """The widest vectors and bytecode; and one of the narrower vectors and one kind of plain loops, which programs take
    in turn, so that each strategy meets all of them. With EYAS_TEST_WAYS=all, as in `make test-all`, all `WAYS`."""
    if os.environ.get("EYAS_TEST_WAYS") == "all":
        return WAYS
    turn = zlib.crc32(text.encode())
    narrow = [name for name in cpus.TARGETS if name != WIDEST] or [WIDEST]
    chosen = {WIDEST, "vmvx", narrow[turn // 2 % len(narrow)], ("loops", "vmvx loops")[turn % 2]}
    return {name: options for name, options in WAYS.items() if name in chosen}


NUMPY = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}
# Relative rounding error of one operation, for tolerances that follow the type.
EPSILON = {"f64": 2e-16, "f32": 1.2e-7, "f16": 1e-3, "bf16": 8e-3}
LETTERS = "abcdefgh"


def tensor_type(shape: Sequence[int | str], dtype: str = "f32") -> str:
    return f"tensor<{'x'.join([*map(str, shape), dtype])}>"


def affine(rank: int, results: Sequence[int | str]) -> str:
    """`affine(2, [0, 'a + b'])` is a map of loops a, b."""
    dims = LETTERS[:rank]
    texts = [one if isinstance(one, str) else dims[one] for one in results]
    return f"affine_map<({', '.join(dims)}) -> ({', '.join(texts)})>"


def zero(dtype: str) -> str:
    return "0.0" if "f" in dtype else "false" if dtype == "i1" else "0"


def filled(name: str, shape: Sequence[int | str], dtype: str, value: str, sizes: str = "") -> str:
    """Lines that make `%name`, a tensor with all elements `value`."""
    type_ = tensor_type(shape, dtype)
    return (
        f"%{name}_v = arith.constant {value}{'' if dtype == 'i1' else ' : ' + dtype}\n"
        f"%{name}_e = tensor.empty({sizes}) : {type_}\n"
        f"%{name} = linalg.fill ins(%{name}_v : {dtype}) outs(%{name}_e : {type_}) -> {type_}\n"
    )


def generic(
    name: str,
    inputs: Sequence[tuple[str, str, str]],
    output: tuple[str, str, str],
    iterators: str,
    body: str,
    result_dtype: str,
) -> str:
    """`%name = linalg.generic`. Inputs and output are (value, type, map); `iterators` is like 'ppr'; the body sees the
    elements as %i0, %i1, ... and %o and defines %r."""
    kinds = ", ".join(f'"{"parallel" if kind == "p" else "reduction"}"' for kind in iterators)
    maps = ", ".join([map_ for _, _, map_ in inputs] + [output[2]])
    arguments = ", ".join(
        [f"%i{n}: {_element(type_)}" for n, (_, type_, _) in enumerate(inputs)] + [f"%o: {_element(output[1])}"]
    )
    values, types = ", ".join(f"%{v}" for v, _, _ in inputs), ", ".join(type_ for _, type_, _ in inputs)
    ins = f"ins({values} : {types})" if inputs else ""
    return (
        f"%{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} {ins}"
        f" outs(%{output[0]} : {output[1]}) {{\n^bb0({arguments}):\n{body}\nlinalg.yield %r : {result_dtype}\n}} -> {output[1]}\n"
    )


def _element(type_: str) -> str:
    return type_.removeprefix("tensor<").removesuffix(">").split("x")[-1]


def main(arguments: Sequence[tuple[str, str]], lines: str, results: Sequence[tuple[str, str]]) -> str:
    """`func.func @main` of (name, type) arguments that returns (name, type) results."""
    parameters = ", ".join(f"%{name}: {type_}" for name, type_ in arguments)
    values, types = ", ".join(f"%{name}" for name, _ in results), ", ".join(type_ for _, type_ in results)
    return f"func.func @main({parameters}) -> ({types}) {{\n{lines}\nreturn {values} : {types}\n}}"


def random_array(rng: np.random.Generator, shape: Sequence[int], dtype: str) -> np.ndarray:
    """Never zeros: normal numbers, or integers of which few repeat."""
    if dtype == "i1":
        return rng.random(shape) < 0.5
    if dtype.startswith("i"):
        return rng.integers(-9, 10, shape).astype(NUMPY[dtype])
    return rng.standard_normal(shape).astype(NUMPY[dtype])


def assert_both(
    text: str,
    inputs: Sequence[np.ndarray],
    expected: np.ndarray | Sequence[np.ndarray],
    rtol: float = 0.0,
    atol: float = 0.0,
    strategy: str | None = None,
) -> eyas.Module:
    """All ways of `ways_of` give `expected`; tolerances of 0 mean bit for bit.

    `strategy` is the one that the program's only kernel must have on every CPU. Returns the module for the widest.
    """
    wanted = [expected] if isinstance(expected, np.ndarray) else list(expected)
    exported = eyas.export(text)  # once: what differs comes after the import
    modules = {kind: exported.compile(**options) for kind, options in ways_of(text).items()}
    for kind, module in modules.items():
        strategies = {kernel["strategy"] for kernel in module.manifest["kernels"]}
        assert strategies <= {"loops"} or "loops" not in kind, (kind, strategies)
        if strategy is not None and kind in cpus.TARGETS:
            assert strategies == {strategy}, module.manifest["kernels"]
        given = module(*inputs)
        given = [given] if isinstance(given, np.ndarray) else list(given)
        assert len(given) == len(wanted)
        for one, other in zip(given, wanted, strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype), kind
            compare(one, other, rtol, atol, kind)
    return modules[WIDEST]


def compiled(text: str) -> list[eyas.Module]:
    """A program as machine code for each CPU of `ways_of`, and perhaps as plain loops."""
    exported = eyas.export(text)
    return [exported.compile(**options) for options in ways_of(text).values() if options["target"] != "vmvx"]


def compare(given: np.ndarray, wanted: np.ndarray, rtol: float, atol: float, kind: str = "") -> None:
    """As np.testing, in f64, since NumPy's own comparison does not know bfloat16."""
    if given.dtype == ml_dtypes.bfloat16 or given.dtype == np.float16:
        given, wanted = given.astype(np.float64), wanted.astype(np.float64)
    np.testing.assert_allclose(given, wanted, rtol=rtol, atol=atol, err_msg=kind)
