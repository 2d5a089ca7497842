"""Letters of languages, and what the other files do not have: a singer's pitch, a robot's head, sources in an EEG."""

from __future__ import annotations

import numpy as np
from tests.conformance.wild.case import Call, Wild, file
from tests.conformance.wild.data import sound


def _letters(name: str, most: int, *shapes: tuple[int, ...], dtype: type = np.int64) -> list[Call]:
    return [{name: np.random.default_rng(at).integers(1, most, shape).astype(dtype)} for at, shape in enumerate(shapes)]


def _arabic() -> list[Call]:
    calls = []
    for batch, length in ((1, 60), (3, 44)):
        letters = np.random.default_rng(batch).integers(1, 40, (batch, length))
        lengths = np.full(batch, length)
        lengths[-1] = length - 7
        calls.append({"char_inputs": letters, "diac_inputs": np.zeros_like(letters), "input_lengths": lengths})
    return calls


def _thai() -> list[Call]:
    calls = []
    for characters in (120, 33):
        random = np.random.default_rng(characters)
        shape = (characters, 21)
        names = {"input_1": 178, "input_2": 12}
        calls.append({name: random.integers(0, most, shape).astype(np.float32) for name, most in names.items()})
    return calls


def _pitch() -> list[Call]:
    limits = {"fmin": np.float32(46.875), "fmax": np.float32(2093.75)}
    return [
        {"audio": sound(start, samples)[None], **{name: np.array(limit) for name, limit in limits.items()}}
        for start, samples in ((1.0, 32000), (2.0, 9000))
    ]


def _head(joints: int) -> list[Call]:
    return [
        {"input": np.random.default_rng(rows).normal(0, 0.3, (rows, joints)).astype(np.float32)} for rows in (1, 40)
    ]


def _sources() -> list[Call]:
    """The answers of four views of a source are averaged: rows come in fours."""
    calls = []
    for rows in (4, 12):
        random = np.random.default_rng(rows)
        shapes = {"topo": (rows, 1, 32, 32), "psds": (rows, 1, 1, 100), "autocorr": (rows, 1, 1, 100)}
        calls.append({name: random.normal(0, 0.4, shape).astype(np.float32) for name, shape in shapes.items()})
    return calls


CASES = (
    Wild(
        "text/vowels-hebrew",
        (file("piper-tts==1.8.0", "piper/hebrew/nakdimon.onnx"),),
        lambda: _letters("input_1", 40, (1, 90), (3, 40), dtype=np.float32),
        about="which vowels are said: LSTMs of tf2onnx, batch and length open",
    ),
    Wild(
        "text/vowels-arabic",
        (file("piper-tts==1.8.0", "piper/tashkeel/model.onnx"),),
        _arabic,
        about="the same for Arabic, with lengths of rows",
    ),
    Wild(
        "text/thai-words",
        (file("pythainlp==5.4.0", "pythainlp/corpus/deepcut.onnx"),),
        _thai,
        about="where words end: convolutions of many widths",
    ),
    Wild(
        "music/swift-pitch",
        (file("swift-f0==0.3.0", "swift_f0/model.onnx"),),
        _pitch,
        about="a spectrum and its pitch in doubles, any length",
    ),
    Wild(
        "robot/head-int8",
        (file("reachy-mini==1.13.0", "reachy_mini/assets/models/fknetwork_int8.onnx"),),
        lambda: _head(7),
        exact=True,
        about="where the head of a robot is, quantised",
    ),
    Wild(
        "brain/sources",
        (file("mne-icalabel==0.10.0", "mne_icalabel/iclabel/network/assets/ICLabelNet.onnx"),),
        _sources,
        about="brain, eye or muscle: three networks in one",
    ),
)
