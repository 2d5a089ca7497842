"""`TfIdfVectorizer` of numbers: all windows of a sequence are compared with all n-grams at once."""

from __future__ import annotations

import numpy as np
import onnx

from eyas.frontends.onnx.rewrite.rules import Builder, attribute


def tf_idf(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    """Counts n-grams of each row, with up to `max_skip_count` elements between two of its members."""
    shape, kind = b.shape_of(node.input[0]), b.type_of(node.input[0])
    pool = attribute(node, "pool_int64s", None)
    if shape is None or pool is None or kind not in (onnx.TensorProto.INT32, onnx.TensorProto.INT64):
        return None
    indexes = attribute(node, "ngram_indexes", [])
    length = shape[-1]
    x = b.cast(b.reshape(node.input[0], [-1, length]), onnx.TensorProto.INT64)
    grams = _ngrams(pool, attribute(node, "ngram_counts", []))
    width = max(indexes) + 1
    total = ""
    first = 0
    for size, table in grams:
        places = indexes[first : first + len(table)]
        first += len(table)
        if not attribute(node, "min_gram_length", 1) <= size <= attribute(node, "max_gram_length", 1) or not len(table):
            continue
        one_hot = np.zeros((len(table), width), np.float32)
        one_hot[np.arange(len(table)), places] = 1
        for skip in range(attribute(node, "max_skip_count", 0) + 1 if size > 1 else 1):
            windows = length - (size - 1) * (skip + 1)
            if windows <= 0:
                continue
            members = np.arange(windows)[:, None] + np.arange(size) * (skip + 1)
            taken = b.add("Gather", x, b.constant(members, np.int64), axis=1)
            taken = b.reshape(taken, [-1, windows, 1, size])
            same = b.cast(b.add("Equal", taken, b.constant(table[None, None], np.int64)), onnx.TensorProto.INT64)
            found = b.add("Equal", b.sum(same, 3), b.constant(size, np.int64))
            counts = b.sum(b.cast(found, onnx.TensorProto.FLOAT), 1)
            placed = b.add("MatMul", counts, b.constant(one_hot))
            total = placed if not total else b.add("Add", total, placed)
    if not total:
        return None
    mode, weights = attribute(node, "mode", "TF"), attribute(node, "weights", None)
    if mode == "IDF":
        total = b.cast(b.add("Greater", total, b.constant(0, np.float32)), onnx.TensorProto.FLOAT)
    if mode != "TF" and weights is not None:
        by_place = np.ones(width, np.float32)
        by_place[indexes] = weights
        total = b.add("Mul", total, b.constant(by_place))
    return [b.reshape(total, [*shape[:-1], width])]


def _ngrams(pool: list[int], starts: list[int]) -> list[tuple[int, np.ndarray]]:
    """(n, n-grams as rows) for n = 1, 2, ...; `starts` says where in the pool those of each length begin."""
    ends = [*starts[1:], len(pool)]
    return [
        (n, np.array(pool[start:end], np.int64).reshape(-1, n))
        for n, (start, end) in enumerate(zip(starts, ends, strict=True), 1)
    ]
