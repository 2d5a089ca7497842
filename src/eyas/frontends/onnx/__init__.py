"""ONNX: a file or a `ModelProto` enters; it is prepared as a graph, rewritten where the importer is wrong or lacks an
op, imported as torch ops, and leaves in the input contract. `importer.py` is the way through."""
