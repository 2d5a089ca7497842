"""llvmlite's LLVM, which everyone here imports by this name so that it is loaded apart from others."""

from __future__ import annotations

from eyas.libraries import keep_apart

keep_apart()
import llvmlite.binding as llvm  # noqa: E402

__all__ = ["llvm"]
