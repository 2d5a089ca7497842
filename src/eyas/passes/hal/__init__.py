"""The hal phase: a `stream` program in, command buffers and executables per target out."""
