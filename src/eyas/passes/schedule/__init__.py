"""The schedule phase: a `flow` program in, a `stream` program with buffers, an arena and barriers out."""
