"""Products by matrix instructions: which are, what code they are, and that they are right where a device has them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tools import vulkan
from torch_mlir import ir as mlir

import eyas
from eyas.codegen.gpu.strategies.matrices import Matrices, MatrixKnobs, tile_of
from eyas.codegen.spirv.compile import BACKEND
from eyas.ir import make_context
from eyas.module.spirv_executable import read_executable
from eyas.targets import Target

HOPPER, LAVAPIPE = "vulkan:hopper", "vulkan:lavapipe:+matrix:f16:f32:8x8x8"


def text_of(m: int, n: int, k: int, element: str = "f16") -> str:
    sum_, zero = ("i32", "0") if element == "i8" else ("f32", "0.0")
    a, b, c = f"tensor<{m}x{k}x{element}>", f"tensor<{k}x{n}x{element}>", f"tensor<{m}x{n}x{sum_}>"
    return f"""
func.func @product(%a: {a}, %b: {b}) -> {c} {{
  %zero = arith.constant {zero} : {sum_}
  %e = tensor.empty() : {c}
  %f = linalg.fill ins(%zero : {sum_}) outs(%e : {c}) -> {c}
  %m = linalg.matmul ins(%a, %b : {a}, {b}) outs(%f : {c}) -> {c}
  return %m : {c}
}}"""


def compiled(text: str, target: str):
    with make_context():
        return BACKEND.compile(mlir.Module.parse(text), Target.parse(target), frozenset())


def listing(text: str, target: str) -> str:
    with make_context():
        return BACKEND.listing(mlir.Module.parse(text), Target.parse(target), frozenset())


@pytest.mark.parametrize(("target", "shape"), [(HOPPER, "16x16x16"), (LAVAPIPE, "8x8x8")])
def test_a_product_of_halves_is_made_of_fragments(target, shape):
    made = compiled(text_of(512, 384, 256), target)
    assert made.strategy == "matrices" and f"matrix:f16:f32:{shape}" in made.needs
    assert f"subgroup={Target.parse(target).subgroup}" in made.needs


@pytest.mark.parametrize(("element", "shape"), [("i8", "i8:i32:16x16x32"), ("bf16", "bf16:f32:16x16x16")])
def test_products_of_bytes_and_bfloats_are_made_of_fragments(element, shape):
    assert f"matrix:{shape}" in compiled(text_of(512, 384, 256, element), HOPPER).needs


def test_the_largest_fragment_is_taken():
    shapes = [one[2:] for one in Target.parse(HOPPER).matrix_shapes if (one.operand, one.sum) == ("f16", "f32")]
    assert shapes == [(16, 8, 8), (16, 8, 16), (16, 16, 16)]
    assert "matrix:f16:f32:16x16x16" in compiled(text_of(512, 384, 256), HOPPER).needs


def test_steps_that_do_not_fill_a_fragment_are_zeros():
    code = listing(text_of(512, 384, 250), HOPPER)
    assert "arith.select" in code and "arith.select" not in listing(text_of(512, 384, 256), HOPPER)


def test_bfloats_have_no_other_type_in_spirv():
    code = np.frombuffer(read_executable(compiled(text_of(64, 64, 64, "bf16"), HOPPER).object)[0].code, np.uint32)
    floats, position = [], 5
    while position < len(code):  # words of an instruction: its length and number, then what it has
        length, number = code[position] >> 16, code[position] & 0xFFFF
        floats += [tuple(code[position + 2 : position + length])] if number == 22 else []  # OpTypeFloat
        position += length
    assert sorted(floats) == [(16, 0), (32,)]  # 0 is the encoding of bfloat16


def test_a_large_tile_shares_what_it_loads():
    code = listing(text_of(4096, 4096, 256), HOPPER)
    body = code[code.index("scf.for") :]
    # 4 x 4 fragments of each subgroup, in four slices of 16 steps.
    assert body.count("subgroup_mma_compute") == 64 and body.count("subgroup_mma_load_matrix") == 32
    # Vectors go from memory through registers to shared memory; nothing else is read in the loop.
    loop = body[: body.index("subgroup_mma_store")]
    assert "memref<?xf16>" not in code and loop.count("memref.load") == loop.count("memref.store")


def chosen(text: str, target: str) -> MatrixKnobs:
    with make_context():
        strategy = BACKEND._kernel(mlir.Module.parse(text), Target.parse(target), frozenset())[2]
    assert isinstance(strategy, Matrices)
    return strategy.knobs


def test_tiles_are_as_large_as_leaves_every_processor_some():
    tiles = [tile_of(chosen(text_of(size, size, 256), HOPPER)) for size in (4096, 1024, 256)]
    assert tiles == [(128, 128), (64, 64), (16, 32)]


def test_subgroups_share_the_sums_of_few_rows():
    few = chosen(text_of(8, 4096, 4096), HOPPER)
    assert tile_of(few) == (16, 32) and few.parts == 4


def test_a_target_with_little_shared_memory_has_one_buffer_or_less_depth():
    text = text_of(1024, 1024, 1024)
    knobs = {size: chosen(text, f"{HOPPER}:shared={size}") for size in ("48K", "16K", "8K")}
    assert [(one.buffers, one.depth) for one in knobs.values()][0] == (2, 64)
    for size, one in knobs.items():
        assert one.buffers * one.depth * sum(tile_of(one)) * 2 <= int(size[:-1]) * 1024


def test_sizes_may_be_open(tmp_path):
    text = text_of(512, 384, 256).replace("512x", "?x").replace("256x", "?x").replace("@product", "@main")
    dim = "%c0 = arith.constant 0 : index\n  %rows = tensor.dim %a, %c0 : tensor<?x?xf16>\n  %e ="
    path = tmp_path / "product.mlir"
    path.write_text(text.replace("%e =", dim).replace("tensor.empty()", "tensor.empty(%rows)"))
    (kernel,) = eyas.compile(path, target=HOPPER, cache=False).manifest["kernels"]
    assert kernel["strategy"] == "matrices"


@pytest.mark.parametrize(
    ("sizes", "element", "target"),
    [
        ((512, 8, 256), "f16", HOPPER),  # half a fragment's columns
        ((512, 384, 256), "f32", HOPPER),
        ((512, 384, 256), "bf16", "vulkan:ampere"),  # which has them for f16 and bytes
        ((512, 384, 256), "i8", LAVAPIPE),  # which is said to have them for f16 alone
        ((512, 384, 256), "f16", "vulkan:lavapipe"),  # which has no such instructions
    ],
)
def test_other_products_are_left_to_threads(sizes, element, target):
    assert compiled(text_of(*sizes, element), target).strategy != "matrices"


@pytest.mark.parametrize("sizes", [(64, 64, 64), (33, 47, 32), (70, 36, 96), (16, 200, 16)])
@pytest.mark.parametrize("turned", [False, True])
def test_numbers_are_those_of_numpy(sizes, turned, vulkan_device):
    torch = pytest.importorskip("torch")
    if "matrix:f16:f32" not in " ".join(vulkan_device.properties):
        pytest.skip("the device has no matrix instructions for f16")
    m, n, k = sizes

    class Product(torch.nn.Module):
        def forward(self, a, b, bias, residual):
            y = a @ (b.T if turned else b)
            return torch.relu(y + bias) + residual

    torch.manual_seed(0)
    inputs = [
        torch.randn(*shape, dtype=torch.float16) for shape in ((m, k), (n, k) if turned else (k, n), (n,), (m, n))
    ]
    module = eyas.compile(Product().eval(), tuple(inputs), target=vulkan.target())
    assert "matrices" in {kernel["strategy"] for kernel in module.manifest["kernels"]}
    a, b, bias, residual = (one.double().numpy() for one in inputs)
    want = np.maximum((a @ (b.T if turned else b)) + bias, 0) + residual
    np.testing.assert_allclose(module(*inputs).double().numpy(), want, rtol=2e-3, atol=2e-3 * np.abs(want).max())


@pytest.mark.parametrize("sizes", [(64, 64, 64), (33, 47, 32), (40, 36, 96)])
def test_bytes_are_signed(sizes, vulkan_device):
    torch = pytest.importorskip("torch")
    if "matrix:i8:i32" not in " ".join(vulkan_device.properties):
        pytest.skip("the device has no matrix instructions for bytes")
    m, n, k = sizes

    class Product(torch.nn.Module):
        def forward(self, a, b):
            return a.to(torch.int32) @ b.to(torch.int32) - 7

    torch.manual_seed(0)
    a, b = (torch.randint(-128, 128, shape, dtype=torch.int8) for shape in ((m, k), (k, n)))
    module = eyas.compile(Product().eval(), (a, b), target=vulkan.target())
    assert "matrices" in {kernel["strategy"] for kernel in module.manifest["kernels"]}
    assert torch.equal(module(a, b), a.to(torch.int32) @ b.to(torch.int32) - 7)
