"""TFLite: `.tflite` files, read with the schema package of PyPI, translated to ONNX operators in memory."""
