"""Connectionist temporal classification. torch cannot trace its loss: the memory that it keeps for gradients has a size
that depends on lengths of targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._higher_order_ops.while_loop import while_loop_op

from eyas.frontends.torch.linear_algebra.operators import define

eyas = torch.ops.eyas
Tensor = torch.Tensor
_NEVER = float("-inf")


def _eager(log_probs: Tensor, targets: Tensor, times: Tensor, lengths: Tensor, blank: int) -> Tensor:
    return torch.ctc_loss(log_probs, targets, times, lengths, blank, 0, False)


define(
    "ctc(Tensor log_probs, Tensor targets, Tensor times, Tensor lengths, int blank) -> Tensor",
    lambda log_probs, targets, times, lengths, blank: log_probs.new_empty(log_probs.shape[1]),
    _eager,
)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {eyas.ctc.default: losses}


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str | int = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """As torch has it: for one sequence or several, whose targets are rows or lie one behind the other."""
    times, lengths = (_vector(given, log_probs) for given in (input_lengths, target_lengths))
    several = log_probs.dim() == 3
    probs = log_probs if several else log_probs.unsqueeze(1)
    if targets.dim() == 1:
        targets = _rows(targets, target_lengths, lengths) if several else targets.unsqueeze(0)
    is_short = ((times <= probs.shape[0]) & (lengths <= targets.shape[1])).all()
    eyas.check(is_short, "ctc_loss: a length is greater than the size that it is within")
    result = eyas.ctc(probs, targets.to(torch.int64), times, lengths, blank)
    if zero_infinity:
        result = torch.where(result == float("inf"), 0.0, result)
    if reduction in ("mean", 1):
        return (result / lengths.clamp(min=1).to(result.dtype)).mean()
    if reduction in ("sum", 2):
        return result.sum()
    return result if several else result.squeeze(0)


def losses(log_probs: Tensor, targets: Tensor, times: Tensor, lengths: Tensor, blank: int) -> Tensor:
    """Minus the logarithm of how likely each target is: the sum over all ways to spell it, with blanks between equal
    letters and as many as one likes elsewhere, step by step."""
    blanks = torch.full_like(targets, blank)
    letters = torch.cat(
        [torch.stack([blanks, targets], -1).flatten(1), blanks.new_full((targets.shape[0], 1), blank)], 1
    )
    before = torch.cat([letters[:, :2], letters[:, :-2]], 1)
    may_skip = letters != before
    place = torch.arange(letters.shape[1], device=targets.device)
    start = _likelihoods(log_probs, torch.zeros_like(times[0]), letters)
    start = torch.where(place < torch.where(lengths > 0, 2, 1).unsqueeze(1), start, _NEVER)

    def is_left(step: Tensor, ways: Tensor, log_probs: Tensor, *fixed: Tensor) -> Tensor:
        return step < log_probs.shape[0]

    def go_on(
        step: Tensor, ways: Tensor, log_probs: Tensor, letters: Tensor, may_skip: Tensor, times: Tensor
    ) -> tuple[Tensor, Tensor]:
        one = torch.nn.functional.pad(ways, (1, 0), value=_NEVER)[:, :-1]
        two = torch.nn.functional.pad(ways, (2, 0), value=_NEVER)[:, :-2]
        came = _sum([ways, one, torch.where(may_skip, two, _NEVER)])
        moved = came + _likelihoods(log_probs, step, letters)
        return step + 1, torch.where((step < times).unsqueeze(1), moved, ways)

    first = torch.ones_like(times[0])
    extra = (log_probs, letters, may_skip, times)
    ways = while_loop_op(is_left, go_on, (first, start), extra)[1]  # pyright: ignore[reportArgumentType]  # the stubs know one carried value
    ends = (2 * lengths).unsqueeze(1)
    last = ways.gather(1, ends).squeeze(1)
    letter = torch.where(lengths > 0, ways.gather(1, (ends - 1).clamp(min=0)).squeeze(1), _NEVER)
    spelled = -_sum([last, letter])
    return torch.where(times > 0, spelled, torch.where(lengths > 0, float("inf"), 0.0))


def _likelihoods(log_probs: Tensor, step: Tensor, letters: Tensor) -> Tensor:
    return log_probs.index_select(0, step.reshape(1)).squeeze(0).gather(1, letters)


def _sum(logarithms: Sequence[Tensor]) -> Tensor:
    """Of numbers that are known by their logarithms, among them 0."""
    largest = logarithms[0]
    for one in logarithms[1:]:
        largest = torch.maximum(largest, one)
    shift = torch.where(largest == _NEVER, 0.0, largest)
    total = torch.exp(logarithms[0] - shift)
    for one in logarithms[1:]:
        total = total + torch.exp(one - shift)
    return torch.log(total) + shift


def _vector(lengths: Tensor | Sequence[int], like: Tensor) -> Tensor:
    if not isinstance(lengths, Tensor):
        lengths = torch.tensor(lengths, dtype=torch.int64, device=like.device)
    return lengths.to(torch.int64).reshape(-1)


def _rows(targets: Tensor, given: Tensor | Sequence[int], lengths: Tensor) -> Tensor:
    """Rows of targets that lie one behind the other; what is behind a row's end does not matter."""
    longest = targets.shape[0] if isinstance(given, Tensor) else max(given, default=0)
    begin = lengths.cumsum(0) - lengths
    places = begin.unsqueeze(1) + torch.arange(longest, device=targets.device)
    return targets[places.clamp(max=targets.shape[0] - 1)]
