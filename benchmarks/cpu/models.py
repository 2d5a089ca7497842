"""The nine models of the CPU bars, all of batch 1 in f32, as files that any engine can open."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import models
from benchmarks.models import Case

ONNX_FILE, INPUTS_FILE, EXPECTED_FILE = "model.onnx", "inputs.npz", "expected.npz"


def resnet50_small() -> Case:
    """ResNet-50 on images of 28x28."""
    import torch

    large = models.resnet50()
    torch.manual_seed(1)
    return Case("ResNet-50 28x28", large.model, (torch.randn(1, 3, 28, 28),))


def deeplab_mobilenet() -> Case:
    """DeepLabV3 on MobileNetV3, 21 classes, 256x256; only the segmentation, not the auxiliary result."""
    import torch

    models.prepare_torchvision()
    import torchvision

    class Segment(torch.nn.Module):
        def __init__(self, network: torch.nn.Module) -> None:
            super().__init__()
            self.network = network

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            return self.network(image)["out"]

    torch.manual_seed(0)
    network = torchvision.models.segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None)
    models.calibrate_batch_norms(network, torch.randn(2, 3, 128, 128))
    return Case("DeepLabV3-MobileNet 256x256", Segment(network).eval(), (torch.randn(1, 3, 256, 256),))


def mobilebert() -> Case:
    """MobileBERT, 24 layers, sequence 128, with seeded weights."""
    import torch

    models.prepare_torchvision()
    from transformers import MobileBertConfig, MobileBertModel

    torch.manual_seed(0)
    model = MobileBertModel(MobileBertConfig()).eval()
    ids = torch.randint(1000, 20000, (1, 128))
    return Case("MobileBERT seq 128", model, (), {"input_ids": ids, "attention_mask": torch.ones_like(ids)})


def gpt2_decode(past: int = 64) -> Case:
    """One token through GPT-2 after `past` others; keys and values enter and leave, as a server keeps them."""
    import torch

    models.prepare_torchvision()
    from transformers import DynamicCache

    network = models.gpt2().model
    config = network.config

    class Decode(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, token: torch.Tensor, cache: list[tuple[torch.Tensor, torch.Tensor]]) -> Any:
            kept = DynamicCache(config=config)
            for layer, (keys, values) in enumerate(cache):
                kept.update(keys, values, layer)
            answer = self.network(input_ids=token, past_key_values=kept, use_cache=True)
            return answer.logits, [(layer.keys, layer.values) for layer in answer.past_key_values.layers]

    torch.manual_seed(0)
    shape = (1, config.n_head, past, config.n_embd // config.n_head)
    cache = [(torch.randn(shape), torch.randn(shape)) for _ in range(config.n_layer)]
    return Case(f"GPT-2 decode after {past}", Decode().eval(), (torch.randint(0, 50257, (1, 1)), cache))


def vit_small() -> Case:
    """ViT-small, patches of 16, 224x224, with seeded weights."""
    import torch

    models.prepare_torchvision()
    import timm

    torch.manual_seed(0)
    model = timm.create_model("vit_small_patch16_224", pretrained=False).eval()
    return Case("ViT-small", model, (torch.randn(1, 3, 224, 224),))


MODELS: dict[str, Callable[[], Case]] = {
    "resnet50": models.resnet50,
    "resnet50_28": resnet50_small,
    "mobilenet_v2": models.mobilenet_v2,
    "deeplabv3": deeplab_mobilenet,
    "minilm": models.minilm,
    "mobilebert": mobilebert,
    "gpt2": lambda: models.gpt2(64),
    "gpt2_decode": gpt2_decode,
    "vit_small": vit_small,
}


def write(name: str, folder: Path) -> str:
    """Writes a model as ONNX, its inputs, and PyTorch's answer; returns its title."""
    return write_case(MODELS[name](), folder)


def write_case(one: Case, folder: Path) -> str:
    """The same of a model that is built."""
    import torch

    inputs, expected = models.flat([*one.args, *one.kwargs.values()]), one.run()
    np.savez(folder / INPUTS_FILE, **{f"{at:03}": array for at, array in enumerate(inputs)})
    np.savez(folder / EXPECTED_FILE, **{f"{at:03}": array for at, array in enumerate(expected)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            one.model,
            one.args,
            str(folder / ONNX_FILE),
            kwargs=dict(one.kwargs),
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    return one.name


def load_arrays(path: Path) -> list[np.ndarray]:
    """The arrays of a file in the order in which they were written."""
    with np.load(path) as arrays:
        return [arrays[key] for key in sorted(arrays.files)]
