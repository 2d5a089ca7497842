"""Frontends: a model of PyTorch, ONNX, JAX, TensorFlow, TFLite, TF.js or MLIR text enters; an `ImportedProgram` in the
input contract leaves.

Nothing of a framework is imported until one of its objects arrives.
"""

from __future__ import annotations

import importlib
import os
import sys
import zipfile
from typing import TYPE_CHECKING, Any

from eyas.errors import FrontendError, UsageError
from eyas.libraries import keep_apart

if TYPE_CHECKING:
    from eyas.program.program import ImportedProgram

__all__ = ["import_model"]

# Kind of model -> the module here that imports it.
_KINDS = ("torch", "onnx", "jax", "mlir", "tflite", "tfjs", "tensorflow")
_IMPORTERS = {kind: f"{kind}.importer" for kind in _KINDS} | {"training": "torch.training"}

# File name endings -> the frontend that reads them.
_BY_SUFFIX = {
    ".onnx": "onnx",
    ".pt2": "torch",
    ".tflite": "tflite",
    ".json": "tfjs",
    ".keras": "tensorflow",
    ".h5": "tensorflow",
    ".mlir": "mlir",
    ".mlirbc": "mlir",
    ".stablehlo": "mlir",
}

ACCEPTED = (
    "a torch.nn.Module or a function of tensors with example inputs, a torch.export.ExportedProgram or a .pt2 path; an"
    " .onnx path or onnx.ModelProto; a JAX function with example arguments or a jax.export.Exported; a .tflite path;"
    " the model.json of a TensorFlow.js model; a Keras model, a .keras path or the folder of a SavedModel;"
    " a .mlir/.mlirbc/.stablehlo path, MLIR text, or StableHLO bytes"
)


# Endings of files that PyTorch writes: weights, or programs of TorchScript.
_OF_PYTORCH = (".pt", ".pth", ".bin", ".safetensors", ".ckpt", ".jit", ".ts", ".ptl")
NO_TORCHSCRIPT = (
    "which PyTorch itself no longer takes in torch.export: pass the torch.nn.Module that it was made of, or write it as"
    " ONNX with torch.onnx.export(torch.jit.load(path), inputs, 'model.onnx', dynamo=False) and compile that"
)


def import_model(model: Any, *args: Any, dynamic_shapes: Any = None, **kwargs: Any) -> ImportedProgram:
    """Brings a model into the input contract.

    `args` and `kwargs` are example inputs of the model's call. `dynamic_shapes` is what the framework says:
    `torch.export.Dim`s for PyTorch; for ONNX, input name -> shape of ints and symbol names.
    """
    keep_apart()
    return importer_of(model, (args, kwargs)).import_model(model, args, kwargs, dynamic_shapes)


def importer_of(model: Any, inputs: Any = ()) -> Any:
    """The module whose `import_model` takes this model."""
    return importlib.import_module(f"eyas.frontends.{_IMPORTERS[frontend_of(model, inputs)]}")


def _looks_like_mlir(text: str) -> bool:
    """Program text rather than the name of a file."""
    return "\n" in text or "{" in text


def frontend_of(model: Any, inputs: Any = ()) -> str:
    """What kind of model this is, by the name of the frontend that takes it. `inputs` are those of an example call: a
    plain function is of the framework whose tensors it is called with."""
    if isinstance(model, os.PathLike) or (isinstance(model, str) and not _looks_like_mlir(model)):
        path = os.fspath(model)
        suffix = os.path.splitext(str(path))[1].lower()
        if suffix in _BY_SUFFIX:
            return _BY_SUFFIX[suffix]
        if suffix in _OF_PYTORCH and _is_torchscript(str(path)):
            raise UsageError(f"'{path}' is a TorchScript program, {NO_TORCHSCRIPT}")
        if suffix in _OF_PYTORCH:
            raise UsageError(
                f"'{path}' holds weights without a program; build the torch.nn.Module, load them into it, and pass the"
                " module with example inputs"
            )
        if os.path.isdir(path):
            return _frontend_of_folder(str(path))
        raise UsageError(f"cannot tell what '{path}' is from its ending; accepted: {', '.join(_BY_SUFFIX)}")
    if isinstance(model, (str, bytes, bytearray, memoryview)):
        return "mlir"
    if isinstance(own := getattr(type(model), "eyas_frontend", None), str):
        return own
    # A class of the framework anywhere among the bases decides, so that users' own subclasses are seen.
    packages = {base.__module__.partition(".")[0] for base in type(model).__mro__}
    if packages & {"torch"}:
        return "torch"
    if packages & {"onnx"}:
        return "onnx"
    if packages & {"jax", "jaxlib"}:
        return "jax"
    if packages & {"torch_mlir"}:
        return "mlir"
    if packages & {"tensorflow", "keras", "tf_keras"}:
        return "tensorflow"
    if callable(model):
        return _choose_for_function(model, inputs)
    raise FrontendError(f"cannot import a {type(model).__module__}.{type(model).__qualname__}; accepted: {ACCEPTED}")


def _is_torchscript(path: str) -> bool:
    """An archive with code in it, where one of weights has pickled names only."""
    if not os.path.isfile(path) or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.split("/")[1:2] == ["code"] for name in archive.namelist())


def _frontend_of_folder(path: str) -> str:
    """A folder is a SavedModel, or a model of TensorFlow.js."""
    from eyas.frontends.tensorflow.importer import is_saved_model

    if is_saved_model(path):
        return "tensorflow"
    if os.path.isfile(os.path.join(path, "model.json")):
        return "tfjs"
    raise UsageError(f"'{path}' is a folder with neither a saved_model.pb nor a model.json in it")


def _choose_for_function(function: Any, inputs: Any) -> str:
    """PyTorch's when it is called with a tensor of PyTorch, otherwise JAX's when jax is loaded."""
    if "torch" in sys.modules:
        import torch
        from torch.utils import _pytree as pytree

        if any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(inputs)):
            return "torch"
    if "jax" in sys.modules:
        return "jax"
    name = getattr(function, "__qualname__", type(function).__name__)
    raise FrontendError(
        f"cannot tell what the function '{name}' is: give it example inputs that are tensors of PyTorch, or import jax"
        f" for a JAX function; accepted: {ACCEPTED}"
    )
