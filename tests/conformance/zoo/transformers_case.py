"""A row of the tables of transformers: model class, configuration, how it is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from tests.conformance.zoo.build import Inputs, Named, enliven, libraries, mask, tokens
from tests.conformance.zoo.case import Case, Program

ENCODER = dict(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    max_position_embeddings=64,
)  # fmt: skip
DECODER = {**ENCODER, "num_key_value_heads": 2}
TEXT = ("input_ids", "attention_mask")


def text(sample: int) -> tuple[torch.Tensor, ...]:
    return tokens(), mask()


def row(
    name: str,
    model: str,
    config: str,
    options: Mapping[str, Any],
    *,
    names: Sequence[str] = TEXT,
    inputs: Inputs = text,
    results: Sequence[str] = (),
    attention: str | None = None,
    fixed: Mapping[str, Any] | None = None,
    statistics: Callable[[], tuple[Any, ...]] | None = None,
    rtol: float = 1e-4,
    batched: bool = True,
) -> Case:
    """`results` are those to compare, the first without them; `fixed` are further keywords of the call; `statistics`
    is the call from which batch norms take theirs."""

    def make() -> Program:
        libraries()
        import transformers

        settings = getattr(transformers, config)(**options)
        if attention:
            settings._attn_implementation = attention
        built = Named(getattr(transformers, model)(settings), names, results, fixed or {})
        return Program(enliven(built, statistics and statistics()), inputs)

    return Case(f"hf/{name}", make, rtol, batched)
