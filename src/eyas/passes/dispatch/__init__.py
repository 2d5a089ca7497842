"""The dispatch phase: a graph of tensor ops in, a `flow` program of executables and dispatches out."""
