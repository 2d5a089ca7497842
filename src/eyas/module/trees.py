"""How a call's arguments and results are nested: tuples, lists, dicts and objects around flat lists of tensors.

A tree is plain data, so it can be stored beside a compiled program and rebuilt where neither torch nor jax is
installed. Objects of a framework (a Hugging Face `ModelOutput`, a dataclass) keep their type's name and field names;
they are rebuilt as themselves where that module is loaded already, and as a dict elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eyas.errors import CallError

_SEQUENCES = {"tuple": tuple, "list": list}


@dataclass(frozen=True)
class Tree:
    """One node: `leaf` (a tensor, the next of the flat list), `constant` (a Python value fixed at import), `tuple`,
    `list`, `dict` (`keys`), `namedtuple` or `object` (`keys` are fields, `type` is 'module:name')."""

    kind: str
    children: tuple[Tree, ...] = ()
    keys: tuple[Any, ...] = ()
    type: str = ""
    value: Any = None

    @property
    def leaf_count(self) -> int:
        return 1 if self.kind == "leaf" else sum(child.leaf_count for child in self.children)

    def flatten(self, value: Any, path: str = "argument") -> list[Any]:
        """The leaves of `value`, which must be nested as this tree is."""
        return list(self._leaves(value, path))

    def _leaves(self, value: Any, path: str) -> Iterator[Any]:
        if self.kind == "leaf":
            if value is None:
                raise CallError(f"{path} is None; a tensor was given when the model was imported")
            yield value
        elif self.kind == "constant":
            if value is not self.value and value != self.value:
                raise CallError(
                    f"{path} is {value!r}, but the model was imported with {self.value!r}, which became part of the"
                    " program; import again with the new value, or make it a tensor"
                )
        elif self.kind in _SEQUENCES:
            if not isinstance(value, Sequence) or len(value) != len(self.children):
                raise CallError(f"{path} must be a {self.kind} of {len(self.children)}, got {_describe(value)}")
            for index, (child, item) in enumerate(zip(self.children, value, strict=True)):
                yield from child._leaves(item, f"{path}[{index}]")
        else:
            for key, child in zip(self.keys, self.children, strict=True):
                yield from child._leaves(_field(value, key, path), f"{path}[{key!r}]")

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        """Nests a flat list of leaves as this tree says."""
        remaining = iter(leaves)
        result = self._build(remaining)
        assert next(remaining, self) is self, "more values than leaves"
        return result

    def _build(self, leaves: Iterator[Any]) -> Any:
        if self.kind == "leaf":
            return next(leaves)
        if self.kind == "constant":
            return self.value
        children = [child._build(leaves) for child in self.children]
        if self.kind in _SEQUENCES:
            return _SEQUENCES[self.kind](children)
        fields = dict(zip(self.keys, children, strict=True))
        module, _, name = self.type.partition(":")
        maker = getattr(sys.modules.get(module), name, None)
        if self.kind == "namedtuple":
            if maker is None:
                return tuple(children)
            # Struct sequences, such as torch.sort's result, take one iterable.
            return maker(*children) if hasattr(maker, "_fields") else maker(children)
        return fields if maker is None else maker(**fields)

    def paths(self, prefix: str = "") -> list[str]:
        """A dotted name for each leaf: `last_hidden_state`, `past.0.key`."""
        if self.kind == "leaf":
            return [prefix]
        keys = self.keys or range(len(self.children))
        dot = "." if prefix else ""
        return [
            path for key, child in zip(keys, self.children, strict=True) for path in child.paths(f"{prefix}{dot}{key}")
        ]

    def to_json(self) -> Any:
        """Plain lists, dicts and scalars, for storage."""
        if self.kind == "leaf":
            return "leaf"
        if self.kind == "constant":
            return {"constant": self.value if isinstance(self.value, (bool, int, float, str, type(None))) else None}
        data: dict[str, Any] = {self.kind: [child.to_json() for child in self.children]}
        if self.keys:
            data["keys"] = list(self.keys)
        if self.type:
            data["type"] = self.type
        return data

    @staticmethod
    def from_json(data: Any) -> Tree:
        """The inverse of `to_json`."""
        if data == "leaf":
            return LEAF
        if "constant" in data:
            return constant(data["constant"])
        kind = next(key for key in data if key not in ("keys", "type"))
        children = tuple(Tree.from_json(child) for child in data[kind])
        return Tree(kind, children, tuple(data.get("keys", ())), data.get("type", ""))


LEAF = Tree("leaf")


def constant(value: Any) -> Tree:
    """A Python value that was fixed at import."""
    return Tree("constant", value=value)


def tuple_of(children: Sequence[Tree]) -> Tree:
    return Tree("tuple", tuple(children))


def dict_of(children: Mapping[Any, Tree]) -> Tree:
    return Tree("dict", tuple(children.values()), tuple(children))


@dataclass(frozen=True)
class CallTree:
    """The arguments of a call: positional ones with their names, so that either form binds, and keyword ones."""

    positional: Tree
    names: tuple[str, ...]
    keywords: Tree

    def flatten(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The tensors of a call in the program's order."""
        by_name = dict(kwargs)
        bound = list(args)
        children = self.positional.children
        if len(bound) > len(children):
            extra = iter(bound[len(children) :])
            bound = bound[: len(children)]
            for key, value in zip(self.keywords.keys, extra, strict=False):
                by_name.setdefault(key, value)
            if len(args) > len(children) + len(self.keywords.keys):
                raise CallError(f"the program takes {self._describe()}, got {len(args)} arguments")
        for name, child in zip(self.names[len(bound) :], children[len(bound) :], strict=False):
            if name in by_name:
                bound.append(by_name.pop(name))
            elif child.kind == "constant":
                bound.append(child.value)
            else:
                raise CallError(f"argument '{name}' is missing; the program takes {self._describe()}")
        for key, child in zip(self.keywords.keys, self.keywords.children, strict=True):
            if key not in by_name and child.kind == "constant":
                by_name[key] = child.value
            if key not in by_name:
                raise CallError(f"argument '{key}' is missing; the program takes {self._describe()}")
        if unknown := sorted(set(by_name) - set(self.keywords.keys)):
            raise CallError(f"unknown argument '{unknown[0]}'; the program takes {self._describe()}")
        leaves: list[Any] = []
        for name, child, value in zip(self.names, children, bound, strict=True):
            leaves += child.flatten(value, f"argument '{name}'")
        for key, child in zip(self.keywords.keys, self.keywords.children, strict=True):
            leaves += child.flatten(by_name[key], f"argument '{key}'")
        return leaves

    def paths(self) -> list[str]:
        """A dotted name for each tensor."""
        paths = []
        for name, child in zip(self.names, self.positional.children, strict=True):
            paths += child.paths(name)
        return paths + self.keywords.paths()

    def to_json(self) -> Any:
        return {
            "positional": self.positional.to_json(),
            "names": list(self.names),
            "keywords": self.keywords.to_json(),
        }

    @staticmethod
    def from_json(data: Any) -> CallTree:
        positional, keywords = Tree.from_json(data["positional"]), Tree.from_json(data["keywords"])
        return CallTree(positional, tuple(data["names"]), keywords)

    @staticmethod
    def flat(names: Sequence[str]) -> CallTree:
        """One tensor per argument."""
        return CallTree(tuple_of([LEAF] * len(names)), tuple(names), dict_of({}))

    def _describe(self) -> str:
        return "(" + ", ".join([*self.names, *map(str, self.keywords.keys)]) + ")"


def flat_results(names: Sequence[str]) -> Tree:
    """One result by itself, several as a tuple."""
    return LEAF if len(names) == 1 else tuple_of([LEAF] * len(names))


def result_names(tree: Tree) -> list[str]:
    """A name for each result: its path where keys name it, else `output` and its position."""
    return [path if path[:1].isalpha() else ".".join(filter(None, ("output", path))) for path in tree.paths()]


def _field(value: Any, key: Any, path: str) -> Any:
    if isinstance(value, Mapping):
        if key in value:
            return value[key]
    elif isinstance(key, str) and hasattr(value, key):
        return getattr(value, key)
    raise CallError(f"{path} has no '{key}', got {_describe(value)}")


def _describe(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"a {type(value).__name__} with keys {sorted(map(str, value))}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"
