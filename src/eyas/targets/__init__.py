"""Targets: what a machine can do, as frozen values that parse from and print to text.

In: `llvm-cpu:x86_64:znver4:-avx512vnni`. Out: triple, LLVM features, vector width, registers, caches. Every fact about
a CPU sits in `facts.py`; no other package tests feature names.
"""

from eyas.targets.target import Caches, Target

__all__ = ["Caches", "Target"]
