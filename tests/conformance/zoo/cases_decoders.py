"""Language models of transformers: two layers of width 32, mixtures of experts and caches among them."""

from __future__ import annotations

from typing import Any

import torch
from tests.conformance.zoo.build import enliven, libraries, tokens
from tests.conformance.zoo.case import Case, Program
from tests.conformance.zoo.transformers_case import DECODER, ENCODER, TEXT, row
from torch import nn

GPT2 = dict(vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=64)
GPT_NEO = dict(
    vocab_size=100, hidden_size=32, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]],
    window_size=8, max_position_embeddings=64,
)  # fmt: skip
OPT = dict(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64, word_embed_proj_dim=32,
    max_position_embeddings=64,
)  # fmt: skip
BLOOM = dict(vocab_size=100, hidden_size=32, n_layer=2, n_head=4)
FALCON = dict(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=4)
HEADS = DECODER | dict(head_dim=8)
WINDOW = HEADS | dict(sliding_window=8)
MIXTRAL = DECODER | dict(num_local_experts=4, num_experts_per_tok=2)
QWEN3_MOE = HEADS | dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16)
DEEPSEEK = ENCODER | dict(
    num_key_value_heads=4, moe_intermediate_size=16, n_routed_experts=4, num_experts_per_tok=2, n_group=2,
    topk_group=1, kv_lora_rank=8, q_lora_rank=8, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8,
    first_k_dense_replace=1,
)  # fmt: skip
GPT_OSS = WINDOW | dict(num_local_experts=4, num_experts_per_tok=2)
MAMBA = dict(vocab_size=100, hidden_size=32, state_size=8, num_hidden_layers=2)
MAMBA2 = MAMBA | dict(num_heads=8, head_dim=8, n_groups=1, chunk_size=8)
RWKV = dict(vocab_size=100, hidden_size=32, num_hidden_layers=2, context_length=64)


def causal(name: str, family: str, options: dict[str, Any], **keywords: Any) -> Case:
    """`family` is the common part of the names of the model and its configuration."""
    config = keywords.pop("config", f"{family}Config")
    return row(name, f"{family}ForCausalLM", config, options, fixed={"use_cache": False}, **keywords)


def plain(sample: int) -> tuple[torch.Tensor, ...]:
    return (tokens(),)


class CacheAsArguments(nn.Module):
    """One step of a Llama; keys and values of the past are arguments, the longer ones are results."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, seen: torch.Tensor, *past: torch.Tensor) -> tuple[torch.Tensor, ...]:
        from transformers.cache_utils import DynamicCache

        cache = DynamicCache()
        for layer in range(len(past) // 2):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        outputs = self.model(input_ids=ids, attention_mask=seen, past_key_values=cache, use_cache=True)
        return outputs.logits, *(t for layer in outputs.past_key_values.layers for t in (layer.keys, layer.values))


class CacheAsState(nn.Module):
    """One step of a Llama whose cache of fixed length is a set of buffers, written in place."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        from transformers import GenerationConfig
        from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

        model.generation_config = GenerationConfig(
            use_cache=True,
            cache_implementation="static",
            max_length=16,
            cache_config={"batch_size": 1, "max_cache_len": 16},
        )
        self.inner = TorchExportableModuleWithStaticCache(model, batch_size=1, max_cache_len=16)

    def forward(self, ids: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        return self.inner(input_ids=ids, cache_position=position)


def _llama() -> nn.Module:
    libraries()
    import transformers

    return enliven(transformers.LlamaForCausalLM(transformers.LlamaConfig(**DECODER)))


def _with_cache_as_arguments() -> Program:
    def inputs(sample: int) -> tuple[torch.Tensor, ...]:
        past = [torch.randn(1, 2, 6, 8) for _ in range(4)]
        return tokens(1, 1), torch.ones(1, 7, dtype=torch.int64), *past

    return Program(CacheAsArguments(_llama()).eval(), inputs)


def _with_cache_as_state() -> Program:
    # The samples are two steps: the second sees what the first wrote.
    return Program(CacheAsState(_llama()).eval(), lambda sample: (tokens(1, 1), torch.tensor([sample])))


CASES = (
    row("gpt2", "GPT2LMHeadModel", "GPT2Config", GPT2, fixed={"use_cache": False}),
    row(
        "gpt2-full",
        "GPT2LMHeadModel",
        "GPT2Config",
        dict(n_layer=2),
        names=TEXT[:1],
        inputs=lambda sample: (tokens(32, 1, 50000),),
        fixed={"use_cache": False},
    ),
    causal("gpt-neo", "GPTNeo", GPT_NEO),
    causal("gptj", "GPTJ", GPT2 | dict(rotary_dim=8)),
    causal("gpt-neox", "GPTNeoX", ENCODER),
    causal("opt", "OPT", OPT),
    causal("bloom", "Bloom", BLOOM),
    causal("llama", "Llama", DECODER),
    causal("llama-nomask", "Llama", DECODER, names=TEXT[:1], inputs=plain),
    Case("hf/llama-kv-as-io", _with_cache_as_arguments),
    Case("hf/llama-static-kv", _with_cache_as_state, batched=False),
    causal("mistral", "Mistral", DECODER | dict(sliding_window=8)),
    causal("qwen2", "Qwen2", DECODER),
    causal("qwen3", "Qwen3", HEADS),
    causal("gemma2", "Gemma2", HEADS),
    causal("gemma3", "Gemma3", WINDOW, config="Gemma3TextConfig"),
    causal("phi", "Phi", DECODER),
    causal("phi3", "Phi3", DECODER | dict(pad_token_id=0)),
    causal("falcon", "Falcon", FALCON),
    causal("stablelm", "StableLm", DECODER),
    causal("olmo2", "Olmo2", DECODER),
    causal("mixtral", "Mixtral", MIXTRAL),
    causal("qwen3-moe", "Qwen3Moe", QWEN3_MOE),
    causal("deepseek-v3", "DeepseekV3", DEEPSEEK),
    causal("gpt-oss", "GptOss", GPT_OSS),
    causal("mamba", "Mamba", MAMBA, names=TEXT[:1], inputs=plain),
    causal("mamba2", "Mamba2", MAMBA2, names=TEXT[:1], inputs=plain),
    causal("rwkv", "Rwkv", RWKV, names=TEXT[:1], inputs=plain),
)
