"""SavedModels, Keras models and functions of TensorFlow against TensorFlow; skipped where it is not installed."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import eyas
from eyas.errors import FrontendError, UsageError

HAS_TENSORFLOW = importlib.util.find_spec("tensorflow") is not None
needs_tensorflow = pytest.mark.skipif(not HAS_TENSORFLOW, reason="TensorFlow is not installed")
X = np.random.default_rng(0).normal(size=(2, 6, 4)).astype(np.float32)


@pytest.mark.skipif(HAS_TENSORFLOW, reason="TensorFlow is installed")
@pytest.mark.parametrize("name", ["saved", "model.keras"])
def test_without_tensorflow_an_error_says_what_to_install(name, tmp_path):
    path = tmp_path / name
    if name == "saved":
        path.mkdir()
        path = path / "saved_model.pb"
    path.write_bytes(b"")
    with pytest.raises(FrontendError, match="pip install tensorflow-cpu"):
        eyas.compile(path.parent if name == "saved" else path)


def test_a_folder_with_no_model(tmp_path):
    with pytest.raises(UsageError, match="neither a saved_model.pb nor a model.json"):
        eyas.compile(tmp_path)


@pytest.fixture(scope="module")
def model():
    import tensorflow as tf

    layers = tf.keras.layers
    given = tf.keras.Input((6, 4))
    x = layers.Bidirectional(layers.LSTM(5, return_sequences=True))(given)
    x = layers.LayerNormalization()(layers.Conv1D(8, 3, padding="same", activation="gelu")(x))
    return tf.keras.Model(given, [layers.Dense(3, activation="softmax")(layers.Flatten()(x)), x])


@needs_tensorflow
@pytest.mark.parametrize("form", ["object", "keras", "saved"])
def test_keras_models(form, model, tmp_path):
    source = model
    if form == "keras":
        source = tmp_path / "model.keras"
        model.save(source)
    elif form == "saved":
        source = tmp_path / "saved"
        model.export(source, verbose=False)
    module = eyas.compile(source, (X,))
    results = module(X)
    results = results.values() if isinstance(results, dict) else results
    for got, want in zip(results, model(X), strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-4, atol=1e-5)


@needs_tensorflow
def test_functions():
    import tensorflow as tf

    weight = tf.Variable(tf.random.stateless_normal((4, 3), (1, 2)))

    @tf.function(input_signature=[tf.TensorSpec((2, 6, 4), tf.float32)])
    def function(x):
        return {"sum": tf.reduce_sum(x @ weight, -1), "cosine": tf.cos(x)}

    got, want = eyas.compile(function)(X), function(X)
    for key in want:
        np.testing.assert_allclose(got[key], want[key].numpy(), rtol=1e-4, atol=1e-5)


@needs_tensorflow
def test_open_sizes_need_an_example(model):
    with pytest.raises(UsageError, match=r"has shape \(None, 6, 4\); give an example"):
        eyas.compile(model)
    with pytest.raises(UsageError, match="the example has"):
        eyas.compile(model, (X[:, :5],))
