"""The only package that touches torch_mlir's `ext` and `rewrite` modules, whose API moves between releases.

In: the wheel. Out: contexts with every dialect loaded, a pass base class, a pattern decorator, locations as text.
"""

from torch_mlir import ir as mlir

from eyas.ir.context import clone_into, make_context, parse_module
from eyas.ir.diagnostics import describe_location, raise_as_compile_error
from eyas.ir.passes import Pass, PassPipeline, Upstream, run_upstream
from eyas.ir.patterns import NoMatch, pattern, rewrite_greedily

__all__ = [
    "NoMatch",
    "Pass",
    "PassPipeline",
    "Upstream",
    "clone_into",
    "describe_location",
    "make_context",
    "mlir",
    "parse_module",
    "pattern",
    "raise_as_compile_error",
    "rewrite_greedily",
    "run_upstream",
]
