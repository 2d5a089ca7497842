# ruff: noqa: E501 - lines of IR are as long as they are
"""Windows over padded images against the plain definition in f64: edges, strides, dilations, channels that do not fill
a vector. The padding must never be a copy, and plain loops must agree.

Tolerances: maxima bit for bit; sums of n products to a small multiple of n roundings of the element type.
"""

from __future__ import annotations

import itertools
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
import programs as p  # noqa: E402

START = {"conv": 0.0, "depthwise": 0.0, "sum": 0.0, "max": -np.inf, "min": np.inf}
TEXT = {0.0: "0.0", -np.inf: "0xFF800000", np.inf: "0x7F800000"}


@dataclass(frozen=True)
class Case:
    kind: str
    image: tuple[int, int, int, int]
    window: tuple[int, int]
    filters: int = 0
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    low: tuple[int, int] = (0, 0)
    high: tuple[int, int] = (0, 0)
    strategy: str | None = "windows"

    @property
    def positions(self) -> tuple[int, int]:
        padded = [size + below + above for size, below, above in zip(self.image[1:3], self.low, self.high, strict=True)]
        spans = [d * (k - 1) + 1 for d, k in zip(self.dilation, self.window, strict=True)]
        return tuple((size - span) // s + 1 for size, span, s in zip(padded, spans, self.stride, strict=True))

    @property
    def filter(self) -> tuple[int, ...]:
        rest = {"conv": (self.image[3], self.filters), "depthwise": (self.image[3],)}
        return (*self.window, *rest.get(self.kind, ()))

    def text(self, dtype: str = "f32") -> str:
        channels = self.filters if self.kind == "conv" else self.image[3]
        a, b = p.tensor_type(self.image, dtype), p.tensor_type(self.filter, dtype)
        (oh, ow), (top, left), (bottom, right) = self.positions, self.low, self.high
        c = p.tensor_type((self.image[0], oh, ow, channels), dtype)
        h, w = self.image[1] + top + bottom, self.image[2] + left + right
        padded = p.tensor_type((self.image[0], h, w, self.image[3]), dtype)
        start = TEXT[START[self.kind]] if "f" in dtype else "0"
        lines = p.filled("init", (self.image[0], oh, ow, channels), dtype, start)
        lines += (
            f"%p = tensor.pad %x low[0, {top}, {left}, 0] high[0, {bottom}, {right}, 0] {{\n"
            f"^bb0(%a: index, %b: index, %c: index, %d: index):\ntensor.yield %init_v : {dtype}\n}} : {a} to {padded}\n"
        )
        name = {"conv": "conv_2d_nhwc_hwcf", "depthwise": "depthwise_conv_2d_nhwc_hwc"}
        op = name.get(self.kind, f"pooling_nhwc_{self.kind}")
        numbers = [f"dense<[{one[0]}, {one[1]}]> : tensor<2xi64>" for one in (self.stride, self.dilation)]
        weights = self.kind in ("conv", "depthwise")
        if not weights:
            lines += f"%w = tensor.empty() : {b}\n"
        lines += (
            f"%z = linalg.{op} {{strides = {numbers[0]}, dilations = {numbers[1]}}}"
            f" ins(%p, %w : {padded}, {b}) outs(%init : {c}) -> {c}\n"
        )
        return p.main([("x", a), ("w", b)] if weights else [("x", a)], lines, [("z", c)])

    def expected(self, x: np.ndarray, w: np.ndarray | None) -> np.ndarray:
        """Tap by tap, leaving out what is not in the image."""
        (oh, ow), channels = self.positions, self.filters if self.kind == "conv" else self.image[3]
        out = np.full((self.image[0], oh, ow, channels), START[self.kind])
        for i, j in itertools.product(*map(range, self.window)):
            for y, xx in itertools.product(range(oh), range(ow)):
                row = y * self.stride[0] + i * self.dilation[0] - self.low[0]
                column = xx * self.stride[1] + j * self.dilation[1] - self.low[1]
                if not (0 <= row < self.image[1] and 0 <= column < self.image[2]):
                    continue
                pixel = x[:, row, column].astype(np.float64)
                if self.kind in ("conv", "depthwise"):
                    assert w is not None
                    tap = w[i, j].astype(np.float64)
                    out[:, y, xx] += pixel @ tap if self.kind == "conv" else pixel * tap
                elif self.kind == "sum":
                    out[:, y, xx] += pixel
                else:
                    out[:, y, xx] = (np.maximum if self.kind == "max" else np.minimum)(out[:, y, xx], pixel)
        return out


CASES = {
    "same": Case("depthwise", (1, 9, 9, 16), (3, 3), low=(1, 1), high=(1, 1)),
    "narrow_channels": Case("depthwise", (1, 14, 30, 24), (3, 3), low=(1, 1), high=(1, 1)),
    "few_channels": Case("depthwise", (2, 7, 9, 3), (3, 3), low=(1, 1), high=(1, 1)),
    "stride_2": Case("depthwise", (1, 15, 31, 33), (3, 3), stride=(2, 2), low=(1, 1), high=(1, 1)),
    "stride_2_even": Case("depthwise", (1, 16, 32, 16), (3, 3), stride=(2, 2), low=(0, 0), high=(1, 1)),
    "five_taps": Case("depthwise", (1, 11, 47, 40), (5, 5), low=(2, 2), high=(2, 2)),
    "five_taps_stride_2": Case("depthwise", (1, 11, 33, 72), (5, 5), stride=(2, 2), low=(2, 2), high=(2, 2)),
    "dilated": Case("depthwise", (1, 16, 16, 48), (5, 5), dilation=(2, 2), low=(4, 4), high=(4, 4)),
    "seven_taps": Case("depthwise", (1, 10, 30, 17), (7, 7), low=(3, 3), high=(3, 3)),
    "wide": Case("depthwise", (1, 3, 200, 16), (3, 3), low=(1, 1), high=(1, 1)),
    "one_column": Case("depthwise", (1, 12, 3, 16), (3, 3), low=(1, 0), high=(0, 0)),
    "below_only": Case("depthwise", (1, 8, 20, 16), (3, 3), low=(2, 2)),
    "above_only": Case("depthwise", (1, 8, 20, 16), (3, 3), high=(2, 2)),
    "taps_outside": Case("depthwise", (1, 5, 5, 16), (3, 3), dilation=(4, 4), low=(4, 4), high=(4, 4)),
    "wide_padding": Case("depthwise", (1, 4, 6, 16), (3, 3), low=(5, 5), high=(4, 6)),
    "uneven": Case("depthwise", (1, 13, 29, 20), (2, 4), stride=(3, 2), dilation=(2, 3), low=(1, 4), high=(2, 5)),
    "first_layer": Case("conv", (1, 17, 33, 3), (3, 3), 32, stride=(2, 2), low=(1, 1), high=(1, 1)),
    "first_layer_7": Case("conv", (1, 19, 37, 3), (7, 7), 64, stride=(2, 2), low=(3, 3), high=(3, 3)),
    "few_filters": Case("conv", (2, 9, 9, 4), (3, 3), 7, low=(1, 1), high=(1, 1)),
    "one_channel": Case("conv", (1, 12, 28, 1), (5, 5), 16, low=(2, 2), high=(2, 2)),
    "far_apart": Case("conv", (1, 8, 8, 20), (3, 3), 33, dilation=(6, 6), low=(6, 6), high=(6, 6)),
    "far_apart_stride": Case("conv", (1, 9, 12, 20), (3, 3), 40, (2, 2), dilation=(5, 5), low=(5, 5), high=(5, 5)),
    "pool": Case("max", (1, 14, 30, 64), (3, 3), stride=(2, 2), low=(1, 1), high=(1, 1)),
    "pool_odd": Case("max", (2, 9, 7, 17), (3, 3), stride=(2, 2), low=(1, 1), high=(1, 1)),
    "pool_min": Case("min", (1, 9, 12, 16), (3, 2), stride=(2, 1), low=(1, 0), high=(1, 1)),
    "average": Case("sum", (1, 10, 12, 19), (3, 3), low=(1, 1), high=(1, 1)),
    "only_padding": Case("max", (1, 4, 4, 16), (2, 2), stride=(2, 2), low=(2, 2), high=(2, 2)),
}


@pytest.mark.parametrize("name", CASES)
def test_window(name):
    case = CASES[name]
    rng = np.random.default_rng(sum(map(ord, name)))
    x = p.random_array(rng, case.image, "f32")
    weights = [p.random_array(rng, case.filter, "f32")] if case.kind in ("conv", "depthwise") else []
    expected = case.expected(x, *weights or [None]).astype(np.float32)
    tolerance = 0.0 if case.kind in ("max", "min") else 1e-5
    p.assert_both(case.text(), [x, *weights], expected, rtol=tolerance, atol=4 * tolerance, strategy=case.strategy)


def test_random_windows():
    """Forms that nobody thought of."""
    rng = np.random.default_rng(7)
    for _ in range(12):
        kind = str(rng.choice(["depthwise", "conv", "max", "sum"]))
        window = tuple(int(n) for n in rng.integers(1, 5, 2))
        stride, dilation = (tuple(int(n) for n in rng.integers(1, 4, 2)) for _ in range(2))
        low, high = (tuple(int(n) for n in rng.integers(0, 6, 2)) for _ in range(2))
        size = tuple(int(rng.integers(1, 24)) + d * (k - 1) for d, k in zip(dilation, window, strict=True))
        channels = int(rng.integers(1, 40)) if kind != "conv" else int(rng.integers(1, 6))
        case = Case(kind, (1, *size, channels), window, int(rng.integers(1, 40)), stride, dilation, low, high)
        x = p.random_array(rng, case.image, "f32")
        weights = [p.random_array(rng, case.filter, "f32")] if kind in ("conv", "depthwise") else []
        expected = case.expected(x, *weights or [None]).astype(np.float32)
        p.assert_both(case.text(), [x, *weights], expected, rtol=1e-5, atol=4e-5)


@pytest.mark.parametrize("dtype", ["f64", "f16", "i32", "i8"])
def test_types(dtype):
    case = Case("depthwise", (1, 6, 21, 40), (3, 3), low=(1, 1), high=(1, 1))
    rng = np.random.default_rng(3)
    x, w = p.random_array(rng, case.image, dtype), p.random_array(rng, case.filter, dtype)
    expected = case.expected(x, w)
    if dtype.startswith("i"):
        p.assert_both(case.text(dtype), [x, w], expected.astype(np.int64).astype(p.NUMPY[dtype]))
    else:
        tolerance = 16 * p.EPSILON[dtype]
        p.assert_both(case.text(dtype), [x, w], expected.astype(p.NUMPY[dtype]), rtol=tolerance, atol=tolerance)


def test_what_is_not_finite_stays_where_it_is():
    """A NaN or an infinity in a corner reaches the windows that see it, and no other; so does an infinite weight."""
    case = Case("depthwise", (1, 6, 20, 16), (3, 3), low=(1, 1), high=(1, 1))
    rng = np.random.default_rng(5)
    x, w = p.random_array(rng, case.image, "f32"), p.random_array(rng, case.filter, "f32")
    x[0, 0, 0, 3], x[0, 5, 19, 7], x[0, 2, 9, 1] = np.nan, np.inf, -np.inf
    expected = case.expected(x, w).astype(np.float32)
    assert np.isfinite(expected).sum() == expected.size - 4 - 4 - 9
    p.assert_both(case.text(), [x, w], expected, rtol=1e-5, atol=1e-5, strategy="windows")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_pooling_of_special_values(value):
    case = Case("max", (1, 7, 13, 20), (3, 3), stride=(2, 2), low=(1, 1), high=(1, 1))
    rng = np.random.default_rng(6)
    x = p.random_array(rng, case.image, "f32")
    x[0, ::3, ::4, ::5] = value
    x[0, 0, :, 0] = x[0, :, 0, 1] = x[0, 6, 12, 2] = value
    p.assert_both(case.text(), [x], case.expected(x, None).astype(np.float32), strategy="windows")


@pytest.mark.parametrize("taps", [24, 25, 64])
def test_long_windows(taps):
    """Padding is a copy where there are more taps than LLVM takes seconds for when they are written out."""
    case = Case("conv", (1, 2, 33, 4), (1, taps), 16, low=(0, taps // 2), high=(0, taps - 1 - taps // 2))
    rng = np.random.default_rng(taps)
    x, w = p.random_array(rng, case.image, "f32"), p.random_array(rng, case.filter, "f32")
    module = p.assert_both(case.text(), [x, w], case.expected(x, w).astype(np.float32), rtol=1e-5, atol=1e-4)
    assert len(module.manifest["kernels"]) == (1 if taps <= 24 else 2)
