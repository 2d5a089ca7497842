"""Vision models of transformers: classifiers, detectors, segmenters, image with text."""

from __future__ import annotations

from typing import Any

import torch
from tests.conformance.zoo.build import Named, enliven, images, libraries, mask, tokens
from tests.conformance.zoo.case import Case, Program
from tests.conformance.zoo.transformers_case import row

PIXELS = ("pixel_values",)
VIT = dict(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=64, patch_size=16
)
SEGFORMER = dict(hidden_sizes=[16, 32, 64, 64], decoder_hidden_size=32, depths=[1, 1, 1, 1])
SWIN = dict(image_size=64, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4)
CONVNEXT = dict(hidden_sizes=[16, 32, 64, 64], depths=[1, 1, 1, 1])
MOBILEVIT = dict(
    image_size=64, hidden_sizes=[32, 48, 64], neck_hidden_sizes=[16, 16, 32, 32, 48, 48, 64], num_attention_heads=4,
)  # fmt: skip
DPT = VIT | dict(
    num_hidden_layers=4, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[16, 16, 16, 16],
    fusion_hidden_size=16, reassemble_factors=[4, 2, 1, 0.5], is_hybrid=False,
)  # fmt: skip
YOLOS = VIT | dict(image_size=[64, 64], num_detection_tokens=10)
SAM = dict(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, image_size=64, patch_size=16, output_channels=16,
    window_size=2, global_attn_indexes=[1], mlp_dim=64,
)  # fmt: skip
CLIP = dict(
    text_config=dict(
        vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=32, eos_token_id=99,
    ),
    vision_config=VIT,
    projection_dim=16,
)  # fmt: skip


def pixels(name: str, model: str, config: str, options: dict[str, Any], size: int = 64, **keywords: Any) -> Case:
    return row(
        name,
        model,
        config,
        options,
        names=PIXELS,
        inputs=images(size),
        statistics=lambda: (torch.randn(4, 3, size, size),),
        **keywords,
    )


def _resnet(kind: str, stages: list[str], widths: list[int]) -> Any:
    import transformers

    return getattr(transformers, kind)(
        embedding_size=16, hidden_sizes=widths, depths=[1, 1, 1, 1], layer_type="basic", out_features=stages
    )


def _detr() -> Program:
    libraries()
    import transformers

    config = transformers.DetrConfig(
        use_timm_backbone=False, backbone=None, use_pretrained_backbone=False,
        backbone_config=_resnet("ResNetConfig", ["stage4"], [16, 32, 32, 64]),
        d_model=32, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=64, decoder_ffn_dim=64,
        encoder_attention_heads=4, decoder_attention_heads=4, num_queries=10,
    )  # fmt: skip
    model = Named(transformers.DetrForObjectDetection(config), ("pixel_values", "pixel_mask"), DETECTIONS, {})

    def inputs(batch: int) -> tuple[torch.Tensor, ...]:
        seen = torch.ones(batch, 128, 128, dtype=torch.int64)
        seen[:, 96:] = 0
        return torch.randn(batch, 3, 128, 128), seen

    return Program(enliven(model, inputs(4)), lambda sample: inputs(1))


def _rt_detr() -> Program:
    libraries()
    import transformers

    config = transformers.RTDetrConfig(
        backbone_config=_resnet("RTDetrResNetConfig", ["stage2", "stage3", "stage4"], [16, 32, 64, 64]),
        backbone=None, use_timm_backbone=False, anchor_image_size=None, feat_strides=[8, 16, 32], num_denoising=0,
        encoder_in_channels=[32, 64, 64], decoder_in_channels=[32, 32, 32], d_model=32, encoder_hidden_dim=32,
        num_queries=10, decoder_layers=1, decoder_attention_heads=4, encoder_attention_heads=4, encoder_ffn_dim=32,
        decoder_ffn_dim=32,
    )  # fmt: skip
    model = Named(transformers.RTDetrForObjectDetection(config), PIXELS, DETECTIONS, {})
    return Program(enliven(model, (torch.randn(4, 3, 128, 128),)), images(128))


DETECTIONS = ("logits", "pred_boxes")

CASES = (
    pixels("vit", "ViTForImageClassification", "ViTConfig", VIT),
    pixels("dinov2", "Dinov2Model", "Dinov2Config", VIT),
    pixels("beit", "BeitForImageClassification", "BeitConfig", VIT | dict(use_relative_position_bias=True)),
    pixels("segformer", "SegformerForSemanticSegmentation", "SegformerConfig", SEGFORMER, 128),
    pixels("swin", "SwinForImageClassification", "SwinConfig", SWIN),
    pixels("mobilevit", "MobileViTForImageClassification", "MobileViTConfig", MOBILEVIT),
    pixels("convnext", "ConvNextForImageClassification", "ConvNextConfig", CONVNEXT),
    pixels("dpt", "DPTForDepthEstimation", "DPTConfig", DPT),
    pixels("yolos", "YolosForObjectDetection", "YolosConfig", YOLOS, results=DETECTIONS),
    pixels("siglip-vision", "SiglipVisionModel", "SiglipVisionConfig", VIT),
    pixels("sam-vision", "SamVisionModel", "SamVisionConfig", SAM),
    row(
        "clip",
        "CLIPModel",
        "CLIPConfig",
        CLIP,
        names=("input_ids", "pixel_values", "attention_mask"),
        inputs=lambda sample: (tokens(16), torch.randn(2, 3, 64, 64), mask(16)),
        results=("logits_per_image", "logits_per_text"),
    ),
    Case("hf/detr", _detr),
    Case("hf/rt-detr", _rt_detr),
)
