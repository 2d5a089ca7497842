"""Gradients of convolutions as convolutions, against torch's own."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from eyas.frontends.torch.convolution import convolution, convolution_backward  # noqa: E402

CASES = [
    # rank, channels in, channels out, groups, kernel, stride, padding, dilation, size
    (1, 4, 6, 1, 3, 1, 0, 1, 9),
    (1, 4, 6, 2, 4, 3, 2, 2, 20),
    (2, 3, 8, 1, 3, 1, 1, 1, 8),
    (2, 8, 8, 8, 3, 2, 1, 1, 9),
    (2, 8, 4, 4, 5, 3, 2, 1, 13),
    (2, 6, 6, 2, 1, 2, 0, 1, 8),
    (2, 6, 5, 1, 1, 2, 0, 1, 8),
    (2, 3, 5, 1, 1, 3, 2, 1, 7),  # windows that see padding alone
    (2, 4, 6, 1, 3, 2, 1, 1, 8),  # the last row and column are read by no window
    (2, 2, 4, 1, 2, 1, 3, 1, 5),  # more padding than the kernel reaches
    (3, 2, 4, 2, 2, 2, 1, 1, 6),
]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_gradients(case, transposed):
    rank, inputs, outputs, groups, kernel, stride, padding, dilation, size = case
    torch.manual_seed(0)
    x = torch.randn(2, inputs, *range(size, size + rank), dtype=torch.float64)
    shape = (inputs, outputs // groups) if transposed else (outputs, inputs // groups)
    weight = torch.randn(*shape, *[kernel] * rank, dtype=torch.float64)
    padding = min(padding, 1) if transposed else padding
    extra = [stride - 1] * rank if transposed else [0] * rank
    rest = ([stride] * rank, [padding] * rank, [dilation] * rank, transposed, extra, groups)
    gradient = torch.randn_like(torch.ops.aten.convolution(x, weight, None, *rest))
    expected = torch.ops.aten.convolution_backward(gradient, x, weight, [outputs], *rest, [True] * 3)
    made = convolution_backward(gradient, x, weight, [outputs], *rest, [True] * 3)
    for mine, theirs in zip(made, expected, strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("case", [case for case in CASES if case[3] > 1])
def test_transposed_with_groups(case):
    rank, inputs, outputs, groups, kernel, stride, padding, dilation, size = case
    torch.manual_seed(0)
    x = torch.randn(2, inputs, *range(size, size + rank), dtype=torch.float64)
    weight = torch.randn(inputs, outputs // groups, *[kernel] * rank, dtype=torch.float64)
    bias = torch.randn(outputs, dtype=torch.float64)
    rest = ([stride], [min(padding, 1)], [dilation], True, [stride - 1] * rank, groups)
    made = convolution(x, weight, bias, *rest)
    torch.testing.assert_close(made, torch.ops.aten.convolution(x, weight, bias, *rest))


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("dtype", [torch.int64, torch.float64])
def test_volumes_with_groups_by_planes(channels, dtype):
    x, weight = torch.randint(-9, 9, (2, 3 * channels, 7, 5, 6)), torch.randint(-9, 9, (6, channels, 2, 3, 1))
    for stride, padding, dilation in ([2, 1, 1], [1, 0, 2], [1, 1, 1]), ([1, 2, 1], [0, 1, 0], [3, 1, 1]):
        rest = (stride, padding, dilation, False, [0] * 3, 3)
        made = convolution(x.to(dtype), weight.to(dtype), torch.arange(6).to(dtype), *rest)
        if channels > 1 and dtype.is_floating_point:
            assert made is NotImplemented
            continue
        want = torch.nn.functional.conv3d(x, weight, torch.arange(6), stride, padding, dilation, 3)
        assert made.dtype == dtype and torch.equal(made.long(), want)
