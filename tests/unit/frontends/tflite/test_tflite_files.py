"""The reader of TFLite files: what is no model, is cut off or was changed gives one error of ours, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tflite", reason="the schema package is not installed")

from tests.tools.tflite_models import Graph, write  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import EyasError, FrontendError, UnsupportedOpError  # noqa: E402
from eyas.frontends.tflite.file import read  # noqa: E402
from eyas.frontends.tflite.importer import _entry_points, to_onnx  # noqa: E402


def model() -> bytes:
    """A convolution, a reshape, a product, a split: strings, vectors, options, quantisation."""
    random, g = np.random.default_rng(0), Graph()
    x = g.input((1, 6, 6, 2), "INT8", scale=0.1, zero=3)
    weights = random.integers(-127, 128, (4, 3, 3, 2)).astype(np.int8)
    w = g.constant(weights, scale=random.uniform(0.01, 0.02, 4).astype(np.float32), zero=0)
    b = g.constant(np.arange(4, dtype=np.int32), scale=0.001)
    y = g.tensor((1, 4, 4, 4), "INT8", scale=0.2, zero=0)
    g.op("CONV_2D", [x, w, b], [y], Padding=1, StrideH=1, StrideW=1, DilationHFactor=1, DilationWFactor=1)
    flat = g.tensor((1, 64), "INT8", scale=0.2, zero=0)
    g.op("RESHAPE", [y, g.constant(np.int32([1, 64]))], [flat], NewShape=[1, 64])
    real = g.tensor((1, 64))
    g.op("DEQUANTIZE", [flat], [real])
    halves = [g.tensor((1, 32)) for _ in range(2)]
    g.op("SPLIT", [g.constant(np.int32(1)), real], halves, NumSplits=2)
    g.output(*halves)
    return write(g, signatures={"main": 0})


def translate(data: bytes) -> None:
    file = read(np.frombuffer(data, np.uint8), "model.tflite")
    for signature in _entry_points(file):
        to_onnx(file, signature)


def test_what_is_no_model(tmp_path):
    for content, part in ((b"", "0 bytes"), (b"PK\x03\x04" + bytes(60), "no 'TFL3'"), (bytes(4) + b"TFL3", "damaged")):
        path = tmp_path / "model.tflite"
        path.write_bytes(content)
        with pytest.raises(FrontendError, match=part):
            eyas.compile(path)
    with pytest.raises(FrontendError, match="no such file"):
        eyas.compile(tmp_path / "missing.tflite")


def test_an_operator_without_translation_is_named():
    g = Graph()
    x, y = g.input((2,)), g.tensor((2,))
    g.op("CUSTOM:MadeUp", [x], [y])
    g.output(y)
    with pytest.raises(UnsupportedOpError, match="MadeUp_0 is not supported"):
        translate(write(g))


def test_cut_off_files():
    data = model()
    translate(data)
    for length in range(8, len(data), 37):
        with pytest.raises(EyasError):
            translate(data[:length])


@pytest.mark.parametrize("seed", range(4))
def test_changed_bytes(seed):
    """Still a model, or one error of ours: never another exception, and never much memory."""
    random, data = np.random.default_rng(seed), np.frombuffer(model(), np.uint8)
    for _ in range(120):
        changed = data.copy()
        for place in random.integers(8, len(data), random.integers(1, 4)):
            if random.random() < 0.5:
                changed[place] = random.integers(256)
            else:
                word = random.choice([0, 1, 255, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x10000]).astype("<u4")
                at = min(int(place) // 4 * 4, len(data) - 4)
                changed[at : at + 4] = np.frombuffer(word.tobytes(), np.uint8)
        try:
            translate(changed.tobytes())
        except EyasError as error:
            assert len(str(error)) < 600
