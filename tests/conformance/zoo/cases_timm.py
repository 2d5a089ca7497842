"""Image models of timm at the smallest size that each takes."""

from __future__ import annotations

from typing import Any

import torch
from tests.conformance.zoo.build import enliven, images, libraries
from tests.conformance.zoo.case import Case, Program

# Name, image size (0: the model's own), further arguments. Deep models are cut in depth, never in kinds of layers.
MODELS: tuple[tuple[str, int, dict[str, Any]], ...] = (
    ("resnet18", 64, {}),
    ("resnet50", 64, {"layers": (1, 1, 1, 1)}),
    ("mobilenetv2_100", 64, {}),
    ("mobilenetv3_large_100", 64, {}),
    ("mobilenetv4_conv_small", 64, {}),
    ("efficientnet_b0", 64, {}),
    ("tf_efficientnetv2_b0", 64, {}),
    ("vit_tiny_patch16_224", 64, {"img_size": 64, "depth": 3}),
    ("deit_tiny_patch16_224", 64, {"img_size": 64, "depth": 3}),
    ("swin_tiny_patch4_window7_224", 56, {"img_size": 56, "depths": (1, 2, 1), "num_heads": (3, 6, 12)}),
    ("swinv2_tiny_window8_256", 64, {"img_size": 64, "depths": (1, 2, 1), "num_heads": (3, 6, 12)}),
    ("convnext_atto", 64, {"depths": (1, 1, 2, 1)}),
    ("convnextv2_atto", 64, {"depths": (1, 1, 2, 1)}),
    ("mixer_s32_224", 64, {"img_size": 64}),
    ("gmlp_ti16_224", 64, {"img_size": 64}),
    ("resmlp_12_224", 64, {"img_size": 64}),
    ("regnetx_002", 64, {}),
    ("regnety_002", 64, {}),
    ("densenet121", 64, {"block_config": (2, 2, 2, 2)}),
    ("inception_v3", 96, {}),
    ("inception_v4", 96, {}),
    ("xception41", 64, {}),
    ("vgg11_bn", 64, {}),
    ("resnext50_32x4d", 64, {"layers": (1, 1, 1, 1)}),
    ("seresnet50", 64, {"layers": (1, 1, 1, 1)}),
    ("res2net50_26w_4s", 64, {"layers": (1, 1, 1, 1)}),
    ("hrnet_w18_small", 64, {}),
    ("ghostnet_100", 64, {}),
    ("mnasnet_100", 64, {}),
    ("repvgg_a0", 64, {}),
    ("poolformer_s12", 64, {"layers": (1, 1, 2, 1)}),
    ("pvt_v2_b0", 64, {"depths": (1, 1, 1, 1)}),
    ("twins_svt_small", 64, {"img_size": 64, "depths": (2, 2, 2, 2)}),
    ("maxvit_rmlp_pico_rw_256", 64, {"img_size": 64}),
    ("coatnet_nano_rw_224", 64, {"img_size": 64}),
    ("cait_xxs24_224", 64, {"img_size": 64, "depth": 3}),
    ("crossvit_tiny_240", 240, {"depth": ((1, 1, 0), (1, 1, 0), (1, 1, 0))}),
    ("levit_128s", 224, {}),
    ("mobilevit_xxs", 64, {}),
    ("mobileone_s0", 64, {}),
    ("efficientformer_l1", 224, {"depths": (1, 1, 2, 2)}),
    ("edgenext_xx_small", 64, {}),
    ("dpn68", 64, {"k_sec": (1, 1, 2, 1)}),
    ("dla34", 64, {}),
    ("cspresnet50", 64, {}),
    ("nf_resnet50", 64, {}),
    ("fastvit_t8", 64, {}),
    ("xcit_nano_12_p16_224", 64, {"img_size": 64, "depth": 3}),
    ("focalnet_tiny_srf", 64, {}),
    ("hiera_tiny_224", 224, {"stages": (1, 1, 2, 1)}),
    ("eva02_tiny_patch14_224", 56, {"img_size": 56, "depth": 3}),
    ("davit_tiny", 64, {"depths": (1, 1, 1, 1)}),
    ("sequencer2d_s", 64, {"layers": (1, 1, 2, 1)}),
    ("beit_base_patch16_224", 64, {"img_size": 64, "depth": 2, "embed_dim": 192, "num_heads": 3}),
    ("volo_d1_224", 64, {"img_size": 64}),
    ("nest_tiny", 64, {"img_size": 64}),
    ("gcvit_xxtiny", 64, {"img_size": 64}),
    ("tnt_s_patch16_224", 64, {"img_size": 64, "depth": 2}),
    ("convit_tiny", 64, {"img_size": 64, "depth": 4, "local_up_to_layer": 2}),
    ("halonet26t", 256, {}),
    ("lambda_resnet26t", 128, {"img_size": 128}),
    ("botnet26t_256", 64, {"img_size": 64}),
    ("vit_small_patch16_dinov3", 64, {"img_size": 64, "depth": 2}),
)


def _case(name: str, size: int, options: dict[str, Any]) -> Case:
    def make() -> Program:
        libraries()
        import timm

        model = timm.create_model(name, pretrained=False, num_classes=10, **options)
        return Program(enliven(model, (torch.randn(4, 3, size, size),)), images(size))

    return Case(f"timm/{name}", make)


CASES = tuple(_case(*row) for row in MODELS)
