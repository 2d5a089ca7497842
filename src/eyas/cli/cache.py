"""`eyas cache`: what was compiled before and is kept."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from eyas.cli.common import print_json, show_bytes

NAME = "cache"


def command(
    clear: Annotated[bool, typer.Option("--clear", help="Remove everything.")] = False,
    trim: Annotated[
        bool, typer.Option("--trim", help="Remove what was unused longest until the limit is met.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show or clear the compilation cache. EYAS_CACHE=FOLDER|off and EYAS_CACHE_LIMIT=4G set it up."""
    from eyas import knobs
    from eyas.cache.store import DEFAULT_LIMIT_BYTES, KINDS, Store, why_not

    folder = knobs.cache_folder()
    limit = knobs.cache_limit_bytes(DEFAULT_LIMIT_BYTES)
    reason = "it is switched off by EYAS_CACHE" if folder is None else why_not(folder)
    report: dict[str, Any] = {"folder": str(folder) if folder else None, "unusable": reason, "limit_bytes": limit}
    if folder is not None and reason is None:
        store = Store(folder, limit)
        if clear or trim:
            removed, freed = store.trim(0 if clear else limit)
            report |= {"removed": removed, "removed_bytes": freed}
        entries = list(store.entries())
        for kind in KINDS:
            sizes = [entry.size for one, entry in entries if one == kind]
            report[kind] = {"count": len(sizes), "bytes": sum(sizes)}
    if json:
        print_json(report)
        return
    if reason is not None:
        print(f"{folder or 'the cache'}: not used, {reason}")
        return
    used = sum(report[kind]["bytes"] for kind in KINDS)
    print(f"{folder}: {show_bytes(used)} of {show_bytes(limit)}")
    if "removed" in report:
        print(f"  removed {report['removed']} entries, {show_bytes(report['removed_bytes'])}")
    print(f"  dispatches: {report['objects']['count']}, {show_bytes(report['objects']['bytes'])}")
    print(f"  modules: {report['modules']['count']}, {show_bytes(report['modules']['bytes'])}")
