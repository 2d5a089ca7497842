"""PyTorch's operator database: which of its ops are eligible, and which samples each has for a pass."""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
import types
import unittest
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

DTYPES = {
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "int32": torch.int32,
    "int64": torch.int64,
    "uint8": torch.uint8,
    "bool": torch.bool,
    "dynamic": torch.float32,
    "gradients": torch.float32,
}

# Ops that have no right answer to compare with, or none here: a pattern of names, and why.
INELIGIBLE = (
    (r"(bernoulli|cauchy|exponential|geometric|log_normal|multinomial|normal|uniform|rand\w*)(/.*)?", "random"),
    (r"nn\.functional\.(alpha_dropout|dropout\d?d?|feature_alpha_dropout/with_train|rrelu)", "random"),
    (r"nn\.functional\.fractional_max_pool\dd|svd_lowrank|pca_lowrank", "random"),
    (r"(new_)?empty(_like|_strided|_permuted)?", "memory that nothing was written to"),
    (r"resize_|resize_as_|zero_", "in place only"),
    (r"sparse\..*|to_sparse", "sparse"),
    (r"jiterator_.*|torch\._scaled_mm.*|torch\.ops\.aten\._(flash|efficient)_attention_forward", "GPUs only"),
    (r"nn\.functional\.batch_norm/without_cudnn", "GPUs only"),
)


@dataclass(frozen=True, eq=False)
class Sample:
    """One call: `function(*tensors)` puts the tensors where they belong among the other arguments."""

    op: Any
    tensors: tuple[torch.Tensor, ...]
    leaves: tuple[Any, ...]
    places: tuple[int, ...]
    spec: pytree.TreeSpec
    process: Any

    def function(self, *tensors: Any) -> Any:
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return self.op(*args, **kwargs)

    def others(self) -> tuple[Any, Any]:
        """The arguments after the first, by place and by name."""
        args, kwargs = pytree.tree_unflatten(list(self.leaves), self.spec)
        return args[1:], kwargs


@functools.cache
def database() -> dict[str, Any]:
    """Ops by name, with the variant after a slash."""
    if importlib.util.find_spec("expecttest") is None:
        # torch's own tests need it, the samples do not.
        module = types.ModuleType("expecttest")
        module.TestCase = unittest.TestCase  # type: ignore[attr-defined]
        sys.modules["expecttest"] = module
    from torch.testing._internal.common_methods_invocations import op_db

    return {op.name + (f"/{op.variant_test_name}" if op.variant_test_name else ""): op for op in op_db}


def ineligible(name: str) -> str:
    """Why an op is left out, or ''."""
    return next((why for pattern, why in INELIGIBLE if re.fullmatch(pattern, name)), "")


def dtype_of(name: str, pass_: str) -> torch.dtype | None:
    """What an op's samples are made of in a pass, None where it has no part in it. Ops of integers alone take i64 where
    others take f32."""
    op, wanted = database()[name], DTYPES[pass_]
    if ineligible(name):
        return None
    supported = op.supported_dtypes("cpu")
    if pass_ == "gradients":
        return wanted if op.supports_autograd and wanted in supported else None
    if wanted in supported:
        return wanted
    return torch.int64 if pass_ in ("f32", "dynamic") and torch.int64 in supported else None


def names_of(pass_: str) -> list[str]:
    return [name for name in database() if dtype_of(name, pass_) is not None]


@functools.lru_cache(maxsize=2)
def samples_of(name: str, pass_: str, seed: int) -> list[Sample]:
    """All samples of an op for a pass, the same in each process."""
    op = database()[name]
    torch.manual_seed(seed)
    # Several of them draw with these.
    import random

    import numpy as np

    random.seed(seed)
    np.random.seed(seed)
    given = op.sample_inputs("cpu", dtype_of(name, pass_), requires_grad=pass_ == "gradients")
    return [_sample(op, one) for one in given]


def _sample(op: Any, given: Any) -> Sample:
    leaves, spec = pytree.tree_flatten(((given.input, *given.args), dict(given.kwargs)))
    places = tuple(place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor))
    tensors = tuple(leaves[place] for place in places)
    constants = tuple(None if place in places else leaf for place, leaf in enumerate(leaves))
    return Sample(op, tensors, constants, places, spec, given.output_process_fn_grad)


def copies(tensors: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    """With the same strides and place in their storage, which some ops look at."""
    return [_copy(tensor) for tensor in tensors]


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.detach().resolve_conj().resolve_neg()
    storage = plain.untyped_storage().clone()
    made = torch.empty(0, dtype=plain.dtype).set_(storage, plain.storage_offset(), plain.shape, plain.stride())
    return made.requires_grad_(tensor.requires_grad)
