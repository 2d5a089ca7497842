"""What a function takes and gives. A file of its own: all of `program` that the runtime needs to load and call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eyas.errors import ModuleError
from eyas.module.dtypes import DTYPES, MAX_RANK

DYNAMIC_LIMIT = 2**63 - 1
ANONYMOUS = "?"
# The state that random numbers are drawn from: a seed, and how many calls there have been.
RANDOM_STATE = "eyas.random"


@dataclass(frozen=True)
class Symbol:
    """What a symbolic dimension may be: `min <= value <= max` and `value % multiple == 0`."""

    min: int = 0
    max: int = DYNAMIC_LIMIT
    multiple: int = 1

    def __post_init__(self) -> None:
        if not (0 <= self.min <= self.max <= DYNAMIC_LIMIT and self.multiple >= 1):
            raise ModuleError(f"symbol bounds {self} are impossible: need 0 <= min <= max and multiple >= 1")


@dataclass(frozen=True)
class TensorSpec:
    """One argument or result. A dimension is a size, a symbol's name, or "?" for any size."""

    name: str
    dtype: str
    dims: tuple[int | str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "dims", tuple(self.dims))
        if self.dtype not in DTYPES:
            raise ModuleError(f"tensor {self.name!r}: unknown dtype {self.dtype!r}; one of {', '.join(DTYPES)}")
        if len(self.dims) > MAX_RANK:
            raise ModuleError(f"tensor {self.name!r}: rank {len(self.dims)} is over the limit of {MAX_RANK}")
        for dim in self.dims:
            if isinstance(dim, int) and not 0 <= dim <= DYNAMIC_LIMIT:
                raise ModuleError(f"tensor {self.name!r}: dimension {dim} must not be negative; use a symbol or '?'")

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{','.join(str(d) for d in self.dims)}]"


@dataclass(frozen=True)
class Signature:
    """What a function takes and gives. Symbols that args name and `symbols` does not are unconstrained."""

    args: tuple[TensorSpec, ...] = ()
    results: tuple[TensorSpec, ...] = ()
    symbols: Mapping[str, Symbol] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "args", tuple(self.args))
        object.__setattr__(self, "results", tuple(self.results))
        symbols = dict(self.symbols)
        for spec in self.args + self.results:
            for dim in spec.dims:
                if isinstance(dim, str) and dim != ANONYMOUS:
                    symbols.setdefault(dim, Symbol())
        object.__setattr__(self, "symbols", symbols)

    def __str__(self) -> str:
        args = ", ".join(str(a) for a in self.args)
        results = ", ".join(str(r) for r in self.results)
        return f"({args}) -> ({results})"
