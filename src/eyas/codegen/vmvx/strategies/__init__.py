"""Strategies: one file each, tried in order. The first that matches lowers the dispatch; `loops` matches everything."""

from __future__ import annotations

from collections.abc import Sequence

from eyas.codegen.vmvx.strategies.attention import Attention
from eyas.codegen.vmvx.strategies.base import Strategy
from eyas.codegen.vmvx.strategies.contraction import Contraction
from eyas.codegen.vmvx.strategies.loops import Loops
from eyas.codegen.vmvx.strategies.recurrence import Recurrence
from eyas.codegen.vmvx.strategies.rows import Rows
from eyas.codegen.vmvx.strategies.transforms import Transforms
from eyas.codegen.vmvx.strategies.windows import Windows

STRATEGIES: Sequence[type[Strategy]] = (Transforms, Windows, Contraction, Attention, Recurrence, Rows, Loops)

__all__ = ["STRATEGIES", "Strategy"]
