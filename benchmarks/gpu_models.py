"""The eight models of the GPU bars, of batch 1 in f32, as files that any engine can open."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import models
from benchmarks.cpu.models import deeplab_mobilenet, gpt2_decode, mobilebert
from benchmarks.models import Case


def posenet() -> Case:
    """PoseNet: MobileNetV1 with stride 16 and four heads, 257x257, with seeded weights."""
    import torch
    from torch import nn

    def block(inputs: int, outputs: int, stride: int, dilation: int = 1) -> list[nn.Module]:
        depthwise = nn.Conv2d(inputs, inputs, 3, stride, dilation, dilation, groups=inputs)
        return [depthwise, nn.ReLU6(), nn.Conv2d(inputs, outputs, 1), nn.ReLU6()]

    class PoseNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            sizes = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5]
            layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU6()]
            inputs = 32
            for outputs, stride in sizes:
                layers += block(inputs, outputs, stride)
                inputs = outputs
            layers += [*block(512, 1024, 1, 2), *block(1024, 1024, 1, 2)]
            self.backbone = nn.Sequential(*layers)
            self.heads = nn.ModuleList(nn.Conv2d(1024, parts, 1) for parts in (17, 34, 32, 32))

        def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
            features = self.backbone(image)
            heatmap, *others = (head(features) for head in self.heads)
            return torch.sigmoid(heatmap), *others

    torch.manual_seed(0)
    model = PoseNet().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                nn.init.kaiming_normal_(parameter)  # activations that neither vanish nor saturate
    return Case("PoseNet 257x257", model, (torch.randn(1, 3, 257, 257),))


def whisper_tiny() -> Case:
    """Whisper tiny: 30 s of sound through the encoder, four tokens through the decoder, with seeded weights."""
    import torch

    models.prepare_torchvision()
    from transformers import WhisperConfig, WhisperModel

    class Listen(torch.nn.Module):
        def __init__(self, network: torch.nn.Module) -> None:
            super().__init__()
            self.network = network

        def forward(self, mel: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
            return self.network(mel, decoder_input_ids=tokens, use_cache=False).last_hidden_state

    torch.manual_seed(0)
    sizes = {"d_model": 384, "encoder_layers": 4, "decoder_layers": 4, "encoder_ffn_dim": 1536, "decoder_ffn_dim": 1536}
    config = WhisperConfig(**sizes, encoder_attention_heads=6, decoder_attention_heads=6)
    tokens = torch.tensor([[50258, 50259, 50359, 50363]])
    return Case("Whisper-tiny", Listen(WhisperModel(config)).eval(), (torch.randn(1, 80, 3000), tokens))


MODELS: dict[str, Callable[[], Case]] = {
    "mobilebert": mobilebert,
    "minilm": models.minilm,
    "mobilenet_v2": models.mobilenet_v2,
    "deeplabv3": deeplab_mobilenet,
    "posenet": posenet,
    "resnet50": models.resnet50,
    "gpt2_decode": gpt2_decode,
    "whisper_tiny": whisper_tiny,
}
