"""Every op of torch's own operator database, with its own samples: one row that draws among all of them.

A sample's tensors are leaves of the kind `sample`, so that what comes after fuses with the op as with any other.
"""

from __future__ import annotations

import functools

from tests.fuzz.ops.eager import row

PASSES = ("f32", "f16", "bf16", "int32", "int64", "uint8", "bool")
LARGEST_SAMPLE = 4096


@functools.lru_cache(maxsize=64)
def samples(name: str, pass_: str):
    """All of them, the same in each process; nothing where the op has none of this type."""
    from tests.conformance.torch_ops import ops

    return ops.samples_of(name, pass_, 0) if ops.dtype_of(name, pass_) is not None else []


@functools.cache
def names() -> list[str]:
    from tests.conformance.torch_ops import ops

    return sorted(name for name in ops.database() if not ops.ineligible(name))


@functools.lru_cache(maxsize=4096)
def _is_random(name: str, pass_: str, place: int) -> bool:
    """Whether torch gives something else in each call, as attention with dropout does."""
    from tests.conformance.torch_ops.runners import skip_reason

    return skip_reason(samples(name, pass_)[place], pass_) == "random"


def _build(b):
    from tests.fuzz.lowering import from_torch_tensor
    from tests.fuzz.shadow import NAMES

    name, pass_ = b.choose(names()), b.choose(PASSES)
    found = samples(name, pass_)
    if not found:
        return None
    place = b.integer(0, len(found) - 1)
    if _is_random(name, pass_, place):
        return None
    leaves = []
    for number, tensor in enumerate(found[place].tensors):
        if tensor.is_sparse or tensor.is_complex() or tensor.numel() > LARGEST_SAMPLE:
            return None
        dtype = NAMES[from_torch_tensor(tensor.detach()).dtype]
        kind = f"sample:{name}:{pass_}:{place}:{number}"
        leaves.append(b.leaf(dtype, tuple(tensor.shape), kind, constant=False))
    attrs = {"name": name, "pass": pass_, "place": place, "result": b.integer(0, 2)}
    return (tuple(leaves), attrs) if leaves else None


def tensor_of(kind: str):
    """The value of a leaf."""
    head, pass_, place, number = kind.rsplit(":", 3)
    return samples(head.removeprefix("sample:"), pass_)[int(place)].tensors[int(number)]


def _call(a, k):
    from torch.utils import _pytree as pytree

    found = samples(k["name"], k["pass"])[k["place"]]
    made = found.function(*a)
    return pytree.tree_leaves(made)


row("database", _build, _call, 12)
