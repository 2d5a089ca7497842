"""The symbols that an executable may import. The runtime offers exactly these; anything else is our bug."""

from __future__ import annotations

EXECUTABLE_ABI_VERSION = 2
"""EYAS_EXECUTABLE_ABI_VERSION of runtime/include/eyas/executable.h, exported as `eyas_executable_abi`."""

ABI_SYMBOL = "eyas_executable_abi"

_MEMORY = "memcpy memmove memset memcmp bcmp malloc free aligned_alloc"
_LIBM = (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfc "
    "pow fmod cbrt sqrt fma floor ceil trunc round roundeven rint nearbyint fmax fmin fabs copysign ldexp "
    "tgamma lgamma hypot remainder"
)
# Conversions of narrow floats and 128-bit division, where the CPU has no instruction for them.
_COMPILER_RT = (
    "__truncsfhf2 __extendhfsf2 __truncdfhf2 __extendhfdf2 __truncsfbf2 __truncdfbf2 __extendbfsf2 "
    "__divti3 __modti3 __udivti3 __umodti3"
)

ALLOWED_IMPORTS = frozenset(
    [*_MEMORY.split(), *_LIBM.split(), *(f"{name}f" for name in _LIBM.split()), *_COMPILER_RT.split()]
)
