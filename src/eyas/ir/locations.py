"""Where an op came from, in the user's words: the node of the framework's graph and the line of the user's source."""

from __future__ import annotations

import re

from torch_mlir import ir as mlir

# Alone, or the first of several that were fused.
_NAME = re.compile(r'loc\((?:fused\[)?"([^"]+)"[(),\]]')
_NAME_ANYWHERE = re.compile(r'"([^"]+)"(?=[(),\]])')
_FILE_LINE = re.compile(r'"([^"]+)":(\d+)(?::\d+)?')

UNKNOWN = "an unknown place"


def describe_location(location: mlir.Location | str) -> str:
    """`node 'encoder.fc/mm_3' (model.py:41)`, or whichever half is known."""
    text = str(location)
    name, place = _NAME.search(text), _FILE_LINE.search(text)
    line = None
    if place:
        file, number = place.groups()
        line = f"line {number}" if file in ("-", "<unknown>") else f"{file}:{number}"
    if name:
        return f"node '{name.group(1)}'" + (f" ({line})" if line else "")
    return line or UNKNOWN


def node_name(location: mlir.Location | str) -> str:
    """The framework's node, or ''."""
    name = _NAME.search(str(location))
    return name.group(1) if name else ""


def source_names(location: mlir.Location | str) -> list[str]:
    """All nodes that a location names, in order and each once; without any the line of the source, if that is known.

    The location of a dispatch has that of its last op first (`outline-dispatches`).
    """
    text = str(location)
    names = list(dict.fromkeys(_NAME_ANYWHERE.findall(text)))
    if names:
        return [*names[1:], names[0]] if text.startswith("loc(fused[") else names
    place = describe_location(text)
    return [] if place == UNKNOWN else [place]
