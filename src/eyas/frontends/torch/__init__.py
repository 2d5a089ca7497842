"""PyTorch: a module, a function or an exported program enters; it is exported, decomposed into ops that lower well,
imported, and leaves in the input contract. `importer.py` is the way through, `dynamo.py` the one of `torch.compile`."""
