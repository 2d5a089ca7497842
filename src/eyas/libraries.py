"""Other LLVMs in the process: TensorFlow exports the symbols of one of its own to everyone.

The LLVMs of torch_mlir and llvmlite, loaded after it, would register their options there a second time, which LLVM
answers by ending the process. Loaded with their own symbols first, they keep to themselves; before it, they do anyway.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import sys
from pathlib import Path


def keep_apart() -> None:
    """Loads both libraries apart from TensorFlow's, if that is here and they are not."""
    if "tensorflow" not in sys.modules or not hasattr(os, "RTLD_DEEPBIND"):
        return
    if "torch_mlir" not in sys.modules and importlib.util.find_spec("torch_mlir"):
        flags = sys.getdlopenflags()
        sys.setdlopenflags(flags | os.RTLD_DEEPBIND)
        try:
            importlib.import_module("torch_mlir.ir")
        finally:
            sys.setdlopenflags(flags)
    found = None if "llvmlite.binding" in sys.modules else importlib.util.find_spec("llvmlite")
    if found is not None:
        library = Path(found.origin or "").parent / "binding" / "libllvmlite.so"
        if library.is_file():
            ctypes.CDLL(str(library), mode=os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND)
