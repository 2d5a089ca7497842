"""The only package that touches torch_mlir's `ext` and `rewrite` modules, whose API moves between releases.

In: the wheel. Out: contexts with every dialect loaded, a pass base class, locations as text.
"""

from torch_mlir import ir as mlir

from eyas.ir.context import clone_into, make_context, parse_module
from eyas.ir.diagnostics import raise_as_compile_error
from eyas.ir.locations import describe_location
from eyas.ir.passes import Pass, PassPipeline, Upstream, run_upstream

__all__ = [
    "Pass",
    "PassPipeline",
    "Upstream",
    "clone_into",
    "describe_location",
    "make_context",
    "mlir",
    "parse_module",
    "raise_as_compile_error",
    "run_upstream",
]
