"""The op table: `TABLE` maps a name to how the op is drawn, evaluated and lowered."""

from tests.fuzz.ops import (  # noqa: F401 - they fill the table
    complexes,
    composed,
    database,
    elementwise,
    indexing,
    linear,
    reductions,
    shapes,
    torch_everyday,
    torch_order,
    torch_places,
    torch_windows,
)
from tests.fuzz.ops.base import TABLE, Op

__all__ = ["TABLE", "Op"]
