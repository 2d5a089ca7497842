"""Passes whose choices depend on the machine that the program is for."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from eyas.ir import Pass
from eyas.targets import Target


@dataclass(frozen=True)
class TargetedPass(Pass):
    """A pass that is told the target: as a value, or as text where it is an option, `{target=llvm-cpu:aarch64}`."""

    target: Target = "llvm-cpu"  # type: ignore[assignment]  # text, until it is parsed below

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", Target.parse(self.target))

    def default_of(self, field: dataclasses.Field) -> Any:
        return Target.host() if field.name == "target" else super().default_of(field)
