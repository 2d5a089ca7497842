"""One program for every CPU target: those that this machine runs give the host's numbers, the others say why not."""

from __future__ import annotations

import platform
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
import programs as p  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import CallError, ModuleError, TargetError  # noqa: E402
from eyas.targets import Target  # noqa: E402

X86 = platform.machine() == "x86_64"


def program() -> str:
    """A product, an exponential, a reduction over a dynamic size, integers, and a read at computed positions."""
    a, w, c, s, i = "tensor<?x17xf32>", p.tensor_type([17, 33]), "tensor<?x33xf32>", "tensor<?xf32>", "tensor<?xi32>"
    whole, row, one = p.affine(2, [0, 1]), p.affine(2, [0]), p.affine(1, [0])
    lines = "%c0 = arith.constant 0 : index\n%c33 = arith.constant 33 : i32\n" + f"%d = tensor.dim %x, %c0 : {a}\n"
    lines += p.filled("init", ["?", 33], "f32", "0.0", "%d") + p.filled("zeros", ["?"], "f32", "0.0", "%d")
    lines += f"%ei = tensor.empty(%d) : {i}\n%es = tensor.empty(%d) : {s}\n"
    lines += f"%y = linalg.matmul ins(%x, %w : {a}, {w}) outs(%init : {c}) -> {c}\n"
    body = "%q = arith.constant 0.125 : f32\n%m = arith.mulf %i0, %q : f32\n%r = math.exp %m : f32"
    lines += p.generic("e", [("y", c, whole)], ("init_e", c, whole), "pp", body, "f32")
    lines += p.generic("sum", [("e", c, whole)], ("zeros", s, row), "pr", "%r = arith.addf %i0, %o : f32", "f32")
    lines += p.generic(
        "j",
        [("i", i, one)],
        ("ei", i, one),
        "p",
        "%m = arith.muli %i0, %i0 : i32\n%r = arith.remui %m, %c33 : i32",
        "i32",
    )
    body = (
        f"%n = arith.index_cast %i0 : i32 to index\n%k = linalg.index 0 : index\n%r = tensor.extract %x[%k, %c0] : {a}"
    )
    body = body.replace("%c0]", "%n17]").replace(
        "%k =", "%c17 = arith.constant 17 : index\n%n17 = arith.remui %n, %c17 : index\n%k ="
    )
    lines += p.generic("g", [("j", i, one)], ("es", s, one), "p", body, "f32")
    return p.main([("x", a), ("w", w), ("i", i)], lines, [("sum", s), ("j", i), ("g", s)])


def inputs(rows: int):
    rng = np.random.default_rng(rows)
    return (
        p.random_array(rng, (rows, 17), "f32"),
        p.random_array(rng, (17, 33), "f32"),
        rng.integers(0, 33, rows).astype(np.int32),
    )


def expected(x, w, i):
    j = (i * i) % 33
    return np.exp(x.astype(np.float64) @ w / 8).sum(1).astype(np.float32), j, x[np.arange(len(x)), j % 17]


@pytest.mark.parametrize(
    "target", ["llvm-cpu", "llvm-cpu:x86_64", "llvm-cpu:x86_64:x86-64-v3", "llvm-cpu:x86_64:znver3"]
)
def test_targets_that_run_here(target):
    if not X86 and "x86" in target:
        pytest.skip("an x86-64 target")
    if not set(Target.parse(target).required_features) <= set(Target.host().required_features):
        pytest.skip(f"this CPU lacks features of {target}")
    module = eyas.compile(program(), target=target)
    assert module.manifest["provenance"]["target"] == str(Target.parse(target))
    for rows in (1, 7, 33, 100):
        given = inputs(rows)
        sums, integers, gathered = module(*given)
        wanted = expected(*given)
        np.testing.assert_allclose(sums, wanted[0], rtol=1e-5)
        np.testing.assert_array_equal(integers, wanted[1])
        np.testing.assert_array_equal(gathered, wanted[2])


@pytest.mark.parametrize(
    ("target", "machine"),
    [
        ("llvm-cpu:aarch64", 183),
        ("llvm-cpu:riscv64:+v", 243),
        ("llvm-cpu:riscv64", 243),
        ("llvm-cpu:aarch64:neoverse-v1", 183),
    ],
)
@pytest.mark.skipif(not X86, reason="says that the module is for another machine")
def test_other_machines_give_a_module_that_refuses_to_run(target, machine, tmp_path):
    arch = target.split(":")[1]
    module = eyas.compile(program(), target=target)
    with pytest.raises(CallError, match=f"cannot run here.*elf-{arch}.*compile the model for this machine"):
        module(*inputs(3))
    path = tmp_path / "other.eyas"
    module.save(path)
    with pytest.raises(ModuleError, match=f"elf-{arch}"):
        eyas.load(path)
    images = [data for data in entries(path.read_bytes()).values() if data[:4] == b"\x7fELF"]
    assert all(int.from_bytes(image[18:20], "little") == machine for image in images)
    assert eyas.compile(program())(*inputs(3))[0].shape == (3,)  # and this process goes on


def entries(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


@pytest.mark.skipif(not X86, reason="a feature of x86-64 CPUs")
def test_a_missing_feature_is_named():
    """Granite Rapids has matrix tiles that no machine of ours has."""
    if "amx-fp16" in Target.host().required_features:
        pytest.skip("this CPU has them")
    module = eyas.compile(program(), target="llvm-cpu:x86_64:graniterapids")
    with pytest.raises(CallError, match="needs the CPU feature '[a-z0-9-]+', which this machine .* does not have"):
        module(*inputs(3))


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("llvm-cpu:z80", "unknown architecture 'z80'. Allowed: x86_64"),
        ("toaster", "unknown backend 'toaster'. Allowed: llvm-cpu"),
        ("llvm-cpu:x86_64:znver9", "znver9"),
        ("llvm-cpu:x86_64:+teleport", "teleport"),
        ("", "target"),
    ],
)
def test_unknown_targets(target, message):
    with pytest.raises(TargetError) as caught:
        eyas.compile(program(), target=target)
    assert message in str(caught.value)
