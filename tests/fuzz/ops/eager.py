"""A reference for any torch op: eager torch itself, with a bound found by moving the operands.

An op's own rounding is as if its operands had been a little different (it is backward stable, or nearly so), so the op
is evaluated again with operands that are moved at random by their bounds and by a few units in the last place. How far
results move is the bound, with a margin; so is how far they are from those in doubles, since where terms cancel the
steps of an op show, as in a log_softmax near 0. What is discrete and moves at all is unknown, as is what becomes or
stops being finite, and what is a number in doubles alone: torch's gelu of infinity depends on how many there are. With
this a row of the table needs no mathematics of its own, only to be called.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from tests.fuzz.ops.base import Op, add, torch
from tests.fuzz.shadow import DTYPES, INFINITY, LARGEST, NAMES, SMALLEST_NORMAL, UNIT, ZERO, Shadow, to_dtype

SAMPLES = 4
MOVED_UNITS = 4.0
"""By how much operands are moved, in half-ulps; functions are trusted to that."""
MARGIN = 4.0
"""The worst case against the worst of a few random ones."""


def row(
    name: str,
    build: Any,
    function: Callable[..., Any],
    weight: int = 1,
    slack: Callable[[Sequence[Shadow], dict[str, Any]], float] = lambda args, attrs: 0.0,
) -> None:
    """An op of torch. `function` takes operands and attributes, as all lowerings do. `slack` says how far results may
    be off for reasons that moved operands do not show."""

    def lowering(args: Sequence[Any], attrs: dict[str, Any]) -> Any:
        return _chosen(function(args, attrs), attrs)

    def evaluate(args: Sequence[Shadow], attrs: dict[str, Any]) -> Shadow:
        made = reference(lowering, args, attrs)
        more = slack(args, attrs)
        return replace(made, error=made.errors() + more) if more else made

    def once(args: Sequence[Shadow], attrs: dict[str, Any]) -> Shadow:
        made = _call(lowering, [arg.value for arg in args], args, attrs)
        return Shadow(made, ZERO, NAMES[made.dtype])

    add(Op(name, build, evaluate, lowering, weight=weight, once=once))


def _chosen(made: Any, attrs: dict[str, Any]) -> Any:
    """One of several results, the one that `attrs` names; nothing where there are none."""
    if not isinstance(made, (tuple, list)):
        return made
    return made[attrs.get("result", 0) % len(made)] if made else torch.empty(0)


def reference(function: Callable[..., Any], args: Sequence[Shadow], attrs: dict[str, Any]) -> Shadow:
    """The result with its bound."""
    centre = _call(function, [arg.value for arg in args], args, attrs)
    name = NAMES[centre.dtype]
    value = centre.astype(np.float64 if name in UNIT else np.complex128 if name == "c64" else centre.dtype)
    if not any(arg.is_float or arg.dtype == "c64" or np.any(arg.error) for arg in args):
        # Integers and truths decide alone. Floats that are made of them are rounded, and in sums on the way as well.
        bound = _own(value, name) + _own(_largest(value), name)
        return Shadow(value, np.where(_is_in_doubt(function, centre, args, attrs), INFINITY, bound), name)
    if any(np.any(np.isinf(arg.errors())) for arg in args):
        return Shadow(value, np.full(value.shape, INFINITY), name)  # what an operand does not say, nobody knows
    bound = np.zeros(value.shape)
    rng = np.random.default_rng(0)
    for moved in _samples(args, rng):
        try:
            there = _call(function, moved, args, attrs)
        except Exception:  # an argument left the op's domain
            return Shadow(value, np.full(value.shape, INFINITY), name)
        if there.shape != value.shape:
            raise ValueError("a size that depends on data")
        bound = np.maximum(bound, _distance(there.astype(value.dtype), value))
        bound = np.maximum(bound, _own_steps(function, there, moved, args, attrs))
    if name not in UNIT and name != "c64":
        return Shadow(value, np.where((bound > 0) | _is_tie(function, centre, args, attrs), INFINITY, 0.0), name)
    with np.errstate(all="ignore"):
        bound = np.where(np.isfinite(value), MARGIN * bound + _own(value, name), np.where(bound > 0, INFINITY, 0.0))
        bound = np.where(np.isnan(bound), INFINITY, bound)
        bound = np.where(_is_in_doubt(function, centre, args, attrs), INFINITY, bound)
        # Whether a step on the way overflows depends on how it is written.
        if any(arg.is_float and np.any(_is_huge(arg)) for arg in args):
            bound = np.where(
                (np.abs(value) < LARGEST.get(name, np.inf) / 16) | _stays_nan(value, args), bound, INFINITY
            )
        # A quotient by what may be zero.
        sizes = [_largest(arg.value).max(initial=1.0) for arg in args if arg.is_float]
        far = np.abs(value) * 1e-4 > max(sizes, default=1.0)
        bound = np.where(far & (bound > np.abs(value)), INFINITY, bound)
    return Shadow(value, bound, name)


def _is_huge(arg: Shadow) -> np.ndarray:
    return np.isfinite(arg.value) & (np.abs(arg.value) > LARGEST[arg.dtype] / 16)


def _stays_nan(value: np.ndarray, args: Sequence[Shadow]) -> Any:
    """Where an operand is NaN and the result too, whatever is elsewhere."""
    there = [np.isnan(arg.value) for arg in args if arg.is_float and arg.shape == value.shape]
    return np.isnan(value) & np.logical_or.reduce(there) if there else False


def _largest(value: np.ndarray) -> np.ndarray:
    """The size of the largest result in each place: where terms cancel, what is left is as exact as they were."""
    with np.errstate(all="ignore"):
        sizes = np.where(np.isfinite(value), np.abs(value), 0)
    return np.broadcast_to(sizes.max(initial=0), value.shape)


def _own(value: np.ndarray, name: str) -> np.ndarray:
    """A result's own rounding."""
    if name not in UNIT and name != "c64":
        return ZERO
    unit, tiny = (UNIT[name], SMALLEST_NORMAL[name]) if name in UNIT else (UNIT["f32"], SMALLEST_NORMAL["f32"])
    with np.errstate(all="ignore"):
        return np.where(np.isfinite(value), MARGIN * MOVED_UNITS * unit * np.abs(value) + tiny, 0.0)


def _samples(args: Sequence[Shadow], rng: np.random.Generator) -> Iterator[list[np.ndarray]]:
    """Operands that are moved all the way and, since steps of a round number may lead to an equal remainder, some of
    the way; all of them up and all of them down, since roundings to whole numbers are steps. What may be 0 is 0 in one
    of them, since quotients and logarithms are not continuous there."""
    for direction in (-1.0, 1.0):
        yield [_moved(arg, rng, direction=direction) for arg in args]
    for number in range(SAMPLES):
        yield [_moved(arg, rng, rng.uniform(0.2, 1.0, arg.shape) if number % 2 else 1.0) for arg in args]
    nothing = [(np.abs(arg.value) <= arg.error) & (arg.value != 0) if arg.is_float else ZERO for arg in args]
    if any(map(np.any, nothing)):
        yield [
            np.where(where, 0.0, arg.value) if np.any(where) else arg.value
            for arg, where in zip(args, nothing, strict=True)
        ]


def _own_steps(
    function: Any, made: np.ndarray, values: Sequence[np.ndarray], args: Sequence[Shadow], attrs: Any
) -> Any:
    """How far a result is from the one in doubles. Of doubles it is how far the one in f32 is, as much less as their
    unit is less: there is nothing wider. 0 where the op has no result in doubles."""
    if made.dtype == np.float64:
        narrow = [replace(arg, dtype="f32") if arg.dtype == "f64" else arg for arg in args]
        values = [
            to_dtype(value, "f32") if arg.dtype == "f64" else value for value, arg in zip(values, args, strict=True)
        ]
        try:
            made, scale = _call(function, values, narrow, attrs), UNIT["f64"] / UNIT["f32"]
        except Exception:
            return 0.0
        if made.dtype != np.float32:
            return 0.0
        return scale * _evenly(_own_steps(function, made, values, narrow, attrs), made, values)
    exact = _in_doubles(function, values, args, attrs) if NAMES[made.dtype] in UNIT else None
    if exact is None or exact.shape != made.shape:
        return 0.0
    with np.errstate(all="ignore"):
        apart = _distance(exact.astype(made.dtype).astype(np.float64), made.astype(np.float64))
    return np.where(np.isfinite(apart), apart, 0.0)


def _evenly(apart: Any, made: np.ndarray, values: Sequence[np.ndarray]) -> Any:
    """Where operands have the shape of the result, the largest share of them and it: f32 is exact here and there."""
    with np.errstate(all="ignore"):
        sizes = [np.abs(one.astype(np.float64)) for one in (made, *values) if one.shape == made.shape]
        size = np.where(np.isfinite(most := np.max(sizes, axis=0)), most, 0.0)
        shares = np.where(size > 0, apart / size, 0.0)
    return np.maximum(apart, shares.max(initial=0.0) * size) if len(sizes) > 1 else apart


def _is_in_doubt(function: Any, made: np.ndarray, args: Sequence[Shadow], attrs: Any) -> Any:
    """Where a float is not finite and the one in doubles is another: NaN is in one of them, or a step on the way left
    the range. Inside of a dispatch half types are computed in wider ones, where results leave it less often."""
    if made.dtype.kind not in "fV" or np.all(np.isfinite(made)):
        return False
    exact = _in_doubles(function, [arg.value for arg in args], args, attrs)
    if exact is None or exact.shape != made.shape:
        return False
    half = NAMES[made.dtype] in ("f16", "bf16")
    with np.errstate(all="ignore"):
        early = np.isinf(made) & np.isfinite(exact) & (half | (np.abs(exact) < LARGEST[NAMES[made.dtype]]))
    return (np.isnan(made) != np.isnan(exact)) | early


def _is_tie(function: Any, made: np.ndarray, args: Sequence[Shadow], attrs: Any) -> Any:
    """Where something discrete is another in doubles, and integers that are made of NaN, which may be any."""
    wide = [replace(arg, dtype="f64") if arg.is_float else arg for arg in args]
    try:
        exact = _call(function, [arg.value for arg in args], wide, attrs)
    except Exception:
        exact = made
    differs = made != exact if exact.shape == made.shape else np.zeros(made.shape, bool)
    if made.dtype.kind in "iu":
        for arg in args:
            if arg.is_float and arg.shape == made.shape:
                differs = differs | np.isnan(arg.value)
    return differs


def _in_doubles(function: Any, values: Sequence[np.ndarray], args: Sequence[Shadow], attrs: Any) -> np.ndarray | None:
    """What the op makes of wider operands, integers where there are no floats; None where that is not wider."""
    narrow = [arg.dtype in ("f32", "f16", "bf16") for arg in args]
    if not any(narrow) and any(arg.is_float for arg in args):
        return None
    wide = [replace(arg, dtype="f64") if arg.is_float or not any(narrow) else arg for arg in args]
    try:
        exact = _call(function, values, wide, attrs)
    except Exception:
        return None
    return exact if exact.dtype == np.float64 else None


def _moved(arg: Shadow, rng: np.random.Generator, share: Any = 1.0, direction: float = 0.0) -> np.ndarray:
    if not arg.is_float:
        return arg.value
    error = np.where(np.isfinite(arg.error), arg.error, 0.0)
    with np.errstate(all="ignore"):
        size = np.where(np.isfinite(arg.value), np.abs(arg.value), 0.0)
        step = (
            share * (direction or rng.choice((-1.0, 1.0), arg.shape)) * (error + MOVED_UNITS * UNIT[arg.dtype] * size)
        )
        there = to_dtype(arg.value + step, arg.dtype)
        return np.where(np.isfinite(there), there, arg.value)


def _distance(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        same = (one == other) | ((one != one) & (other != other))
        if one.dtype.kind not in "fc":
            return np.where(same, 0.0, INFINITY)
        apart = np.where(same, 0.0, np.abs(one - other))
        return np.where(np.isnan(apart), INFINITY, apart)


def _call(function: Callable[..., Any], values: Sequence[np.ndarray], args: Sequence[Shadow], attrs: Any) -> np.ndarray:
    from tests.fuzz.lowering import from_torch_tensor, torch_tensor

    with np.errstate(all="ignore"), warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        given = [torch_tensor(value.astype(DTYPES[arg.dtype])) for value, arg in zip(values, args, strict=True)]
        made = function(given, dict(attrs))
        if not isinstance(made, torch.Tensor):
            raise TypeError(f"a {type(made).__name__} is no tensor")
        array = from_torch_tensor(made.detach().resolve_conj().resolve_neg())
    if array.dtype not in NAMES:
        raise TypeError(f"{array.dtype} is no type of these graphs")
    return array
