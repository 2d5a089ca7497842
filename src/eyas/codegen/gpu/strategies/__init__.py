"""Strategies for GPUs: one file each, tried in order. The first that matches lowers the dispatch."""

from __future__ import annotations

from collections.abc import Sequence

from eyas.codegen.gpu.strategies.attention import Attention
from eyas.codegen.gpu.strategies.base import Strategy
from eyas.codegen.gpu.strategies.columns import Columns
from eyas.codegen.gpu.strategies.contraction import Contraction
from eyas.codegen.gpu.strategies.loops import Loops
from eyas.codegen.gpu.strategies.matrices import Matrices
from eyas.codegen.gpu.strategies.matrix_attention import MatrixAttention
from eyas.codegen.gpu.strategies.points import Points
from eyas.codegen.gpu.strategies.products import Products
from eyas.codegen.gpu.strategies.rows import Rows
from eyas.codegen.gpu.strategies.scan import Scan
from eyas.codegen.gpu.strategies.scatter import Scatter
from eyas.codegen.gpu.strategies.sort import Sort
from eyas.codegen.gpu.strategies.transforms import Transforms
from eyas.codegen.gpu.strategies.transposes import Transposes

STRATEGIES: Sequence[type[Strategy]] = (
    Transforms,
    Matrices,
    Products,
    Contraction,
    MatrixAttention,
    Attention,
    Columns,
    Rows,
    Transposes,
    Points,
    Scan,
    Scatter,
    Sort,
    Loops,
)

__all__ = ["STRATEGIES", "Strategy"]
