"""`eyas targets`: what can be compiled for."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from eyas.cli.common import print_json, show_bytes

NAME = "targets"


def command(json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List targets, and this machine as one."""
    from eyas.module import vmvx_isa
    from eyas.targets import Target, facts

    host = Target.host()
    report: dict[str, Any] = {
        "host": {
            "target": str(host),
            "vector_bits": host.vector_bits,
            "l1d_bytes": host.caches.l1d_bytes,
            "l2_bytes": host.caches.l2_bytes,
            "l3_bytes": host.caches.l3_bytes,
            "features": sorted(host.feature_set),
        },
        "llvm-cpu": {
            name: {"default_cpu": arch.default_cpu, "cpus": sorted(arch.cpus), "features": sorted(arch.implies)}
            for name, arch in facts.ARCHES.items()
        },
    }
    report["vmvx"] = {"isa_version": vmvx_isa.VERSION, "widths": list(vmvx_isa.WIDTHS)}
    if json:
        print_json(report)
        return
    caches = ", ".join(f"{n} {show_bytes(report['host'][f'{n}_bytes'])}" for n in ("l1d", "l2", "l3"))
    print(f"llvm-cpu means this machine:\n  {host}\n  {host.vector_bits}-bit vectors, {caches}")
    for name, arch in report["llvm-cpu"].items():
        print(f"\nllvm-cpu:{name}[:CPU][:+feature,-feature,option=value]")
        _print_names("CPUs", [arch["default_cpu"], *(c for c in arch["cpus"] if c != arch["default_cpu"])])
        _print_names("features", arch["features"])
    print("\nvmvx: bytecode with microkernels, one module for every CPU")
    print("\nexamples: llvm-cpu, vmvx, llvm-cpu:x86_64:znver3, llvm-cpu:aarch64, llvm-cpu:riscv64:+v,vlen=256")


def _print_names(what: str, names: list[str]) -> None:
    import textwrap

    print(textwrap.fill(f"{what}: {', '.join(names)}", 118, initial_indent="  ", subsequent_indent="    "))
