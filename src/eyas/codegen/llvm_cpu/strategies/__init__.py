"""Strategies: one file each, tried in order. The first that matches lowers the dispatch; `loops` matches everything.

A strategy says what it matches, its knobs, how it chooses them, and how it lowers. The heuristic, the tuner, the
verifier and `eyas explain` read the same file.
"""

from __future__ import annotations

from collections.abc import Sequence

from eyas.codegen.llvm_cpu.strategies.attention import Attention
from eyas.codegen.llvm_cpu.strategies.base import Strategy
from eyas.codegen.llvm_cpu.strategies.contraction import Contraction
from eyas.codegen.llvm_cpu.strategies.loops import Loops
from eyas.codegen.llvm_cpu.strategies.recurrence import Recurrence
from eyas.codegen.llvm_cpu.strategies.rows import Rows
from eyas.codegen.llvm_cpu.strategies.transforms import Transforms
from eyas.codegen.llvm_cpu.strategies.windows import Windows

STRATEGIES: Sequence[type[Strategy]] = (Transforms, Windows, Contraction, Attention, Recurrence, Rows, Loops)

__all__ = ["STRATEGIES", "Strategy"]
