"""Which loop of a plain loop nest is innermost, and that results are those of the other strategies."""

from __future__ import annotations

import pytest
from torch_mlir import ir as mlir

from eyas.codegen.common.kernel import generic_iterators, generic_maps
from eyas.codegen.llvm_cpu.loop_order import order_loops
from eyas.ir import make_context, parse_module
from eyas.ir.walk import find_ops

torch = pytest.importorskip("torch")
import eyas  # noqa: E402

PLAIN = ("contraction", "transforms", "windows", "attention", "recurrence", "rows")


def ordered(
    ins: str, outs: str, maps: str, kinds: str, body: str = "arith.addf %a, %c : f32"
) -> tuple[mlir.Module, mlir.OpView]:
    inputs = [f"%{name}: {type_}" for name, type_ in zip("xy", ins.split(", "), strict=False)]
    names = ", ".join(one.split(":")[0] for one in inputs)
    blocks = "%a: f32, %b: f32, %c: f32" if len(inputs) == 2 else "%a: f32, %c: f32"
    module = parse_module(
        f"""func.func @f({", ".join(inputs)}, %z: {outs}) -> {outs} {{
          %0 = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
            ins({names} : {ins}) outs(%z : {outs}) {{
          ^bb0({blocks}):
            %i = linalg.index 0 : index
            %n = arith.index_cast %i : index to i32
            %f = arith.sitofp %n : i32 to f32
            %r = {body}
            linalg.yield %r : f32
          }} -> {outs}
          return %0 : {outs}
        }}""",
        make_context(),
    )
    with module.context, mlir.Location.unknown():
        order_loops(module)
    assert module.operation.verify()
    return module, find_ops(module, "linalg.generic")[0]


def test_a_product_runs_along_the_rows_of_its_right_side():
    _module, op = ordered(
        "tensor<?x?xf32>, tensor<?x?xf32>",
        "tensor<?x?xf32>",
        "affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>",
        '"parallel", "parallel", "reduction"',
    )
    assert generic_iterators(op) == ["parallel", "reduction", "parallel"]
    assert [str(map_) for map_ in generic_maps(op)] == [
        "(d0, d1, d2) -> (d0, d1)",
        "(d0, d1, d2) -> (d1, d2)",
        "(d0, d1, d2) -> (d0, d2)",
    ]
    assert "fastmath" not in str(op)


def test_a_product_of_a_column_is_a_sum_in_any_order():
    _module, op = ordered(
        "tensor<?x256xf32>, tensor<256x1xf32>",
        "tensor<?x1xf32>",
        "affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>",
        '"parallel", "parallel", "reduction"',
    )
    assert generic_iterators(op) == ["parallel", "parallel", "reduction"]
    assert "fastmath<reassoc>" in str(op)


def test_an_index_follows_its_loop():
    _module, op = ordered(
        "tensor<9x33xf32>",
        "tensor<9x33xf32>",
        "affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (j, i)>",
        '"parallel", "parallel"',
        "arith.addf %a, %f : f32",
    )
    (index,) = find_ops(op, "linalg.index")
    assert index.attributes["dim"].value == 1


def test_short_and_jumping_loops_stay():
    maps = "affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>"
    _module, op = ordered("tensor<?x?xf32>", "tensor<?x?xf32>", maps, '"parallel", "parallel"')
    assert str(generic_maps(op)[1]) == "(d0, d1) -> (d0, d1)"
    maps = "affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (j, i)>"
    _module, op = ordered("tensor<9x4xf32>", "tensor<9x4xf32>", maps, '"parallel", "parallel"')
    assert str(generic_maps(op)[1]) == "(d0, d1) -> (d1, d0)"


@pytest.mark.parametrize("size", [1, 7, 33])
def test_plain_loops_compute_what_torch_does(size):
    torch.manual_seed(size)

    def model(x, w, v):
        y = torch.tanh(x @ w)
        return y @ v, torch.softmax(y.transpose(0, 1), 1), y.sum(0), torch.argmax(y, 1)

    class Model(torch.nn.Module):
        def forward(self, x, w, v):
            return model(x, w, v)

    arguments = (torch.randn(size, 40), torch.randn(40, size + 9), torch.randn(size + 9, 1))
    module = eyas.compile(Model(), arguments, disable=PLAIN)
    for got, want in zip(module(*arguments), model(*arguments), strict=True):
        torch.testing.assert_close(torch.as_tensor(got), want, rtol=1e-5, atol=1e-5)
