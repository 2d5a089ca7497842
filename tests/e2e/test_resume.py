"""Every phase's dump is complete: resumed in a fresh context, with the weights beside it, it gives the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import CompileError  # noqa: E402
from eyas.pipelines import driver, weights_file  # noqa: E402
from eyas.pipelines.dumps import PARAMETERS_FILE, file_name, read_dump  # noqa: E402
from eyas.pipelines.request import Phase, Request  # noqa: E402


class Network(nn.Module):
    """Convolution, batch norm, residual, softmax, integer arguments, nested results, a dynamic batch."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(16, 24)
        self.conv = nn.Conv2d(3, 24, 3, padding=1)
        self.norm = nn.BatchNorm2d(24)
        self.dense = nn.Linear(24, 40)

    def forward(self, photo, word):
        seen = torch.relu(self.norm(self.conv(photo))).mean((2, 3)) + self.table(word)
        return {"scores": torch.softmax(self.dense(seen), -1), "seen": (seen,)}


@pytest.fixture(scope="module")
def dumped(tmp_path_factory):
    """A folder with all dumps, a call, and its results."""
    torch.manual_seed(0)
    model = Network().eval()
    model.norm.running_mean.normal_()
    model.norm.running_var.uniform_(0.5, 2)
    call = (torch.randn(2, 3, 9, 9), torch.tensor([3, 7]))
    batch = torch.export.Dim("batch", min=1, max=32)
    folder = tmp_path_factory.mktemp("dumps")
    eyas.compile(model, call, dynamic_shapes=({0: batch}, {0: batch}), dump_phases=folder)
    other = (torch.randn(5, 3, 9, 9), torch.tensor([0, 1, 2, 3, 4]))
    with torch.no_grad():
        return folder, [(one, model(*one)) for one in (call, other)]


def resume(folder, phase: Phase, weights=None) -> eyas.Module:
    weights = weights_file.read(folder / PARAMETERS_FILE) if weights is None else weights
    dump = read_dump((folder / file_name(phase)).read_text(), weights)
    return driver.compile(Request(dump, after=phase)).load()


@pytest.mark.parametrize("phase", list(Phase), ids=lambda phase: phase.value)
def test_resume_gives_the_same_numbers(dumped, phase):
    folder, calls = dumped
    module = resume(folder, phase)
    for call, expected in calls:
        result = module(*call)
        assert list(result) == ["scores", "seen"] and isinstance(result["seen"], tuple)
        torch.testing.assert_close(result["scores"], expected["scores"], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(result["seen"][0], expected["seen"][0], rtol=1e-4, atol=1e-5)
    assert module.manifest["provenance"]["source"].startswith("pytorch: ")
    assert len(module.manifest["provenance"]["source_digest"]) == 64


def test_the_weights_come_from_the_file(dumped):
    folder, calls = dumped
    weights = weights_file.read(folder / PARAMETERS_FILE)
    name = next(name for name, one in weights.items() if one.shape == (16, 24))
    changed = type(weights[name]).of_array(name, weights[name].array() + 1)
    call, expected = calls[0]
    result = resume(folder, Phase.HAL, {**weights, name: changed})(*call)
    torch.testing.assert_close(result["seen"][0], expected["seen"][0] + 1, rtol=1e-4, atol=1e-4)


def test_an_edited_dump_is_what_runs(tmp_path):
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %c = arith.constant dense<3.0> : tensor<4xf32>
      %0 = arith.mulf %x, %c : tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    assert (eyas.compile(text, dump_phases=tmp_path)(np.ones(4, np.float32)) == 3).all()
    dump = tmp_path / "3.dispatch.mlir"
    assert dump.read_text().count("3.000000e+00") == 1
    dump.write_text(dump.read_text().replace("3.000000e+00", "5.000000e+00"))
    assert (resume(tmp_path, Phase.DISPATCH, {})(np.ones(4, np.float32)) == 5).all()


def test_missing_weights_are_named(dumped):
    with pytest.raises(CompileError, match=r"needs the values of \d+ parameters.*such as '"):
        resume(dumped[0], Phase.HAL, {})


def test_text_without_a_signature_is_no_dump():
    with pytest.raises(CompileError, match="not a dump of a phase"):
        read_dump("func.func @main() { return }", {})


def test_weights_files_are_what_the_safetensors_library_reads(dumped, tmp_path):
    numpy_files = pytest.importorskip("safetensors.numpy")
    ours = weights_file.read(dumped[0] / PARAMETERS_FILE)
    theirs = numpy_files.load_file(dumped[0] / PARAMETERS_FILE)
    assert ours and ours.keys() == theirs.keys()
    for name, array in theirs.items():
        np.testing.assert_array_equal(ours[name].array(), array)
    mixed = {
        "a": np.arange(3, dtype=np.int8),
        "b": np.ones((2, 2)),
        "c": np.array([True, False]),
        "e": np.zeros((0, 4)),
    }
    numpy_files.save_file(mixed, tmp_path / "theirs.safetensors")
    read = weights_file.read(tmp_path / "theirs.safetensors")
    weights_file.write(tmp_path / "ours.safetensors", read)
    for name, array in numpy_files.load_file(tmp_path / "ours.safetensors").items():
        np.testing.assert_array_equal(array, mixed[name])
