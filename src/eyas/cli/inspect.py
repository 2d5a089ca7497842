"""`eyas inspect`: what is in a module."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eyas.cli.common import VARIANT_HELP, describe_tuning, print_json, print_table, show_bytes
from eyas.errors import EyasError

if TYPE_CHECKING:
    from eyas.module.container import Container

NAME = "inspect"
VMVX, SPIRV = "vmvx", "spirv"
_STATES_SHOWN, _LOOPS_SHOWN = 8, 12


def command(
    module: Annotated[Path, typer.Argument(help="A .eyas module.")],
    kernels: Annotated[bool, typer.Option("--kernels", help="Every kernel, and why no other strategy.")] = False,
    parameters: Annotated[bool, typer.Option("--parameters", help="Every weight.")] = False,
    bytecode: Annotated[
        bool, typer.Option("--bytecode", help="The host program, and bytecode or SPIR-V, as text.")
    ] = False,
    variant: Annotated[str | None, typer.Option(help=VARIANT_HELP)] = None,
    verify: Annotated[bool, typer.Option(help="Check every digest, which reads all weights.")] = True,
    json: Annotated[bool, typer.Option("--json", help="Everything but bytecode as JSON.")] = False,
) -> None:
    """Show what a module holds and where it came from."""
    from eyas.module import container

    if not module.is_file():
        raise EyasError(f"no such file: '{module}'")
    opened = container.read(module, verify=verify, variant=variant)
    here = chosen_here(module) if opened.variants else None
    if here is not None and variant is None:
        opened = container.read(module, verify=False, variant=here)
    if bytecode:
        _print_bytecode(opened)
        return
    report = describe(module, opened)
    if opened.variants:
        report["variants"], report["runs_here"] = describe_variants(module, opened), here
    if json:
        print_json(report)
    else:
        _print(report, kernels, parameters)


def _print_bytecode(opened: Container) -> None:
    from eyas.module import spirv_executable, spirv_text, vmvx_executable
    from eyas.module.assembler import disassemble

    print(disassemble(opened.program), end="")
    for one in opened.program.executables:
        image = bytes(opened.executables[one.name])
        if one.format == VMVX:
            print(f"\n{vmvx_executable.disassemble(vmvx_executable.read_executable(image))}", end="")
        elif one.format == SPIRV:
            print(f"\n{spirv_text.disassemble(spirv_executable.read_executable(image))}", end="")


def describe(path: Path, opened: Container) -> dict[str, Any]:
    """All that is known of a module without running it."""
    from eyas.module import container

    manifest, program = opened.manifest, opened.program
    memory = dict(manifest.get("memory", {}))
    if memory.get("arena_lower_bound_bytes"):
        memory["arena_ratio"] = round(memory["arena_bytes"] / memory["arena_lower_bound_bytes"], 4)
    return {
        "module": str(path),
        "bytes": path.stat().st_size,
        "provenance": manifest.get("provenance", {}),
        "functions": {function.name: str(function.signature) for function in program.functions},
        "executables": [
            {"name": e.name, "format": e.format, "features": list(e.features), "bytes": len(opened.executables[e.name])}
            for e in program.executables
        ],
        **({"vmvx_here": _vmvx_here()} if any(e.format == VMVX for e in program.executables) else {}),
        "kernels": manifest.get("kernels", []),
        "flops": manifest.get("flops"),
        "parameter_bytes": container.stored_bytes(program.parameters),
        "parameters": [
            {
                "name": p.name,
                "dtype": p.dtype,
                "shape": list(p.shape),
                "bytes": p.bytes,
                **({"file": p.external} if p.external else {}),
            }
            for p in program.parameters
        ],
        "memory": memory,
        "states": {
            state.name: {"type": f"{state.dtype}{list(state.shape)}", "bytes": state.bytes} for state in program.states
        },
        "entries": [{"name": e.name, "bytes": e.length, "sha256": e.digest.hex()} for e in opened.entries],
    }


def chosen_here(path: Path) -> str | None:
    """The target of the variant that would run on this machine when no device is named, if one would."""
    from eyas.errors import ModuleError, UsageError
    from eyas.runtime import _core
    from eyas.runtime.device import device_for

    try:
        device = device_for(_core.Module.open(str(path)).formats(all=True))
        return _core.Module.open(str(path), device=device).variant()
    except (ModuleError, UsageError):  # made for another machine, or there is no such device
        return None


def describe_variants(path: Path, opened: Container) -> list[dict[str, Any]]:
    """What each variant of a fat module takes, best first, and how much of the weights no other one uses."""
    from eyas.module import container

    parts = [container.read(path, verify=False, variant=one.name) for one in opened.variants]
    places = [{(p.external, p.key, p.offset, p.bytes) for p in part.program.parameters} for part in parts]
    rows = []
    for number, (needs, part) in enumerate(zip(opened.variants, parts, strict=True)):
        others = set().union(*places[:number], *places[number + 1 :])
        rows.append(
            {
                "target": needs.target,
                "name": needs.name,
                "formats": sorted({format_ for format_, _ in needs.executables}),
                "features": sorted({feature for _, features in needs.executables for feature in features}),
                "kernels": len(part.manifest.get("kernels", [])),
                "code_bytes": sum(map(len, part.executables.values())),
                "parameter_bytes": sum(place[-1] for place in places[number]),
                "own_parameter_bytes": sum(place[-1] for place in places[number] - others),
            }
        )
    return rows


def _print_variants(variants: list[dict[str, Any]], here: str | None) -> None:
    rows: list[tuple[Any, ...]] = [("variant", "kernels", "code", "weights", "of them its own", "")]
    for one in variants:
        sizes = (show_bytes(one[key]) for key in ("code_bytes", "parameter_bytes", "own_parameter_bytes"))
        rows.append((one["target"], one["kernels"], *sizes, "runs here" if one["target"] == here else ""))
    print_table(rows, numbers=(1, 2, 3, 4))
    print()
    needs = [(one["target"], "needs", ", ".join(one["features"])) for one in variants if one["features"]]
    if needs:
        print_table(needs)
        print()


def _print(report: dict[str, Any], kernels: bool, parameters: bool) -> None:
    print(f"{report['module']}: {show_bytes(report['bytes'])}")
    if "variants" in report:
        _print_variants(report["variants"], report["runs_here"])
    provenance = {name: value for name, value in report["provenance"].items() if value and name != "tuning"}
    rows = [(name.replace("_", " "), value) for name, value in provenance.items()]
    rows += [("tuning spec", line) for line in describe_tuning(report["provenance"].get("tuning", []))]
    rows += [("entry point", f"{name}{signature}") for name, signature in report["functions"].items()]
    rows += [("state", f"{name}: {one['type']}") for name, one in list(report["states"].items())[:_STATES_SHOWN]]
    if len(report["states"]) > _STATES_SHOWN:
        size = show_bytes(sum(one["bytes"] for one in report["states"].values()))
        rows.append(("", f"... {len(report['states'])} variables in all, {size}"))
    for one in report["executables"]:
        rows.append(("executable", f"{one['name']}: {one['format']}, {show_bytes(one['bytes'])}"))
        if one["features"]:
            rows.append(("needs", ", ".join(one["features"])))
    used: dict[str, int] = {}
    for kernel in report["kernels"]:
        used[kernel["strategy"]] = used.get(kernel["strategy"], 0) + 1
    by_strategy = ", ".join(f"{count} {name}" for name, count in used.items())
    rows.append(("kernels", f"{len(report['kernels'])}" + (f": {by_strategy}" if used else "")))
    if here := report.get("vmvx_here"):
        rows.append(("runs here with", f"{here['kernels']} microkernels, {here['width']} unit tiles an instruction"))
        rows += _plain_loops(report["kernels"])
    if report["flops"]:
        of_what = "a call" if len(report["functions"]) == 1 else "in one call of each entry point"
        rows.append(("flops", f"{report['flops'] / 1e6:,.3f} million {of_what}"))
    stored = report["parameter_bytes"]
    files = sorted({one["file"] for one in report["parameters"] if "file" in one})
    outside = f" in {', '.join(files)}" if files else ""
    rows.append(("parameters", f"{len(report['parameters'])}, {show_bytes(stored)}{outside}"))
    if memory := report["memory"]:
        bound = memory.get("arena_lower_bound_bytes")
        ratio = f", {memory['arena_ratio']:.3f} x the lower bound of {show_bytes(bound)}" if bound else ""
        rows.append(("arena", f"{show_bytes(memory['arena_bytes'])}{ratio}"))
    print_table(rows)
    print()
    entries = [("entry", "bytes", "sha256"), *((e["name"], e["bytes"], e["sha256"]) for e in report["entries"])]
    print_table(entries, numbers=(1,))
    if kernels:
        _print_kernels(report["kernels"])
    if parameters and report["parameters"]:
        print()
        print_table([(p["name"], f"{p['dtype']}{p['shape']}", show_bytes(p["bytes"])) for p in report["parameters"]])


def _vmvx_here() -> dict[str, Any]:
    """What bytecode runs with on this machine: the module itself runs with any."""
    from eyas.runtime.device import DEFAULT, shared_device

    kernels, width = shared_device(DEFAULT).vmvx
    return {"kernels": kernels, "width": width}


def _plain_loops(kernels: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """What no microkernel covers, which is interpreted element by element."""
    names = [kernel["name"] for kernel in kernels if kernel["strategy"] == "loops"]
    more = [f"... {len(names) - _LOOPS_SHOWN} more; --kernels says why"] if len(names) > _LOOPS_SHOWN else []
    return [("bytecode loops", text) for text in [*names[:_LOOPS_SHOWN], *more]]


def _print_kernels(kernels: list[dict[str, Any]]) -> None:
    for kernel in kernels:
        flops = f", {kernel['flops'] / 1e6:.2f} MFLOP" if kernel.get("flops") else ""
        print(f"\n{kernel['name']}: {kernel['strategy']} {kernel['knobs']}{flops}, {kernel.get('dispatches', '?')} x")
        if "tuned" in kernel:
            print(f"    as {kernel['tuned']} says")
        if "needs" in kernel:
            print(f"    needs {', '.join(kernel['needs'])}")
        if "given_up" in kernel:
            print(f"    not as it should be: {kernel['given_up']}")
        for reason in kernel["rejected"]:
            print(f"    not {reason}")
