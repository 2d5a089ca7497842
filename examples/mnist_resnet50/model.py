"""ResNet-50 for grey images of 28x28: torchvision's, with one channel in and ten classes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.models import prepare_torchvision

if TYPE_CHECKING:
    import torch


def resnet50(width: int = 64, blocks: Sequence[int] = (3, 4, 6, 3), open_branches: bool = False) -> torch.nn.Module:
    """The network with fresh, seeded weights; tests take a narrower and shallower one.

    Each residual branch begins as nothing (Goyal et al. 2017, section 5.1), which makes the first steps of a network
    of fifty layers safe. But what is left then sees one corner of the image, black in all of them, and gradients that
    are nothing but rounding; who compares steps wants `open_branches`.
    """
    import torch

    prepare_torchvision()
    from torchvision.models.resnet import Bottleneck, ResNet

    torch.manual_seed(0)
    model = ResNet(
        Bottleneck, list(blocks), num_classes=10, zero_init_residual=not open_branches, width_per_group=width
    )
    model.conv1 = torch.nn.Conv2d(1, 64, 7, stride=2, padding=3, bias=False)
    torch.nn.init.kaiming_normal_(model.conv1.weight, mode="fan_out", nonlinearity="relu")
    return model
