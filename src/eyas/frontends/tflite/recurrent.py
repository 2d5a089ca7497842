"""Recurrent layers: LSTM, RNN and SVDF, one step or a sequence of them, one way or both.

Their states are variables of the file, which stay between calls. The products with a sequence's inputs are one for all
steps; what follows is a loop. Layers of integers compute with the real numbers that these stand for, rounded where
LiteRT's integer cells round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import helper

from eyas.frontends.tensorflow.elementwise import clip
from eyas.frontends.tensorflow.graph import Graph, dims_of
from eyas.frontends.tensorflow.moves import known
from eyas.frontends.tflite.quantize import dequantize, is_quantized, quantize, scale_of
from eyas.frontends.tflite.translate import Call, activate

Step = Callable[[Any, list[Any]], tuple[Any, list[Any]]]
_GATES = ("input", "forget", "cell", "output")
_GATE_STEP, _UNIT_STEP, _WORD = 2.0**-12, 2.0**-15, 32768  # of the 16-bit integers inside an LSTM of integers


@dataclass(frozen=True)
class _Lstm:
    """Where the operands of one direction are."""

    weights: int
    recurrent: int
    peepholes: int
    biases: int
    projection: int
    state: int
    norms: int | None = None
    auxiliary: int | None = None


_FORWARD = _Lstm(1, 5, 9, 12, 16, 18, norms=20)
_BOTH = _Lstm(1, 5, 9, 12, 16, 35, auxiliary=40), _Lstm(18, 22, 26, 29, 33, 37, auxiliary=44)


def lstm(call: Call) -> Any:
    """One step of the full kernel, or of the basic one, which has its weights in one matrix."""
    if call.get("KernelType", 0) == 1:
        return _basic_lstm(call)
    sequence = call.g.reshape(call.real(0), [1, *(call.g.size(call.input(0), axis) for axis in (0, 1))])
    result = _run_lstm(call, _FORWARD, sequence, None, backwards=False)
    return _leave(call, call.g.reshape(result, [call.g.size(result, axis) for axis in (1, 2)]), 0)


def sequence_lstm(call: Call) -> Any:
    sequence = _time_first(call, call.real(0))
    return _leave(call, _time_first(call, _run_lstm(call, _FORWARD, sequence, None, backwards=False)), 0)


def both_lstm(call: Call) -> Any:
    sequence, auxiliary = _time_first(call, call.real(0)), call.real(39)
    auxiliary = None if auxiliary is None else _time_first(call, auxiliary)
    found = [
        _run_lstm(call, where, sequence, auxiliary, backwards)
        for where, backwards in zip(_BOTH, (False, True), strict=True)
    ]
    return _merge(call, found)


def _run_lstm(call: Call, where: _Lstm, sequence: Any, auxiliary: Any, backwards: bool) -> Any:
    """The results of all steps, [time, batch, width]; the state is left for the next call."""
    g = call.g
    gates = [at for at in range(4) if call.input(where.weights + at) is not None]
    if 1 not in gates or 2 not in gates or 3 not in gates:
        raise call.refuse("it lacks weights of a gate")
    stacked = _join([_weights(call, where.weights + at) for at in gates])
    width = stacked.shape[0] // len(gates)
    # Norms of the gates come before their biases.
    has_norms = where.norms is not None and call.input(where.norms + 1) is not None
    biases = None if has_norms else _join([_bias(call, where.biases + at, where.weights + at) for at in gates])
    products = _product(g, sequence, stacked, biases)
    if where.auxiliary is not None and auxiliary is not None and call.input(where.auxiliary + 1) is not None:
        more = _join([_weights(call, where.auxiliary + at) for at in gates])
        products = g.add("Add", products, _product(g, auxiliary, more, None))
    products = _rounded(call, products, _GATE_STEP)
    recurrent = _join([_weights(call, where.recurrent + at) for at in gates])
    projection, cell_clip = call.real(where.projection), call.get("CellClip", 0.0)

    def step(x: Any, states: list[Any]) -> tuple[Any, list[Any]]:
        h, c = states
        x = g.add("Add", x, _rounded(call, _product(g, h, recurrent, None), _GATE_STEP))
        parts = dict(zip((_GATES[at] for at in gates), _split(g, x, len(gates)), strict=True))

        def gate(name: str, cell: Any = None) -> Any:
            at, value = _GATES.index(name), parts[name]
            hole = {"input": 0, "forget": 1, "output": 2}.get(name)
            if cell is not None and hole is not None and call.input(where.peepholes + hole) is not None:
                value = g.add("Add", value, g.add("Mul", cell, call.real(where.peepholes + hole)))
            if has_norms:
                assert where.norms is not None
                value = _normalize(
                    g, value, call.real(where.norms + at), _bias(call, where.biases + at, where.norms + at)
                )
            return value

        forget = _squash(call, "Sigmoid", gate("forget", c))
        enter = (
            _squash(call, "Sigmoid", gate("input", c)) if 0 in gates else g.add("Sub", np.array(1, np.float32), forget)
        )
        fresh = _squash(call, call.activation, gate("cell"))
        cell_step = float(scale_of(call.type(where.state + 1))) if is_quantized(call.type(where.state + 1)) else 0.0
        old = _rounded(call, g.add("Mul", forget, c), cell_step)
        c = g.add("Add", old, _rounded(call, g.add("Mul", enter, fresh), cell_step))
        if cell_clip > 0:
            c = clip(g, c, -cell_clip, cell_clip)
        if cell_step:
            c = clip(g, c, -_WORD * cell_step, (_WORD - 1) * cell_step)
        out = _squash(call, "Sigmoid", gate("output", c))
        h = g.add("Mul", out, _squash(call, call.activation, c))
        if projection is not None:
            h = _product(g, h, projection, call.real(where.projection + 1))
            if call.get("ProjClip", 0.0) > 0:
                h = clip(g, h, -call.get("ProjClip"), call.get("ProjClip"))
        state = call.type(where.state)
        h = dequantize(g, quantize(g, h, state), state) if is_quantized(state) else h
        return h, [h, c]

    assert width > 0
    states = [call.real(where.state), call.real(where.state + 1)]
    results, states = _over_time(g, products, states, step, backwards)
    for index, value in zip((where.state, where.state + 1), states, strict=True):
        _keep(call, index, value)
    return results


def _basic_lstm(call: Call) -> Any:
    """Gates in the order input, cell, forget, output; the state is an operand and a result."""
    g = call.g
    x = g.add("Concat", call.real(0), call.real(1), axis=1)
    enter, fresh, forget, out = _split(g, _product(g, x, call.real(2), _bias(call, 3, 2)), 4)
    kept = g.add("Mul", g.add("Sigmoid", forget), call.real(4))
    state = g.add("Add", kept, g.add("Mul", g.add("Sigmoid", enter), g.add("Tanh", fresh)))
    result = g.add("Mul", g.add("Sigmoid", out), g.add("Tanh", state))
    found = [result, state]
    return [
        quantize(g, one, record) if is_quantized(record) else one
        for one, record in zip(found, call.results, strict=False)
    ]


def rnn(call: Call) -> Any:
    g, x = call.g, call.real(0)
    sequence = g.reshape(x, [1, *(g.size(x, axis) for axis in (0, 1))])
    result = _run_rnn(call, sequence, (1, 2, 3, 4), None, backwards=False)
    return g.reshape(result, [g.size(result, axis) for axis in (1, 2)])


def sequence_rnn(call: Call) -> Any:
    return _time_first(call, _run_rnn(call, _time_first(call, call.real(0)), (1, 2, 3, 4), None, backwards=False))


def both_rnn(call: Call) -> Any:
    sequence, auxiliary = _time_first(call, call.real(0)), call.real(9)
    auxiliary = None if auxiliary is None else _time_first(call, auxiliary)
    found = []
    for where, more, backwards in (((1, 2, 3, 4), 10, False), ((5, 6, 7, 8), 11, True)):
        extra = None if auxiliary is None or call.input(more) is None else (auxiliary, call.real(more))
        found.append(_run_rnn(call, sequence, where, extra, backwards))
    return _merge(call, found)


def _run_rnn(call: Call, sequence: Any, where: tuple[int, int, int, int], extra: Any, backwards: bool) -> Any:
    g = call.g
    products = _product(g, sequence, call.real(where[0]), call.real(where[2]))
    if extra is not None:
        auxiliary, weights = extra
        products = g.add("Add", products, _product(g, auxiliary, weights, None))
    recurrent = call.real(where[1])

    def step(x: Any, states: list[Any]) -> tuple[Any, list[Any]]:
        h = activate(g, g.add("Add", x, _product(g, states[0], recurrent, None)), call.activation)
        return h, [h]

    results, states = _over_time(g, products, [call.real(where[3])], step, backwards)
    _keep(call, where[3], states[0])
    return results


def svdf(call: Call) -> Any:
    """A dense layer of rank one or a little more: features of each step, weighed over the last ones."""
    g, x, state = call.g, call.real(0), call.real(4)
    features, weights = call.real(1), known(g, call.real(2), "weights")
    batch, memory, rank = g.size(x, 0), weights.shape[1], max(1, call.get("Rank", 1))
    fresh = _product(g, x, features, None)
    if is_quantized(call.type(4)):
        fresh = dequantize(g, quantize(g, fresh, call.type(4)), call.type(4))
    old = g.reshape(state, [batch, -1, memory])
    kept = g.add("Slice", old, np.array([1]), np.array([memory]), np.array([2])) if memory > 1 else None
    last = g.reshape(fresh, [batch, -1, 1])
    state = last if kept is None else g.add("Concat", kept, last, axis=2)
    _keep(call, 4, g.reshape(state, [batch, -1]))
    weighed = g.add("ReduceSum", g.add("Mul", state, weights[None]), np.array([2], np.int64), keepdims=0)
    total = g.add("ReduceSum", g.reshape(weighed, [batch, -1, rank]), np.array([2], np.int64), keepdims=0)
    bias = call.real(3)
    if bias is not None:
        if np.dtype(bias.dtype).kind != "f":
            bias = known(g, bias, "bias").astype(np.float32) * scale_of(call.type(4)) * scale_of(call.type(2))
        total = g.add("Add", total, bias)
    # Of integers LiteRT leaves the activation to the range of the result.
    return quantize(g, total, call.result) if is_quantized(call.result) else activate(g, total, call.activation)


def _over_time(g: Graph, sequence: Any, states: Sequence[Any], step: Step, backwards: bool) -> tuple[Any, list[Any]]:
    """Steps over the first dimension: their results, stacked, and the states after the last."""
    count = g.size(sequence, 0)
    if count == 1:
        result, last = step(g.add("Squeeze", sequence, np.array([0], np.int64)), list(states))
        return g.add("Unsqueeze", result, np.array([0], np.int64)), last
    with g.subgraph() as graph:
        trip = g.fresh(f"{g.where}/trip", np.int64, ())
        before = g.fresh(f"{g.where}/condition", np.bool_, ())
        carried = [g.fresh(f"{g.where}/carried", np.float32, dims_of(one)) for one in states]
        graph.input.extend(helper.make_value_info(one.name, one.type) for one in (trip, before, *carried))
        at = g.add("Sub", np.array(count - 1, np.int64), trip) if backwards else trip
        result, after = step(g.add("Gather", sequence, at, axis=0), list(carried))
        again = g.fresh(f"{g.where}/again", np.bool_, ())
        g.add_node(helper.make_node("Identity", [before.name], [again.name], name=again.name))
        outputs = [again]
        for one in (*after, result):
            named = g.fresh(f"{g.where}/result", one.dtype, dims_of(one))
            g.add_node(helper.make_node("Identity", [g.name_of(one)], [named.name], name=named.name))
            outputs.append(named)
        graph.output.extend(helper.make_value_info(one.name, one.type) for one in outputs)
    made = [g.fresh(f"{g.where}/Loop", np.float32, dims_of(one)) for one in after]
    stacked = g.fresh(f"{g.where}/Loop", np.float32, (count, *dims_of(result)))
    given = [g.name_of(np.array(count, np.int64)), "", *(g.name_of(one) for one in states)]
    g.add_node(helper.make_node("Loop", given, [one.name for one in (*made, stacked)], name=stacked.name, body=graph))
    results: Any = stacked
    if backwards:
        results = g.add("Gather", stacked, np.arange(count)[::-1].copy(), axis=0)
    return results, made


def _merge(call: Call, found: list[Any]) -> Any:
    if call.get("MergeOutputs", False):
        return _leave(call, _time_first(call, call.g.add("Concat", *found, axis=2)), 0)
    return [_leave(call, _time_first(call, one), index) for index, one in enumerate(found)]


def _leave(call: Call, x: Any, index: int) -> Any:
    record = call.results[index]
    return quantize(call.g, x, record) if is_quantized(record) else x


def _keep(call: Call, index: int, value: Any) -> None:
    """A state for the next call, in the type that the file has it in."""
    record = call.type(index)
    value = quantize(call.g, value, record) if is_quantized(record) else value
    call.translation.variables.update(record, value)


def _time_first(call: Call, x: Any) -> Any:
    """[batch, time, width] with the time first, or back; nothing where the file has it first."""
    return x if call.get("TimeMajor", False) else call.g.transpose(x, [1, 0, 2])


def _weights(call: Call, index: int) -> np.ndarray:
    return known(call.g, call.real(index), "weights")


def _bias(call: Call, index: int, weights: int) -> Any:
    """Of integers: in the product of two scales, the input's and that of the weights; of norms 2^-10 and theirs."""
    bias = call.real(index)
    if bias is None or np.dtype(bias.dtype).kind == "f":
        return bias
    values = known(call.g, bias, "bias").astype(np.float32)
    if (found := call.type(index).quantization) is not None:
        return values * found.scale.astype(np.float32)
    return values * scale_of(call.type(0)) * scale_of(call.type(weights))


def _join(parts: Sequence[Any]) -> Any:
    return None if parts[0] is None else np.concatenate(list(parts))


def _product(g: Graph, x: Any, weights: Any, bias: Any) -> Any:
    """x W' + b over the last dimension."""
    made = g.add("MatMul", x, g.transpose(weights, [1, 0]))
    return made if bias is None else g.add("Add", made, bias)


def _split(g: Graph, x: Any, count: int) -> list[Any]:
    width = g.size(x, -1) // count
    axis = len(dims_of(x)) - 1
    return g.add_many("Split", count, x, np.array([width] * count, np.int64), axis=axis)


def _normalize(g: Graph, x: Any, scale: Any, bias: Any) -> Any:
    """Layer normalisation, with the epsilon of LiteRT."""
    mean = g.add("ReduceMean", x, np.array([-1], np.int64), keepdims=1)
    centred = g.add("Sub", x, mean)
    variance = g.add("ReduceMean", g.add("Mul", centred, centred), np.array([-1], np.int64), keepdims=1)
    made = g.add("Div", centred, g.add("Sqrt", g.add("Add", variance, np.array(1e-8, np.float32))))
    made = g.add("Mul", made, scale)
    return made if bias is None else g.add("Add", made, bias)


def _is_integer(call: Call) -> bool:
    return is_quantized(call.type(0))


def _rounded(call: Call, x: Any, step: float) -> Any:
    """A value inside a cell of integers, which has 16 bits there."""
    if not _is_integer(call) or not step:
        return x
    g, unit = call.g, np.array(step, np.float32)
    return g.add("Mul", clip(g, g.add("Round", g.add("Div", x, unit)), -_WORD, _WORD - 1), unit)


def _squash(call: Call, name: str, x: Any) -> Any:
    made = call.g.add("Sigmoid", x) if name == "Sigmoid" else activate(call.g, x, name)
    return _rounded(call, made, _UNIT_STEP)


EXACT = {
    "BIDIRECTIONAL_SEQUENCE_LSTM": both_lstm,
    "BIDIRECTIONAL_SEQUENCE_RNN": both_rnn,
    "LSTM": lstm,
    "RNN": rnn,
    "SVDF": svdf,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": sequence_lstm,
    "UNIDIRECTIONAL_SEQUENCE_RNN": sequence_rnn,
}
