"""Where the time of a call goes, and why no dispatch is faster: a module and inputs go in, a report comes out.

Works on modules alone: neither MLIR nor LLVM nor torch is imported here.
"""
