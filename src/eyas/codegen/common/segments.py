"""Tensors that are larger than what one binding of the target shows: each is bound as several segments of its bytes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from torch_mlir import ir as mlir

from eyas.codegen.common.traffic import bytes_of
from eyas.targets import Target


def segments_of(type_: mlir.Type, target: Target) -> int:
    """Bindings that a tensor takes. One whose size is known at run time only has one, and has to fit it."""
    return target.limits.segments(bytes_of(type_) or 0)


def segments_of_bindings(function: mlir.OpView, target: Target) -> list[int]:
    """For each tensor of a dispatch function, operands first, the bindings that it takes."""
    types = mlir.FunctionType(mlir.TypeAttr(function.attributes["function_type"]).value)
    tensors = [type_ for type_ in types.inputs if isinstance(type_, mlir.RankedTensorType)]
    return [segments_of(type_, target) for type_ in (*tensors, *types.results)]


def in_segments(tensors: Iterable[int], segments: list[int]) -> list[int]:
    """The bindings of some tensors."""
    first = [0, *accumulate(segments)]
    return [binding for tensor in tensors for binding in range(first[tensor], first[tensor + 1])]
