"""Passes inside one executable, after its strategy: loops and vectors in, simpler loops and vectors out."""
