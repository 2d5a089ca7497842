"""A program as the frontends leave it: its module, weights by name, element types, signature. Frontends make it, passes
and the pipeline read it, so it lies below both."""
