# ruff: noqa: E501 - lines of IR are as long as they are
"""Loops inside of a dispatch that carry tensors: each round has buffers of its own, and gives back those before."""

from __future__ import annotations

import numpy as np
import programs as p
import pytest


@pytest.mark.parametrize("rounds", [0, 1, 2, 5000])
def test_a_long_loop_gives_its_buffers_back(rounds):
    type_, one = p.tensor_type([4]), p.affine(1, [0])
    step = p.generic(
        "s", [("x", type_, one), ("y", type_, one)], ("e", type_, one), "p", "%r = arith.addf %i0, %i1 : f32", "f32"
    )
    text = f"""func.func @main(%a: {type_}, %b: {type_}, %n: tensor<i64>) -> ({type_}, {type_}) {{
      %c0 = arith.constant 0 : i64
      %c1 = arith.constant 1 : i64
      %half = arith.constant 0.5 : f32
      %m = tensor.extract %n[] : tensor<i64>
      %r:3 = scf.while (%x = %a, %y = %b, %k = %m) : ({type_}, {type_}, i64) -> ({type_}, {type_}, i64) {{
        %go = arith.cmpi sgt, %k, %c0 : i64
        scf.condition(%go) %x, %y, %k : {type_}, {type_}, i64
      }} do {{
      ^bb0(%x: {type_}, %y: {type_}, %k: i64):
        %e = tensor.empty() : {type_}
        {step}
        %h = linalg.generic {{indexing_maps = [{one}, {one}], iterator_types = ["parallel"]}}
          ins(%s : {type_}) outs(%e : {type_}) {{
        ^bb0(%i: f32, %o: f32):
          %d = arith.mulf %i, %half : f32
          linalg.yield %d : f32
        }} -> {type_}
        %l = arith.subi %k, %c1 : i64
        scf.yield %y, %h, %l : {type_}, {type_}, i64
      }}
      return %r#0, %r#1 : {type_}, {type_}
    }}"""
    a, b = np.array([1, 2, 3, 4], np.float32), np.array([0, -1, 8, 1e-3], np.float32)
    x, y = a, b
    for _ in range(rounds):
        x, y = y, (x + y) * np.float32(0.5)
    p.assert_both(text, [a, b, np.array(rounds, np.int64)], [x, y])
