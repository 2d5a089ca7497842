"""Named fields of an attribute, read with errors that say what is wrong, where, and what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection
from typing import TypeVar

from torch_mlir import ir as mlir

Item = TypeVar("Item")


class FieldError(Exception):
    """An attribute that cannot be read; the text names the field, what it has, and what it may have."""


class Fields:
    """The fields of a dictionary attribute. `where` is what errors call it, such as `tiles[0]`."""

    def __init__(self, attribute: mlir.Attribute, where: str, allowed: Collection[str]):
        self.where = where
        try:
            self.entries = {entry.name: entry.attr for entry in mlir.DictAttr(attribute)}
        except ValueError:
            shape = ", ".join(f"{name} = ..." for name in allowed)
            what = where or "the schedule"
            raise FieldError(f"{what} is {attribute}; it must be named fields: {{{shape}}}") from None
        for name in self.entries:
            if name not in allowed:
                raise FieldError(_unknown(self._path(name), name, allowed))

    def integer(self, name: str, default: int | None = None) -> int:
        """A whole number; one without a default must be there."""
        if name not in self.entries:
            if default is None:
                raise FieldError(f"{self._path(name)} is missing; give it a whole number")
            return default
        return _integer(self.entries[name], self._path(name))

    def loop(self, name: str) -> int | None:
        """The number of a loop; None when the field is left out."""
        return self.integer(name) if name in self.entries else None

    def integers(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers such as `[2, 3]`; empty when it is left out."""
        return self.items(name, _integer)

    def items(self, name: str, read: Callable[[mlir.Attribute, str], Item]) -> tuple[Item, ...]:
        """A list, each item read with its place such as `tiles[0]`; empty when it is left out."""
        if name not in self.entries:
            return ()
        attribute, path = self.entries[name], self._path(name)
        if isinstance(attribute, mlir.DenseI64ArrayAttr | mlir.DenseI32ArrayAttr):
            i64 = mlir.IntegerType.get_signless(64)
            attribute = mlir.ArrayAttr.get([mlir.IntegerAttr.get(i64, value) for value in attribute])
        if not isinstance(attribute, mlir.ArrayAttr):
            raise FieldError(f"{path} is {attribute}; it must be a list: [...]")
        return tuple(read(item, f"{path}[{index}]") for index, item in enumerate(attribute))

    def _path(self, name: str) -> str:
        return f"{self.where}.{name}" if self.where else name


def _integer(attribute: mlir.Attribute, path: str) -> int:
    is_number = isinstance(attribute, mlir.IntegerAttr)
    if not is_number or (isinstance(attribute.type, mlir.IntegerType) and attribute.type.width == 1):
        raise FieldError(f"{path} is {attribute}; it must be a whole number")
    return attribute.value


def _unknown(path: str, name: str, allowed: Collection[str]) -> str:
    near = difflib.get_close_matches(name, allowed, 1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    fields = f"allowed are: {', '.join(allowed)}" if allowed else "there are no fields here"
    return f"{path} is no field{hint} ({fields})"
