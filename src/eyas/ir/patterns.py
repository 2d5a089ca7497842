"""Rewrite patterns as small decorated functions: guard first, then build.

Upstream's convention is that a *falsy* return means success; here a pattern raises or returns `NoMatch` to decline and
returns the replacement values (or None when it erased or changed the op itself).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch_mlir import ir as mlir
from torch_mlir import rewrite


class NoMatch:
    """Returned by a pattern that does not apply."""


@dataclass(frozen=True)
class Pattern:
    """A function on one kind of op. Made by `@pattern("linalg.generic")`."""

    root: str
    apply: Callable[[mlir.OpView], object]

    def __call__(self, op: mlir.OpView, rewriter: rewrite.PatternRewriter) -> bool:
        with rewriter.ip, op.location:
            result = self.apply(op)
            if result is NoMatch:
                return True
            if result is not None:
                rewriter.replace_op(op, result)
        return False


def pattern(root: str) -> Callable[[Callable[[mlir.OpView], object]], Pattern]:
    """Turns `fn(op) -> values | None | NoMatch` into a pattern on ops named `root`."""
    return lambda fn: Pattern(root, fn)


def rewrite_greedily(module: mlir.Module, patterns: Sequence[Pattern]) -> None:
    """Applies the patterns and folds until nothing changes."""
    with module.context:
        patterns_set = rewrite.RewritePatternSet()
        for one in patterns:
            patterns_set.add(one.root, one)
        rewrite.apply_patterns_and_fold_greedily(module.operation, patterns_set.freeze())
