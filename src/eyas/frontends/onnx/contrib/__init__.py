"""Rules for operators of `com.microsoft`, which ONNX Runtime's optimiser, quantiser and exporters write."""
