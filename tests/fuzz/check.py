"""One graph: imported, compiled with its options, called, compared."""

from __future__ import annotations

import re
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.fuzz.graph import Graph
from tests.fuzz.lowering import evaluate, from_torch_tensor, import_graph, leaf_values, torch_tensor
from tests.fuzz.shadow import compare


@dataclass(frozen=True)
class Outcome:
    """`kind`: passed, wrong, refused (an error that names the op), failed (any other error), crashed, hung, or invalid
    (the framework itself does not take the graph; such graphs are not counted)."""

    kind: str
    detail: str = ""
    compared: int = 0
    elements: int = 0
    seconds: float = 0.0

    @property
    def is_bad(self) -> bool:
        return self.kind not in ("passed", "invalid")

    @property
    def symptom(self) -> str:
        """The detail without what differs from graph to graph."""
        if self.kind == "wrong":
            return "wrong"
        text = re.sub(r"0x[0-9a-f]+|[-+]?\d+(\.\d+)?(e[-+]?\d+)?", "#", self.detail)
        return f"{self.kind}: {re.sub(r'#(x#)*(x[a-z]+#)?', '#', text)[:160]}"


def check(graph: Graph) -> Outcome:
    """Never raises for what the compiler does."""
    import jax

    begin = time.perf_counter()
    # For this graph only: other tests of the process rely on JAX's defaults.
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kind, detail, compared, elements = _attempt(graph)
    return Outcome(kind, detail, compared, elements, time.perf_counter() - begin)


def _attempt(graph: Graph) -> tuple[str, str, int, int]:
    from eyas.errors import EyasError, FrontendError, UnsupportedOpError

    try:
        module = _compile(graph)
    except UnsupportedOpError as error:
        return "refused", _one_line(error), 0, 0
    except FrontendError as error:
        if "torch.export could not trace" in str(error) or "jax could not trace" in str(error):
            return "invalid", _one_line(error), 0, 0
        return "failed", f"{type(error).__name__}: {_one_line(error)}", 0, 0
    except EyasError as error:
        if graph.options.max_arena_bytes and "raise the cap" in str(error):
            return "invalid", _one_line(error), 0, 0
        return "failed", f"{type(error).__name__}: {_one_line(error)}", 0, 0
    except Exception as error:
        # Of programs that are passed as the text that JAX writes.
        kind = "invalid" if type(error).__name__ == "InconclusiveDimensionOperation" else "failed"
        return kind, f"{type(error).__name__}: {_one_line(error)}", 0, 0
    return _call(graph, module)


def _call(graph: Graph, module: Any) -> tuple[str, str, int, int]:
    compared = elements = 0
    kept = []
    for call in range(graph.calls):
        wanted = evaluate(graph, call)
        values = leaf_values(graph, call)
        inputs = [values[index] for index in graph.inputs]
        copies = [array.copy() for array in inputs]
        try:
            results = module(*(_argument(array, graph.options.arguments) for array in inputs))
        except Exception as error:
            if 0 in (size[call] for size in graph.symbols.values()) and "must be at least 1" in str(error):
                continue  # where torch is wrong about sizes of 0, they are refused
            if "Runtime assertion failed for expression Eq(" in str(error):
                return "invalid", _one_line(error), compared, elements  # torch.export took sizes for equal that are not
            return "failed", f"call {call}: {type(error).__name__}: {_one_line(error)}", compared, elements
        results = results if isinstance(results, (tuple, list)) else (results,)
        results = [_array(result) for result in results]
        if len(results) != len(wanted):
            return "wrong", f"{len(results)} results instead of {len(wanted)}", compared, elements
        for index, (got, want) in enumerate(zip(results, wanted, strict=True)):
            problem, known = compare(got, want)
            compared, elements = compared + known, elements + want.value.size
            if problem:
                return "wrong", f"call {call}, result {index}: {problem}", compared, elements
        if any(not _same(a, b) for a, b in zip(inputs, copies, strict=True)):
            return "wrong", f"call {call}: an argument was written to", compared, elements
        # A later call must not write over results that the caller holds.
        kept.append((results, [np.array(result) for result in results]))
    for results, copies in kept:
        if any(not _same(a, b) for a, b in zip(results, copies, strict=True)):
            return "wrong", "a later call changed an earlier result", compared, elements
    return "passed", "", compared, elements


def _argument(array: np.ndarray, how: str) -> Any:
    if how == "tensors":
        return torch_tensor(array)
    if how == "strided" and array.ndim:
        apart = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        apart[..., ::2] = array
        return apart[..., ::2]
    return array


def _array(result: Any) -> np.ndarray:
    return from_torch_tensor(result) if type(result).__module__ == "torch" else np.asarray(result)


def _same(one: Any, other: Any) -> bool:
    return np.asarray(one).tobytes() == np.asarray(other).tobytes()


def _compile(graph: Graph) -> Any:
    from eyas.pipelines import driver
    from eyas.pipelines.request import Request, Services
    from eyas.targets import Target

    given = graph.options
    target = (Target.parse(given.target),)
    request = Request(import_graph(graph), targets=target, disable=given.disable, max_arena_bytes=given.max_arena_bytes)
    # One worker: this process is one of several already.
    return driver.compile(request, Services(workers=1)).load(given.device, given.threads)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:400] or type(error).__name__
