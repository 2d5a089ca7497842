"""The optimize phase: a graph of tensor ops in, a better graph out."""
