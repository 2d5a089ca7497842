"""Passes whose choices depend on the machine that the program is for."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from torch_mlir import ir as mlir

from eyas.codegen.common.traffic import element_bytes
from eyas.ir import Pass
from eyas.targets import Target

_LANE_BYTES = 4


@dataclass(frozen=True)
class TargetedPass(Pass):
    """A pass that is told the target: as a value, or as text where it is an option, `{target=llvm-cpu:aarch64}`."""

    target: Target = "llvm-cpu"  # type: ignore[assignment]  # text, until it is parsed below

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", Target.parse(self.target))

    def default_of(self, field: dataclasses.Field) -> Any:
        return Target.host() if field.name == "target" else super().default_of(field)


def held_bytes(elements: int, type_: mlir.Type) -> int:
    """What so many elements take of a core's near memory while it works on them.

    Those that are narrower than a lane count as one: they are widened to be computed with.
    """
    return elements * max(_LANE_BYTES, element_bytes(type_))
