"""Models of torchvision: classifiers, segmenters, detectors, video, optical flow."""

from __future__ import annotations

from typing import Any

import torch
from tests.conformance.zoo.build import Inputs, enliven, images, libraries
from tests.conformance.zoo.case import Case, Program
from torch import nn


class Segmentation(nn.Module):
    """The model's answer without its dictionary."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.model(image)["out"]


class Flow(nn.Module):
    """Two refinements of the flow between two images."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        return self.model(first, second, num_flow_updates=2)[-1]


class DetectorHeads(nn.Module):
    """A detector up to where sizes depend on the data: features, classes and boxes of every anchor."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.backbone, self.head = model.backbone, model.head

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
        features = list(self.backbone(image).values())
        return tuple(self.head(features).values())


class Proposals(nn.Module):
    """The features and the region proposal network's scores and deltas of Faster and Mask R-CNN."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.backbone, self.head = model.backbone, model.rpn.head

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
        scores, deltas = self.head(list(self.backbone(image).values()))
        return *scores, *deltas


def _case(name: str, model: str, inputs: Inputs, wrapper: Any = None, statistics: Any = None, **options: Any) -> Case:
    def make() -> Program:
        libraries()
        import torchvision

        built = torchvision.models.get_model(model, weights=None, **options)
        built = wrapper(built) if wrapper else built
        call = [torch.cat([one] * 3) + torch.randn(3, *one.shape[1:]) for one in inputs(0)]
        return Program(enliven(built, tuple(call)), inputs)

    return Case(f"tv/{name}", make)


def _classifier(name: str, size: int, **options: Any) -> Case:
    return _case(name, name, images(size), num_classes=10, **options)


def _segmenter(name: str) -> Case:
    return _case(name, name, images(64), Segmentation, num_classes=5, weights_backbone=None)


def _detector(name: str, wrapper: Any) -> Case:
    return _case(f"{name}-heads", name, images(64), wrapper, weights_backbone=None, num_classes=5)


CASES = (
    _classifier("alexnet", 64),
    _classifier("squeezenet1_1", 64),
    _classifier("shufflenet_v2_x0_5", 64),
    _classifier("vit_b_32", 64, image_size=64),
    _classifier("googlenet", 64, aux_logits=False, init_weights=False),
    _segmenter("deeplabv3_mobilenet_v3_large"),
    _segmenter("deeplabv3_resnet50"),
    _segmenter("fcn_resnet50"),
    _segmenter("lraspp_mobilenet_v3_large"),
    _detector("ssdlite320_mobilenet_v3_large", DetectorHeads),
    _detector("retinanet_resnet50_fpn", DetectorHeads),
    _detector("fasterrcnn_mobilenet_v3_large_320_fpn", Proposals),
    _detector("maskrcnn_resnet50_fpn", Proposals),
    _case("r3d_18-video", "r3d_18", lambda sample: (torch.randn(1, 3, 4, 32, 32),), num_classes=10),
    _case(
        "raft_small-flow", "raft_small", lambda sample: (torch.randn(1, 3, 128, 128), torch.randn(1, 3, 128, 128)), Flow
    ),
)
