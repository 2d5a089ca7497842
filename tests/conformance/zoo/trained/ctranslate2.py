"""Reads Whisper's weights from a file of CTranslate2 and names them as transformers does.

The format: version, name and revision of the specification, then each variable with name, rank, sizes, element type,
number of bytes and data, then aliases; integers are little endian, strings have a 16-bit length and end with a zero.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import torch

_TYPES = (np.float32, np.int8, np.int16, np.int32, np.float16)


def read_variables(path: Path) -> dict[str, np.ndarray]:
    data, position = path.read_bytes(), 0

    def number(form: str) -> int:
        nonlocal position
        (value,) = struct.unpack_from(f"<{form}", data, position)
        position += struct.calcsize(form)
        return value

    def string() -> str:
        nonlocal position
        length = number("H")
        position += length
        return data[position - length : position - 1].decode()

    version, specification, _ = number("I"), string(), number("I")
    assert version == 6, f"{specification} in version {version} of the format"
    variables = {}
    for _ in range(number("I")):
        name = string()
        shape = [number("I") for _ in range(number("B"))]
        dtype, size = np.dtype(_TYPES[number("B")]), number("I")
        variables[name] = np.frombuffer(data, dtype, size // dtype.itemsize, position).reshape(shape)
        position += size
    return variables


def whisper_state(variables: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """The state of `WhisperForConditionalGeneration`."""
    state: dict[str, np.ndarray] = {}

    def norm(theirs: str, ours: str) -> None:
        state[f"{ours}.weight"], state[f"{ours}.bias"] = variables[f"{theirs}/gamma"], variables[f"{theirs}/beta"]

    def linear(theirs: str, *ours: str) -> None:
        """One layer, or several that were joined; Whisper's keys have no bias, and theirs is zero."""
        for part in ("weight", "bias"):
            for name, piece in zip(ours, np.split(variables[f"{theirs}/{part}"], len(ours)), strict=True):
                if not (part == "bias" and name.endswith("k_proj")):
                    state[f"{name}.{part}"] = piece

    for side in ("encoder", "decoder"):
        state[f"model.{side}.embed_positions.weight"] = variables[f"{side}/position_encodings/encodings"]
        norm(f"{side}/layer_norm", f"model.{side}.layer_norm")
        count = len(
            {name.split("/")[1] for name in variables if name.startswith(f"{side}/layer_") and "norm" not in name}
        )
        for index in range(count):
            theirs, ours = f"{side}/layer_{index}", f"model.{side}.layers.{index}"
            projections = [f"{ours}.self_attn.{name}_proj" for name in "qkv"]
            linear(f"{theirs}/self_attention/linear_0", *projections)
            linear(f"{theirs}/self_attention/linear_1", f"{ours}.self_attn.out_proj")
            norm(f"{theirs}/self_attention/layer_norm", f"{ours}.self_attn_layer_norm")
            if side == "decoder":
                linear(f"{theirs}/attention/linear_0", f"{ours}.encoder_attn.q_proj")
                linear(f"{theirs}/attention/linear_1", *(f"{ours}.encoder_attn.{name}_proj" for name in "kv"))
                linear(f"{theirs}/attention/linear_2", f"{ours}.encoder_attn.out_proj")
                norm(f"{theirs}/attention/layer_norm", f"{ours}.encoder_attn_layer_norm")
            linear(f"{theirs}/ffn/linear_0", f"{ours}.fc1")
            linear(f"{theirs}/ffn/linear_1", f"{ours}.fc2")
            norm(f"{theirs}/ffn/layer_norm", f"{ours}.final_layer_norm")
    for name in ("conv1", "conv2"):
        for part in ("weight", "bias"):
            state[f"model.encoder.{name}.{part}"] = variables[f"encoder/{name}/{part}"]
    state["model.decoder.embed_tokens.weight"] = variables["decoder/embeddings/weight"]
    state["proj_out.weight"] = variables["decoder/embeddings/weight"]
    return {name: torch.from_numpy(value.astype(np.float32)) for name, value in state.items()}
