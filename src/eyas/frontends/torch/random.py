"""Random numbers of a torch program: every op that draws them, as arithmetic on `eyas::random`.

Its numbers come from a seed that is state of the compiled module (`convert-random`), and are not torch's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from eyas.frontends.torch.linear_algebra.operators import define

aten = torch.ops.aten
Tensor = torch.Tensor


def _shape(size: Sequence[int], is_normal: bool, dtype: torch.dtype) -> Tensor:
    return torch.empty(size, dtype=dtype)


def _eager(size: Sequence[int], is_normal: bool, dtype: torch.dtype) -> Tensor:
    return (torch.randn if is_normal else torch.rand)(list(size), dtype=dtype)


define(
    "random(SymInt[] size, bool is_normal, ScalarType dtype) -> Tensor",
    _shape,
    _eager,
    key="CompositeExplicitAutograd",
    tags=(torch.Tag.nondeterministic_seeded,),
)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    like = {aten.rand_like: rand, aten.randn_like: randn}
    plain = {aten.rand: rand, aten.randn: randn}
    return {
        **{op.default: _like(made) for op, made in like.items()},
        **{getattr(op, name): made for op, made in plain.items() for name in ("default", "generator")},
        aten.bernoulli.default: lambda x, generator=None: bernoulli(x, x),
        aten.bernoulli.p: lambda x, p=0.5, generator=None: bernoulli(x, p),
        aten.bernoulli.Tensor: lambda x, p, generator=None: bernoulli(x, p),
        aten.exponential.default: exponential,
        aten.geometric.default: geometric,
        aten.cauchy.default: cauchy,
        aten.log_normal.default: log_normal,
        aten.multinomial.default: multinomial,
        aten.native_dropout.default: native_dropout,
        aten.normal.Tensor_float: lambda mean, std=1.0, generator=None: normal_like(mean, mean, std),
        aten.normal.float_Tensor: lambda mean, std, generator=None: normal_like(std, mean, std),
        aten.normal.Tensor_Tensor: normal_tensors,
        aten.normal.float_float: normal_of_size,
        aten.normal_functional.default: lambda x, mean=0.0, std=1.0, generator=None: normal_like(x, mean, std),
        aten.randint.default: lambda high, size, **options: randint(0, high, size, **options),
        aten.randint.low: lambda low, high, size, **options: randint(low, high, size, **options),
        aten.randint_like.default: lambda x, high, **options: randint_like(x, 0, high, **options),
        aten.randint_like.low_dtype: lambda x, low, high, **options: randint_like(x, low, high, **options),
        aten.random.default: lambda x, generator=None: random_below(x, 0, None),
        aten.random.to: lambda x, to, generator=None: random_below(x, 0, to),
        getattr(aten.random, "from"): lambda x, low, to, generator=None: random_below(x, low, to),
        aten.randperm.default: randperm,
        aten.rrelu_with_noise_functional.default: rrelu_with_noise,
        aten.uniform.default: uniform,
    }


def _draw(size: Sequence[int], is_normal: bool, dtype: torch.dtype | None) -> Tensor:
    """Numbers of a float type. Narrow ones have as many digits as they hold, so that none is rounded up to 1."""
    dtype = torch.get_default_dtype() if dtype is None else dtype
    if not dtype.is_floating_point:
        return NotImplemented
    wide = dtype if dtype in (torch.float32, torch.float64) else torch.float32
    made = torch.ops.eyas.random(list(size), is_normal, wide)
    if dtype == wide:
        return made
    if not is_normal:
        steps = 1 / torch.finfo(dtype).eps
        made = torch.floor(made * steps) / steps
    return made.to(dtype)


def rand(size: Sequence[int], *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    """Uniform in [0, 1)."""
    return _draw(size, False, dtype)


def randn(size: Sequence[int], *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    """Normal with mean 0 and variance 1."""
    if dtype is not None and dtype.is_complex:
        part = torch.float64 if dtype == torch.complex128 else torch.float32
        return torch.complex(_draw(size, True, part), _draw(size, True, part)) * math.sqrt(0.5)
    return _draw(size, True, dtype)


def _like(made: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def decomposition(x: Tensor, *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
        return made(x.shape, dtype=dtype or x.dtype)

    return decomposition


def bernoulli(x: Tensor, p: Any) -> Tensor:
    """1 where a uniform number is below the chance."""
    return (_draw(x.shape, False, _float_of(p if isinstance(p, Tensor) else x)) < p).to(x.dtype)


def native_dropout(x: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """The mask says what was kept."""
    if train is False or p == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    if p == 1:
        return torch.zeros_like(x), torch.zeros_like(x, dtype=torch.bool)
    mask = _draw(x.shape, False, _float_of(x)) >= p
    return mask * x * (1.0 / (1.0 - p)), mask


def uniform(x: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Any = None) -> Tensor:
    return _draw(x.shape, False, x.dtype) * (high - low) + low


def normal_like(x: Tensor, mean: Any, std: Any) -> Tensor:
    return _draw(x.shape, True, x.dtype) * std + mean


def normal_tensors(mean: Tensor, std: Tensor, generator: Any = None) -> Tensor:
    size = torch.broadcast_shapes(mean.shape, std.shape)
    return _draw(size, True, torch.result_type(mean, std)) * std + mean


def normal_of_size(
    mean: float, std: float, size: Sequence[int], *, dtype: torch.dtype | None = None, **_: Any
) -> Tensor:
    return _draw(size, True, dtype) * std + mean


def exponential(x: Tensor, rate: float = 1.0, *, generator: Any = None) -> Tensor:
    """By the inverse of the distribution function, at numbers in (0, 1]."""
    return (-torch.log(1 - _draw(x.shape, False, _float_of(x))) / rate).to(x.dtype)


def geometric(x: Tensor, p: float, *, generator: Any = None) -> Tensor:
    """How often one must try until something with the chance p happens."""
    tries = torch.ceil(torch.log(1 - _draw(x.shape, False, torch.float64)) / math.log1p(-p))
    return torch.clamp(tries, min=1).to(x.dtype)


def cauchy(x: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Tensor:
    return (median + sigma * torch.tan(math.pi * (_draw(x.shape, False, _float_of(x)) - 0.5))).to(x.dtype)


def log_normal(x: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Tensor:
    return torch.exp(_draw(x.shape, True, _float_of(x)) * std + mean).to(x.dtype)


def _whole(size: Sequence[int], low: int, high: int, dtype: torch.dtype) -> Tensor:
    """Whole numbers from low to below high: 53 digits are enough for each to be drawn as often as the next."""
    drawn = torch.floor(torch.ops.eyas.random(list(size), False, torch.float64) * float(high - low))
    return (drawn.to(torch.int64) + low).to(dtype)


def randint(low: int, high: int, size: Sequence[int], *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    return _whole(size, low, high, dtype or torch.int64)


def randint_like(x: Tensor, low: int, high: int, *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    return _whole(x.shape, low, high, dtype or x.dtype)


def random_below(x: Tensor, low: int, high: int | None) -> Tensor:
    """All numbers that the type holds exactly, where there is no bound."""
    if high is None:
        high = int(2 / torch.finfo(x.dtype).eps) + 1 if x.is_floating_point() else torch.iinfo(x.dtype).max
    return _whole(x.shape, low, high, x.dtype)


def randperm(n: int, *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    """The order of as many numbers."""
    return torch.argsort(torch.ops.eyas.random([n], False, torch.float64)).to(dtype or torch.int64)


def multinomial(x: Tensor, num_samples: int, replacement: bool = False, generator: Any = None) -> Tensor:
    """Each class has an exponential time, shorter the likelier it is, and the first ones are taken. With replacement,
    all is drawn again for each sample."""
    wide = x.to(torch.float64 if x.dtype == torch.float64 else torch.float32)
    if replacement:
        wide = wide.unsqueeze(-2).expand(*x.shape[:-1], num_samples, x.shape[-1])
    # What cannot be drawn has a time without end.
    times = -torch.log(1 - torch.ops.eyas.random(list(wide.shape), False, torch.float64)).to(wide.dtype) / wide
    if replacement:
        return torch.argmin(times, -1)
    return torch.topk(times, num_samples, -1, largest=False, sorted=True)[1]


def rrelu_with_noise(
    x: Tensor,
    noise: Tensor,
    lower: float = 0.125,
    upper: float = 0.3333333333333333,
    training: bool = False,
    generator: Any = None,
) -> tuple[Tensor, Tensor]:
    """Negative numbers are scaled, each by one of its own in training."""
    if not training:
        return torch.nn.functional.leaky_relu(x, (lower + upper) / 2), noise.clone()
    slope = torch.where(x <= 0, _draw(x.shape, False, _float_of(x)) * (upper - lower) + lower, 1.0).to(x.dtype)
    return x * slope, slope


def _float_of(x: Tensor) -> torch.dtype:
    return torch.float64 if x.dtype == torch.float64 else torch.float32
