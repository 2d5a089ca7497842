"""Digests of ONNX files."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")

from eyas.cache.digest import Uncacheable  # noqa: E402
from eyas.frontends.onnx.fingerprint import fingerprint  # noqa: E402


def test_what_counts(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"a model")
    (tmp_path / "other.onnx").write_bytes(b"a model")
    x, y = np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float32)
    calls = [((), {}, None), ((x,), {}, None), ((y,), {}, None), ((x.astype(np.float64),), {}, None)]
    calls += [((), {"x": x}, None), ((), {}, {"x": [1, "n"]}), ((), {}, {"x": [1, "m"]}), ((), {}, {"x": {0: 1}})]
    seen = [fingerprint(str(path), *call) for call in calls] + [fingerprint(str(tmp_path / "other.onnx"), (), {}, None)]
    assert len(set(seen)) == len(seen)
    assert seen[1] == fingerprint(str(path), (x + 1,), {}, None)
    path.write_bytes(b"a modeL")
    assert fingerprint(str(path), (), {}, None) != seen[0]


def test_what_has_none(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"weights at location weights.bin")
    with pytest.raises(Uncacheable, match="other files"):
        fingerprint(str(path), (), {}, None)
    path.write_bytes(b"")
    with pytest.raises(Uncacheable):
        fingerprint(str(path), (), {}, None)
    path.write_bytes(b"a model")
    for call in (([1.0],), {}, None), ((), {}, {"x": object()}):
        with pytest.raises(Uncacheable):
            fingerprint(str(path), *call)
