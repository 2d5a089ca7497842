"""Works around an LLVM bug: with AVX-512, a masked store of one lane of a truncated vector writes the wide element.

LLVM 22 makes a truncating masked store of `trunc` and `masked.store`, and then a scalar store of it when the mask is
constant with one lane on; that store has the width of the lane before the truncation, so it also overwrites the
elements that follow (`combineMaskedStore` in X86ISelLowering.cpp). Such stores are made scalar here, in the IR.
"""

from __future__ import annotations

import re

from eyas.targets.llvm_library import llvm

_STORE = re.compile(
    r"^(?P<indent> *)(?:tail |notail )?call void @llvm\.masked\.store\.v\d+i\d+\.p0\("
    r"(?P<vector><\d+ x (?P<element>i\d+)>) (?P<value>%[\w.$-]+), ptr (?P<align>align \d+ )?(?P<pointer>[%@][\w.$-]+),"
    r" <\d+ x i1> <(?P<mask>[^<>]*)>\).*$",
    re.MULTILINE,
)


def expand_one_lane_stores(module: llvm.ModuleRef) -> llvm.ModuleRef:
    """The module, or a new one in which masked integer stores with one constant lane are plain stores."""
    if not any(function.name.startswith("llvm.masked.store") for function in module.functions):
        return module
    text = str(module)
    changed = rewrite(text)
    return module if changed == text else llvm.parse_assembly(changed, llvm.create_context())


def rewrite(text: str) -> str:
    """LLVM IR as text, with such stores expanded."""
    made = 0

    def expand(match: re.Match[str]) -> str:
        nonlocal made
        lanes = [position for position, bit in enumerate(match["mask"].split(",")) if bit.strip() == "i1 true"]
        if len(lanes) != 1 or "poison" in match["mask"] or "undef" in match["mask"]:
            return match[0]
        made += 1
        indent, element, lane = match["indent"], match["element"], lanes[0]
        align = f", {match['align'].strip()}" if match["align"] else ""
        return (
            f"{indent}%one.lane.{made} = extractelement {match['vector']} {match['value']}, i64 {lane}\n"
            f"{indent}%one.place.{made} = getelementptr {element}, ptr {match['pointer']}, i64 {lane}\n"
            f"{indent}store {element} %one.lane.{made}, ptr %one.place.{made}{align}"
        )

    return _STORE.sub(expand, text)
