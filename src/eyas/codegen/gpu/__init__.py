"""Kernels for GPUs: a dispatch's loop nests mapped to a grid of workgroups, their threads, shared memory and registers.

    in:   a dispatch function, and a target that says what its device has
    out:  one `gpu.func` on flat memrefs (scf, arith, math, memref, gpu), which a last step makes SPIR-V or PTX of

Nothing here knows which of them it will be.
"""
