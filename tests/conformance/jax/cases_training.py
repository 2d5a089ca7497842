"""jax.nn, layers, gradients, and training steps whose loss is followed for 50 steps."""

# One case a line.
# ruff: noqa: E501

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from tests.conformance.jax.case import Case, integers, normal

X = normal(4, 8)
LABELS = integers(0, 5, 16)
STEPS = 50


def squared_gradient(function):
    return jax.grad(lambda x: (function(x) ** 2).sum())


def layer_norm(x):
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def attention(q, k, v, causal=True):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


def cross_entropy(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1).mean()


def mlp(params, x):
    for weight, bias in params[:-1]:
        x = jax.nn.gelu(x @ weight + bias)
    return x @ params[-1][0] + params[-1][1]


def cnn(params, x):
    for weight in params["conv"]:
        x = jax.lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.lax.reduce_window(jax.nn.relu(x), -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return x.reshape(x.shape[0], -1) @ params["head"]


def transformer(params, tokens):
    x = params["embedding"][tokens]
    batch, length, width = x.shape
    q, k, v = jnp.split(layer_norm(x) @ params["qkv"], 3, axis=-1)
    heads = [part.reshape(batch, length, 2, width // 2) for part in (q, k, v)]
    x = x + attention(*heads).reshape(x.shape) @ params["out"]
    x = x + jax.nn.gelu(layer_norm(x) @ params["up"]) @ params["down"]
    return layer_norm(x) @ params["embedding"].T


def sgd(loss, rate, momentum=0.9):
    """(params, velocity, *batch) -> (params, velocity, loss)"""

    def step(params, velocity, *batch):
        value, grads = jax.value_and_grad(loss)(params, *batch)
        velocity = jax.tree.map(lambda v, g: momentum * v + g, velocity, grads)
        return jax.tree.map(lambda p, v: p - rate * v, params, velocity), velocity, value

    return step


def adam(loss, rate):
    """(params, (count, first, second), *batch) -> (params, state, loss)"""

    def step(params, state, *batch):
        count, first, second = state
        value, grads = jax.value_and_grad(loss)(params, *batch)
        count = count + 1
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, grads)
        scale = rate * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        params = jax.tree.map(lambda p, m, v: p - scale * m / (jnp.sqrt(v) + 1e-8), params, first, second)
        return params, (count, first, second), value

    return step


def zeros(tree):
    return jax.tree.map(np.zeros_like, tree)


MLP = [(normal(8, 32) * 0.3, np.zeros(32, np.float32)), (normal(32, 5) * 0.2, np.zeros(5, np.float32))]
CNN = {"conv": [normal(3, 3, 1, 8) * 0.3, normal(3, 3, 8, 16) * 0.1], "head": normal(64, 5) * 0.1}
TRANSFORMER = {
    "embedding": normal(20, 16) * 0.3,
    "qkv": normal(16, 48) * 0.2,
    "out": normal(16, 16) * 0.2,
    "up": normal(16, 32) * 0.2,
    "down": normal(32, 16) * 0.2,
}
IMAGES = normal(16, 8, 8, 1)
TOKENS = integers(0, 20, 4, 9)


def mlp_loss(params, x, labels):
    return cross_entropy(mlp(params, x), labels)


def cnn_loss(params, x, labels):
    return cross_entropy(cnn(params, x), labels)


def transformer_loss(params, tokens):
    return cross_entropy(transformer(params, tokens[:, :-1]), tokens[:, 1:])


def adam_state(params):
    return (np.float32(0), zeros(params), zeros(params))


_ACTIVATIONS = (
    "relu", "relu6", "sigmoid", "softplus", "silu", "gelu", "elu", "leaky_relu", "hard_swish", "log_sigmoid", "selu", "celu",
    "mish", "softmax", "log_softmax", "glu", "standardize", "logsumexp",
)  # fmt: skip

CASES = [
    *(Case(f"nn/{name}", getattr(jax.nn, name), (X,)) for name in _ACTIVATIONS),
    *(
        Case(f"nn/{name}_gradient", squared_gradient(getattr(jax.nn, name)), (X,))
        for name in ("gelu", "softmax", "log_softmax", "silu", "softplus")
    ),
    Case("nn/one_hot", lambda i: jax.nn.one_hot(i, 5), (LABELS,)),
    Case("nn/layer_norm", layer_norm, (X,)),
    Case("nn/layer_norm_gradient", jax.grad(lambda x: (layer_norm(x) ** 3).sum()), (X,), 1e-4, 1e-4),
    Case("nn/attention", attention, tuple(normal(2, 7, 3, 8, seed=i) for i in range(3))),
    Case("nn/attention_gradients", jax.grad(lambda *a: (attention(*a) ** 2).sum(), (0, 1, 2)), tuple(normal(2, 7, 3, 8, seed=i) for i in range(3)), 1e-4, 1e-4),
    Case("nn/dot_product_attention", lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True), tuple(normal(2, 7, 3, 8, seed=i) for i in range(3))),
    Case("nn/cross_entropy_gradient", jax.grad(cross_entropy), (normal(16, 5), LABELS)),
    Case("nn/embedding_gradient", jax.grad(lambda t, i: (t[i] ** 3).sum()), (normal(20, 6), integers(0, 20, 4, 9))),
    Case("nn/resize_bilinear", lambda x: jax.image.resize(x, (2, 9, 7, 3), "bilinear"), (normal(2, 5, 5, 3),)),
    Case("nn/resize_nearest", lambda x: jax.image.resize(x, (2, 10, 10, 3), "nearest"), (normal(2, 5, 5, 3),)),
    Case("nn/resize_cubic_gradient", jax.grad(lambda x: (jax.image.resize(x, (2, 9, 7, 3), "cubic") ** 2).sum()), (normal(2, 5, 5, 3),), 1e-4, 1e-4),
    Case("nn/jacobian", jax.jacfwd(lambda x: jnp.tanh(x) * x.sum()), (normal(6),)),
    Case("nn/hessian", jax.hessian(lambda x: (jnp.sin(x) * x[::-1]).sum()), (normal(6),)),
    Case("nn/vmap_gradient", jax.vmap(jax.grad(lambda x: (x**3).sum())), (X,)),
    Case("nn/checkpoint", jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())), (X,)),
    Case("nn/custom_vjp_logsumexp", jax.grad(lambda x: jax.nn.logsumexp(x, 1).sum()), (X,)),
    Case("nn/mlp", mlp, (MLP, X)),
    Case("nn/mlp_gradient", jax.grad(mlp_loss), (MLP, normal(16, 8), LABELS), 1e-4),
    Case("nn/cnn", cnn, (CNN, IMAGES), 1e-4),
    Case("nn/cnn_gradient", jax.grad(cnn_loss), (CNN, IMAGES, LABELS), 1e-4),
    Case("nn/transformer", transformer, (TRANSFORMER, TOKENS), 1e-4),
    Case("nn/transformer_gradient", jax.grad(transformer_loss), (TRANSFORMER, TOKENS), 1e-3),
    Case("training/mlp_sgd", sgd(mlp_loss, 0.05), (MLP, zeros(MLP), normal(16, 8), LABELS), 1e-3, 1e-4, steps=STEPS),
    Case("training/mlp_adam", adam(mlp_loss, 0.01), (MLP, adam_state(MLP), normal(16, 8), LABELS), 1e-3, 1e-4, steps=STEPS),
    Case("training/cnn_sgd", sgd(cnn_loss, 0.02), (CNN, zeros(CNN), IMAGES, LABELS), 1e-3, 1e-4, steps=STEPS),
    Case("training/cnn_adam", adam(cnn_loss, 0.003), (CNN, adam_state(CNN), IMAGES, LABELS), 1e-3, 1e-4, steps=STEPS),
    Case("training/transformer_sgd", sgd(transformer_loss, 0.05), (TRANSFORMER, zeros(TRANSFORMER), TOKENS), 1e-3, 1e-4, steps=STEPS),
    Case("training/transformer_adam", adam(transformer_loss, 0.003), (TRANSFORMER, adam_state(TRANSFORMER), TOKENS), 1e-3, 1e-4, steps=STEPS),
]  # fmt: skip
