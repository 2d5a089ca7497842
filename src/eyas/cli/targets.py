"""`eyas targets`: what can be compiled for."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from eyas.cli.common import print_json, show_bytes

NAME = "targets"


def command(json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List targets, and this machine as one."""
    from eyas.targets import CpuTarget

    report = describe()
    if json:
        print_json(report)
        return
    host = CpuTarget.host()
    caches = ", ".join(f"{n} {show_bytes(report['host'][f'{n}_bytes'])}" for n in ("l1d", "l2", "l3"))
    print(f"llvm-cpu means this machine:\n  {host}\n  {host.cores} cores, {host.vector_bits}-bit vectors, {caches}")
    for name, row in report["backends"].items():
        print(f"\n{row['syntax']}: {row['what']}" + ("" if row["compiles"] else " (reserved: not yet)"))
        for arch, details in report.get(name, {}).items() if name == "llvm-cpu" else ():
            print(f"  {name}:{arch}")
            _print_names("CPUs", [details["default_cpu"], *(c for c in details["cpus"] if c != details["default_cpu"])])
            _print_names("features", details["features"])
            _print_names("options", [f"{one}=..." for one in details["options"]])
    print(f"\nA target without cores=N is compiled for {report['default_cores']} of them.")
    print("Several --target make one module with a variant for each; the best that a machine can run is chosen there.")
    print("\nexamples: llvm-cpu, vmvx, llvm-cpu:x86_64:znver3, llvm-cpu:aarch64, llvm-cpu:riscv64:+v,vlen=256")


def describe() -> dict[str, Any]:
    """Everything that a target can name, and what this machine is."""
    from eyas.module import vmvx_isa
    from eyas.targets import CpuTarget, facts
    from eyas.targets.cpu import options_of
    from eyas.targets.registry import BACKENDS
    from eyas.targets.target import DEFAULT_CORES

    host = CpuTarget.host()
    return {
        "host": {
            "target": str(host),
            "cores": host.cores,
            "vector_bits": host.vector_bits,
            "l1d_bytes": host.caches.l1d_bytes,
            "l2_bytes": host.caches.l2_bytes,
            "l3_bytes": host.caches.l3_bytes,
            "features": sorted(host.feature_set),
        },
        "backends": {
            row.name: {"what": row.what, "syntax": row.syntax, "compiles": bool(row.codegen)}
            for row in BACKENDS.values()
        },
        "llvm-cpu": {
            name: {
                "default_cpu": arch.default_cpu,
                "cpus": sorted(arch.cpus),
                "features": sorted(arch.implies),
                "options": options_of(name),
            }
            for name, arch in facts.ARCHES.items()
        },
        "vmvx": {"isa_version": vmvx_isa.VERSION, "widths": list(vmvx_isa.WIDTHS)},
        "default_cores": DEFAULT_CORES,
    }


def _print_names(what: str, names: list[str]) -> None:
    import textwrap

    print(textwrap.fill(f"{what}: {', '.join(names)}", 118, initial_indent="    ", subsequent_indent="      "))
