"""Rules that write an ONNX op as other ones, by subject; `rules.py` lists them."""
