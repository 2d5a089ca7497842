"""MLIR: text, bytecode or a StableHLO artifact of the torch, StableHLO, TOSA or linalg dialects enters."""
