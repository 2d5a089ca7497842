"""Calls from Python: what goes in and out, what is refused and how that is said, what a call costs."""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
import textwrap
import threading
import time

import kernels
import ml_dtypes
import numpy as np
import pytest
import torch

import eyas.runtime
from eyas.errors import CallError, ModuleError, UsageError
from eyas.module import container
from eyas.module.assembler import Direct, ProgramBuilder
from eyas.module.dtypes import DTYPES
from eyas.module.isa import Access, Alloc
from eyas.module.program import Parameter
from eyas.module.signature import Signature, Symbol, TensorSpec

NUMPY = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i1": np.bool_,
    "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32,
    "i64": np.int64, "u64": np.uint64, "c64": np.complex64, "c128": np.complex128,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz, "f8e8m0": ml_dtypes.float8_e8m0fnu, "f4e2m1": ml_dtypes.float4_e2m1fn,
    "i4": ml_dtypes.int4, "u4": ml_dtypes.uint4, "i2": ml_dtypes.int2, "u2": ml_dtypes.uint2,
}  # fmt: skip
TORCH = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i1": torch.bool,
    "i8": torch.int8, "u8": torch.uint8, "i16": torch.int16, "u16": torch.uint16, "i32": torch.int32,
    "u32": torch.uint32, "i64": torch.int64, "u64": torch.uint64, "c64": torch.complex64, "c128": torch.complex128,
    "f8e4m3fn": torch.float8_e4m3fn, "f8e4m3fnuz": torch.float8_e4m3fnuz, "f8e5m2": torch.float8_e5m2,
    "f8e5m2fnuz": torch.float8_e5m2fnuz, "f8e8m0": torch.float8_e8m0fnu,
}  # fmt: skip


def identity(dtype: str, dims: tuple[int | str, ...], device: str = "local-sync") -> eyas.runtime.Module:
    """A module that copies its argument with a kernel."""
    builder = ProgramBuilder()
    exe = builder.executable(kernels.executable())
    asm = builder.function("main", Signature((TensorSpec("x", dtype, dims),), (TensorSpec("y", dtype, dims),)))
    x = asm.arg(None, 0)
    out = asm.buffer_alloc(None, asm.buffer_bytes(None, x), Alloc.RESULT)
    kernels.run_once(asm, exe, kernels.COPY, asm.const(1), [], [Direct(x), Direct(out, access=Access.WRITE)])
    sizes = [asm.const(d) if isinstance(d, int) else asm.arg_dim(None, 0, i) for i, d in enumerate(dims)]
    asm.set_result(0, out, sizes)
    return eyas.runtime.load(kernels.pack(builder), device=device)


def some(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    generator = np.random.default_rng(7)
    if dtype == "i1":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype[0] == "c":
        return (generator.standard_normal(shape) + 1j * generator.standard_normal(shape)).astype(NUMPY[dtype])
    if dtype[0] in "fb":
        return generator.standard_normal(shape).astype(NUMPY[dtype])
    return generator.integers(0, 127, shape).astype(NUMPY[dtype])


@pytest.mark.parametrize("device", ["local-sync", "far"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 5), (0, 4), (40, 50)])
def test_numpy_dtypes_and_shapes(dtype: str, shape: tuple[int, ...], device: str):
    module = identity(dtype, tuple("?" for _ in shape), device)
    x = some(dtype, shape)
    y = module(x)
    assert isinstance(y, np.ndarray) and y.dtype == x.dtype and y.shape == shape
    assert y.tobytes() == x.tobytes()
    assert y.flags.writeable and y.flags.c_contiguous


@pytest.mark.parametrize("dtype", TORCH)
def test_torch_in_torch_out(dtype: str):
    module = identity(dtype, ("?", "?"))
    x = torch.arange(2000).reshape(40, 50).to(TORCH[dtype])
    for view in (x, x.t(), x[::2], x[:, 3:7], x[5:]):
        y = module(view)
        assert isinstance(y, torch.Tensor) and y.dtype == view.dtype
        bits = (y.view(torch.uint8), view.contiguous().view(torch.uint8)) if y.itemsize == 1 else (y, view)
        assert torch.equal(*bits)
    assert module(x).data_ptr() % 64 == 0


@pytest.mark.parametrize("dtype", ["f8e4m3fn", "f8e8m0", "f4e2m1", "i4", "u2"])
def test_raw_bytes_stand_for_small_types(dtype: str):
    module = identity(dtype, (4,))
    raw = np.array([0, 1, 2, 3], np.uint8)
    for bits in (raw, raw.view(np.int8)):
        assert module(bits).dtype == NUMPY[dtype] and np.array_equal(module(bits).view(np.uint8), raw)
    assert np.array_equal(module(torch.from_numpy(raw)).view(torch.uint8).numpy(), raw)
    with pytest.raises(CallError, match=f"the element type must be {dtype}"):
        module(np.zeros(4, np.int16))
    with pytest.raises(CallError, match="the element type must be u8"):
        identity("u8", (4,))(raw.view(NUMPY[dtype]))


def test_small_types_without_ml_dtypes():
    """A runtime that has only NumPy gives the bits."""
    script = textwrap.dedent("""
        import sys
        sys.modules["ml_dtypes"] = None
        import numpy as np
        import eyas.runtime
        module = eyas.runtime.load(sys.argv[1])
        x = np.array([3, 255, 128, 7], np.uint8)
        y = module(x)
        assert y.dtype == np.uint8 and np.array_equal(x, y), y
    """)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/identity.eyas"
        identity("f8e5m2", (4,)).save(path)
        subprocess.run([sys.executable, "-c", script, path], check=True)


def test_torch_that_wants_gradients():
    x = torch.nn.Parameter(torch.ones(3))
    assert torch.equal(identity("f32", (3,))(x), torch.ones(3))


def test_any_dlpack_producer():
    class Producer:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **keywords):
            return self.array.__dlpack__(**keywords)

    module = identity("f32", ("?", "?"))
    x = some("f32", (4, 6))
    assert np.array_equal(module(Producer(x)), x)


def test_numpy_layouts():
    module = identity("f32", ("?", "?"))
    x = some("f32", (20, 30))
    raw = np.zeros(4 * 6 + 1, np.uint8)[1:].view(np.float32).reshape(2, 3)
    for view in (x.T, x[::3], x[:, ::-1], np.asfortranarray(x), x.astype(">f4"), raw, x[3:]):
        assert np.array_equal(module(view), view)


@pytest.mark.parametrize("shape", [(4,), (4000,)])
def test_results_own_their_memory(shape):
    module = eyas.runtime.load(kernels.add_module(shape))
    x = some("f32", shape)
    results = [module(x, np.full(shape, i, np.float32)) for i in range(20)]
    del module
    gc.collect()
    for i, y in enumerate(results):
        assert np.array_equal(y, x + np.float32(i))


def test_scalars():
    assert identity("f32", ())(1.5) == np.float32(1.5)
    assert identity("f64", ())(3) == 3.0
    assert identity("bf16", ())(3.14159) == ml_dtypes.bfloat16(3.14159)
    assert identity("f16", ())(0.1) == np.float16(0.1)
    assert identity("c64", ())(1 + 2j) == 1 + 2j
    assert identity("i1", ())(True) is not None
    assert identity("i8", ())(-128) == -128
    assert identity("u64", ())(2**64 - 1) == 2**64 - 1
    assert identity("i32", ())(np.int32(5)) == 5
    assert identity("i4", ())(-3) == ml_dtypes.int4(-3)
    assert identity("u2", ())(3) == ml_dtypes.uint2(3)
    for dtype, value in [
        ("i8", 128),
        ("u8", -1),
        ("i4", 8),
        ("u2", -1),
        ("f8e5m2", 1.0),
        ("i64", 2**63),
        ("i32", 1.0),
        ("i1", 1),
        ("f32", 1j),
        ("i32", np.int64(1)),
    ]:
        with pytest.raises(CallError, match="argument 0 'x'"):
            identity(dtype, ())(value)


def test_errors_teach():
    builder = ProgramBuilder()
    signature = Signature(
        (TensorSpec("x", "f32", ("batch", 128)), TensorSpec("y", "f32", ("batch",))),
        (),
        {"batch": Symbol(2, 8, 2)},
    )
    builder.function("main", signature)
    module = eyas.runtime.load(kernels.pack(builder))
    x, y = np.zeros((4, 128), np.float32), np.zeros(4, np.float32)
    assert module(x, y) is None and module(x=x, y=y) is None and module(x, y=y) is None
    cases = [
        ((x, y, y), r"'main' takes 2 arguments \(x, y\), got 3"),
        ((x,), r"'main' takes 2 arguments \(x, y\), got 1"),
        ((x[:, :64], y), r"argument 0 'x': expected f32\[batch,128\], got f32\[4,64\]: dimension 1 must be 128"),
        ((x.astype(np.float64), y), "got f64.*the element type must be f32"),
        ((y, y), "it must have 2 dimensions"),
        ((x, y[:2]), r"dimension 0 \(batch\) must be 4, as in an earlier argument \(dimension 0 of 'x'\)"),
        ((x[:1], y), r"dimension 0 \(batch\) must be at least 2"),
        ((np.zeros((10, 128), np.float32), y), r"dimension 0 \(batch\) must be at most 8"),
        ((x[:3], y), r"dimension 0 \(batch\) must be a multiple of 2"),
        (([1.0], y), "expected an array .*, got <class 'list'>"),
        ((x.astype("S4"), y), "cannot be passed"),
        ((1.0, y), "is not an array"),
    ]
    for arguments, message in cases:
        with pytest.raises(CallError, match=message):
            module(*arguments)
    with pytest.raises(CallError, match="missing: y"):
        module(x=x)
    with pytest.raises(CallError, match="unknown or given twice: z"):
        module(x, y, z=y)
    assert str(module.signature) == "(x: f32[batch,128], y: f32[batch]) -> ()"
    assert module.signature == signature


def test_devices_and_threads():
    found = eyas.runtime.devices()
    assert {d.name for d in found} >= {"local-sync", "local-task"}
    with pytest.raises(UsageError, match="no device 'gpu'; this runtime has: local"):
        eyas.runtime.load(kernels.add_module(), device="gpu")
    with pytest.raises(UsageError, match="threads=0"):
        eyas.runtime.load(kernels.add_module(), threads=0)
    module = eyas.runtime.load(kernels.add_module((100_000,)), threads=2)
    assert module.device.threads == 2
    x = some("f32", (100_000,))
    assert np.array_equal(module(x, x), x + x)


@pytest.mark.parametrize("device", ["local-sync", "local-task"])
def test_calls_from_many_threads(device: str):
    module = eyas.runtime.load(kernels.add_module((3000,)), device=device)
    wrong = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).random(3000, np.float32)
        for i in range(200):
            if not np.array_equal(module(x, np.full(3000, i, np.float32)), x + np.float32(i)):
                wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def parameter_module(parameters: tuple[Parameter, ...]) -> ProgramBuilder:
    """x + the first parameter."""
    builder = ProgramBuilder()
    exe = builder.executable(kernels.executable())
    for parameter in parameters:
        builder.parameter(parameter)
    spec = TensorSpec("x", "f32", parameters[0].shape)
    asm = builder.function(
        "main", Signature((spec,), (TensorSpec("y", "f32", spec.dims), TensorSpec("w", "f32", spec.dims)))
    )
    n = parameters[0].shape[0]
    weight = asm.param(None, 0)
    out = asm.buffer_alloc(None, asm.const(4 * n), Alloc.RESULT)
    bindings = [Direct(asm.arg(None, 0)), Direct(weight), Direct(out, access=Access.WRITE)]
    kernels.run_once(asm, exe, kernels.ADD, kernels.groups(asm, asm.const(n)), [asm.const(n)], bindings)
    asm.set_result(0, out, [asm.const(n)])
    asm.set_result(1, weight, [asm.const(n)])
    return builder


def test_parameters():
    arrays = {"w": some("f32", (100,)), "other": some("f64", (3, 3)), "empty": np.zeros((0, 2), np.int8)}
    records, data = container.layout_parameters(arrays)
    module = eyas.runtime.load(kernels.pack(parameter_module(records), data))
    x = some("f32", (100,))
    y, w = module(x)
    assert np.array_equal(y, x + arrays["w"]) and np.array_equal(w, arrays["w"])
    w[:] = 0  # a copy: the module's own stays
    assert np.array_equal(module(x)[1], arrays["w"])


def test_parameters_are_read_only():
    records, data = container.layout_parameters({"w": some("f32", (4,))})
    builder = parameter_module(records)
    asm = builder.function("write", Signature())
    cmd = asm.cmd_create(None, 0)
    asm.cmd_fill(cmd, Direct(asm.param(None, 0), access=Access.WRITE), asm.const(0), 4)
    asm.cmd_end(cmd)
    asm.submit(cmd, [])
    module = eyas.runtime.load(kernels.pack(builder, data))
    with pytest.raises(CallError, match="read-only|write"):
        module.functions["write"]()


@pytest.mark.parametrize("misaligned", [False, True])
def test_external_safetensors(tmp_path, misaligned: bool):
    from safetensors.numpy import save_file

    weight = some("f32", (50,))
    tensors = {"a": some("u8", (3,)), "layer.weight": weight}
    path = tmp_path / "model.safetensors"
    save_file(tensors, path)
    if misaligned:  # legal, if unusual: the header need not end at a multiple of 4
        raw = path.read_bytes()
        length = int.from_bytes(raw[:8], "little")
        header = raw[8 : 8 + length].rstrip() + b" "
        header += b" " * ((1 - (8 + len(header))) % 4)
        path.write_bytes(len(header).to_bytes(8, "little") + header + raw[8 + length :])
    builder = parameter_module((Parameter("w", "f32", (50,), external="model.safetensors", key="layer.weight"),))
    (tmp_path / "model.eyas").write_bytes(kernels.pack(builder))
    module = eyas.runtime.load(tmp_path / "model.eyas")
    x = some("f32", (50,))
    assert np.array_equal(module(x)[0], x + weight)

    def refuses(message: str, **changed) -> None:
        parameter = Parameter(
            **{"name": "w", "dtype": "f32", "shape": (50,), "external": "model.safetensors", "key": "a", **changed}
        )
        (tmp_path / "bad.eyas").write_bytes(kernels.pack(parameter_module((parameter,))))
        with pytest.raises(ModuleError, match=message):
            eyas.runtime.load(tmp_path / "bad.eyas")

    refuses(r"tensor 'a' is u8\[3\], the module needs f32\[50\]")
    refuses("no tensor 'b'", key="b")
    refuses("cannot open the module's external weights", external="gone.safetensors")
    path.write_bytes(path.read_bytes()[:-10])
    refuses("data_offsets", key="layer.weight")
    path.write_bytes(b"\xff" * 100)
    refuses("not a safetensors file")


def test_profile_and_save(tmp_path):
    data = kernels.add_module((1000,))
    module = eyas.runtime.load(data)
    x = some("f32", (1000,))
    runs = module.profile(x, x, runs=3)
    assert len(runs) == 3
    for (event,) in runs:
        assert event.name == "add_f32" and event.grid == (4, 1, 1) and event.end_ns >= event.start_ns > 0
        assert sum(share.workgroups for share in event.shares) == event.workgroups == 4
        assert 0 < event.busy_ns <= len(event.shares) * (event.end_ns - event.start_ns)
        assert [(binding.bytes, binding.access) for binding in event.bindings] == [(4000, 1), (4000, 1), (4000, 2)]
    module.save(tmp_path / "m.eyas")
    assert (tmp_path / "m.eyas").read_bytes() == data
    again = eyas.runtime.load(tmp_path / "m.eyas")
    again.save(tmp_path / "m.eyas")
    again.save(tmp_path / "copy.eyas")
    assert (tmp_path / "copy.eyas").read_bytes() == data
    assert again.manifest["functions"]["main"] == "(x: f32[1000], y: f32[1000]) -> (sum: f32[1000])"


def test_import_stays_light():
    code = (
        "import sys, eyas, eyas.runtime; heavy = {'torch', 'torch_mlir', 'llvmlite', 'ml_dtypes', 'jax', 'onnx', 'z3'};"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_small_call_costs_microseconds():
    module = eyas.runtime.load(kernels.add_module())
    x, y = some("f32", (4,)), some("f32", (4,))
    best = min(_time(module, x, y) for _ in range(20))
    print(f"one call: {best:.2f} us")
    assert best < 10


def _time(module, x, y) -> float:
    start = time.perf_counter()
    for _ in range(1000):
        module(x, y)
    return (time.perf_counter() - start) * 1e3
