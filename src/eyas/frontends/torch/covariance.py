"""Covariances and correlations, which torch cannot trace: it looks at a divisor to warn of it."""

from __future__ import annotations

import torch

Tensor = torch.Tensor


def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """How rows vary together over their columns, which may count several times or with weights. A divisor below 0 is
    0."""
    rows = input if input.dim() == 2 else input.reshape(1, -1)
    weights = aweights if fweights is None else fweights if aweights is None else fweights * aweights
    total = torch.full((), rows.shape[1], dtype=torch.int64) if weights is None else weights.sum()
    mean = (rows if weights is None else rows * weights).sum(1, keepdim=True) / total
    lost = correction
    if aweights is not None and weights is not None and correction != 0:
        lost = correction * (weights * aweights).sum() / total
    divisor = total - lost
    centred = rows - mean
    products = centred @ (centred if weights is None else centred * weights).mT.conj()
    return (products / torch.where(divisor <= 0, 0, divisor)).squeeze()


def corrcoef(input: Tensor) -> Tensor:
    """Covariances of rows that are scaled to vary by 1."""
    found = cov(input)
    if not found.dim():
        return found / found
    deviation = torch.sqrt(found.diagonal().real if found.is_complex() else found.diagonal())
    scaled = found / deviation.unsqueeze(1) / deviation.unsqueeze(0)
    if scaled.is_complex():
        return torch.complex(scaled.real.clamp(-1, 1), scaled.imag.clamp(-1, 1))
    return scaled.clamp(-1, 1)
