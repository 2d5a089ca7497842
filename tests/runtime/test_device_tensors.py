"""Tensors that stay on a device: results that feed the next call, and what they are for the host."""

from __future__ import annotations

import gc

import kernels
import numpy as np
import pytest
import torch
from test_calls import NUMPY, TORCH, identity, some
from test_vm import counting

import eyas
from eyas.errors import CallError
from eyas.module.dtypes import DTYPES

NAMES = kernels.DEVICES


@pytest.fixture(params=NAMES)
def device(request) -> eyas.Device:
    return eyas.Device(request.param)


def test_results_stay_and_feed_the_next_call(device: eyas.Device):
    module = eyas.load(kernels.add_module((40, 50)), device=device)
    x, y = some("f32", (40, 50)), some("f32", (40, 50)) * 3
    kept = module.on_device(x, y)
    assert isinstance(kept, eyas.DeviceTensor) and kept.device is device is module.device
    assert kept.shape == (40, 50) and kept.dtype == np.float32 and kept.ndim == 2 and kept.nbytes == 8000
    twice = module(kept, y)  # a device tensor gives a device tensor
    assert isinstance(twice, eyas.DeviceTensor)
    other = eyas.load(kernels.add_module((40, 50)), device=device)
    assert np.array_equal(other(twice, twice).numpy(), (x + y + y) * 2)
    assert np.array_equal(kept.numpy(), x + y), "it is as it was"
    assert np.array_equal(other.submit(kept, x).result().numpy(), x + y + x)
    assert np.array_equal(module["main"].on_device.submit(x=x, y=y).result().numpy(), x + y)
    assert np.array_equal(module.functions["main"].on_device(x, y=y).numpy(), x + y)


def test_the_host_sees_it_or_copies_it(device: eyas.Device):
    module = eyas.load(kernels.add_module((40, 50)), device=device)
    x = some("f32", (40, 50))
    kept = module.on_device(x, x)
    array = kept.numpy()
    assert not array.flags.writeable and array.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    assert np.shares_memory(array, kept.numpy()) == device.host_visible
    assert np.array_equal(np.asarray(kept), array) and np.asarray(kept, np.float64).dtype == np.float64
    assert np.array(kept).flags.writeable
    assert torch.equal(kept.torch(), torch.from_numpy(x + x))
    if device.host_visible:
        assert torch.from_dlpack(kept).data_ptr() == array.ctypes.data
        assert np.array_equal(np.from_dlpack(kept), array)
    else:
        with pytest.raises(BufferError, match=r"the host does not see .*; .numpy\(\) or .torch\(\) copies it"):
            torch.from_dlpack(kept)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (0, 4), (40, 50)])
def test_every_type_there_and_back(device: eyas.Device, dtype: str, shape: tuple[int, ...]):
    module = identity(dtype, tuple("?" for _ in shape), device)
    x = some(dtype, shape)
    put = device.put(x)
    assert put.dtype == x.dtype == NUMPY[dtype] and put.shape == shape and put.device is device
    kept = module(put)
    assert kept.numpy().dtype == x.dtype and kept.numpy().tobytes() == x.tobytes()
    assert module(x).tobytes() == x.tobytes() and module(x).flags.writeable
    if dtype in TORCH:
        assert kept.torch().dtype == TORCH[dtype] and kept.torch().shape == shape


def test_put_copies_arrays_tensors_and_what_is_on_other_devices(device: eyas.Device):
    x = some("f32", (40, 50))
    put = device.put(x.T)
    x[:] = 0
    assert put.shape == (50, 40) and put.numpy().any(), "a copy"
    for name in NAMES:
        assert np.array_equal(eyas.Device(name).put(put).numpy(), put.numpy())
    assert np.array_equal(device.put(torch.arange(6).reshape(2, 3)).numpy(), np.arange(6).reshape(2, 3))
    with pytest.raises(CallError, match="expected an array"):
        device.put("text")
    with pytest.raises(CallError, match="cannot be passed"):
        device.put(np.array(["text"]))


def test_mixed_arguments(device: eyas.Device):
    module = eyas.load(kernels.add_module((300,)), device=device)
    x = some("f32", (300,))
    for other in (x, torch.from_numpy(x), device.put(x)):
        assert isinstance(module(device.put(x), other), eyas.DeviceTensor)
        assert np.array_equal(module(other, device.put(x)).numpy(), x + x)


def test_a_tensor_of_another_device_is_refused(device: eyas.Device):
    module = eyas.load(kernels.add_module((300,)), device=device)
    elsewhere = eyas.Device("local-sync").put(some("f32", (300,)))
    with pytest.raises(CallError, match=r"argument 1 'y': .*another device"):
        module(some("f32", (300,)), elsewhere)
    moved = device.put(elsewhere)
    assert np.array_equal(module(moved, moved).numpy(), 2 * elsewhere.numpy())


def test_wrong_types_are_refused_as_those_of_arrays_are(device: eyas.Device):
    module = eyas.load(kernels.add_module((300,)), device=device)
    with pytest.raises(CallError, match=r"argument 0 'x': expected f32\[300\], got f32\[299\]"):
        module(device.put(some("f32", (299,))), some("f32", (300,)))
    with pytest.raises(CallError, match="the element type must be f32"):
        module(device.put(np.zeros(300)), some("f32", (300,)))


def test_state_is_set_from_a_device_tensor(device: eyas.Device):
    module = eyas.load(kernels.pack(counting()), device=device)
    module.state["powers"] = device.put(np.arange(4, dtype=np.float32))
    assert module.state["powers"].tolist() == [0, 1, 2, 3]


def test_a_tensor_outlives_its_module(device: eyas.Device):
    module = eyas.load(kernels.add_module((100_000,)), device=device)
    x = some("f32", (100_000,))
    kept = module.on_device(x, x)
    array = kept.numpy()
    del module
    gc.collect()
    assert np.array_equal(array, x + x)
    del kept
    gc.collect()
    assert np.array_equal(array, x + x)


def test_memory_of_tensors_that_are_dropped_comes_back(device: eyas.Device):
    module = eyas.load(kernels.add_module((1_000_000,)), device=device)
    x = device.put(np.ones(1_000_000, np.float32))

    def resident_bytes() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    for _ in range(10):
        y = module(x, x)
    before = resident_bytes()
    for _ in range(100):
        y = module(x, x)
        y.numpy()
    assert resident_bytes() - before < 40e6, "100 results of 4 MB each"


class Pair(torch.nn.Module):
    """Nested results, and an argument that is written to."""

    def forward(self, x, seen):
        seen.add_(x.sum())
        return {"double": x + x, "parts": (x * 3, x.sum())}


def test_the_hosts_arrays_go_there_and_results_come_back(device: eyas.Device):
    module = eyas.compile(Pair(), (torch.ones(40, 50), torch.zeros(())), device=device)
    x, seen = torch.randn(40, 50), torch.zeros(())
    for as_host, kind in ((lambda t: t, torch.Tensor), (lambda t: t.numpy(), np.ndarray)):
        out = module(as_host(x), as_host(seen))
        assert isinstance(out["double"], kind) and np.allclose(np.asarray(out["parts"][0]), x.numpy() * 3)
    assert np.isclose(seen.item(), 2 * x.sum().item(), rtol=1e-4), "both calls wrote to it"
    kept = module.on_device(x, seen)
    assert isinstance(kept["double"], eyas.DeviceTensor) and isinstance(kept["parts"][1], eyas.DeviceTensor)
    assert torch.equal(kept["double"].torch(), x + x)
    assert np.isclose(seen.item(), 3 * x.sum().item(), rtol=1e-4), "this one, too"
    again = module.submit(kept["double"], seen).result()
    assert torch.equal(again["parts"][0].torch(), 6 * x)
    with pytest.raises(CallError, match="argument 1 is written to by the model, but cannot be"):
        module(x, device.put(seen))
