"""Programs with more operands, inputs, results and carried tensors than one dispatch can bind."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from onnx import helper
from torch.export import Dim

import eyas
from eyas.passes.dispatch.grouping import MAX_TENSORS

TARGETS = ["llvm-cpu", "vmvx"]


class Joined(torch.nn.Module):
    def __init__(self, how: str, axis: int):
        super().__init__()
        self.how, self.axis = how, axis

    def forward(self, parts: list[torch.Tensor]) -> torch.Tensor:
        return getattr(torch, self.how)(parts, self.axis)


class Total(torch.nn.Module):
    def forward(self, parts: list[torch.Tensor]) -> torch.Tensor:
        return sum(parts[1:], parts[0])


class Each(torch.nn.Module):
    def forward(self, parts: list[torch.Tensor]) -> list[torch.Tensor]:
        return [part * 2 for part in parts]


def parts_of(count: int, axis: int, varying: int) -> list[torch.Tensor]:
    torch.manual_seed(count)
    return [torch.randn([3 if dim != axis else 1 + (n * varying) % 4 for dim in range(2)]) for n in range(count)]


@pytest.mark.parametrize(
    ("count", "target"),
    [
        *((count, "llvm-cpu") for count in (2, MAX_TENSORS - 1, MAX_TENSORS, 70)),
        *((count, "vmvx") for count in (MAX_TENSORS - 1, 300)),
        *(pytest.param(1000, target, marks=pytest.mark.long) for target in TARGETS),
    ],
)
def test_concatenation(count: int, target: str):
    parts = parts_of(count, 1, 1)
    model = Joined("cat", 1)
    module = eyas.compile(model, (parts,), target=target)
    assert torch.equal(module(parts), model(parts))


@pytest.mark.parametrize(
    ("how", "axis", "target"), [("cat", 0, "llvm-cpu"), ("stack", 0, "vmvx"), ("stack", 2, "llvm-cpu")]
)
def test_along_every_axis(how: str, axis: int, target: str):
    parts = parts_of(100, axis, how == "cat")
    model = Joined(how, axis)
    module = eyas.compile(model, (parts,), target=target)
    assert torch.equal(module(parts), model(parts))


@pytest.mark.parametrize("target", TARGETS)
def test_concatenation_of_sizes_that_vary(target: str):
    rows, model = Dim("rows", min=2, max=1000), Joined("cat", 1)
    calls = [[torch.randn(size, 1 + n % 3) for n in range(60)] for size in (3, 7)]
    module = eyas.compile(model, (calls[0],), dynamic_shapes=([{0: rows}] * 60,), target=target)
    for parts in calls:
        assert torch.equal(module(parts), model(parts))


@pytest.mark.parametrize("target", TARGETS)
def test_concatenation_along_a_size_that_varies(target: str):
    rows, model = Dim("rows", min=2, max=1000), Joined("cat", 0)
    calls = [[torch.randn(size, 2) for _ in range(50)] for size in (3, 7)]
    module = eyas.compile(model, (calls[0],), dynamic_shapes=([{0: rows}] * 50,), target=target)
    for parts in calls:
        assert torch.equal(module(parts), model(parts))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("varies", [False, True])
def test_sum_of_many(target: str, varies: bool):
    count = 60 if varies else 300
    calls = [[torch.randn(size, 5) for _ in range(count)] for size in ((4, 9) if varies else (4,))]
    shapes = ([{0: Dim("rows", min=2, max=1000)}] * count,) if varies else None
    module = eyas.compile(Total(), (calls[0],), dynamic_shapes=shapes, target=target)
    for parts in calls:
        torch.testing.assert_close(module(parts), Total()(parts))


@pytest.mark.parametrize("target", TARGETS)
def test_three_hundred_inputs_and_results(target: str):
    parts = parts_of(300, 0, 0)
    for actual, expected in zip(eyas.compile(Each(), (parts,), target=target)(parts), Each()(parts), strict=True):
        assert torch.equal(actual, expected)


@pytest.mark.parametrize("target", TARGETS)
def test_onnx_concat(target: str):
    names = [f"x{n}" for n in range(300)]
    inputs = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 1 + n % 3]) for n, name in enumerate(names)
    ]
    output = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Concat", names, ["y"], axis=1)], "g", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    values = [np.random.default_rng(n).random((2, 1 + n % 3), np.float32) for n in range(300)]
    actual = eyas.compile(model, target=target)(*values)
    np.testing.assert_array_equal(actual, np.concatenate(values, 1))


LOOP = """
func.func @main({arguments}) -> ({types}) {{
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %three = arith.constant 3 : i64
  %r:{results} = scf.while (%i = %zero, {starts}) : (i64, {types}) -> (i64, {types}) {{
    %go = arith.cmpi slt, %i, %three : i64
    scf.condition(%go) %i, {carried} : i64, {types}
  }} do {{
  ^bb0(%j: i64, {blocks}):
    %k = arith.addi %j, %one : i64
{body}
    scf.yield %k, {yielded} : i64, {types}
  }}
  return {returned} : {types}
}}
"""


def loop_of(count: int) -> tuple[str, list[str]]:
    """A loop that carries tensors of three types and in each step adds the next one of its type to each."""
    types = [("tensor<5xf32>", "tensor<2x3xi32>", "tensor<f64>")[n % 3] for n in range(count)]
    body = [
        f"    %s{n} = arith.{'addi' if n % 3 == 1 else 'addf'} %c{n}, %c{(n + 3) % count} : {types[n]}"
        for n in range(count)
    ]
    text = LOOP.format(
        arguments=", ".join(f"%a{n}: {types[n]}" for n in range(count)),
        types=", ".join(types),
        results=count + 1,
        starts=", ".join(f"%b{n} = %a{n}" for n in range(count)),
        carried=", ".join(f"%b{n}" for n in range(count)),
        blocks=", ".join(f"%c{n}: {types[n]}" for n in range(count)),
        body="\n".join(body),
        yielded=", ".join(f"%s{n}" for n in range(count)),
        returned=", ".join(f"%r#{n + 1}" for n in range(count)),
    )
    return text, types


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("count", [36, 150])
def test_loop_that_carries_many_tensors(count: int, target: str, tmp_path):
    """72 bindings of one dispatch, beyond 64 bits; and 300, which are packed."""
    text, types = loop_of(count)
    (tmp_path / "loop.mlir").write_text(text)
    numpy_types = {"f32": np.float32, "i32": np.int32, "f64": np.float64}
    random = np.random.default_rng(0)
    values = []
    for type_ in types:
        *dims, element = type_.removeprefix("tensor<").removesuffix(">").split("x")
        values.append(random.integers(-9, 9, [int(dim) for dim in dims]).astype(numpy_types[element]))
    actual = eyas.compile(str(tmp_path / "loop.mlir"), target=target)(*values)
    for _ in range(3):
        values = [value + values[(n + 3) % count] for n, value in enumerate(values)]
    for left, right in zip(actual, values, strict=True):
        np.testing.assert_array_equal(left, right)
