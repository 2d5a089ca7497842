"""Conversions of small types against ml_dtypes: all codes, all halves, and floats around every rounding boundary."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from onnx.numpy_helper import to_float8e8m0
from torch_mlir.dialects import func

import eyas
from eyas.ir import make_context, mlir, small_types
from eyas.ir.structured import elementwise
from eyas.program.dtypes import numpy_dtype

KINDS = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i32": np.int32}
WIDTHS = {**{n: f.width for n, f in small_types.FLOATS.items()}, **{n: w for n, (w, _) in small_types.INTEGERS.items()}}


def kernel(scalar: Callable[[mlir.Value], mlir.Value], source: str, result: str, folder) -> Callable:
    """A compiled function that applies `scalar` to each element."""
    with make_context(), mlir.Location.unknown():
        module = mlir.Module.create()
        with mlir.InsertionPoint(module.body):
            types = [mlir.Type.parse(f"tensor<?x{element}>") for element in (source, result)]
            function = func.FuncOp("main", (types[:1], types[1:]))
            with mlir.InsertionPoint(function.add_entry_block()):
                func.ReturnOp([elementwise(function.arguments[0], mlir.Type.parse(result), scalar)])
    path = folder / "kernel.mlir"
    path.write_text(str(module))
    return eyas.compile(path, device="local-sync")


def around(name: str, dtype: np.dtype) -> np.ndarray:
    """Every number of the type, the points halfway between neighbours, what lies beside those, and random bits."""
    grid = np.arange(1 << WIDTHS[name], dtype=np.uint8).view(numpy_dtype(name)).astype(np.float64)
    grid = np.unique(grid[np.isfinite(grid)])
    beyond = grid[-1] + (grid[-1] - grid[-2]) * np.array([0.5, 0.51, 1, 2])
    points = np.concatenate([grid, (grid[1:] + grid[:-1]) / 2, beyond, -beyond]).astype(dtype)
    beside = [np.nextafter(points, dtype(end)) for end in (np.inf, -np.inf)]
    generator = np.random.default_rng(0)
    bits = generator.integers(0, 256, (100_000, np.dtype(dtype).itemsize), np.uint8).view(dtype).reshape(-1)
    near = (generator.standard_normal(50_000) * np.exp2(generator.integers(-20, 20, 50_000))).astype(dtype)
    return np.concatenate([points, *beside, bits, near, np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45], dtype)])


def inputs(name: str, kind: str) -> np.ndarray:
    if kind in ("f16", "bf16"):
        return np.arange(65536, dtype=np.uint16).view(KINDS[kind])
    if kind == "i32":
        return np.arange(-70_000, 70_000, dtype=np.int32)
    return around(name, KINDS[kind])


@pytest.mark.parametrize("name", small_types.FLOATS)
def test_floats_are_decoded(name: str, tmp_path):
    codes = np.arange(1 << WIDTHS[name], dtype=np.uint8)
    got = kernel(lambda bits: small_types.decode(name, bits), "i8", "f32", tmp_path)(codes.view(np.int8))
    want = codes.view(numpy_dtype(name)).astype(np.float32)
    np.testing.assert_array_equal(got, want)
    assert np.array_equal(np.signbit(got), np.signbit(want) & ~np.isnan(want) | np.signbit(got) & np.isnan(want))


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", small_types.FLOATS)
def test_floats_are_encoded(name: str, kind: str, saturate: bool, tmp_path):
    dtype = numpy_dtype(name)
    x = inputs(name, kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bounded = x
        if saturate:
            limits = ml_dtypes.finfo(dtype)
            bounded = np.clip(x.astype(np.float64), float(limits.min), float(limits.max)).astype(np.float32)
        want = bounded.astype(dtype)
    got = kernel(lambda value: small_types.encode(name, value, saturate), kind, "i8", tmp_path)(x)
    got = got.view(dtype)
    np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))
    numbers = ~np.isnan(want.astype(np.float32))
    assert np.array_equal(got.view(np.uint8)[numbers], want.view(np.uint8)[numbers])


@pytest.mark.parametrize("name", small_types.INTEGERS)
def test_integers_are_decoded(name: str, tmp_path):
    codes = np.arange(256, dtype=np.uint8)
    got = kernel(lambda bits: small_types.decode(name, bits), "i8", "i8", tmp_path)(codes.view(np.int8))
    low = codes & ((1 << WIDTHS[name]) - 1)
    assert np.array_equal(got, low.view(numpy_dtype(name)).astype(np.int8))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", small_types.INTEGERS)
def test_integers_are_encoded(name: str, kind: str, tmp_path):
    if kind in ("f32", "f64"):
        far = [np.nan, np.inf, -np.inf, 1e30, -1e30, 7.99999, -0.5, 2.0**31, -(2.0**31), 2.0**31 - 200]
        x = np.concatenate([np.arange(-40, 40, 0.25), far]).astype(KINDS[kind])
    else:
        x = inputs(name, kind)
    with np.errstate(invalid="ignore"):
        number = x.astype(np.float64)
    inside = np.abs(np.nan_to_num(number, nan=np.inf)) < 2.0**31
    whole = np.trunc(np.where(inside, number, 0)).astype(np.int64)
    got = kernel(lambda value: small_types.encode(name, value), kind, "i8", tmp_path)(x)
    assert np.array_equal(got, whole & ((1 << WIDTHS[name]) - 1))


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("rounding", ["nearest", "up", "down"])
def test_scales_are_encoded(rounding: str, saturate: bool, tmp_path):
    powers = np.exp2(np.arange(-126, 128, dtype=np.float64)).astype(np.float32)
    x = np.concatenate(
        [powers, powers * np.float32(1.5), powers * np.float32(1.25), np.float32([0, -3, np.inf, np.nan])]
    )
    x = np.concatenate([x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(0))])
    scalar = lambda value: small_types.encode("f8e8m0", value, saturate, rounding)  # noqa: E731
    got = kernel(scalar, "f32", "i8", tmp_path)(x)
    assert np.array_equal(got.view(np.uint8), to_float8e8m0(x, saturate, rounding).view(np.uint8))


def test_scales_are_decoded(tmp_path):
    codes = np.arange(256, dtype=np.uint8)
    got = kernel(lambda bits: small_types.decode("f8e8m0", bits), "i8", "f32", tmp_path)(codes.view(np.int8))
    np.testing.assert_array_equal(got, codes.view(ml_dtypes.float8_e8m0fnu).astype(np.float32))
