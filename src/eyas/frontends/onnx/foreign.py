"""Operators of other domains than the standard's, written as operators of the standard before anything else is done.

Rules are functions as in `rewrite/rules.py`. Shapes are inferred through standard operators only, so those behind a
foreign one become known when it has been replaced: rules that need them are tried again until nothing changes.
"""

from __future__ import annotations

import importlib

import onnx

from eyas.errors import UnsupportedOpError
from eyas.frontends.onnx import prepare
from eyas.frontends.onnx.file import OnnxModel
from eyas.frontends.onnx.rewrite.rules import Builder, Rule, replace_nodes
from eyas.frontends.onnx.subgraphs import all_graphs, all_nodes

# Domain -> operator -> module and function of its rule.
RULES: dict[str, dict[str, str]] = {
    "ai.onnx.ml": {
        "ArrayFeatureExtractor": "classical.features:array_feature_extractor",
        "Binarizer": "classical.features:binarizer",
        "FeatureVectorizer": "classical.features:feature_vectorizer",
        "Imputer": "classical.features:imputer",
        "LabelEncoder": "classical.features:label_encoder",
        "LinearClassifier": "classical.linear:linear_classifier",
        "LinearRegressor": "classical.linear:linear_regressor",
        "Normalizer": "classical.features:normalizer",
        "OneHotEncoder": "classical.features:one_hot_encoder",
        "SVMClassifier": "classical.svm:svm_classifier",
        "SVMRegressor": "classical.svm:svm_regressor",
        "Scaler": "classical.features:scaler",
        "TreeEnsemble": "classical.trees:ensemble",
        "TreeEnsembleClassifier": "classical.trees:classifier",
        "TreeEnsembleRegressor": "classical.trees:regressor",
        "ZipMap": "classical.features:zip_map",
    },
    "com.microsoft": {
        "Attention": "contrib.attention:attention",
        "BiasAdd": "contrib.activations:bias_add",
        "BiasDropout": "contrib.activations:bias_dropout",
        "BiasGelu": "contrib.activations:gelu",
        "BiasSoftmax": "contrib.activations:bias_softmax",
        "BiasSplitGelu": "contrib.activations:bias_split_gelu",
        "CDist": "contrib.moves:distances",
        "CausalConvWithState": "contrib.streams:causal_conv_with_state",
        "ComplexMul": "contrib.moves:complex_mul",
        "ComplexMulConj": "contrib.moves:complex_mul",
        "ConvTransposeWithDynamicPads": "contrib.products:conv_transpose_with_dynamic_pads",
        "CropAndResize": "contrib.moves:crop_and_resize",
        "DecoderMaskedMultiHeadAttention": "contrib.attention:multi_head_attention",
        "DequantizeLinear": "contrib.quantized:linear",
        "DynamicQuantizeLSTM": "contrib.integers:dynamic_quantize_lstm",
        "DynamicQuantizeMatMul": "contrib.integers:dynamic_quantize_mat_mul",
        "EmbedLayerNormalization": "contrib.normalize:embed_layer_normalization",
        "ExpandDims": "contrib.moves:expand_dims",
        "FastGelu": "contrib.activations:fast_gelu",
        "FusedConv": "contrib.products:fused_conv",
        "FusedGemm": "contrib.products:fused_gemm",
        "FusedMatMul": "contrib.products:fused_mat_mul",
        "FusedMatMulActivation": "contrib.products:fused_mat_mul",
        "GatherBlockQuantized": "contrib.nbits:gather_block_quantized",
        "GatherND": "contrib.moves:gather_nd",
        "Gelu": "contrib.activations:gelu",
        "GemmFastGelu": "contrib.products:gemm_fast_gelu",
        "GridSample": "contrib.moves:grid_sample",
        "GroupNorm": "contrib.normalize:group_norm",
        "GroupNormalization": "contrib.normalize:group_normalization",
        "GroupQueryAttention": "contrib.grouped:group_query_attention",
        "Inverse": "contrib.moves:inverse",
        "Irfft": "contrib.moves:irfft",
        "IsAllFinite": "contrib.activations:is_all_finite",
        "LayerNormalization": "contrib.normalize:layer_normalization",
        "LinearAttention": "contrib.streams:linear_attention",
        "MatMulBnb4": "contrib.nbits:mat_mul_bnb4",
        "MatMulInteger16": "contrib.integers:mat_mul_integer_16",
        "MatMulIntegerToFloat": "contrib.integers:mat_mul_integer_to_float",
        "MatMulNBits": "contrib.nbits:mat_mul_n_bits",
        "MoE": "contrib.experts:mixture",
        "MulInteger": "contrib.integers:mul_integer",
        "MultiHeadAttention": "contrib.attention:multi_head_attention",
        "NhwcConv": "contrib.products:fused_conv",
        "NhwcFusedConv": "contrib.products:fused_conv",
        "NhwcMaxPool": "contrib.quantized:nhwc_max_pool",
        "Pad": "contrib.moves:same",
        "QAttention": "contrib.attention:attention",
        "QEmbedLayerNormalization": "contrib.normalize:q_embed_layer_normalization",
        "QGemm": "contrib.integers:q_gemm",
        "QLinearAdd": "contrib.quantized:binary",
        "QLinearAveragePool": "contrib.quantized:unary",
        "QLinearConcat": "contrib.quantized:concat",
        "QLinearConv": "contrib.integers:q_linear_conv",
        "QLinearGlobalAveragePool": "contrib.quantized:unary",
        "QLinearLeakyRelu": "contrib.quantized:unary",
        "QLinearMul": "contrib.quantized:binary",
        "QLinearReduceMean": "contrib.quantized:unary",
        "QLinearSigmoid": "contrib.quantized:unary",
        "QLinearSoftmax": "contrib.quantized:unary",
        "QLinearWhere": "contrib.quantized:where",
        "QMoE": "contrib.experts:quantized_mixture",
        "QuantizeLinear": "contrib.quantized:linear",
        "QuickGelu": "contrib.activations:quick_gelu",
        "Range": "contrib.moves:range_",
        "ReduceSumInteger": "contrib.integers:reduce_sum_integer",
        "Rfft": "contrib.moves:rfft",
        "RotaryEmbedding": "contrib.attention:rotary_embedding",
        "ScaledSiLU": "contrib.activations:scaled_silu",
        "SimplifiedLayerNormalization": "contrib.normalize:simplified_layer_normalization",
        "SkipGroupNorm": "contrib.normalize:group_norm",
        "SkipLayerNormalization": "contrib.normalize:skip_layer_normalization",
        "SkipSimplifiedLayerNormalization": "contrib.normalize:skip_layer_normalization",
        "TorchEmbedding": "contrib.moves:embedding",
        "TransposeMatMul": "contrib.products:fused_mat_mul",
        "Trilu": "contrib.moves:same",
        "UnfoldTensor": "contrib.moves:unfold",
        "Unique": "contrib.moves:unique",
    },
}
# What the standard has since an opset, and another meaning or none before; ONNX Runtime writes two of them earlier, and
# one that the standard never had.
_EARLY = {"GroupNormalization": 21, "LayerNormalization": 17, "SimplifiedLayerNormalization": 1 << 30}
# The rules write operators of this opset: reductions take their axes as an input.
_OPSET = 18


def is_known(node: onnx.NodeProto) -> bool:
    """Whether there is a rule for a node of another domain, or of the standard's before the standard had it."""
    return node.op_type in RULES.get(node.domain, {}) or (node.domain in ("", "ai.onnx") and node.op_type in _EARLY)


def expand(model: OnnxModel) -> None:
    """Replaces every operator for which there is a rule. Input shapes must have been set."""
    _name_domain(model)
    if not any(_has_rule(node) for node in all_nodes(model.proto.graph)):
        return
    prepare.modernize(model, _OPSET)
    _declare_outputs(model)
    _forget_unused(model)
    while True:
        prepare.infer_shapes(model)
        if not replace_nodes(model, _apply):
            break
        prepare.normalize(model)
    for node in all_nodes(model.proto.graph):
        if _has_rule(node):
            why = "the type or rank of what it takes is not known, or a size that must be known at compile time is not"
            raise UnsupportedOpError(f"{prepare.describe_node(node, model)} is not supported: {why}")


def _has_rule(node: onnx.NodeProto) -> bool:
    return node.op_type in RULES.get(node.domain, {})


def _name_domain(model: OnnxModel) -> None:
    """Operators that the standard does not have in this opset get the domain of their rules."""
    opsets = prepare.opset_versions(model)
    for node in all_nodes(model.proto.graph):
        if node.domain in ("", "ai.onnx") and opsets.get("", 0) < _EARLY.get(node.op_type, 0):
            node.domain = "com.microsoft"
            if node.domain not in opsets:
                opsets[node.domain] = 1
                model.proto.opset_import.append(onnx.helper.make_opsetid(node.domain, 1))


def _apply(node: onnx.NodeProto, b: Builder) -> list[str] | None:
    if not _has_rule(node):
        return None
    module, function = RULES[node.domain][node.op_type].split(":")
    rule: Rule = getattr(importlib.import_module(f"eyas.frontends.onnx.{module}"), function)
    results = rule(node, b)
    return None if results is None else list(results)


def _forget_unused(model: OnnxModel) -> None:
    """Results that nobody reads need no rule: optimisers name those of training too."""
    graphs = list(all_graphs(model.proto.graph))
    used = {name for graph in graphs for node in graph.node for name in node.input}
    used |= {value.name for graph in graphs for value in graph.output}
    for node in all_nodes(model.proto.graph):
        if _has_rule(node) and used.intersection(node.output):
            node.output[:] = [name if name in used else "" for name in node.output]


def _declare_outputs(model: OnnxModel) -> None:
    """Results that are text or maps become numbers: the place of a label in the list of labels, and a matrix."""
    for value in model.proto.graph.output:
        if value.type.WhichOneof("value") == "sequence_type":
            if value.type.sequence_type.elem_type.WhichOneof("value") == "map_type":
                value.type.CopyFrom(onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None))
        elif value.type.tensor_type.elem_type == onnx.TensorProto.STRING:
            value.type.tensor_type.elem_type = onnx.TensorProto.INT64
        if value.type.HasField("tensor_type") and "ai.onnx.ml" in {node.domain for node in model.proto.graph.node}:
            # Converters write what they saw: one row.
            value.type.tensor_type.ClearField("shape")
