"""Machine code for CPUs. In: a module of loops, vectors and memrefs with one entry function per dispatch. Out: one ELF
image that the runtime loads without a linker.

In order: `lowering` (upstream dialects to the LLVM dialect), `backend` (LLVM dialect to an object file, where the two
LLVM versions meet), `linker` (objects to one image; `elf` and `image` have the structures, `relocations` the rules per
architecture, `imports` what code may call).
"""
