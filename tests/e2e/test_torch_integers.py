"""Whole numbers and checks of torch programs against eager torch: powers, ranges, images of bytes, assertions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import EyasError  # noqa: E402


def check(function: Callable[..., Any], *args: torch.Tensor, **options: Any) -> None:
    made = eyas.compile(function, args, progress=False, **options)(*args)
    wanted = function(*args)
    assert len(made) == len(wanted)
    for index, (one, other) in enumerate(zip(made, wanted, strict=True)):
        one = torch.as_tensor(one)
        assert one.dtype == other.dtype and torch.equal(one, other), (index, one, other)


@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
def test_exponents_are_rounded_as_halves_are(target: str) -> None:
    """32767 is 32768 in f16, and so even."""
    base = torch.tensor([-1.0, -1.0, -1.0, 2.0, 0.5, 1.001], dtype=torch.float16)
    exponents = torch.tensor([32767, 2049, 2047, 32767, -32768, 30000], dtype=torch.int16)
    check(lambda x, y: [x**y, x ** y.to(torch.int32), x ** y.to(torch.int64)], base, exponents, target=target)


def test_powers_of_one_number() -> None:
    """A tensor without dimensions does not decide the type of a result."""
    whole = [torch.tensor(3, dtype=dtype) for dtype in (torch.int16, torch.uint8)]
    rows = [torch.tensor([5, 11], dtype=dtype) for dtype in (torch.int16, torch.uint8, torch.int64)]
    check(lambda *args: [a**b for a in args for b in args], *whole, *rows)


def test_ranges_between_numbers_that_are_not_whole() -> None:
    def ranges(x):
        kinds = (torch.uint8, torch.int8, torch.int32, torch.int64)
        return [
            *(torch.arange(2.1, -2.9, -1.0, dtype=kind) for kind in kinds),
            *(torch.arange(0.5, 4.2, 1.5, dtype=kind) for kind in kinds),
            *(torch.arange(1, 7.5, 2, dtype=kind) for kind in kinds),
            *(torch.arange(-1.5, -1.5, 1, dtype=kind) for kind in kinds),
        ]

    check(ranges, torch.zeros(1))


def test_unsigned_constants_that_are_results() -> None:
    """Of u32 and bytes, with and without dimensions, and none."""
    values = [torch.tensor(value, dtype=torch.uint32) for value in (3000000000, [3000000000, 5], [])]
    values += [torch.tensor(value, dtype=torch.uint8) for value in (200, [200, 5], [])]
    values.append(torch.arange(500).to(torch.uint32))
    module = eyas.compile(lambda x: [*values, torch.full((), 1 << 31, dtype=torch.uint32)], (torch.zeros(1),))
    for one, other in zip(module(torch.zeros(1)), [*values, torch.tensor(1 << 31, dtype=torch.uint32)], strict=True):
        assert one.dtype == other.dtype and torch.equal(one.long(), other.long())


def test_batches_of_products_are_added() -> None:
    for dtype in (torch.uint8, torch.int32, torch.int64):
        x, a, b = (torch.randint(0, 9, shape).to(dtype) for shape in ((3, 5), (4, 3, 2), (4, 2, 5)))
        factors: tuple[dict[str, Any], ...] = ({}, {"beta": 2, "alpha": 3}, {"beta": 0.6, "alpha": 2.7})
        check(lambda x, a, b, given=factors: [torch.addbmm(x[0], a, b, **each) for each in given], x, a, b)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_of_bytes_are_resized_as_torch_does(mode: str) -> None:
    torch.manual_seed(0)
    images = [torch.randint(0, 256, shape, dtype=torch.uint8) for shape in ((2, 3, 13, 10), (1, 6, 9, 17))]
    sizes: tuple[dict[str, Any], ...] = (
        {"size": (7, 24)},
        {"size": (13, 3)},
        {"scale_factor": (1.7, 0.6)},
        {"size": (1, 31)},
    )

    def resize(*images):
        return [
            F.interpolate(image, mode=mode, antialias=smooth, align_corners=aligned, **size)
            for image in images
            for smooth in (False, True)
            for aligned in (False, True)
            for size in sizes
        ]

    check(resize, *images)


@pytest.mark.parametrize("way", ["message", "bare", "whole", "function", "branch"])
def test_assertions_fail_the_call(way: str) -> None:
    def function(x):
        if way == "message":
            torch._assert_async(x.sum() > 0, "must be positive")
        elif way == "bare":
            torch._assert_async((x.sum() > 0).reshape(1))
        elif way == "whole":
            torch._assert_async((x > 0).sum(), "must be positive")
        elif way == "function":
            torch._assert(x.sum() > 0, "must be positive")
        return x + 1

    def branches(x):
        def one(x):
            torch._assert_async(x.min() > -5, "must be positive")
            return x + 1

        return torch.cond(x.sum() > 0, lambda x: x + 1, one, (x,))

    good, bad = torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -9.0])
    module = eyas.compile(branches if way == "branch" else function, (good,), progress=False)
    assert torch.equal(module(good), good + 1)
    messages = {"bare": "single nonzero", "branch": "a value in the data is not allowed"}
    with pytest.raises(EyasError, match=messages.get(way, "must be positive")):
        module(bad)
    assert torch.equal(module(good), good + 1)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.bool])
def test_padding_of_sizes_that_vary(dtype: torch.dtype) -> None:
    class Pad(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.pad(x, (2, 3), value=1)

    size = torch.export.Dim("n", min=0, max=64)
    module = eyas.compile(Pad(), (torch.ones(5).to(dtype),), dynamic_shapes={"x": {0: size}})
    for count in (5, 1, 0, 9):
        x = torch.arange(count).to(dtype)
        assert torch.equal(torch.as_tensor(module(x)), Pad()(x))
