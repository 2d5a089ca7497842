"""Operators of `ai.onnx.ml`: models of classical machine learning, written as tensor operators."""
