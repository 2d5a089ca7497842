"""Bad input of every kind gives one clear error of ours, and the process goes on as if nothing had happened."""

from __future__ import annotations

import logging
import re

import numpy as np
import pytest

import eyas
from eyas.errors import (
    CallError,
    EyasError,
    FrontendError,
    ModuleError,
    TargetError,
    UnsupportedOpError,
    UsageError,
)
from eyas.ir import make_context, parse_module
from eyas.passes import parse_pipeline

TEXT = """func.func @main(%x: tensor<4x8xf32>, %n: tensor<?xi32>) -> tensor<4x8xf32> {
  %0 = arith.addf %x, %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}"""
X, N = np.arange(32, dtype=np.float32).reshape(4, 8), np.ones(3, np.int32)


@pytest.fixture(scope="module")
def module():
    return eyas.compile(TEXT)


@pytest.fixture(autouse=True)
def the_process_goes_on(module):
    yield
    np.testing.assert_array_equal(module(X, N), 2 * X)


def one_error(kind: type[EyasError], *parts: str):
    """A context in which exactly this error is raised, with all `parts` in its text, in few lines."""

    class Check:
        def __enter__(self):
            return self

        def __exit__(self, type_, error, traceback):
            assert error is not None, "nothing was raised"
            if not isinstance(error, kind):
                return False
            for part in parts:
                assert part in str(error), (part, str(error))
            assert len(str(error)) < 900 and str(error).count("\n") <= 1, str(error)
            return True

    return Check()


# Calls


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ((), ["'main' takes 2 arguments (arg0, arg1), got 0"]),
        ((X,), ["takes 2 arguments", "got 1"]),
        ((X, N, N), ["takes 2 arguments", "got 3"]),
        ((X[:, :7], N), ["argument 0 'arg0'", "expected f32[4,8]", "got f32[4,7]", "dimension 1 must be 8"]),
        ((X.reshape(-1), N), ["expected f32[4,8]", "got f32[32]", "2 dimensions"]),
        ((X.astype(np.float64), N), ["expected f32[4,8]", "got f64[4,8]", "element type must be f32"]),
        ((X, N.astype(np.int64)), ["argument 1 'arg1'", "i32", "i64"]),
        ((None, N), ["argument 0 'arg0'", "expected an array", "NoneType"]),
        ((X.tolist(), N), ["expected an array", "list"]),
        ((X.astype(object), N), ["argument 0 'arg0'", "astype"]),
        ((X, "three"), ["argument 1 'arg1'", "expected an array", "str"]),
    ],
    ids=["none", "few", "many", "shape", "rank", "dtype", "dtype of the second", "None", "list", "objects", "text"],
)
def test_wrong_calls(module, arguments, parts):
    with one_error(CallError, *parts):
        module(*arguments)


def test_wrong_names(module):
    with one_error(CallError, "unknown or given twice: n", "missing: arg1"):
        module(X, n=N)
    with one_error(CallError, "given twice: arg0"):
        module(X, N, arg0=X)


def test_odd_but_legal_arrays(module):
    """Strides, byte order and read-only memory are no errors."""
    for array in (
        np.asfortranarray(X),
        X.astype(">f4"),
        np.frombuffer(X.tobytes(), np.float32).reshape(4, 8),
        X[::1, ::1],
    ):
        np.testing.assert_array_equal(module(array, N[::2]), 2 * X)
    reversed_ = X[::-1, ::-2].repeat(2, axis=1)[:, ::-1]
    np.testing.assert_array_equal(module(reversed_[::-1], N), 2 * reversed_[::-1])


def test_sizes_of_one_symbol_must_agree():
    torch = pytest.importorskip("torch")

    class Sum(torch.nn.Module):
        def forward(self, x, y):
            return x + y

    batch = torch.export.Dim("batch", min=2, max=9)
    call = (torch.ones(3, 4), torch.ones(3, 4))
    made = eyas.compile(Sum(), call, dynamic_shapes=({0: batch}, {0: batch}))
    assert made(torch.ones(5, 4), torch.ones(5, 4)).shape == (5, 4)
    with one_error(CallError, "argument 1 'y'", "batch", "5", "6"):
        made(torch.ones(5, 4), torch.ones(6, 4))
    with one_error(CallError, "batch", "9", "10"):
        made(torch.ones(10, 4), torch.ones(10, 4))
    with one_error(CallError, "batch", "1"):
        made(torch.ones(1, 4), torch.ones(1, 4))


# Models


@pytest.mark.parametrize("name", ["model.mlir", "model.onnx", "model.pt2", "model.stablehlo"])
def test_missing_files(tmp_path, name):
    with one_error(FrontendError, "no such file", name):
        eyas.compile(tmp_path / name)


@pytest.mark.parametrize("name", ["model.mlir", "model.mlirbc", "model.onnx", "model.pt2", "model.stablehlo"])
@pytest.mark.parametrize("kind", ["empty", "random", "text"])
def test_garbage_files(tmp_path, name, kind, caplog):
    caplog.set_level(logging.CRITICAL)
    random = np.random.default_rng(0).integers(0, 256, 3000, dtype=np.uint8).tobytes()
    (tmp_path / name).write_bytes({"empty": b"", "random": random, "text": b"It was a dark and stormy night;\n"}[kind])
    with one_error(FrontendError):
        eyas.compile(tmp_path / name)


@pytest.mark.parametrize(
    ("model", "kind", "parts"),
    [
        (3, FrontendError, ["cannot import a builtins.int", "torch.nn.Module"]),
        (None, FrontendError, ["NoneType", ".onnx"]),
        ("model.xyz", UsageError, ["model.xyz", ".onnx"]),
        ("weights.safetensors", UsageError, ["weights without a program"]),
        ("func.func @main( {\n", FrontendError, ["not valid MLIR", "line 1"]),
        ("module {\n}", FrontendError, ["function"]),
        (b"\x00\x01\x02", FrontendError, ["not valid MLIR"]),
        ("func.func @main(%x: memref<4xf32>) {\n return\n}", FrontendError, ["arg0", "memref<4xf32>"]),
        (
            "func.func @main(%x: tensor<*xf32>) -> tensor<*xf32> {\n return %x : tensor<*xf32>\n}",
            FrontendError,
            ["tensor<*xf32>"],
        ),
        ("func.func private @main(tensor<4xf32>) -> tensor<4xf32>\nmodule {\n}", FrontendError, ["main"]),
    ],
    ids=["int", "None", "ending", "weights", "syntax", "no function", "bytes", "memref", "unranked", "no body"],
)
def test_garbage_models(model, kind, parts):
    with one_error(kind, *parts):
        eyas.compile(model)


def test_unsupported_ops_are_named_with_their_line():
    torch = pytest.importorskip("torch")

    options = {"mutates_args": (), "schema": "(Tensor x) -> Tensor"}
    teleport = torch.library.custom_op("eyas_bad_input::teleport", lambda x: x / 2, **options)
    teleport.register_fake(torch.empty_like)

    class Moved(torch.nn.Module):
        def forward(self, x):
            return teleport(x)

    with one_error(UnsupportedOpError, "eyas_bad_input.teleport", "test_bad_input.py:", "not supported"):
        eyas.compile(Moved(), (torch.ones(4, 4),))


def test_unsupported_ops_of_onnx_are_named():
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [4])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [4])
    node = helper.make_node("TeleportationUnit", ["x"], ["y"], name="beam_me_up", domain="com.example")
    model = helper.make_model(
        helper.make_graph([node], "g", [x], [y]),
        opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("com.example", 1)],
    )
    with one_error(FrontendError, "TeleportationUnit"):
        eyas.compile(model)


def test_models_that_cannot_be_traced(caplog, capfd):
    torch = pytest.importorskip("torch")
    caplog.set_level(logging.CRITICAL)

    class Branch(torch.nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with one_error(FrontendError, "could not trace Branch", "must not branch on tensor values"):
        eyas.compile(Branch(), (torch.ones(4),))
    with one_error(FrontendError, "could not trace Linear", "same reduction dim"):
        eyas.compile(torch.nn.Linear(3, 3), (torch.ones(3, 4),))
    with one_error(UsageError, "needs example inputs"):
        eyas.compile(torch.nn.Linear(3, 3))
    with one_error(UsageError, "must be a tuple", "(x,)"):
        eyas.compile(torch.nn.Linear(3, 3), torch.ones(3, 3))


def two_sizes(target: str = "llvm-cpu"):
    """z = x + y in ONNX, where each of them has a dynamic size of its own."""
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    x, y, z = (helper.make_tensor_value_info(name, kind, [dim]) for name, dim in (("x", "N"), ("y", "M"), ("z", "K")))
    graph = helper.make_graph([helper.make_node("Add", ["x", "y"], ["z"])], "g", [x, y], [z])
    return eyas.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), target=target)


def test_dynamic_sizes_that_cannot_be_broadcast():
    with one_error(CallError):
        two_sizes()(np.ones(5, np.float32), np.ones(3, np.float32))


@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
def test_dynamic_sizes_of_one_are_broadcast_and_others_are_equal(target):
    module = two_sizes(target)
    with one_error(CallError, "must be equal", "Add_0"):
        module(np.ones(5, np.float32), np.ones(3, np.float32))
    for sizes in ((5, 1), (1, 5), (1, 1), (5, 5)):
        given = module(np.ones(sizes[0], np.float32), np.full(sizes[1], 2, np.float32))
        np.testing.assert_array_equal(given, np.full(max(sizes), 3, np.float32))


# Options


def test_unknown_targets_devices_and_passes():
    with one_error(TargetError, "toaster", "Allowed: llvm-cpu"):
        eyas.compile(TEXT, target="toaster")
    with one_error(UsageError, "toaster", "local-task"):
        eyas.compile(TEXT, device="toaster")
    with one_error(UsageError, "no-such-pass"):
        parse_pipeline("cse,no-such-pass").run(parse_module(TEXT, make_context()))
    with one_error(UsageError, "already has its types"):
        eyas.compile(TEXT, (X, N))


def test_unknown_names_to_disable():
    with one_error(UsageError, "no-such-pass"):
        eyas.compile(TEXT, disable=("no-such-pass",))


def test_no_threads():
    with one_error(UsageError, "threads=0"):
        eyas.compile(TEXT, threads=0)


# Modules


@pytest.fixture(scope="module")
def data(module, tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("bad") / "m.eyas"
    module.save(path)
    return path.read_bytes()


def test_missing_and_garbage_modules(tmp_path):
    with one_error(ModuleError, "nothing.eyas", "no such file"):
        eyas.load(tmp_path / "nothing.eyas")
    with one_error(ModuleError, "empty, or not a regular file"):
        eyas.load(tmp_path)
    for content in (b"", b"PK\x03\x04", bytes(4000), b"\x7fELF" * 100):
        (tmp_path / "bad.eyas").write_bytes(content)
        with one_error(ModuleError, "bad.eyas"):
            eyas.load(tmp_path / "bad.eyas")


@pytest.mark.parametrize("part", [0.0, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9])
def test_truncated_modules(data, part):
    with one_error(ModuleError):
        eyas.load(data[: int(len(data) * part)])


def test_altered_code_is_found_by_its_digest(data):
    at = data.index(b"\x7fELF")
    for shift in (0, 24, 200):
        altered = bytearray(data)
        altered[at + shift] ^= 0x10
        with one_error(ModuleError, "altered after the module was written", "SHA-256"):
            eyas.load(bytes(altered))


def test_random_alterations_give_an_error_or_the_right_result(data):
    """A few hundred here; `benchmarks` and the runtime's own tests do thousands, under a sanitizer too."""
    rng = np.random.default_rng(0)
    outcomes = {"error": 0, "fine": 0}
    for _ in range(300):
        altered = bytearray(data)
        for _ in range(int(rng.integers(1, 4))):
            altered[int(rng.integers(0, len(data)))] = int(rng.integers(0, 256))
        try:
            result = eyas.load(bytes(altered))(X, N)
        except EyasError:
            outcomes["error"] += 1
        else:
            np.testing.assert_array_equal(result, 2 * X)
            outcomes["fine"] += 1
    assert outcomes["error"] > 100 and outcomes["fine"] > 0, outcomes


def test_another_version_is_named(data):
    """The program's version is a number after its magic; a file of the future says so."""
    at = data.index(b"EYASPRG\0")
    altered = bytearray(data)
    altered[at + 8] = 99
    with pytest.raises(ModuleError) as caught:
        eyas.load(bytes(altered))
    assert re.search(r"SHA-256|version", str(caught.value))
