"""Whether numbers are those of plain loops: what every candidate must show before it is timed.

Three kinds of data. Normal numbers, on the model's own weights, with a tolerance that grows with the length of the
sums. Small integers, whose sums have no rounding in any order, so that a single step that is left out or done twice
shows. And numbers of which some are none: what is finite in plain loops must be finite here.

The last two are written into a canvas: what lies around a result must stay, and no element may be left unwritten. Each
call is repeated, and must give the same bits on a CPU, where no sum depends on who comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch_mlir import ir as mlir

from eyas.program.dtypes import numpy_dtype
from eyas.tune.operands import Kind
from eyas.tune.program import CANVAS, GUARD_BYTES, MAIN, Tensor, canvas_bytes

GUARD = 0xA5
_POISON = 0xFF
"""Of floats these bytes are NaNs."""
_EXACT_OPS = frozenset(
    "arith.addf arith.subf arith.mulf arith.negf arith.maximumf arith.minimumf arith.maxnumf arith.minnumf arith.cmpf"
    " arith.select arith.extf arith.constant arith.addi arith.muli arith.subi arith.extsi arith.extui arith.cmpi"
    " arith.andi arith.ori arith.index_cast arith.sitofp linalg.yield linalg.index".split()
)
_EPS = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52, "c64": 2.0**-23, "c128": 2.0**-52}


@dataclass(frozen=True)
class Check:
    """One call to compare."""

    entry: str
    kind: Kind
    seed: int


CHECKS = (
    Check(MAIN, Kind.NORMAL, 1),
    Check(CANVAS, Kind.EXACT, 2),
    Check(CANVAS, Kind.NOT_FINITE, 3),
    Check(MAIN, Kind.NORMAL, 4),
)


@dataclass(frozen=True)
class Tolerance:
    """How far results may be from those of plain loops, for what the dispatch computes."""

    length: int
    """Of its longest sum."""
    narrowest: float
    """The rounding of the narrowest type that a value inside of it has."""
    is_exact: bool
    """Whether integers stay integers throughout."""
    rounds_to_integers: bool
    """Whether a last bit of a float may become a step of an integer."""

    @staticmethod
    def of(function: mlir.OpView, length: int) -> Tolerance:
        names: set[str] = set()
        types: set[str] = set()

        def visit(op: mlir.Operation) -> mlir.WalkResult:
            names.add(op.name)
            if op.name == "arith.truncf":
                types.update(str(result.type) for result in op.results)
            return mlir.WalkResult.ADVANCE

        function.operation.walk(visit)
        inside = {name for name in names if name.startswith(("arith.", "math.", "complex.", "tm_tensor."))}
        narrow = max((_EPS.get(one, 0.0) for one in types), default=0.0)
        is_exact = inside <= _EXACT_OPS | {"arith.truncf"} and "scf.while" not in names
        return Tolerance(length, narrow, is_exact, bool(inside & {"arith.fptosi", "arith.fptoui"}))

    def bounds(self, expected: np.ndarray, dtype: str, kind: Kind) -> np.ndarray:
        """For each element."""
        magnitude = np.abs(expected)
        magnitude = np.where(np.isfinite(magnitude), magnitude, 0)
        scale = magnitude.max(initial=0.0)
        eps, inner = _EPS[dtype], max(min(_EPS[dtype], _EPS["f32"]), self.narrowest)
        if kind is Kind.EXACT and self.is_exact:
            return 2 * eps * magnitude + 16 * min(eps, _EPS["f32"]) * scale
        return (
            4 * eps * magnitude + (16 + 2 * np.sqrt(self.length)) * min(eps, inner) * scale + 4 * self.narrowest * scale
        )


def length_of(flops: int | None, operands: Sequence[Tensor], results: Sequence[Tensor]) -> int:
    """The longest sum of a dispatch, or more than that."""
    made = max(min((int(np.prod(one.shape)) for one in results), default=1), 1)
    longest = max((size for one in operands for size in one.shape), default=1)
    read = max((int(np.prod(one.shape)) for one in operands), default=1)
    return max((flops or 0) // (2 * made), longest, min(read // made, read))


def draw_canvas(tensor: Tensor) -> np.ndarray:
    """Guards around what no result would be."""
    canvas = np.full(canvas_bytes(tensor), GUARD, np.uint8)
    canvas[GUARD_BYTES : GUARD_BYTES + tensor.nbytes] = _POISON if tensor.dtype != "bool" else 0
    return canvas


def cut_canvas(canvas: np.ndarray, tensor: Tensor) -> tuple[np.ndarray, str | None]:
    """The result in a canvas, and what is wrong around it."""
    end = GUARD_BYTES + tensor.nbytes
    result = canvas[GUARD_BYTES:end].view(numpy_dtype(tensor.dtype)).reshape(tensor.shape)
    before, after = canvas[:GUARD_BYTES], canvas[end:]
    for where, part in (("before", before[::-1]), ("behind", after)):
        touched = np.flatnonzero(part != GUARD)
        if touched.size:
            return result, f"wrote {int(touched[0])} bytes {where} its result"
    return result, None


def compare(got: np.ndarray, expected: np.ndarray, dtype: str, tolerance: Tolerance, kind: Kind) -> str | None:
    """How a result misses what plain loops give, or None."""
    if got.shape != expected.shape:
        return f"its result has the shape {got.shape}, not {expected.shape}"
    if dtype not in _EPS:
        steps = np.abs(got.astype(np.int64) - expected.astype(np.int64))
        allowed = 1 if tolerance.rounds_to_integers else 0
        return _worst(steps, steps > allowed, got, expected, allowed)
    wide = np.complex128 if dtype[0] == "c" else np.float64
    got, expected = got.astype(wide), expected.astype(wide)
    finite = np.isfinite(expected)
    lost = finite & ~np.isfinite(got)
    if lost.any():
        place = _place(lost)
        count = f"{int(lost.sum())} of {got.size} elements"
        return f"{count} are {got[place]} where plain loops give numbers, first at {list(place)}"
    if kind is Kind.NOT_FINITE:
        hidden = ~finite & np.isfinite(got)
        if hidden.any():
            place = _place(hidden)
            return f"element {list(place)} is {got[place]} where plain loops give {expected[place]}"
    bounds = tolerance.bounds(expected, dtype, kind)
    with np.errstate(invalid="ignore"):
        difference = np.where(finite, np.abs(got - expected), 0)
    return _worst(difference, difference > bounds, got, expected, bounds)


def _worst(difference, wrong, got, expected, allowed) -> str | None:  # noqa: ANN001
    if not wrong.any():
        return None
    allowed = np.broadcast_to(allowed, difference.shape)
    place = np.unravel_index(int(np.argmax(np.where(wrong, difference / np.maximum(allowed, 1e-300), -1))), wrong.shape)
    place = tuple(int(one) for one in place)
    return (
        f"{int(wrong.sum())} of {wrong.size} elements are wrong, the worst at {list(place)}: {got[place]!s} where plain"
        f" loops give {expected[place]!s}, allowed are {float(allowed[place]):.3g}"
    )


def _place(mask: np.ndarray) -> tuple[int, ...]:
    return tuple(int(one) for one in np.unravel_index(int(np.argmax(mask)), mask.shape))
