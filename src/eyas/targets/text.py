"""Reading and printing the parts of a target's text that all kinds share: options, sizes, and errors that teach."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

from eyas.errors import TargetError

KIB, MIB = 1 << 10, 1 << 20
MAX_CORES = 65_536
CACHES = ("l1d", "l2", "l3")
SIZES = (*CACHES, "shared", "push", "alignment", "range")
"""Options that are bytes."""
_MAY_BE_ZERO = ("l2", "l3")


def parse_option(text: str, item: str, allowed: Iterable[str], most: int = MAX_CORES) -> tuple[str, int]:
    """`l2=1M` or `cores=16` of the target `text`, as a name and a number; a count is at most `most`."""
    names = list(allowed)
    name, equals, value = item.partition("=")
    if name not in names or not equals:
        raise unknown(text, "option", name, [f"{one}=..." for one in names])
    if name in SIZES:
        size = re.fullmatch(r"(\d+)([KM]?)", value)
        if not size or (name not in _MAY_BE_ZERO and int(size.group(1)) == 0):
            raise TargetError(f"target '{text}': {name} is '{value}'; give bytes, or a number with K or M such as 512K")
        return name, int(size.group(1)) * {"": 1, "K": KIB, "M": MIB}[size.group(2)]
    if not (value.isascii() and value.isdigit() and 1 <= int(value) <= most):
        raise TargetError(f"target '{text}': {name} is '{value}'; give a number from 1 to {most}")
    return name, int(value)


def print_options(options: Mapping[str, int] | Iterable[tuple[str, int]]) -> list[str]:
    """The inverse: each option as `name=value`."""
    return [f"{name}={print_size(value) if name in SIZES else value}" for name, value in dict(options).items()]


def print_size(size: int) -> str:
    for suffix, unit in (("M", MIB), ("K", KIB)):
        if size and size % unit == 0:
            return f"{size // unit}{suffix}"
    return str(size)


def looks_like_options(part: str) -> bool:
    return part[:1] in ("+", "-") or "=" in part


def unknown(text: str, what: str, seen: str, allowed: Iterable[str], hint: str = "") -> TargetError:
    """A name that nobody knows: the nearest one that somebody does, and all of them."""
    names = list(allowed)
    nearest = difflib.get_close_matches(seen, names, n=1, cutoff=0.5)
    hint = hint or (f" Did you mean '{nearest[0]}'?" if nearest else "")
    return TargetError(f"target '{text}': unknown {what} '{seen}'.{hint} Allowed: {', '.join(names)}")
