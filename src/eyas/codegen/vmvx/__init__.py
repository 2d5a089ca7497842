"""Code generation for VMVX, the portable bytecode of microkernels.

In: one dispatch function on tensors. Out: a function of `module/vmvx_isa.py`, which the runtime's interpreter runs once
for each workgroup. Strategies for loop nests emit tile instructions; everything else goes through `scalar`, as plain
loops.
"""
