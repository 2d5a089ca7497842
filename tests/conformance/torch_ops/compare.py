"""Whether results are those of eager torch: type, shape and numbers, or what is unique about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

TOLERANCES = {torch.float16: (5e-3, 1e-3), torch.bfloat16: (2e-2, 1e-2)}
DEFAULT_TOLERANCE = (1e-4, 1e-5)


def difference(got: Any, want: Any, tolerance: tuple[float, float] | None = None) -> str:
    """What differs first, or ''."""
    ours, theirs = pytree.tree_leaves(got), pytree.tree_leaves(want)
    if len(ours) != len(theirs):
        return f"{len(ours)} results instead of {len(theirs)}"
    for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if problem := _difference(one, other, tolerance):
            return f"result {index} {problem}"
    return ""


def _difference(one: Any, other: Any, tolerance: tuple[float, float] | None) -> str:
    if not isinstance(other, torch.Tensor):
        equal = one == other or (one != one and other != other)
        if isinstance(other, float):
            one, other = torch.as_tensor(one), torch.tensor(other)
            equal = torch.allclose(one.double(), other.double(), *DEFAULT_TOLERANCE, equal_nan=True)
        return "" if equal else f"is {one} instead of {other}"
    if not isinstance(one, torch.Tensor):
        return f"is a {type(one).__name__} instead of a tensor"
    one, other = one.detach(), other.detach()
    if one.shape != other.shape or one.dtype != other.dtype:
        return f"is {one.dtype}{list(one.shape)} instead of {other.dtype}{list(other.shape)}"
    relative, absolute = tolerance or TOLERANCES.get(other.dtype, DEFAULT_TOLERANCE)
    if other.is_floating_point() or other.is_complex():
        wide = torch.complex128 if other.is_complex() else torch.float64
        near = torch.isclose(one.to(wide), other.to(wide), relative, absolute, equal_nan=True)
    else:
        near = one == other
    if bool(near.all()):
        return ""
    where = tuple(int(axis[0]) for axis in torch.nonzero(~near, as_tuple=True)) if near.dim() else ()
    count = f"differs in {int((~near).sum())} of {near.numel()}"
    return f"{count}, at {list(where)}: {one[where].item()} instead of {other[where].item()}"


class _WideTypes(TorchFunctionMode):
    """Functions that are told a type of floats make doubles."""

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if isinstance(kwargs.get("dtype"), torch.dtype) and kwargs["dtype"].is_floating_point:
            kwargs["dtype"] = torch.float64
        return function(*args, **kwargs)


def exact(function: Callable[..., Any], tensors: Sequence[torch.Tensor]) -> Any:
    """The results in f64, rounded to nothing; None where the function has other ideas."""
    try:
        with torch.no_grad(), _WideTypes():
            return function(*[_widened(tensor) for tensor in tensors])
    except Exception:
        return None


def near_exact(got: Any, want: Any, precise: Any) -> bool:
    """Whether results differ from eager's only because those are rounded more often than ours, or both as much."""
    ours, theirs, wide = pytree.tree_leaves(got), pytree.tree_leaves(want), pytree.tree_leaves(precise)
    if not len(ours) == len(theirs) == len(wide):
        return False
    for one, other, true in zip(ours, theirs, wide, strict=True):
        if not isinstance(other, torch.Tensor):
            if one != other:
                return False
        elif one.shape != other.shape or one.dtype != other.dtype or true.shape != one.shape:
            return False
        elif _difference(one, true.to(one.dtype), None) and not _as_near(one, other, true):
            return False
    return True


def _as_near(one: torch.Tensor, other: torch.Tensor, true: torch.Tensor) -> bool:
    """Whether one is no further than twice as far from the truth as the other: sums that cancel leave rounding."""
    if not one.numel() or not one.is_floating_point():
        return False
    ours, theirs = ((made.double() - true.double()).abs().max() for made in (one, other))
    return bool(ours <= 2 * theirs)


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    made = tensor.detach()
    return made.double() if made.is_floating_point() else made


# Factors that are unique only up to signs, phases or order: what is compared in their place. `values` are the results,
# the tensors are the arguments.
def _singular(values: Any, tensors: Sequence[torch.Tensor]) -> Any:
    u, s, vh = values
    return s, _product(u[..., : s.shape[-1]] * s[..., None, :], vh[..., : s.shape[-1], :]), _gram(u), _gram(vh.mH)


def _singular_old(values: Any, tensors: Sequence[torch.Tensor]) -> Any:
    u, s, v = values
    if not u.abs().sum() and not v.abs().sum():
        return values  # compute_uv=False gives zeros
    return _singular((u, s, v.mH), tensors)


def _symmetric(values: Any, tensors: Sequence[torch.Tensor]) -> Any:
    w, v = values
    return w, _product(v * w[..., None, :], v.mH), _gram(v)


def _general(values: Any, tensors: Sequence[torch.Tensor]) -> Any:
    w, v = values
    return _in_order(w), _product(tensors[0].to(v.dtype), v) - v * w[..., None, :], torch.linalg.vector_norm(v, dim=-2)


def _eigenvalues(values: Any, tensors: Sequence[torch.Tensor]) -> Any:
    (w,) = pytree.tree_leaves(values)
    return _in_order(w)


def _orthogonal(values: Any, tensors: Sequence[torch.Tensor]) -> Any:
    q, r = values
    if not q.numel():
        return r.abs()  # mode="r"
    return _product(q, r), _gram(q), r.tril(-1)


def _reflected(values: Any, tensors: Sequence[torch.Tensor]) -> Any:
    """What the reflectors of columns are that depend on others is rounding."""
    packed, factors = values
    rows, count = packed.shape[-2], factors.shape[-1]
    return _product(
        torch.linalg.householder_product(packed[..., : min(rows, count)], factors), packed[..., :count, :].triu()
    )


def _product(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return one @ other


def _gram(x: torch.Tensor) -> torch.Tensor:
    return x.mH @ x


def _in_order(w: torch.Tensor) -> torch.Tensor:
    return w.gather(-1, _order(w))


def _order(w: torch.Tensor) -> torch.Tensor:
    """Conjugates differ by their imaginary parts alone, which a sort of rounded real parts keeps together."""
    return ((w.real.double() * 1e3).round() * 1e6 + w.imag).argsort(-1)


def with_order(name: str, leaves: list[Any]) -> list[Any]:
    """Eigenvalues, and what there is for each of them, in an order that torch does not define."""
    if name not in ("linalg.eig", "linalg.eigvals"):
        return leaves
    places = _order(leaves[0].detach())
    columns = [leaf.gather(-1, places[..., None, :].expand(leaf.shape)) for leaf in leaves[1:]]
    return [leaves[0].gather(-1, places), *columns]


UNIQUE: dict[str, Callable[[Any, Sequence[torch.Tensor]], Any]] = {
    "linalg.svd": _singular,
    "svd": _singular_old,
    "linalg.eigh": _symmetric,
    "linalg.eig": _general,
    "linalg.eigvals": _eigenvalues,
    "linalg.qr": _orthogonal,
    "qr": _orthogonal,
    "geqrf": _reflected,
}


# Ops that give elements and where they are: torch does not say which place of several equal elements. By op, the names
# of the arguments after the tensor.
PLACES = {
    "argsort": ("dim", "descending", "stable"),
    "kthvalue": ("k", "dim", "keepdim"),
    "median": ("dim", "keepdim"),
    "mode": ("dim", "keepdim"),
    "nanmedian": ("dim", "keepdim"),
    "sort": ("dim", "descending", "stable"),
    "topk": ("k", "dim", "largest", "sorted"),
}


def unique(name: str, values: Any, tensors: Sequence[torch.Tensor], arguments: tuple[Any, Any] = ((), {})) -> Any:
    """What of an op's results torch defines. `arguments` are those after the first, by place and by name."""
    if name in PLACES and len(values) == (1 if name == "argsort" else 2):
        given = dict(zip(PLACES[name], arguments[0], strict=False)) | dict(arguments[1])
        if given.get("stable"):
            return values
        keepdim = given.get("keepdim", name in ("argsort", "sort", "topk"))
        # Places alone say which elements are meant.
        pair = (values[0] * 0, values[0]) if name == "argsort" else values
        return _elements(pair, tensors[0], given.get("dim", -1), keepdim)
    return UNIQUE[name](values, tensors) if name in UNIQUE else values


def _elements(values: Any, x: torch.Tensor, dim: int, keepdim: bool) -> Any:
    """Elements, what is at the places that are given for them, the type of places, and whether one is given twice."""
    elements, places = values
    if not x.dim():
        return values
    if places.dim() != (x.dim() if keepdim else x.dim() - 1):
        return values
    places = places if keepdim else places.unsqueeze(dim)
    inside = (places >= 0) & (places < max(x.shape[dim], 1))
    found = x.gather(dim, places.clamp(0, max(x.shape[dim] - 1, 0)).long())
    twice = places.sort(dim).values.diff(dim=dim) == 0
    return elements, found, inside.all(), twice.any(), str(places.dtype)
