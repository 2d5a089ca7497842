"""The public API: modules take the model's own call and give its own results; exported programs print and compile."""

from __future__ import annotations

import collections
import json
import os
from dataclasses import dataclass

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import CallError, ModuleError, UsageError  # noqa: E402
from eyas.module import container  # noqa: E402

Pair = collections.namedtuple("Pair", ["first", "second"])


@dataclass
class Output:
    """As Hugging Face's ModelOutput: a registered dataclass."""

    total: torch.Tensor
    rest: torch.Tensor


torch.export.register_dataclass(Output)


class Nested(nn.Module):
    def forward(self, batch, pair, scale=None, flag=True):
        total = batch["x"] + pair[0] * pair[1]
        if scale is not None:
            total = total * scale
        return {"total": total if flag else -total, "parts": [pair[0] + 1, (pair[1] * 3,)], "none": None, "three": 3}


@pytest.fixture(scope="module")
def nested():
    call = ({"x": torch.arange(4.0)}, (torch.ones(4), torch.full((4,), 2.0)))
    return call, eyas.compile(Nested(), call, kwargs={"scale": torch.full((4,), 10.0)})


def test_nested_call_and_results(nested):
    (batch, pair), module = nested
    scale = torch.full((4,), 10.0)
    result = module(batch, pair, scale=scale)
    assert list(result) == ["total", "parts", "none", "three"] and result["none"] is None and result["three"] == 3
    torch.testing.assert_close(result["total"], (torch.arange(4.0) + 2) * 10)
    assert isinstance(result["parts"], list) and isinstance(result["parts"][1], tuple)
    by_name = module(pair=pair, batch=batch, scale=scale)
    torch.testing.assert_close(by_name["total"], result["total"])


def test_numpy_gives_numpy(nested):
    module = nested[1]
    ones = np.ones(4, np.float32)
    result = module({"x": ones}, [ones, ones], scale=ones)
    assert type(result["total"]) is np.ndarray and (result["total"] == 2).all()


def test_wrong_calls_say_what_is_wrong(nested):
    (batch, pair), module = nested
    scale = torch.ones(4)
    with pytest.raises(CallError, match="'scale' is missing"):
        module(batch, pair)
    with pytest.raises(CallError, match=r"argument 'batch' has no 'x'"):
        module({"y": scale}, pair, scale=scale)
    with pytest.raises(CallError, match="unknown argument 'shift'"):
        module(batch, pair, scale=scale, shift=1)
    with pytest.raises(CallError, match=r"expected f32\[4\], got f32\[5\]"):
        module({"x": torch.ones(5)}, pair, scale=scale)


def test_saved_modules_keep_the_call(nested, tmp_path):
    (batch, pair), module = nested
    module.save(tmp_path / "m.eyas")
    again = eyas.load(tmp_path / "m.eyas")
    scale = torch.full((4,), 10.0)
    torch.testing.assert_close(again(batch, pair, scale=scale)["total"], module(batch, pair, scale=scale)["total"])
    flat = again.functions["main"](batch["x"], *pair, scale)
    torch.testing.assert_close(flat[0], again(batch, pair, scale=scale)["total"])
    assert not list(tmp_path.glob("*.part"))


class Named(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        return self.kind(x + 1, x * 2)


def test_objects_come_back_as_themselves():
    x = torch.arange(4.0)
    result = eyas.compile(Named(Output), (x,))(x)
    assert isinstance(result, Output)
    torch.testing.assert_close(result.rest, x * 2)
    pair = eyas.compile(Named(Pair), (x,))(x)
    assert isinstance(pair, Pair)
    torch.testing.assert_close(pair.first, x + 1)


def test_a_file_cannot_name_a_function_to_call(tmp_path):
    x = torch.arange(4.0)
    eyas.compile(Named(Output), (x,)).save(tmp_path / "m.eyas")
    parts = container.read(tmp_path / "m.eyas")
    manifest = json.loads(json.dumps(parts.manifest).replace(f"{Output.__module__}:Output", "builtins:print"))
    assert "builtins:print" in json.dumps(manifest)
    images = {name: bytes(data) for name, data in parts.executables.items()}
    result = eyas.load(container.to_bytes(parts.program, images, (), manifest))(x)
    assert list(result) == ["total", "rest"]


@pytest.mark.parametrize("call", [{}, {"in": 3, "out": "leaf"}, {"in": {"positional": "leaf"}}, [], {"out": "leaf"}])
def test_a_damaged_call_in_the_manifest_is_an_error(call, tmp_path):
    eyas.compile(Named(Output), (torch.ones(4),)).save(tmp_path / "m.eyas")
    parts = container.read(tmp_path / "m.eyas")
    images = {name: bytes(data) for name, data in parts.executables.items()}
    damaged = container.to_bytes(parts.program, images, (), {**parts.manifest, "calls": {"main": call}})
    with pytest.raises(ModuleError, match="'calls' cannot be read"):
        eyas.load(damaged)


class Plain(nn.Module):
    def forward(self, x, y):
        return x + y, x * y


def test_flat_calls_have_nothing_around_them():
    x = torch.ones(4)
    module = eyas.compile(Plain(), (x, x))
    assert "calls" not in module.manifest
    assert module._call is module.functions["main"].call
    total, product = module(x, y=x)
    assert total.tolist() == [2.0] * 4 and product.tolist() == [1.0] * 4


class Single(nn.Module):
    def forward(self, x):
        return (x + 1,)


def test_a_tuple_of_one_stays_a_tuple():
    (result,) = eyas.compile(Single(), (torch.zeros(4),))(torch.zeros(4))
    assert result.tolist() == [1.0] * 4


def test_export_prints_the_torch_program_and_compiles_twice():
    layer = nn.Linear(64, 32).eval()
    x = torch.randn(2, 64)
    exported = eyas.export(layer, x)
    assert "torch.aten" in str(exported) and str(exported) == exported.mlir
    assert "!torch.vtensor<[2,64],f32>" in exported.mlir
    assert "linalg" in exported.linalg and "torch.aten" not in exported.linalg
    assert set(exported.parameters) and str(exported.signature).startswith("(input: f32[2, 64])")
    for _ in range(2):
        torch.testing.assert_close(exported.compile()(x), layer(x), rtol=1e-4, atol=1e-5)
    assert "torch.aten" in str(exported)
    with pytest.raises(UsageError, match="already has its inputs"):
        eyas.compile(exported, (x,))


def test_example_inputs_must_be_a_tuple():
    with pytest.raises(UsageError, match=r"write \(x,\)"):
        eyas.compile(nn.Linear(4, 4), torch.zeros(1, 4))


def test_options_reach_the_compiler(tmp_path):
    x = torch.randn(8, 64)
    layer = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).eval()
    module = eyas.compile(layer, (x,), disable=("contraction", "rows"), dump_phases=tmp_path / "d", threads=1)
    assert {kernel["strategy"] for kernel in module.manifest["kernels"]} == {"loops"}
    assert len(list((tmp_path / "d").glob("*.mlir"))) == 7 and module.device.threads == 1
    assert module.manifest["flops"] == 2 * (2 * 8 * 64 * 64)
    torch.testing.assert_close(module(x), layer(x), rtol=1e-4, atol=1e-5)
    with pytest.raises(eyas.EyasError):
        eyas.compile(layer, (x,), max_arena_bytes=16)
    with pytest.raises(eyas.EyasError, match="unknown backend"):
        eyas.compile(layer, (x,), target="abacus")


def test_flops_of_dynamic_sizes_are_unknown():
    batch = torch.export.Dim("batch", max=64)
    module = eyas.compile(nn.Linear(8, 4), (torch.zeros(2, 8),), dynamic_shapes=({0: batch},))
    assert module.manifest["flops"] is None


def test_progress_goes_to_stderr_and_vanishes(capsys):
    eyas.compile(nn.Linear(8, 4), (torch.zeros(2, 8),), progress=True)
    assert capsys.readouterr().out == ""


def test_compiled_modules_leave_no_files_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    layer = nn.Linear(64, 64).eval()
    x = torch.randn(1, 64)
    module = eyas.compile(layer, (x,))
    assert list(tmp_path.iterdir()) == []
    module.save(tmp_path / "m.eyas")
    torch.testing.assert_close(eyas.load(tmp_path / "m.eyas")(x), layer(x), rtol=1e-4, atol=1e-5)
    handles = len(os.listdir("/proc/self/fd"))
    del module
    assert len(os.listdir("/proc/self/fd")) < handles


def test_a_module_for_another_machine_can_be_saved(tmp_path):
    module = eyas.compile(nn.Linear(8, 4), (torch.zeros(2, 8),), target="llvm-cpu:riscv64:+v")
    assert "riscv64" in repr(module) and len(module.manifest["kernels"]) > 0
    module.save(tmp_path / "m.eyas")
    assert container.read(tmp_path / "m.eyas").program.executables[0].format == "elf-riscv64"
    with pytest.raises(CallError, match="cannot run here"):
        module(torch.zeros(2, 8))


@pytest.mark.parametrize("shape", ["4", "?"])
def test_an_argument_may_be_returned_as_it_is(shape):
    type_ = f"tensor<{shape}xf32>"
    text = f"func.func @main(%x: {type_}, %y: {type_}) -> ({type_}, {type_}) {{\n"
    text += f"  %0 = arith.addf %x, %y : {type_}\n  return %x, %0 : {type_}, {type_}\n}}"
    x = np.arange(4, dtype=np.float32)
    same, total = eyas.compile(text)(x, x)
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(total, 2 * x)
    x[0] = 9  # results own their memory
    assert same[0] == 0


def test_equal_models_make_equal_files(tmp_path):
    """Nothing of the compilation itself, such as its duration, is in the file."""
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %e = tensor.empty() : tensor<4xf32>
      %y = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      return %y : tensor<4xf32>
    }"""
    for name in ("a.eyas", "b.eyas"):
        eyas.compile(text).save(tmp_path / name)
    assert (tmp_path / "a.eyas").read_bytes() == (tmp_path / "b.eyas").read_bytes()
