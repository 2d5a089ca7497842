"""Rules for layers that read a sequence once and keep a state: causal convolutions and linear attention."""

from __future__ import annotations

from typing import Any

import onnx
from onnx import helper

from eyas.frontends.onnx.contrib.common import Floats, is_ready, refuse, refuse_attributes, results, whole
from eyas.frontends.onnx.rewrite.rules import Builder, attribute, operand


def causal_conv_with_state(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """A depthwise convolution over what was before and what is new; the state is the end of both."""
    if not is_ready(node, b):
        return None
    refuse_attributes(node, b, ndim=1, state_window=0)
    x, weight, bias, past = (operand(node, place) for place in range(4))
    taps, channels = ((b.dims_of(weight) or [None])[at] for at in (-1, 0))
    if taps is None or channels is None:
        return None
    dilation, last = attribute(node, "dilation", 1), attribute(node, "channels_last", 0)
    length = (taps - 1) * dilation
    floats = Floats(b.type_of(x), b)
    shapes = b.add("Shape", x), past and b.add("Shape", past)

    def along(value: str) -> str:
        """(batch, channels, steps), in f32."""
        value = floats.read(value)
        return b.transpose(b.reshape(value, [0, 0, channels]), [0, 2, 1]) if last else value

    if past:
        both = b.add("Concat", along(past), along(x), axis=2)
    else:
        both = b.add("Pad", along(x), whole([0, 0, length, 0, 0, 0], b))
    parts = [floats.read(weight), *([floats.read(bias)] if bias else [])]
    y = b.add("Conv", both, *parts, group=channels, dilations=[dilation], kernel_shape=[taps])
    match attribute(node, "activation", "none"):
        case "silu" | "swish":
            y = b.add("Mul", y, b.add("Sigmoid", y))
        case "none" | "":
            pass
        case other:
            refuse(node, b, f"its attribute activation is {other}; none, silu and swish are what is known")
    steps = b.add("Gather", b.add("Shape", both), whole([2], b), axis=0)
    start = b.add("Sub", steps, whole([length], b))
    state = b.add("Slice", both, start, steps, whole([2], b))
    if last:
        y = b.add("Reshape", b.transpose(y, [0, 2, 1]), shapes[0])
        rest = b.add("Slice", shapes[0], whole([2], b), whole([1 << 30], b))
        batch = b.add("Slice", shapes[0], whole([0], b), whole([1], b))
        shape = b.add("Concat", batch, whole([length], b), rest, axis=0)
        state = b.add("Reshape", b.transpose(state, [0, 2, 1]), shape)
    return results(node, floats.write(y), floats.write(state))


def linear_attention(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """A matrix for each head takes up keys and values step by step, and queries read it."""
    if not is_ready(node, b):
        return None
    refuse_attributes(node, b, state_window=0)
    rule = attribute(node, "update_rule", "gated_delta")
    if rule not in ("linear", "gated", "delta", "gated_delta"):
        refuse(node, b, f"its attribute update_rule is {rule}; linear, gated, delta and gated_delta are what is known")
    heads, groups = attribute(node, "q_num_heads", 0), attribute(node, "kv_num_heads", 0)
    if heads <= 0 or groups <= 0 or max(heads, groups) % min(heads, groups):
        refuse(node, b, f"it has {heads} heads of queries and {groups} of keys; one must be a multiple of the other")
    query, key, value, past, decay, beta = (operand(node, place) for place in range(6))
    for name, given, wanted in (("decay", decay, "gated" in rule), ("beta", beta, "delta" in rule)):
        if wanted and not given:
            refuse(node, b, f"it has no input {name}, which update_rule {rule} needs")
    widths = [(b.dims_of(name) or [None])[-1] for name in (query, value)]
    if None in widths:
        return None
    depth, columns = widths[0] // heads, widths[1] // groups
    floats = Floats(b.type_of(query), b)

    # Open sizes have a name for each input; what is carried from step to step must have one.
    batch, steps = (b.size(query, axis) for axis in (0, 1))

    def steps_first(name: str, shape: list[int]) -> str:
        """(steps, batch, ...) of (batch, steps, ...), in f32."""
        parts = b.reshape(floats.read(name), [batch, steps, *shape])
        return b.transpose(parts, [1, 0, *range(2, len(shape) + 2)])

    scale = attribute(node, "scale", 0.0) or depth**-0.5
    q = b.add("Mul", floats.read(query), floats.number(scale))
    if groups > heads:
        q = b.add("Expand", b.reshape(q, [0, 0, heads, 1, depth]), whole([1, 1, 1, groups // heads, 1], b))
    q = steps_first(q, [groups, max(heads // groups, 1), depth])
    k, v = steps_first(key, [groups, 1, depth]), steps_first(value, [groups, 1, columns])
    scanned = {"q": q, "k": k, "v": v}
    if "gated" in rule:
        wide = (b.dims_of(decay) or [None])[-1]
        if wide is None:
            return None
        scanned["decay"] = b.add("Exp", steps_first(decay, [groups, wide // groups, 1]))
    if "delta" in rule:
        count = (b.dims_of(beta) or [None])[-1]
        if count is None:
            return None
        scanned["beta"] = steps_first(beta, [count, 1, 1])
    sizes = [batch, groups, depth, columns]
    if past:
        state = b.reshape(floats.read(past), sizes)
    else:
        state = b.add("Expand", b.constant(0, floats.dtype), b.vector(sizes))
    body = _step(list(scanned), floats, f"{node.name}_step")
    state, read = b.add_many("Scan", 2, state, *scanned.values(), body=body, num_scan_inputs=len(scanned))
    mixed = b.reshape(b.transpose(read, [1, 0, 2, 3, 4]), [0, 0, max(heads, groups) * columns])
    return results(node, floats.write(mixed), floats.write(state))


def _step(scanned: list[str], floats: Floats, name: str) -> onnx.GraphProto:
    """One step: what is kept decays, a new key takes what it already reads from its value, queries read the result."""
    nodes: list[onnx.NodeProto] = []

    def add(op: str, *inputs: str, **attributes: Any) -> str:
        result = f"{name}_{len(nodes)}"
        nodes.append(helper.make_node(op, inputs, [result], name=result, **attributes))
        return result

    ins = {one: f"{name}_{one}" for one in ["state", *scanned]}
    state, new = ins["state"], ins["v"]
    if "decay" in ins:
        state = add("Mul", state, ins["decay"])
    if "beta" in ins:
        new = add("Mul", add("Sub", new, add("MatMul", ins["k"], state)), ins["beta"])
    state = add("Add", state, add("Mul", add("Transpose", ins["k"], perm=[0, 1, 3, 2]), new))
    read = add("MatMul", ins["q"], state)
    typed = [helper.make_tensor_value_info(one, floats.computed, [None] * 4) for one in (*ins.values(), state, read)]
    return helper.make_graph(nodes, name, typed[: len(ins)], typed[len(ins) :])
