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


@pytest.mark.long
def test_one_large_table_beside_an_onnx_file(tmp_path) -> None:
    onnx = pytest.importorskip("onnx")
    rows = int(2.2 * (1 << 30)) // 1024
    marked = np.array([0, (1 << 31) // 1024, rows - 1])
    table = np.memmap(tmp_path / "table.bin", np.float32, "w+", shape=(rows, 256))  # a file that is mostly holes
    table[marked] = np.random.default_rng(0).normal(size=(3, 256))
    tensor = onnx.TensorProto(name="table", dims=table.shape, data_type=onnx.TensorProto.FLOAT)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="table.bin")
    node = onnx.helper.make_node("Gather", ["table", "ids"], ["y"])
    ids = onnx.helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, [3])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [3, 256])
    graph = onnx.helper.make_graph([node], "graph", [ids], [y], [tensor])
    onnx.save(onnx.helper.make_model(graph, ir_version=9), tmp_path / "model.onnx")
    module = eyas.compile(tmp_path / "model.onnx", cache=False)
    np.testing.assert_array_equal(module(marked), table[marked])
