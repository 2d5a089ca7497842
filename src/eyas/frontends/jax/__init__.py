"""JAX: a function or what `jax.export` made of it enters; StableHLO is converted into the input contract."""
