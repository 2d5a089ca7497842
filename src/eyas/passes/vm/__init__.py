"""The vm phase: a `hal` program in, VM instructions out."""
