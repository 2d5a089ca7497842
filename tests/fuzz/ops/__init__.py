"""The op table: `TABLE` maps a name to how the op is drawn, evaluated and lowered."""

from tests.fuzz.ops import complexes, composed, elementwise, indexing, linear, reductions, shapes  # noqa: F401 - they fill the table
from tests.fuzz.ops.base import TABLE, Op

__all__ = ["TABLE", "Op"]
