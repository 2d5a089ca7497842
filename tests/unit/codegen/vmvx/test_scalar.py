# ruff: noqa: E501 - lines of IR are as long as they are
"""Plain loops as scalar instructions: what an inner loop costs, and what goes outside of it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
import programs as p  # noqa: E402
import pytest  # noqa: E402
from kernel_texts import matmul_text  # noqa: E402

from eyas.codegen.backends import backend_of  # noqa: E402
from eyas.codegen.vmvx.compile import assembler_for  # noqa: E402
from eyas.errors import InternalError  # noqa: E402
from eyas.ir import make_context, mlir, parse_module  # noqa: E402
from eyas.module.vmvx_executable import Function, iterate, read_function  # noqa: E402
from eyas.targets import Target  # noqa: E402


def compiled(text: str) -> Function:
    module = parse_module(text.replace("@main", "private @main"), make_context())
    done = backend_of(Target.parse("vmvx")).compile(module, Target.parse("vmvx"), frozenset({"microkernels"}))
    assert done.strategy == "loops" and done.grid == ()
    return read_function(done.object)


def innermost(function: Function) -> list[str]:
    """Instructions of the shortest loop that has the most instructions of floats."""
    code = list(iterate(function.code))
    bodies = []
    for at, op, operands in code:
        if op.name == "loop":
            bodies.append([one.name for start, one, _ in code if operands[-1] <= start <= at])
    return max(bodies, key=lambda names: (sum(name.startswith("f") for name in names), -len(names)))


def test_the_inner_loop_of_a_product():
    function = compiled(matmul_text(4, 5, 6))
    assert innermost(function) == [
        "add", "load_at", "madd", "load_at", "load_at", "fmul_f32", "fadd_f32", "store_at", "loop",
    ]  # fmt: skip
    assert function.writes == 0b100 and function.bindings == 3 and function.tiles == 0


def test_narrow_floats_convert_on_the_way_to_memory():
    identity, type_ = p.affine(1, [0]), p.tensor_type([9], "bf16")
    body = "%r = arith.addf %i0, %i0 : bf16"
    text = p.main(
        [("x", type_)],
        f"%e = tensor.empty() : {type_}\n"
        + p.generic("z", [("x", type_, identity)], ("e", type_, identity), "p", body, "bf16"),
        [("z", type_)],
    )
    assert innermost(compiled(text)) == ["load_at", "fadd_f32", "store_at", "loop"]


def test_a_constant_table_is_data():
    text = """func.func @main(%x: tensor<4xi64>) -> tensor<4xi64> {
      %t = arith.constant dense<[3, 1, 4, 1]> : tensor<4xi64>
      %e = tensor.empty() : tensor<4xi64>
      %z = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        ins(%x, %t : tensor<4xi64>, tensor<4xi64>) outs(%e : tensor<4xi64>) {
      ^bb0(%a: i64, %b: i64, %o: i64):
        %s = arith.addi %a, %b : i64
        linalg.yield %s : i64
      } -> tensor<4xi64>
      return %z : tensor<4xi64>
    }"""
    function = compiled(text)
    assert function.data == b"".join(n.to_bytes(8, "little") for n in (3, 1, 4, 1))
    assert "data" in [op.name for _, op, _ in iterate(function.code)]


def test_an_op_without_bytecode_is_named():
    """Nothing that the input contract lets through ends here; if something does, it says what it was."""
    from eyas.codegen.vmvx.translate import Translator

    text = """func.func @main(%x: !llvm.ptr) {
      %y = vector.broadcast %x : !llvm.ptr to vector<4x!llvm.ptr>
      return
    }"""
    module = parse_module(text, make_context())
    with module.context, mlir.Location.unknown():
        function = module.body.operations[0]
        asm = assembler_for(function)
        with pytest.raises(InternalError, match=r"op 'vector.broadcast' at .* has no bytecode"):
            Translator(module, asm).run(function)
