"""TensorFlow.js: `model.json` with its shards of weights, a graph model or a layers model."""
