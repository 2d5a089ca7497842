"""Targets: what a machine can do, as frozen values that parse from and print to text.

In: `llvm-cpu:x86_64:znver4:-avx512vnni`. Out: a `CpuTarget`, `TileMachine` or `GpuTarget`, each with what only its kind
has, and all with cores, caches and limits. `registry.py` lists the backends; every fact about a CPU sits in `facts.py`,
about a GPU in `gpu_facts.py`; no other package tests feature names.
"""

from eyas.targets.cpu import CpuTarget
from eyas.targets.gpu import GpuTarget
from eyas.targets.target import Caches, Limits, Target, best_first, parse_targets
from eyas.targets.tiles import TileMachine

__all__ = ["Caches", "CpuTarget", "GpuTarget", "Limits", "Target", "TileMachine", "best_first", "parse_targets"]
