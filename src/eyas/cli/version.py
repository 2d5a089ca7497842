"""`eyas version`: this version, and those of what it stands on."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from typing import Annotated

import typer

from eyas.cli.common import print_json, print_table

NAME = "version"
_PACKAGES = ("torch-mlir", "llvmlite", "numpy", "torch", "onnx", "jax")


def command(json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """Print versions."""
    import eyas

    versions = {"eyas": eyas.__version__}
    for package in _PACKAGES:
        try:
            versions[package] = installed(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    if json:
        print_json(versions)
    else:
        print_table(list(versions.items()))
