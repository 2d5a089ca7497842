"""What TFLite, TF.js and Keras share: operators of TensorFlow, channels last, written as an ONNX graph in memory.

The ONNX frontend then has its folding, shape inference, integer contractions and lowerings for them all.
"""
