"""What every frontend makes: one program in the input contract, its parameters, its signature, and where it came from.

The contract, which `verify-input-contract` checks: one public `func.func` for each entry point (`@main` when there is
one) on ranked tensors of signless integers and floats; ops of func, linalg, tensor, arith, math, scf, complex and
tm_tensor only; weights are `flow.parameter`s, variables that stay between calls `flow.state` and `flow.set_state`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from eyas.cache.digest import digests_of_arrays, key_of
from eyas.ir import mlir
from eyas.module.trees import CallTree, Tree, flat_results
from eyas.program.parameters import Parameter


@dataclass(frozen=True)
class Argument:
    """A tensor that enters or leaves: its name, short dtype with the framework's signedness, and dimensions: a number,
    a symbol, or an expression of symbols such as `2*batch`; '?' where nothing is known."""

    name: str
    dtype: str
    dims: tuple[int | str, ...]

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.dims))}]"


@dataclass(frozen=True)
class Signature:
    """Arguments and results in `@main`'s order, and the range (smallest, largest or None) of each symbol."""

    arguments: tuple[Argument, ...]
    results: tuple[Argument, ...]
    symbols: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.arguments))}) -> ({', '.join(map(str, self.results))})"


@dataclass(frozen=True)
class EntryPoint:
    """What calling one function of a program takes and gives, flat and as the model nests it.

    `mutates` are (result, argument) pairs: a result beyond those of `out_tree` is written to the caller's argument.
    `narrows` says that NumPy's 64-bit numbers are taken for arguments of 32 bits, as JAX does without x64.
    """

    signature: Signature
    in_tree: CallTree
    out_tree: Tree
    mutates: tuple[tuple[int, int], ...] = ()
    narrows: bool = False


@dataclass(frozen=True)
class Source:
    """Where a program came from: `pytorch`, `onnx`, `jax` or `mlir`, and a short description for people."""

    kind: str
    description: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.description}" if self.kind else ""

    @staticmethod
    def parse(text: str) -> Source:
        """The inverse of `str`."""
        return Source(*(text.split(": ", 1) if ": " in text else ("", "")))


@dataclass
class ImportedProgram:
    """A model inside the input contract. `in_tree` flattens a call's arguments, `out_tree` nests its results.

    A program of several entry points has them in `entries`; the fields are then those of the first.
    """

    module: mlir.Module
    parameters: Mapping[str, Parameter]
    signature: Signature
    in_tree: CallTree
    out_tree: Tree
    source: Source
    # The text of the program as the framework's dialect had it, before any lowering; None when it came as linalg.
    early_text: Callable[[int], str] | None = field(default=None, repr=False)
    _digest: str | None = field(default=None, repr=False)
    entries: Mapping[str, EntryPoint] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.entries:
            self.entries = {"main": EntryPoint(self.signature, self.in_tree, self.out_tree)}

    @staticmethod
    def flat(
        module: mlir.Module,
        signature: Signature,
        source: Source,
        parameters: Mapping[str, Parameter] | None = None,
        digest: str | None = None,
    ) -> ImportedProgram:
        """A program that is called with its tensors one after the other."""
        in_tree = CallTree.flat([one.name for one in signature.arguments])
        out_tree = flat_results([one.name for one in signature.results])
        return ImportedProgram(module, parameters or {}, signature, in_tree, out_tree, source, None, digest)

    def as_text(self, large_elements_limit: int = 16, level: str = "linalg") -> str:
        """Readable MLIR: `level` is 'linalg' (the input contract) or 'source' (torch or StableHLO ops)."""
        if level == "source" and self.early_text is not None:
            return self.early_text(large_elements_limit)
        return print_module(self.module, large_elements_limit)

    @property
    def digest(self) -> str:
        """SHA-256 over the program and the bytes of its parameters; computed on first use."""
        if self._digest is None:
            state = hashlib.sha256(self.module.operation.get_asm(enable_debug_info=False).encode())
            for name in sorted(self.parameters):
                state.update(f"{name}={self.parameters[name].digest()};".encode())
            self._digest = state.hexdigest()
        return self._digest

    @property
    def fingerprint(self) -> str:
        """A digest of all that the compiled module depends on: also how calls nest, where ops come from, and the
        order of the parameters."""
        entries = [
            (name, str(one.signature), _bounds(one.signature), one.in_tree.to_json(), one.out_tree.to_json())
            for name, one in self.entries.items()
        ]
        weights = [(one.name, one.dtype, one.shape) for one in self.parameters.values()]
        return key_of(
            self.module.operation.get_asm(enable_debug_info=True),
            (self.source.kind, self.source.description),
            (entries, [(one.mutates, one.narrows) for one in self.entries.values()]),
            (list(self.parameters), weights),
            digests_of_arrays(one.array() for one in self.parameters.values()),
        )

    @property
    def parameter_bytes(self) -> int:
        return sum(parameter.nbytes for parameter in self.parameters.values())

    def op_counts(self) -> Counter[str]:
        """How often each op occurs, nested ones included."""
        return count_ops(self.module.operation)

    def __str__(self) -> str:
        weights = f"{len(self.parameters)} parameters, {self.parameter_bytes / 2**20:.1f} MiB"
        entries = self.entries.items()
        calls = ", ".join(f"{'' if len(entries) == 1 else name}{entry.signature}" for name, entry in entries)
        return f"{self.source.kind} program {self.source.description} {calls}, {weights}"


def _bounds(signature: Signature) -> list[tuple[str, int, int | None]]:
    return [(name, low, high) for name, (low, high) in signature.symbols.items()]


def count_ops(root: mlir.Operation) -> Counter[str]:
    """How often each op occurs below `root`."""
    counts: Counter[str] = Counter()

    def visit(op: mlir.Operation) -> mlir.WalkResult:
        counts[op.name] += 1
        return mlir.WalkResult.ADVANCE

    root.walk(visit)
    counts["builtin.module"] -= 1
    return +counts


def print_module(module: mlir.Module, large_elements_limit: int = 16) -> str:
    """Text with big constants elided."""
    return module.operation.get_asm(large_elements_limit=large_elements_limit, large_resource_limit=0)
