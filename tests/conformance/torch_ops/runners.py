"""The ways to run samples: forward, with a first dimension of two sizes, and with gradients through `torch.compile`."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import torch
from tests.conformance.target import compile_options, sync_options
from tests.conformance.torch_ops.compare import difference, with_order
from tests.conformance.torch_ops.ops import Sample, copies
from torch.utils import _pytree as pytree

import eyas
from eyas.errors import EyasError, FrontendError, TargetError, UsageError
from eyas.frontends.torch.tensors import from_numpy

# The arguments, our results, eager's, and the function that gives them.
Call = tuple[Sequence[Any], Any, Any, Any]


LARGEST = 1000
"""What a size that varies is declared to be at most, or twice the sample's; at least it is that of the sample."""


MOST_TOGETHER = 5
"""Of how many tensors every part is tried, where not all can vary together."""


class Refusal(Exception):
    """Samples that did not come to results; `kind` is how."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


class Together(torch.nn.Module):
    """Calls samples one after the other."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        super().__init__()
        self.samples = list(samples)

    def forward(self, *tensors: torch.Tensor) -> list[list[Any]]:
        given = iter(tensors)
        return [_leaves(one.function(*[next(given) for _ in one.places])) for one in self.samples]


def skip_reason(sample: Sample, pass_: str) -> str:
    """Why a sample cannot be compared, or ''."""
    results = []
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in (0, 1):
            torch.manual_seed(seed)
            try:
                # Some functions of the database set the seed before each call.
                with mock.patch.object(torch, "manual_seed"):
                    results.append(sample.function(*copies(sample.tensors)))
            except Exception as error:
                return f"torch: {type(error).__name__}: {error}"
    if difference(*results, tolerance=(0.0, 0.0)):
        return "random"
    if pass_ == "dynamic" and next(_plans(sample), None) is None:
        return "no tensor whose first size alone can change"
    if pass_ == "gradients" and not _differentiable(sample):
        return "nothing to differentiate"
    return ""


def run_forward(samples: Sequence[Sample]) -> list[list[Call]]:
    module = _compile(samples, None)
    return [[call] for call in _calls(module, samples, [one.tensors for one in samples])]


def run_dynamic(samples: Sequence[Sample]) -> list[list[Call]]:
    """The first tensor's first dimension, and those of others that have the same size, or of some of them: a sample
    does not say which are the same by chance. What torch.export alone cannot leave open in any of these ways either is
    closed."""
    if len(samples) > 1:
        return _run_plans(samples, [next(_plans(sample)) for sample in samples])
    refused = None
    for plan in _plans(samples[0]):
        try:
            return _run_plans(samples, [plan])
        except Refusal as refusal:
            if refusal.kind != "export" or _torch_exports(samples[0], plan):
                raise
            refused = refused or refusal
    raise Refusal("closed", str(refused))


def _run_plans(samples: Sequence[Sample], plans: Sequence[_Resized]) -> list[list[Call]]:
    shapes = [shape for number, pair in enumerate(zip(samples, plans, strict=True)) for shape in _shapes(*pair, number)]
    module = _compile(samples, {"tensors": tuple(shapes)})
    first = _calls(module, samples, [one.tensors for one in samples])
    second = _calls(module, samples, [plan.tensors for plan in plans])
    return [list(pair) for pair in zip(first, second, strict=True)]


def _shapes(sample: Sample, plan: _Resized, number: int = 0) -> list[Any]:
    """What is declared: torch asks for a range where an op works with some sizes only."""
    size = sample.tensors[min(plan.dynamic)].shape[0]
    dim = torch.export.Dim(f"n{number}", min=size, max=max(LARGEST, 2 * size))
    return [{0: dim} if place in plan.dynamic else None for place in range(len(plan.tensors))]


def _torch_exports(sample: Sample, plan: _Resized) -> bool:
    """Whether torch.export traces a sample without us."""
    shapes = {"tensors": tuple(_shapes(sample, plan))}
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tensors = tuple(copies(sample.tensors))
            torch.export.export(Together([sample]).eval(), tensors, dynamic_shapes=shapes, strict=False)
    except Exception:
        return False
    return True


def run_gradients(samples: Sequence[Sample]) -> list[list[Call]]:
    """Results and gradients of all of them that have one."""
    with mock.patch("torch.testing._internal.common_methods_invocations.wrapper_set_seed", _call):
        return _run_gradients(samples)


def _call(function: Any, *args: Any, **kwargs: Any) -> Any:
    """In place of a call after the seed is set, which Dynamo cannot trace: what is random is not compared."""
    return function(*args, **kwargs)


def _run_gradients(samples: Sequence[Sample]) -> list[list[Call]]:
    torch._dynamo.reset()
    functions = [_processed(sample) for sample in samples]

    def together(groups: list[list[torch.Tensor]]) -> list[list[Any]]:
        return [function(*tensors) for function, tensors in zip(functions, groups, strict=True)]

    options = {key: value for key, value in compile_options().items() if value}
    compiled = torch.compile(together, backend="eyas", fullgraph=True, dynamic=False, options=options)
    given = [copies(sample.tensors) for sample in samples]
    try:
        results = compiled(given)
        ours = _with_gradients(results, given)
    except Exception as error:
        refusal = _refusal(error)
        if refusal.kind == "bug" and not _works_without_us(together, samples):
            refusal = Refusal("export", str(refusal))
        raise refusal from error
    calls = []
    for sample, function, made in zip(samples, functions, ours, strict=True):
        eager = copies(sample.tensors)
        (want,) = _with_gradients([function(*eager)], [eager])
        calls.append([(sample.tensors, made, want, _Gradients(function))])
    return calls


class _Gradients:
    """Results and gradients as a function, for f64."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *tensors: torch.Tensor) -> list[Any]:
        with torch.enable_grad():
            given = [one.requires_grad_(one.is_floating_point()) for one in tensors]
            return _with_gradients([self.function(*given)], [given])[0]


def _compile(samples: Sequence[Sample], dynamic_shapes: Any) -> Any:
    tensors = tuple(tensor for one in samples for tensor in copies(one.tensors))
    try:
        return eyas.compile(
            Together(samples).eval(),
            tensors,
            dynamic_shapes=dynamic_shapes,
            progress=False,
            **sync_options(),
        )
    except Exception as error:
        raise _refusal(error) from error


def _calls(module: Any, samples: Sequence[Sample], inputs: Sequence[Sequence[torch.Tensor]]) -> Iterator[Call]:
    """Results, and the arguments after the call, of one call of the module."""
    given = [copies(tuple(tensors)) for tensors in inputs]
    try:
        results = module(*[tensor for tensors in given for tensor in tensors])
    except Exception as error:
        raise _refusal(error) from error
    for sample, tensors, result, original in zip(samples, given, results, inputs, strict=True):
        eager = copies(tuple(original))
        want = _leaves(sample.function(*eager))
        if problem := difference(tensors, eager):
            raise Refusal("wrong", f"arguments after the call: {problem}")
        leaves = [_tensor(leaf) for leaf in result]
        yield original, leaves, want, lambda *wide, one=sample: _leaves(one.function(*wide))


def _leaves(result: Any) -> list[Any]:
    return pytree.tree_leaves(result)


def _tensor(leaf: Any) -> Any:
    """A module that is called without tensors does not know that torch calls it."""
    return from_numpy(leaf) if hasattr(leaf, "__array__") and not isinstance(leaf, torch.Tensor) else leaf


class _Resized:
    """Other arguments for a sample: `dynamic` are the places of tensors whose first size is another."""

    def __init__(self, tensors: list[torch.Tensor], dynamic: frozenset[int]) -> None:
        self.tensors, self.dynamic = tensors, dynamic


def _plans(sample: Sample) -> Iterator[_Resized]:
    sizes = [tensor.shape[0] for tensor in sample.tensors if tensor.dim()]
    if not sizes or sizes[0] < 2:
        return
    same = [i for i, tensor in enumerate(sample.tensors) if tensor.dim() and tensor.shape[0] == sizes[0]]
    others = same[1:] if len(same) <= MOST_TOGETHER else []
    fewer = (some for count in range(len(others) - 1, 0, -1) for some in itertools.combinations(others, count))
    for some in dict.fromkeys([tuple(same[1:]), *fewer, ()]):
        dynamic = frozenset([same[0], *some])
        tensors = [_longer(one) if i in dynamic else one for i, one in enumerate(sample.tensors)]
        try:
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made, before = (_leaves(sample.function(*copies(tuple(given)))) for given in (tensors, sample.tensors))
        except Exception:
            continue
        # No program returns as many tensors as a size says.
        if len(made) == len(before) and _MEANS.get(sample.op.name, _always)(*tensors):
            yield _Resized(tensors, dynamic)


def _always(*tensors: torch.Tensor) -> bool:
    return True


def _is_in_order(boundaries: torch.Tensor, *others: torch.Tensor) -> bool:
    """Whether a search means anything."""
    if others and others[-1].dtype == torch.int64 and others[-1].shape == boundaries.shape:
        boundaries = boundaries.gather(-1, others[-1])
    return bool((boundaries.diff() >= 0).all())


_MEANS = {
    "searchsorted": _is_in_order,
    "bucketize": lambda x, *others: all(map(_is_in_order, others)),
    "lu_unpack": lambda packed, pivots: pivots.shape[-1] == min(packed.shape[-2:]),
}
"""Ops that ask something of their arguments that they do not check."""


def _longer(tensor: torch.Tensor) -> torch.Tensor:
    """Some rows twice; values stay in their range, and the place in the storage is the same, which some ops look at."""
    made = torch.cat([tensor, tensor.flip(0), tensor[:1]])[: tensor.shape[0] + 3]
    before = made.new_zeros(tensor.storage_offset())
    return torch.cat([before, made.reshape(-1)])[before.numel() :].view(made.shape)


def _processed(sample: Sample) -> Any:
    """The op with what makes its results smooth functions of the arguments."""

    def function(*tensors: torch.Tensor) -> list[Any]:
        return with_order(sample.op.name, _leaves(sample.process(sample.function(*tensors))))

    return function


def _differentiable(sample: Sample) -> bool:
    try:
        tensors = copies(sample.tensors)
        return any(_has_gradient(leaf) for leaf in _processed(sample)(*tensors))
    except Exception:
        return False


def _has_gradient(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.requires_grad


def _with_gradients(results: list[list[Any]], tensors: Sequence[Sequence[torch.Tensor]]) -> list[list[Any]]:
    """The results of samples, each with the gradients of its tensors that want one for given ones of the results. They
    come at once: the backward graph of all samples is one."""
    outputs = [leaf for result in results for leaf in result if _has_gradient(leaf)]
    weights = [_weights(leaf) for leaf in outputs]
    wanted = [tensor for mine in tensors for tensor in mine if tensor.requires_grad]
    gradients = iter(torch.autograd.grad(outputs, wanted, weights, allow_unused=True))
    made = []
    for result, mine in zip(results, tensors, strict=True):
        taken = [(tensor, next(gradients)) for tensor in mine if tensor.requires_grad]
        zeros = [torch.zeros_like(tensor) if gradient is None else gradient for tensor, gradient in taken]
        made.append([leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in result] + zeros)
    return made


def _weights(leaf: torch.Tensor) -> torch.Tensor:
    """The same for a result of the same shape."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(leaf.shape, dtype=torch.float64, generator=generator).to(leaf.dtype)


def _works_without_us(function: Any, samples: Sequence[Sample]) -> bool:
    torch._dynamo.reset()
    try:
        given = [copies(sample.tensors) for sample in samples]
        results = torch.compile(function, backend="aot_eager", fullgraph=True, dynamic=False)(given)
        _with_gradients(results, given)
    except Exception:
        return False
    return True


def _refusal(error: BaseException) -> Refusal:
    """What kind of failure an exception is; Dynamo wraps ours."""
    if isinstance(error, Refusal):
        return error
    inner = getattr(error, "inner_exception", None)
    if isinstance(inner, BaseException):
        return _refusal(inner)
    if isinstance(error, FrontendError) and str(error).startswith("torch.export could not trace"):
        return Refusal("export", str(error))
    clean = isinstance(error, (FrontendError, UsageError, TargetError))
    if not clean and isinstance(error.__cause__, EyasError) and not isinstance(error, EyasError):
        return _refusal(error.__cause__)
    return Refusal("unsupported" if clean else "bug", f"{type(error).__name__}: {error}")
