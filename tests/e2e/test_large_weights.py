"""Weights beyond 2 and 4 GiB: compiled, written, mapped, and read at their far end."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import eyas  # noqa: E402


@pytest.mark.long
@pytest.mark.parametrize("gigabytes", [2.2, 4.3])
def test_one_large_table(gigabytes: float, tmp_path) -> None:
    rows = int(gigabytes * (1 << 30)) // (256 * 4)
    table = torch.zeros(rows, 256)  # pages that nobody writes to take no memory
    marked = torch.tensor([0, 1, rows // 2, (1 << 31) // 1024, rows - 2, rows - 1])
    table[marked] = torch.randn(len(marked), 256)
    model = torch.nn.Embedding.from_pretrained(table)
    ids = torch.cat([marked, torch.tensor([5, rows - 3])])
    module = eyas.compile(model, (ids,), cache=False)
    torch.testing.assert_close(module(ids), table[ids], rtol=0, atol=0)
    path = tmp_path / "large.eyas"
    module.save(path)
    del module
    loaded = eyas.load(path, verify=True)
    np.testing.assert_array_equal(loaded(ids.numpy()), table[ids].numpy())
    path.unlink()
