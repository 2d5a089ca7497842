"""One module, several sizes: MiniLM with dynamic batch and sequence, a convolutional network with dynamic batch."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.export import Dim

import eyas
from benchmarks import models
from benchmarks.report import Row, failure

BAR = 1e-4


def rows() -> Iterator[Row]:
    one = models.minilm(2, 16)
    shape = {0: Dim("batch", min=1, max=64), 1: Dim("sequence", min=2, max=512)}
    try:
        module = eyas.compile(one.model, kwargs=one.kwargs, dynamic_shapes={name: shape for name in one.kwargs})
    except eyas.EyasError as error:
        yield failure("MiniLM", "relative", BAR, error)
    else:
        for batch, sequence in ((1, 7), (2, 16), (3, 64), (1, 128)):
            ids = torch.randint(1000, 20000, (batch, sequence))
            inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
            error = models.relative_error(models.flat(module(**inputs)), one.run(**inputs))
            yield Row(f"MiniLM, batch {batch}, sequence {sequence}", error, "relative", BAR, "against PyTorch")
    network = models.mobilenet_v2()
    try:
        module = eyas.compile(network.model, (torch.randn(2, 3, 96, 96),), dynamic_shapes=({0: Dim("batch")},))
    except eyas.EyasError as error:
        yield failure("MobileNetV2", "relative", BAR, error)
        return
    for batch in (1, 2, 5):
        photo = torch.randn(batch, 3, 96, 96)
        error = models.relative_error(models.flat(module(photo)), network.run(photo))
        yield Row(f"MobileNetV2, batch {batch}", error, "relative", BAR, "against PyTorch")
