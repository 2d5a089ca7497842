# ruff: noqa: E501 - lines of IR are as long as they are
"""What moves elements: transposes, pads, slices, insertions, concatenations."""

from __future__ import annotations

import itertools

import numpy as np
import programs as p
import pytest


@pytest.mark.parametrize("rank", [2, 3, 4, 5])
def test_transposes(rng, rank):
    """Every permutation of rank 2 and 3, the telling ones above."""
    shape = (7, 17, 3, 5, 2)[:rank]
    every = list(itertools.permutations(range(rank)))[1:]
    for permutation in every if rank < 4 else every[:: len(every) // 7]:
        x = p.random_array(rng, shape, "f32")
        expected = np.ascontiguousarray(x.transpose(permutation))
        a, c = p.tensor_type(shape), p.tensor_type(expected.shape)
        lines = f"%e = tensor.empty() : {c}\n%z = linalg.transpose ins(%x : {a}) outs(%e : {c}) permutation = {list(permutation)}\n"
        p.assert_both(p.main([("x", a)], lines, [("z", c)]), [x], expected)


@pytest.mark.parametrize("shape", [(16, 16), (48, 33), (37, 64), (100, 19), (3, 20, 50)], ids=str)
def test_transpose_in_registers(rng, shape):
    """Squares of lanes, and what is left at both edges; a second operand is read as it lies."""
    x, turned = p.random_array(rng, shape, "f32"), (*shape[:-2], shape[-1], shape[-2])
    y = p.random_array(rng, turned, "f32")
    a, c = p.tensor_type(shape, "f32"), p.tensor_type(turned, "f32")
    dims = [f"d{i}" for i in range(len(shape))]
    read = ", ".join([*dims[:-2], dims[-1], dims[-2]])
    identity, swapped = (
        f"affine_map<({', '.join(dims)}) -> ({', '.join(dims)})>",
        f"affine_map<({', '.join(dims)}) -> ({read})>",
    )
    kinds = ", ".join(['"parallel"'] * len(shape))
    lines = f"""%e = tensor.empty() : {c}
%z = linalg.generic {{indexing_maps = [{swapped}, {identity}, {identity}], iterator_types = [{kinds}]}} ins(%x, %y : {a}, {c}) outs(%e : {c}) {{
^bb0(%i: f32, %j: f32, %o: f32):
  %r = arith.subf %i, %j : f32
  linalg.yield %r : f32
}} -> {c}
"""
    p.assert_both(p.main([("x", a), ("y", c)], lines, [("z", c)]), [x, y], np.swapaxes(x, -1, -2) - y)


@pytest.mark.parametrize("dtype", ["f64", "f16", "i8", "i64", "i1"])
def test_transpose_of_each_type(rng, dtype):
    x = p.random_array(rng, (33, 17), dtype)
    a, c = p.tensor_type([33, 17], dtype), p.tensor_type([17, 33], dtype)
    lines = f"%e = tensor.empty() : {c}\n%z = linalg.transpose ins(%x : {a}) outs(%e : {c}) permutation = [1, 0]\n"
    p.assert_both(p.main([("x", a)], lines, [("z", c)]), [x], np.ascontiguousarray(x.T))


@pytest.mark.parametrize(("low", "high"), [((0, 1), (2, 0)), ((3, 3), (3, 3)), ((0, 0), (0, 5)), ((1, 0), (0, 0))])
def test_pad(rng, low, high):
    x = p.random_array(rng, (5, 17), "f32")
    expected = np.pad(x, list(zip(low, high, strict=True)), constant_values=-2.5)
    a, c = p.tensor_type([5, 17]), p.tensor_type(expected.shape)
    lines = f"""%v = arith.constant -2.5 : f32
      %z = tensor.pad %x low[{low[0]}, {low[1]}] high[{high[0]}, {high[1]}] {{
      ^bb0(%i: index, %j: index): tensor.yield %v : f32 }} : {a} to {c}\n"""
    p.assert_both(p.main([("x", a)], lines, [("z", c)]), [x], expected)


@pytest.mark.parametrize(
    ("offsets", "sizes", "strides"), [((1, 2), (3, 9), (1, 1)), ((0, 0), (3, 6), (2, 3)), ((4, 16), (1, 1), (1, 1))]
)
def test_slice(rng, offsets, sizes, strides):
    x = p.random_array(rng, (5, 17), "f32")
    ends = [o + (n - 1) * s + 1 for o, n, s in zip(offsets, sizes, strides, strict=True)]
    expected = np.ascontiguousarray(x[offsets[0] : ends[0] : strides[0], offsets[1] : ends[1] : strides[1]])
    a, c = p.tensor_type([5, 17]), p.tensor_type(sizes)
    lines = f"%z = tensor.extract_slice %x{list(offsets)} {list(sizes)} {list(strides)} : {a} to {c}\n"
    p.assert_both(p.main([("x", a)], lines, [("z", c)]), [x], expected)


@pytest.mark.parametrize(
    ("offsets", "sizes"), [((1, 2), (3, 9)), ((0, 0), (5, 1)), ((4, 0), (1, 17)), ((0, 0), (5, 17))]
)
def test_insert(rng, offsets, sizes):
    x, y = p.random_array(rng, (5, 17), "f32"), p.random_array(rng, sizes, "f32")
    expected = x.copy()
    expected[offsets[0] : offsets[0] + sizes[0], offsets[1] : offsets[1] + sizes[1]] = y
    a, b = p.tensor_type([5, 17]), p.tensor_type(sizes)
    lines = f"%z = tensor.insert_slice %y into %x{list(offsets)} {list(sizes)} [1, 1] : {b} into {a}\n"
    p.assert_both(p.main([("x", a), ("y", b)], lines, [("z", a)]), [x, y], expected)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("parts", [(1, 2), (3, 1, 4)], ids=str)
def test_concat(rng, dim, parts):
    shapes = [tuple(n if d == dim else size for d, size in enumerate((3, 5, 7))) for n in parts]
    arrays = [p.random_array(rng, shape, "f32") for shape in shapes]
    types = [p.tensor_type(shape) for shape in shapes]
    expected = np.concatenate(arrays, axis=dim)
    names = [f"x{n}" for n in range(len(parts))]
    c = p.tensor_type(expected.shape)
    lines = f"%z = tensor.concat dim({dim}) {', '.join('%' + n for n in names)} : ({', '.join(types)}) -> {c}\n"
    p.assert_both(p.main(list(zip(names, types, strict=True)), lines, [("z", c)]), arrays, expected)


def test_concat_of_a_cache_and_a_row(rng):
    """Parts that are copied one after the other, by several workgroups."""
    arrays = [p.random_array(rng, (12, 70, 33), "f32"), p.random_array(rng, (12, 1, 33), "f32")]
    types = [p.tensor_type(array.shape) for array in arrays]
    c = p.tensor_type([12, 71, 33])
    lines = f"%z = tensor.concat dim(1) %x0, %x1 : ({', '.join(types)}) -> {c}\n"
    text = p.main(list(zip(["x0", "x1"], types, strict=True)), lines, [("z", c)])
    p.assert_both(text, arrays, np.concatenate(arrays, axis=1))


def test_elementwise_of_a_padded_slice(rng):
    """Guards and windows inside a fused nest."""
    a, b, c = p.tensor_type([6, 17]), p.tensor_type([4, 15]), p.tensor_type([6, 18])
    identity = p.affine(2, [0, 1])
    lines = f"""%v = arith.constant 1.5 : f32
      %s = tensor.extract_slice %x[1, 2] [4, 15] [1, 1] : {a} to {b}
      %q = tensor.pad %s low[2, 0] high[0, 3] {{
      ^bb0(%i: index, %j: index): tensor.yield %v : f32 }} : {b} to {c}
      %e = tensor.empty() : {c}\n"""
    lines += p.generic("z", [("q", c, identity)], ("e", c, identity), "pp", "%r = arith.mulf %i0, %i0 : f32", "f32")
    x = p.random_array(rng, (6, 17), "f32")
    expected = np.pad(x[1:5, 2:], [(2, 0), (0, 3)], constant_values=1.5) ** 2
    p.assert_both(p.main([("x", a)], lines, [("z", c)]), [x], expected)


@pytest.mark.parametrize("shape", [(8, 4, 3, 3), (33, 17, 3, 3), (5, 40, 2, 5), (64, 64, 1, 3)])
def test_flipped_and_moved(rng, shape):
    """A filter as the gradient of a convolution's input reads it: strides are negative."""
    outputs, inputs, height, width = shape
    x = p.random_array(rng, shape, "f32")
    expected = np.ascontiguousarray(x[:, :, ::-1, ::-1].transpose(0, 2, 3, 1))
    a, r = p.tensor_type(shape), p.tensor_type(expected.shape)
    maps = [p.affine(4, [0, 3, f"{height - 1} - b", f"{width - 1} - c"]), p.affine(4, [0, 1, 2, 3])]
    lines = f"%init = tensor.empty() : {r}\n"
    lines += p.generic("z", [("x", a, maps[0])], ("init", r, maps[1]), "pppp", "%r = arith.addf %i0, %i0 : f32", "f32")
    p.assert_both(p.main([("x", a)], lines, [("z", r)]), [x], 2 * expected)
