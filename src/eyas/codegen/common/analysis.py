"""What is known of a dispatch once its ops were read: its loop nests, and in which blocks rows may go through them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property

from torch_mlir import ir as mlir

from eyas.codegen.common.analyze import analyze
from eyas.codegen.common.blocks import rows_of_block
from eyas.codegen.common.kernel import Kernel, Unsupported
from eyas.codegen.common.lone import LoneOp, lone_op
from eyas.codegen.common.normalize import in_blocks, normalize
from eyas.codegen.common.schedule import Block
from eyas.codegen.common.sharing import shared_loops
from eyas.ir import run_upstream

_NEAR_BYTES = 32 << 10  # of a small core, for those who ask for no target
_GENERALIZE = "linalg-generalize-named-ops,canonicalize,cse"


@dataclass(frozen=True, eq=False)
class Analysis:
    """The loop nests of a dispatch function, or the reason why it has none."""

    raw: Kernel | None = None
    """As the ops are written, before any loop was simplified."""
    reason: str = ""
    near_bytes: int = _NEAR_BYTES
    """What nests should hand to each other at a time: the target's."""
    lone: LoneOp | None = None
    """What it is instead, where it is one op that some targets have a form for."""
    module: mlir.Module | None = None
    """What the kernel's values are of, where somebody must keep it."""

    @staticmethod
    def of(function: mlir.OpView, near_bytes: int = _NEAR_BYTES) -> Analysis:
        """Reads a function in the form that `generalize` leaves."""
        try:
            return Analysis(analyze(function), near_bytes=near_bytes)
        except Unsupported as reason:
            return Analysis(None, str(reason), near_bytes, lone_op(function))

    @cached_property
    def firsts(self) -> tuple[int, ...]:
        """From which nests on rows may run in blocks: those share one more loop, or all of them share some."""
        if self.raw is None:
            return ()
        nests, shared = self.raw.nests, self.raw.shared
        if self.raw.steps is not None:
            return (0,) if shared else ()
        inner = [first for first in range(1, len(nests) - 1) if shared_loops(nests[first:]) == shared + 1]
        # One is enough: what lies in place of what is decided before anybody chooses a block.
        fitting = [first for first in inner if rows_of_block(nests[first:], shared + 1, self.near_bytes)]
        return (*([0] if shared else []), *(fitting or inner)[:1])

    @cached_property
    def block_of_products(self) -> Block | None:
        """The block that products among the nests would like, if there are any."""
        for first in self.firsts:
            assert self.raw is not None
            nests, shared = self.raw.nests[first:], self.raw.shared + (1 if first else 0)
            if rows := rows_of_block(nests, shared, self.near_bytes):
                return Block(first, rows)
        return None

    @cached_property
    def plain(self) -> Kernel | str:
        """The kernel whose rows go through the nests one by one, or why there is none."""
        if self.raw is None:
            return self.reason
        try:
            return normalize(self.raw)
        except Unsupported as reason:
            return str(reason)

    @cached_property
    def unkept(self) -> Kernel | str:
        """The same for code that keeps nothing of a row between its nests, which may be of any size then."""
        if self.raw is None:
            return self.reason
        return self.plain if not isinstance(self.plain, str) else normalize(self.raw, is_kept=False)

    @cached_property
    def default(self) -> Kernel | str:
        """The kernel in the blocks that its products would like, or why there is none."""
        return self.kernel(self.block_of_products)

    def kernel(self, block: Block | None = None) -> Kernel | str:
        """The kernel whose rows go through the nests in these blocks, or why they cannot."""
        if block is None or self.raw is None:
            return self.plain
        if block.nest not in self.firsts:
            allowed = f"one of {list(self.firsts)}" if self.firsts else "nothing: its nests share no loop"
            return f"blocks from nest {block.nest} on; allowed is {allowed}"
        if block.rows < 1:
            return f"blocks of {block.rows} rows; they need at least 1"
        try:
            if block.nest:
                return normalize(replace(self.raw, block=block.rows, first=block.nest))
            return self.plain if isinstance(self.plain, str) else in_blocks(self.plain, block.rows)
        except Unsupported as reason:
            return f"blocks of {block.rows} rows: {reason}"

    @property
    def reasons(self) -> list[str]:
        """Why there are no loop nests at all, for those who ask why a strategy was not taken."""
        return [f"loop nests: {self.default}"] if isinstance(self.default, str) else []


def analysis_of(function: mlir.OpView, known: dict[str, Analysis], near_bytes: int = _NEAR_BYTES) -> Analysis:
    """The analysis of a dispatch function in any form, kept in `known`: each is read once, whoever asks."""
    key = _digest(function)
    module = known[key].module if key in known else None
    if module is None or module.context != function.operation.context:
        module = generalized(function)
        known[key] = replace(Analysis.of(module.body.operations[0], near_bytes), module=module)
    return known[key]


def _digest(function: mlir.OpView) -> str:
    """Of what a function does; not of how it will be lowered."""
    copy = function.operation.clone(ip=False)
    for name in [name for name in copy.attributes if name.startswith("codegen.")]:
        del copy.attributes[name]
    text = copy.operation.get_asm(enable_debug_info=False, assume_verified=True)
    return hashlib.sha256(text.encode()).hexdigest()


def generalize(module: mlir.Module) -> None:
    """Makes generics of named ops: the form that analysis reads."""
    run_upstream(module, _GENERALIZE)


def generalized(function: mlir.OpView) -> mlir.Module:
    """A module with a copy of a dispatch function in the form that analysis reads."""
    module = mlir.Module.create(function.operation.location)
    with mlir.InsertionPoint(module.body):
        function.operation.clone()
    generalize(module)
    return module
