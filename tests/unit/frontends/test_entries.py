"""Several entry points in one module: calls by name, weights and kernels stored once, files, tools, wrong names."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import CallError, UsageError  # noqa: E402
from eyas.module import container  # noqa: E402
from eyas.pipelines import driver  # noqa: E402
from eyas.pipelines.dumps import read_dump  # noqa: E402
from eyas.pipelines.request import Phase, Request  # noqa: E402


class Decoder(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder, self.head = encoder, nn.Linear(128, 10)

    def forward(self, x, scale):
        return {"logits": self.head(self.encoder(x)) * scale}


@pytest.fixture(scope="module")
def models():
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU()).eval()
    return encoder, Decoder(encoder).eval(), torch.randn(4, 64), torch.randn(4, 10)


@pytest.fixture(scope="module")
def module(models):
    encoder, decoder, x, scale = models
    return eyas.compile({"encode": (encoder, (x,)), "decode": eyas.Entry(decoder, (x,), kwargs={"scale": scale})})


def test_entries_are_called_by_name(models, module, tmp_path):
    encoder, decoder, x, scale = models
    module.save(tmp_path / "m.eyas")
    for one in (module, eyas.load(tmp_path / "m.eyas")):
        torch.testing.assert_close(one.encode(x), encoder(x))
        torch.testing.assert_close(one["decode"](x, scale=scale)["logits"], decoder(x, scale)["logits"])
        assert list(one.entries) == ["encode", "decode"]
        assert str(one.encode.signature) == "(input: f32[4,64]) -> (output: f32[4,128])"


def test_equal_weights_and_kernels_are_stored_once(module, tmp_path):
    names = [kernel["name"] for kernel in module.manifest["kernels"]]
    assert len(names) == 2, "the encoder's kernel serves both"
    module.save(tmp_path / "m.eyas")
    opened = container.read(tmp_path / "m.eyas")
    weights = 4 * (64 * 128 + 128 + 128 * 10 + 10)
    assert container.stored_bytes(opened.program.parameters) == weights
    assert weights <= len(opened.parameters) < weights + 64 * 4


def test_equal_names_of_different_weights_are_kept_apart():
    torch.manual_seed(0)
    models = {name: nn.Linear(32, 32).eval() for name in ("a", "b")}
    x = torch.randn(2, 32)
    module = eyas.compile({name: (model, (x,)) for name, model in models.items()})
    for name, model in models.items():
        torch.testing.assert_close(module[name](x), model(x))


def test_external_weights_are_shared(models, tmp_path):
    encoder, decoder, x, scale = models
    exported = eyas.export({"encode": (encoder, (x,)), "decode": (decoder, (x, scale))})
    outside = Request(exported.program, external_weights=tmp_path / "w.safetensors")
    driver.compile(outside).save(tmp_path / "m.eyas")
    assert (tmp_path / "w.safetensors").stat().st_size < 4 * (64 * 128 + 128 * 10) + 2500
    torch.testing.assert_close(eyas.load(tmp_path / "m.eyas").encode(x), encoder(x))


def test_dumps_of_several_entries_resume(models, tmp_path):
    encoder, decoder, x, scale = models
    exported = eyas.export({"encode": (encoder, (x,)), "decode": (decoder, (x, scale))})
    compilation = driver.run(Request(exported.program, last=Phase.SCHEDULE))
    dump = read_dump(compilation.as_text(), compilation.parameters)
    again = driver.compile(Request(dump, after=Phase.SCHEDULE)).load()
    torch.testing.assert_close(again["decode"](x, scale)["logits"], decoder(x, scale)["logits"])


def test_dynamic_shapes_are_each_entrys_own():
    class Scale(nn.Module):
        def forward(self, x):
            return x * 2

    batch = torch.export.Dim("batch", min=1, max=8)
    x = torch.randn(3, 4)
    module = eyas.compile({"fixed": (Scale(), (x,)), "any": eyas.Entry(Scale(), (x,), dynamic_shapes=({0: batch},))})
    assert module["any"](np.ones((7, 4), np.float32)).shape == (7, 4)
    with pytest.raises(CallError, match="expected f32"):
        module.fixed(np.ones((7, 4), np.float32))


def test_what_is_missing_is_said(module):
    with pytest.raises(CallError, match="no entry point 'main'.*encode, decode"):
        module(np.ones((4, 64), np.float32))
    with pytest.raises(CallError, match="no entry point 'x'; it has: encode, decode"):
        module["x"]
    with pytest.raises(AttributeError, match="no attribute 'enc'; its entry points: encode, decode"):
        module.enc  # noqa: B018


@pytest.mark.parametrize("name", ["", "1a", "a.b", "_hidden", "a_dispatch_0", 3])
def test_names_are_checked(name):
    with pytest.raises(UsageError, match="cannot name an entry point"):
        eyas.compile({name: (nn.ReLU(), (torch.ones(3),))})


def test_wrong_entries_are_refused():
    with pytest.raises(UsageError, match="at least one"):
        eyas.compile({})
    with pytest.raises(UsageError, match=r"entry 'a': inputs must be a tuple.*write \(x,\)"):
        eyas.compile({"a": (nn.ReLU(), torch.ones(3))})
    with pytest.raises(UsageError, match="inputs of their own"):
        eyas.compile({"a": (nn.ReLU(), (torch.ones(3),))}, (torch.ones(3),))


def test_tools_know_entries(module, tmp_path, capsys):
    from eyas.cli.app import main

    path = str(tmp_path / "m.eyas")
    module.save(path)

    def run(*arguments):
        with pytest.raises(SystemExit) as done:
            main(list(arguments))
        return done.value.code, capsys.readouterr()

    code, output = run("inspect", path)
    assert code == 0 and "entry point    encode(" in output.out and "entry point    decode(" in output.out
    code, output = run("run", path, "--entry", "encode", "--input", "4x64xf32=1")
    assert code == 0 and "float32[4, 128]" in output.out
    code, output = run("run", path)
    assert code == 2 and "give --entry: the module has encode, decode" in output.err


def test_public_functions_of_mlir_are_entries(tmp_path):
    text = """
    func.func @double(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = arith.addf %x, %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    func.func @quadruple(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = call @double(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = call @double(%0) : (tensor<4xf32>) -> tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    """
    (tmp_path / "two.mlir").write_text(text)
    module = eyas.compile(tmp_path / "two.mlir")
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(module.double(x), 2 * x)
    np.testing.assert_array_equal(module.quadruple(x), 4 * x)
