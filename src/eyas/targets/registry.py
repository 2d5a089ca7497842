"""The backends by name: who reads a target's text, and who compiles for it. A new kind of device is a row here."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from eyas.errors import TargetError
from eyas.targets.target import Target
from eyas.targets.text import unknown


@dataclass(frozen=True)
class BackendRow:
    """What stands before the first colon of a target. Modules are named and loaded when they are asked for."""

    name: str
    what: str
    syntax: str
    parser: str
    """Module with `parse(text, rest)`; `rest` is what follows the name."""
    codegen: str = ""
    """Module with `BACKEND`; empty while nothing compiles for it."""

    def parse(self, text: str, rest: str) -> Target:
        read: Callable[[str, str], Target] = importlib.import_module(self.parser).parse
        return read(text, rest)


BACKENDS = {
    row.name: row
    for row in (
        BackendRow(
            "llvm-cpu",
            "machine code; alone it means this machine",
            "llvm-cpu[:ARCH[:CPU]][:+feature,-feature,option=value]",
            "eyas.targets.cpu",
            "eyas.codegen.llvm_cpu.compile",
        ),
        BackendRow(
            "vmvx",
            "bytecode with microkernels, one module for every CPU",
            "vmvx[:cores=N]",
            "eyas.targets.tiles",
            "eyas.codegen.vmvx.compile",
        ),
        BackendRow(
            "vulkan",
            "SPIR-V for Vulkan devices; alone it means the device of this machine",
            "vulkan[:PROFILE][:+feature,-feature,option=value]",
            "eyas.targets.gpu",
            "eyas.codegen.spirv.compile",
        ),
        BackendRow("cuda", "PTX for NVIDIA devices", "cuda[:sm_NN][:option=value]", "eyas.targets.gpu"),
    )
}

# What people write who have used other compilers.
_OTHER_NAMES = {
    "cpu": "llvm-cpu", "native": "llvm-cpu", "host": "llvm-cpu", "llvm": "llvm-cpu", "x86": "llvm-cpu:x86_64",
    "x86_64": "llvm-cpu:x86_64", "amd64": "llvm-cpu:x86_64", "aarch64": "llvm-cpu:aarch64", "arm64": "llvm-cpu:aarch64",
    "arm": "llvm-cpu:aarch64", "riscv64": "llvm-cpu:riscv64", "riscv": "llvm-cpu:riscv64", "portable": "vmvx",
    "spirv": "vulkan", "gpu": "vulkan", "nvidia": "cuda", "nvptx": "cuda",
}  # fmt: skip


def backend_row(name: str, text: str) -> BackendRow:
    """The row of a backend; the error for an unknown name says which one is probably meant."""
    if name in BACKENDS:
        return BACKENDS[name]
    other = _OTHER_NAMES.get(name.lower())
    hint = f" Did you mean '{other}'?" if other else ""
    raise unknown(text, "backend", name, BACKENDS, hint)


def codegen_module(target: Target) -> str:
    """The name of the module that compiles for the target, or an error where there is none yet."""
    row = BACKENDS[target.backend]
    if not row.codegen:
        usable = " or ".join(one.name for one in BACKENDS.values() if one.codegen)
        raise TargetError(
            f"target '{target}' ({row.what}) is a reserved name: Eyas does not compile for it yet; use {usable}"
        )
    return row.codegen


def codegen_modules() -> list[str]:
    """The names of all modules that compile for something."""
    return [row.codegen for row in BACKENDS.values() if row.codegen]
