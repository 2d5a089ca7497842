"""Every construct of a kernel has SPIR-V, which the validator takes, and says what it needs of a device."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
from spirv_kernels import binding, disassembly, elementwise, kernel, lower, word  # noqa: E402

from eyas.codegen.common.sizes import Size  # noqa: E402
from eyas.errors import CompileError  # noqa: E402
from eyas.targets import Target  # noqa: E402

SHARED = "memref<64xf32, #gpu.address_space<workgroup>>"


def test_arguments_become_descriptors_and_words_become_push_constants() -> None:
    text = kernel(
        [
            word("n"),
            binding("a", "f32", 0),
            '%w: memref<?xi32> {eyas.role = "error"}',
            '%s: memref<?xf32> {eyas.role = "scratch"}',
            word("tag", "error_tag"),
        ],
        """%x = memref.load %a[%i] : memref<?xf32>
          memref.store %x, %s[%i] : memref<?xf32>
          %e = arith.ori %n, %tag : i32
          memref.store %e, %w[%c0] : memref<?xi32>""",
        attributes="eyas.bindings = 3 : i64, eyas.unaligned = array<i64: 0>, eyas.scratch = [array<i64: 4, 0>]",
    )
    listing = disassembly(text)
    numbers = [line.split()[-1] for line in listing.splitlines() if " Binding " in line]
    assert numbers == ["0", "4", "3"], "the binding, the error word behind the scratch memory, the scratch memory"
    assert "OpEntryPoint GLCompute" in listing and '"main"' in listing
    code = lower(text)
    assert {"bindings=5", "push-bytes=12", "threads=8", "spirv=1.3"} <= set(code.needs)
    assert code.scratch == (Size(4, (0,)),)
    assert code.reports_errors and not code.constants_in_buffer


def test_words_that_do_not_fit_lie_in_a_buffer() -> None:
    words = [f"n{k}" for k in range(33)]
    text = kernel(
        [binding("o", "i32", 0), *map(word, words)],
        """%s = arith.addi %n0, %n32 : i32
          memref.store %s, %o[%i] : memref<?xi32>""",
    )
    assert "PushConstant" not in disassembly(text)
    assert "bindings=2" in lower(text).needs
    assert not any(need.startswith("push-bytes") for need in lower(text).needs)


def test_two_views_of_a_binding_share_its_number() -> None:
    text = kernel(
        [binding("a", "f32", 0), binding("v", "vector<4xf32>", 0), binding("o", "f32", 1)],
        """%x = memref.load %a[%i] : memref<?xf32>
          %y = memref.load %v[%i] : memref<?xvector<4xf32>>
          %e = vector.extract %y[2] : f32 from vector<4xf32>
          %z = arith.addf %x, %e : f32
          memref.store %z, %o[%i] : memref<?xf32>""",
    )
    listing = disassembly(text)
    assert [line.split()[-1] for line in listing.splitlines() if " Binding " in line] == ["0", "0", "1"]
    assert listing.count(" Aliased") == 3
    assert listing.count(" NonWritable") == 2


def test_arithmetic_is_fused_only_where_the_kernel_allows_it() -> None:
    strict = "%p = arith.mulf %x, %y : f32\n%r = arith.addf %p, %x : f32"
    loose = strict.replace("%y :", "%y fastmath<contract> :").replace("%x :", "%x fastmath<contract> :")
    assert disassembly(elementwise("f32", "f32", strict)).count("NoContraction") == 2
    assert disassembly(elementwise("f32", "f32", loose)).count("NoContraction") == 0


def test_special_values_are_kept_where_the_target_can_promise_it() -> None:
    text = elementwise("f32", "f32", "%r = arith.addf %x, %y : f32")
    assert "SignedZeroInfNanPreserve" in disassembly(text)
    assert "float-controls" in lower(text).needs
    plain = Target.parse("vulkan:lavapipe:-float-controls")
    assert "SignedZeroInfNanPreserve" not in disassembly(text, plain)
    assert "float-controls" not in lower(text, plain).needs


@pytest.mark.parametrize("read_back", [False, True])
def test_barriers_order_buffers_if_threads_read_what_others_wrote(read_back: bool) -> None:
    source = "a" if read_back else "b"
    text = kernel(
        [binding("a", "f32", 0), binding("b", "f32", 1)],
        f"""%s = memref.alloc() : {SHARED}
          %x = memref.load %b[%i] : memref<?xf32>
          memref.store %x, %s[%t] : {SHARED}
          memref.store %x, %a[%t] : memref<?xf32>
          gpu.barrier
          %y = memref.load %s[%c1] : {SHARED}
          %z = memref.load %{source}[%c1] : memref<?xf32>
          %q = arith.addf %y, %z : f32
          memref.store %q, %a[%i] : memref<?xf32>""",
        threads=64,
    )
    listing = disassembly(text)
    uniform, workgroup, acquire_release = 0x40, 0x100, 0x8
    semantics = workgroup | acquire_release | (uniform if read_back else 0)
    assert f" {semantics}\n" in listing
    assert listing.count("Coherent") == int(read_back)
    assert "shared-bytes=256" in lower(text).needs


LOOPS = {
    "for": """%r = scf.for %k = %c0 to %i step %c1 iter_args(%q = %x) -> f32 {
        %n = arith.addf %q, %y : f32
        scf.yield %n : f32
      }""",
    "for in for": """%r, %w = scf.for %k = %c0 to %i step %c1 iter_args(%q = %x, %p = %c0) -> (f32, index) {
        %n:2 = scf.for %l = %k to %i step %c1 iter_args(%m = %q, %o2 = %p) -> (f32, index) {
          %a2 = arith.addf %m, %y : f32
          %b2 = arith.addi %o2, %l : index
          scf.yield %a2, %b2 : f32, index
        }
        scf.yield %n#0, %n#1 : f32, index
      }""",
    "while": """%r = scf.while (%q = %x) : (f32) -> f32 {
        %c = arith.cmpf olt, %q, %y : f32
        scf.condition(%c) %q : f32
      } do {
      ^bb0(%q: f32):
        %n = arith.addf %q, %y : f32
        scf.yield %n : f32
      }""",
    "while in while": """%r = scf.while (%q = %x) : (f32) -> f32 {
        %m = scf.while (%u = %q) : (f32) -> f32 {
          %e = scf.for %k = %c0 to %i step %c1 iter_args(%f = %u) -> f32 {
            %g = arith.addf %f, %y : f32
            scf.yield %g : f32
          }
          %d = arith.cmpf olt, %e, %y : f32
          scf.condition(%d) %e : f32
        } do {
        ^bb0(%u: f32):
          scf.yield %u : f32
        }
        %c = arith.cmpf olt, %m, %y : f32
        scf.condition(%c) %m : f32
      } do {
      ^bb0(%q: f32):
        scf.yield %q : f32
      }""",
    "if": """%c = arith.cmpf olt, %x, %y : f32
      %r = scf.if %c -> f32 {
        %n = arith.addf %x, %y : f32
        scf.yield %n : f32
      } else {
        scf.yield %y : f32
      }""",
    "flags and vectors": """%true = arith.constant true
      %v = vector.broadcast %x : f32 to vector<4xf32>
      %f:2 = scf.for %k = %c0 to %i step %c1 iter_args(%q = %true, %u = %v) -> (i1, vector<4xf32>) {
        %c = arith.cmpf olt, %x, %y : f32
        %d = arith.andi %q, %c : i1
        %w = arith.mulf %u, %v : vector<4xf32>
        scf.yield %d, %w : i1, vector<4xf32>
      }
      %e = vector.extract %f#1[3] : f32 from vector<4xf32>
      %r = arith.select %f#0, %e, %y : f32""",
    "private memory": """%p = memref.alloca() : memref<4xf32>
      memref.store %x, %p[%c0] : memref<4xf32>
      %r = memref.load %p[%t] : memref<4xf32>""",
}


@pytest.mark.parametrize("name", LOOPS)
def test_control_flow(name: str) -> None:
    lower(elementwise("f32", "f32", LOOPS[name]))


@pytest.mark.parametrize(
    ("element", "needs"),
    [
        ("i8", {"i8", "storage8"}),
        ("i16", {"i16", "storage16"}),
        ("i64", {"i64"}),
        ("f16", {"f16", "storage16"}),
        ("bf16", {"i16", "storage16"}),
        ("f64", {"f64"}),
    ],
)
def test_types_need_their_features(element: str, needs: set[str]) -> None:
    op = "addf" if "f" in element else "addi"
    assert needs <= set(lower(elementwise(element, element, f"%r = arith.{op} %x, %y : {element}")).needs)


def test_subgroups_need_their_size() -> None:
    text = elementwise(
        "f32",
        "f32",
        """%sum = gpu.subgroup_reduce add %x : (f32) -> f32
          %width = arith.constant 8 : i32
          %one = arith.constant 1 : i32
          %other, %valid = gpu.shuffle xor %y, %one, %width : f32
          %r = arith.addf %sum, %other : f32""",
    )
    assert {"subgroup=8", "subgroup-arithmetic", "subgroup-shuffle"} <= set(lower(text).needs)


@pytest.mark.parametrize(("kind", "element"), [("addi", "i32"), ("maxs", "i32"), ("ori", "i32"), ("addf", "f32")])
def test_atomics(kind: str, element: str) -> None:
    body = f"%r = memref.atomic_rmw {kind} %x, %o[%c0] : ({element}, memref<?x{element}>) -> {element}"
    assert ("atomic-f32-add" in lower(elementwise(element, element, body)).needs) == (element == "f32")


def test_an_op_without_spirv_is_an_error_that_names_it() -> None:
    with pytest.raises(CompileError, match=r"lowering to SPIR-V failed at line \d+: .*memref.atomic_rmw"):
        lower(elementwise("i32", "i32", "%r = memref.atomic_rmw assign %x, %o[%c0] : (i32, memref<?xi32>) -> i32"))
