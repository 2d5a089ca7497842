"""The state of a loaded module: variables that its calls change, seen as a mapping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eyas.errors import CallError
from eyas.runtime import _core


class State(Mapping[str, Any]):
    """Variables by name. Reading one copies it out, `state[name] = array` copies in; names and types are fixed.

    Reads and writes wait for a call that is under way, and calls wait for them.
    """

    def __init__(self, core: _core.Module, context: _core.Context) -> None:
        self._context = context
        self._types = {name: (index, dtype, shape) for index, (name, dtype, shape) in enumerate(core.states())}

    def __getitem__(self, name: str) -> Any:
        return self._context.get_state(self._index(name))

    def __setitem__(self, name: str, value: Any) -> None:
        try:
            self._context.set_state(self._index(name), value)
        except CallError as error:
            raise CallError(f"state {self.describe(name)}: {error}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)

    def __contains__(self, name: object) -> bool:
        return name in self._types

    def torch(self) -> dict[str, Any]:
        """Copies of all variables as torch tensors, for `nn.Module.load_state_dict`."""
        import torch  # noqa: F401 - the binding makes its tensors

        return {name: self._context.get_state(index, True) for name, (index, _, _) in self._types.items()}

    def describe(self, name: str) -> str:
        """A variable's name and type, `cache.k: f32[1,8,128,64]`."""
        _, dtype, shape = self._types[name]
        return f"{name}: {dtype}[{','.join(map(str, shape))}]"

    def _index(self, name: str) -> int:
        if name not in self._types:
            known = f"it has: {', '.join(self._types)}" if self._types else "it has none"
            raise KeyError(f"the module has no state {name!r}; {known}")
        return self._types[name][0]

    def __repr__(self) -> str:
        return f"<eyas state {', '.join(map(self.describe, self._types)) or 'without variables'}>"
