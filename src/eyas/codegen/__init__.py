"""Code generation: one outlined executable in, bytes out. `common/` is shared, one folder per target beside it."""
