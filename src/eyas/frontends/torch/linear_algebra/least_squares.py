"""Least squares, as `torch.linalg.lstsq` has them. torch cannot trace it: whether it has residuals depends on ranks."""

from __future__ import annotations

import torch

from eyas.frontends.torch.linear_algebra import operators  # noqa: F401

Tensor = torch.Tensor


def lstsq(a: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None) -> tuple[Tensor, ...]:
    """The shortest x that brings a x nearest to b, from the singular values: solution, residuals, ranks and singular
    values, the last three as the driver gives them. Some drivers give residuals only where the columns of all matrices
    are independent; where they are not, the call fails."""
    if a.is_complex() or driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        return NotImplemented
    rows, columns = a.shape[-2:]
    is_vector = b.dim() == 1 or (b.dim() == a.dim() - 1 and b.shape == a.shape[:-1])
    right = (b.unsqueeze(-1) if is_vector else b).double()
    u, s, vh = torch.linalg.svd(a.double(), full_matrices=False)
    least = torch.finfo(a.dtype).eps * max(rows, columns) if rcond is None else rcond
    counts = s > least * s.amax(-1, keepdim=True) if min(rows, columns) else s > 0
    # Column by column of b, which may have fewer batches than a and the other way round.
    inverse = torch.where(counts, 1 / torch.where(counts, s, 1.0), 0.0).unsqueeze(-1)
    x = vh.mT @ (inverse * (u.mT @ right))
    residuals, rank, values = a.new_empty(0), a.new_empty(0, dtype=torch.int64), a.new_empty(0)
    if rows > columns and driver not in (None, "gelsy"):
        if driver != "gels":
            whole = (counts.sum(-1) == columns).all()
            torch.ops.eyas.check(whole, "linalg.lstsq: there are no residuals for a matrix that has not full rank")
        residuals = torch.square(right - a.double() @ x).sum(-2).to(a.dtype)
    if driver != "gels":
        rank = counts.sum(-1)
    if driver in ("gelsd", "gelss"):
        values = s.to(a.dtype)
    solution = (x.squeeze(-1) if is_vector else x).to(a.dtype)
    return torch.return_types.linalg_lstsq((solution, residuals, rank, values))
