# ruff: noqa: E501 - lines of IR are as long as they are
"""Every op of our dialects prints and parses back the same, and each verifier refuses what it should, in words."""

from __future__ import annotations

import inspect
import re

import pytest

from eyas.dialects import DIALECTS, codegen, flow, hal, stream, vm
from eyas.errors import CompileError
from eyas.ir import make_context, mlir, parse_module
from eyas.module import isa

MODULES = {"flow": flow, "stream": stream, "hal": hal, "vm": vm, "codegen": codegen}

# One or more examples of each op. %t: a tensor, %d: a dynamic one, %n: an index, %r: a resource, %b: a buffer.
EXAMPLES = {
    "flow.parameter": '%0 = "flow.parameter"() {key = "fc.weight"} : () -> tensor<10x64xf32>',
    "flow.state": '%0 = "flow.state"() {key = "cache"} : () -> tensor<4xf32>',
    "flow.set_state": '"flow.set_state"(%t) {key = "cache"} : (tensor<4xf32>) -> ()',
    "flow.reshape": '%0 = "flow.reshape"(%d, %n) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<?x4xf32>, index) -> tensor<?x2x2xf32>\n'
    '%1 = "flow.reshape"(%t) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<4xf32>) -> tensor<2x2xf32>',
    "flow.tie_shape": '"flow.tie_shape"(%d, %n) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<?x4xf32>, index) -> ()',
    "flow.slice": '%0 = "flow.slice"(%t) {offset = 2 : i64} : (tensor<4xf32>) -> tensor<2xf32>',
    "stream.argument": '%0 = "stream.argument"() {index = 0 : i64} : () -> !stream.resource',
    "stream.argument_dim": '%0 = "stream.argument_dim"() {index = 0 : i64, dim = 1 : i64} : () -> index',
    "stream.parameter": '%0 = "stream.parameter"() {key = "w"} : () -> !stream.resource',
    "stream.state": '%0 = "stream.state"(%n) {key = "cache"} : (index) -> !stream.resource',
    "stream.alloc": '%0 = "stream.alloc"(%n) {kind = "transient"} : (index) -> !stream.resource\n'
    '%1 = "stream.alloc"(%n) {kind = "result"} : (index) -> !stream.resource',
    "stream.view": '%0 = "stream.view"(%r, %n, %n) : (!stream.resource, index, index) -> !stream.resource',
    "stream.pack": '%0:3 = "stream.pack"(%n, %n) {lifetimes = array<i64: 0, 1, 1, 2>, max_bytes = 0 : i64, operandSegmentSizes = array<i32: 2>, resultSegmentSizes = array<i32: 3>} : (index, index) -> (index, index, index)',
    "stream.dispatch": '"stream.dispatch"(%n, %r, %r) {callee = @k, access = array<i64: 1, 2>, operandSegmentSizes = array<i32: 1, 2>} : (index, !stream.resource, !stream.resource) -> ()',
    "stream.loop": '"stream.loop"(%r, %r, %r) {body = @step, trips = 7 : i64, counts = array<i64: 1, 0, 0, 1>, reads = array<i64: 0, 64, 64>, rows = array<i64: 0, 0, 64, 64>, states = array<i64: 0>, access = array<i64: 1, 2, 2>, operandSegmentSizes = array<i32: 3>} : (!stream.resource, !stream.resource, !stream.resource) -> ()',
    "stream.branch": '%q = arith.constant true\n"stream.branch"(%q, %n, %r, %r) {then = @a, otherwise = @b, made = 1 : i64, places = array<i64: 0, 1>, access = array<i64: 1, 2>, operandSegmentSizes = array<i32: 1, 1, 2>} : (i1, index, !stream.resource, !stream.resource) -> ()',
    "stream.while": '%q = arith.constant true\n"stream.while"(%q, %r, %r, %r, %r, %r) {body = @step, states = 1 : i64, kept = array<i64: 0>, places = array<i64>, access = array<i64: 1, 3, 3, 3, 2>, operandSegmentSizes = array<i32: 1, 0, 5>} : (i1, !stream.resource, !stream.resource, !stream.resource, !stream.resource, !stream.resource) -> ()',
    "stream.copy": '"stream.copy"(%r, %r) : (!stream.resource, !stream.resource) -> ()',
    "stream.barrier": '"stream.barrier"() : () -> ()',
    "stream.load": '%0 = "stream.load"(%r) {offset = 8 : i64, element = "i32"} : (!stream.resource) -> i64',
    "stream.result": '"stream.result"(%r, %n, %n) {index = 1 : i64, operandSegmentSizes = array<i32: 1, 2>} : (!stream.resource, index, index) -> ()',
    "hal.executable": '"hal.executable"() {sym_name = "kernels", target = "llvm-cpu", format = "elf-x86_64", features = "avx", exports = [], hal.image = dense<[127, 69]> : tensor<2xi8>} : () -> ()',
    "hal.argument": '%0 = "hal.argument"() {index = 0 : i64} : () -> !hal.buffer',
    "hal.argument_dim": '%0 = "hal.argument_dim"() {index = 0 : i64, dim = 1 : i64} : () -> index',
    "hal.parameter": '%0 = "hal.parameter"() {key = "w"} : () -> !hal.buffer',
    "hal.state": '%0 = "hal.state"() {key = "cache"} : () -> !hal.buffer',
    "hal.allocate": '%0 = "hal.allocate"(%n) {kind = "result"} : (index) -> !hal.buffer',
    "hal.pack": '%0:2 = "hal.pack"(%n) {lifetimes = array<i64: 0, 1>, max_bytes = 0 : i64, operandSegmentSizes = array<i32: 1>, resultSegmentSizes = array<i32: 2>} : (index) -> (index, index)',
    "hal.record": '%0 = "hal.record"() ({\n"hal.end"() : () -> ()\n}) {memo = 0 : i64, slots = 2 : i64} : () -> !hal.command_buffer',
    "hal.dispatch": '"hal.dispatch"(%n, %b, %n, %n, %n, %n) {callee = @k, slots = array<i64: 0, -1>, access = array<i64: 1, 2>, operandSegmentSizes = array<i32: 1, 1, 2, 2>} : (index, !hal.buffer, index, index, index, index) -> ()',
    "hal.copy": '"hal.copy"(%n, %n, %n, %n) {slots = array<i64: 0, 1>, operandSegmentSizes = array<i32: 0, 2, 2>} : (index, index, index, index) -> ()',
    "hal.barrier": '"hal.barrier"() : () -> ()',
    "hal.submit": '"hal.submit"(%c, %b) {operandSegmentSizes = array<i32: 1, 1>} : (!hal.command_buffer, !hal.buffer) -> ()',
    "hal.loop": '"hal.loop"(%b, %n, %n) {body = @step, trips = 7 : i64, counts = array<i64: 1, 0, 0, 0>, reads = array<i64: 0, 64, 64>, rows = array<i64>, states = array<i64>, operandSegmentSizes = array<i32: 1, 1, 1>} : (!hal.buffer, index, index) -> ()',
    "hal.branch": '%q = arith.constant true\n"hal.branch"(%q, %b, %n, %n) {then = @a, otherwise = @b, made = 1 : i64, places = array<i64>, operandSegmentSizes = array<i32: 1, 0, 1, 1, 1>} : (i1, !hal.buffer, index, index) -> ()',
    "hal.while": '%q = arith.constant true\n"hal.while"(%q, %b, %n, %n) {body = @step, states = 0 : i64, kept = array<i64>, places = array<i64>, operandSegmentSizes = array<i32: 1, 0, 1, 1, 1>} : (i1, !hal.buffer, index, index) -> ()',
    "hal.load": '%0 = "hal.load"(%b, %n) {element = "i64"} : (!hal.buffer, index) -> i64',
    "hal.result": '"hal.result"(%b, %n) {index = 0 : i64, operandSegmentSizes = array<i32: 1, 1>} : (!hal.buffer, index) -> ()',
    "vm.is_nonzero": '%0 = "vm.is_nonzero"(%i) : (i64) -> i1',
    "vm.is_null": '%0 = "vm.is_null"(%v) : (!vm.ref) -> i1',
}
EXAMPLES["hal.end"] = EXAMPLES["hal.record"]

ARGUMENTS = (
    "%t: tensor<4xf32>, %d: tensor<?x4xf32>, %n: index, %r: !stream.resource, %b: !hal.buffer, %c: !hal.command_buffer,"
    " %v: !vm.ref, %i: i64"
)


@pytest.fixture(scope="module")
def context():
    return make_context()


def in_function(lines: str) -> str:
    return f"func.func @main({ARGUMENTS}) {{\n{lines}\nreturn\n}}"


def assert_round_trip(text: str, context) -> str:
    module = parse_module(text, context)
    assert module.operation.verify()
    once = str(module)
    again = parse_module(once, context)
    assert again.operation.verify()
    assert str(again) == once
    return once


def op_names(name: str) -> set[str]:
    """`dialect.op` of each op class in a dialect's file."""
    base = getattr(MODULES[name], DIALECTS[name]).Operation
    classes = [
        one
        for one in vars(MODULES[name]).values()
        if inspect.isclass(one) and issubclass(one, base) and one is not base
    ]
    return {one.OPERATION_NAME for one in classes}


@pytest.mark.parametrize("name", EXAMPLES)
def test_round_trip(context, name):
    assert f'"{name}"' in assert_round_trip(in_function(EXAMPLES[name]), context)


def test_every_op_has_an_example():
    assert set(DIALECTS) == set(MODULES)
    names = set().union(*(op_names(name) for name in DIALECTS))
    assert {"flow.parameter", "stream.pack", "hal.record", "vm.is_null"} <= names
    assert names == set(EXAMPLES)
    assert set(vm.OPS) | {"br", "br_if", "br_null"} == {op.name for op in isa.OPS}


@pytest.mark.parametrize("name", vm.OPS)
def test_vm_round_trip(context, name):
    """Instructions come from a table, so their examples do too: two of each list, 1 for each immediate."""
    table = next(op for op in isa.OPS if op.name == name)
    operands, groups, results, attributes = [], [], [], []
    for one in table.operands:
        count = 2 if one.is_list else 1
        register = {"i": "i64", "j": "i64", "r": "!vm.ref"}.get(one.kind.value)
        if one.kind is isa.Kind.BINDING:
            for type_, length in (("!vm.ref", count), ("i64", 2 * count)):
                operands += [type_] * length
                groups.append(length)
            attributes += [f"{one.name}_slots = array<i64: -1, -1>", f"{one.name}_access = array<i64: 1, 2>"]
        elif one.kind.value in "IR":
            results += ["i64" if one.kind.value == "I" else "!vm.ref"] * count
        elif register:
            operands += [register] * count
            groups.append(count)
        elif one.kind is isa.Kind.TABLE:
            attributes.append(f"{one.name} = array<i64: 0, 1, 1, 2>")
        else:
            attributes.append(f"{one.name} = 1 : i64")
    if any(one.is_list or one.kind is isa.Kind.BINDING for one in table.operands if one.kind.value in "ijrb"):
        attributes.append(f"operandSegmentSizes = array<i32: {', '.join(map(str, groups))}>")
    if any(one.is_list for one in table.operands if one.kind.value in "IR"):
        attributes.append(
            f"resultSegmentSizes = array<i32: {', '.join(str(2 if one.is_list else 1) for one in table.operands if one.is_dst)}>"
        )
    values = ", ".join("%v" if type_ == "!vm.ref" else "%i" for type_ in operands)
    left = f"%0:{len(results)} = " if len(results) > 1 else "%0 = " if results else ""
    line = (
        f'{left}"vm.{name}"({values}) {{{", ".join(attributes)}}} : ({", ".join(operands)}) -> ({", ".join(results)})'
    )
    assert f'"vm.{name}"' in assert_round_trip(in_function(line), context)


def test_strategies_round_trip(context):
    text = """func.func private @k(tensor<4xf32>) -> tensor<4xf32> attributes {flow.executable,
      codegen.strategy = #codegen.strategy<"contraction", {grid = [{loop = 0, tile = 8}], tiles = [{}]}>}"""
    assert '#codegen.strategy<"contraction", {grid = [{loop = 0 : i64, tile' in assert_round_trip(text, context)
    with pytest.raises(CompileError):
        parse_module(text.replace('"contraction", ', ""), context)


REFUSED = [
    ('%0 = "flow.parameter"() {key = ""} : () -> tensor<4xf32>', "flow.parameter needs a name"),
    (
        '%0 = "flow.parameter"() {key = "w"} : () -> tensor<?xf32>',
        "'w' must have a static tensor type, got 'tensor<\\?xf32>'|got tensor<\\?xf32>",
    ),
    ('%0 = "flow.parameter"() {key = "w"} : () -> f32', "'w' must have a static tensor type"),
    ('%0 = "flow.state"() {key = ""} : () -> tensor<4xf32>', "must have a name and a static tensor type"),
    ('"flow.set_state"(%d) {key = "s"} : (tensor<?x4xf32>) -> ()', "must have a name and a static tensor type"),
    (
        '%0 = "flow.reshape"(%d) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<?x4xf32>) -> tensor<?x2x2xf32>',
        "'flow.reshape' needs 1 values for dynamic dimensions, got 0",
    ),
    (
        '%0 = "flow.reshape"(%t, %n) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<4xf32>, index) -> tensor<2x2xf32>',
        "'flow.reshape' needs 0 values for dynamic dimensions, got 1",
    ),
    (
        '"flow.tie_shape"(%d, %n, %n) {operandSegmentSizes = array<i32: 1, 2>} : (tensor<?x4xf32>, index, index) -> ()',
        "'flow.tie_shape' needs 1 values for dynamic dimensions, got 2",
    ),
    (
        '%0 = "stream.alloc"(%n) {kind = "eternal"} : (index) -> !stream.resource',
        "must be 'transient' or 'result', got 'eternal'",
    ),
    (
        '%0:2 = "stream.pack"(%n) {lifetimes = array<i64: 0>, max_bytes = 0 : i64, operandSegmentSizes = array<i32: 1>, resultSegmentSizes = array<i32: 2>} : (index) -> (index, index)',
        "of 1 buffers needs 2 lifetimes and 2 results",
    ),
    (
        '%0 = "stream.pack"(%n) {lifetimes = array<i64: 0, 1>, max_bytes = 0 : i64, operandSegmentSizes = array<i32: 1>, resultSegmentSizes = array<i32: 1>} : (index) -> (index)',
        "of 1 buffers needs 2 lifetimes and 2 results",
    ),
    (
        '"stream.dispatch"(%r) {callee = @k, access = array<i64: 1, 2>, operandSegmentSizes = array<i32: 0, 1>} : (!stream.resource) -> ()',
        "one access mode for each resource",
    ),
    (
        '"hal.dispatch"(%n, %n) {callee = @k, slots = array<i64: -1>, access = array<i64: 1>, operandSegmentSizes = array<i32: 0, 0, 1, 1>} : (index, index) -> ()',
        "bindings, buffers and ranges do not match",
    ),
    (
        '"hal.dispatch"(%n, %n) {callee = @k, slots = array<i64: 0, 1>, access = array<i64: 1, 2>, operandSegmentSizes = array<i32: 0, 0, 1, 1>} : (index, index) -> ()',
        "bindings, buffers and ranges do not match",
    ),
    # What IRDL checks without our help.
    ('%0 = "stream.argument"() : () -> !stream.resource', "attribute .*index"),
    ('%0 = "stream.alloc"(%i) {kind = "result"} : (i64) -> !stream.resource', "index"),
    ('"stream.copy"(%r) : (!stream.resource) -> ()', "operand"),
    ('"stream.copy"(%b, %b) : (!hal.buffer, !hal.buffer) -> ()', "stream.resource"),
]


@pytest.mark.parametrize(("line", "message"), REFUSED, ids=range(len(REFUSED)))
def test_verifiers_refuse(context, line, message):
    with pytest.raises((CompileError, mlir.MLIRError)) as caught:
        parse_module(in_function(line), context).operation.verify()
    assert re.search(message, str(caught.value)), caught.value


def test_a_verifier_names_the_place(context):
    with pytest.raises(CompileError, match=r"\(at line 2\)"):
        parse_module(in_function(REFUSED[0][0]), context)


def test_unknown_ops_of_our_dialects_are_refused(context):
    with pytest.raises(CompileError):
        parse_module(in_function('"flow.teleport"() : () -> ()'), context)


@pytest.mark.xfail(
    strict=True, raises=KeyError, reason="verifiers read operand groups before anything checked operandSegmentSizes"
)
def test_a_missing_segment_attribute_is_the_texts_error(context):
    with pytest.raises(CompileError):
        parse_module(in_function('"flow.tie_shape"(%d, %n) : (tensor<?x4xf32>, index) -> ()'), context)
