"""The first speed floor: ResNet-50 and MiniLM at most 4 x the time of ONNX Runtime on 2 threads."""

from __future__ import annotations

from collections.abc import Iterator

import onnxruntime

import eyas
from benchmarks import models
from benchmarks.report import Row, failure
from benchmarks.timing import interleave

BAR, THREADS = 4.0, 2


def rows() -> Iterator[Row]:
    for name in ("resnet50", "minilm"):
        one, path = models.case(name), models.onnx_file(name)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        inputs = models.onnx_inputs(one)
        feed = {value.name: array for value, array in zip(session.get_inputs(), inputs, strict=True)}
        try:
            module = eyas.compile(one.model, one.args, kwargs=one.kwargs, threads=THREADS)
        except eyas.EyasError as error:
            yield failure(one.name, "ms", BAR, error)
            continue
        call = module.functions["main"]
        timings = interleave(
            {"eyas": lambda: call(*inputs), "ort": lambda: session.run(None, feed)}  # noqa: B023
        )
        ours, theirs = timings["eyas"], timings["ort"]
        yield Row(
            f"{one.name}, {THREADS} threads",
            ours.median_ms,
            "ms",
            BAR,
            f"ONNX Runtime {onnxruntime.__version__}, {theirs.median_ms:.2f} ms",
            ours.median_ms / theirs.median_ms,
            f"fastest {ours.min_ms:.2f} and {theirs.min_ms:.2f} ms: {ours.min_ms / theirs.min_ms:.2f} x",
            ours.noisy or theirs.noisy,
            True,
        )
