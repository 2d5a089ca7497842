"""Text encoders, encoder-decoders and speech models of transformers: two layers of width 32."""

from __future__ import annotations

import torch
from tests.conformance.zoo.build import mask, tokens
from tests.conformance.zoo.transformers_case import ENCODER, TEXT, row

MINILM = ENCODER | dict(hidden_size=48, num_hidden_layers=3, num_attention_heads=12, intermediate_size=96)
DISTILBERT = dict(vocab_size=100, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=64)
MOBILEBERT = ENCODER | dict(embedding_size=16, true_hidden_size=16, intra_bottleneck_size=16)
DEBERTA = ENCODER | dict(
    relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=16, norm_rel_ebd="layer_norm",
    share_att_key=True,
)  # fmt: skip
MODERNBERT = ENCODER | dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=3, sep_token_id=4)
BIGBIRD = ENCODER | dict(attention_type="block_sparse", block_size=4, num_random_blocks=1)
XLNET = dict(vocab_size=100, d_model=32, n_layer=2, n_head=4, d_inner=64)
FNET = dict(vocab_size=100, hidden_size=32, num_hidden_layers=2, intermediate_size=64, max_position_embeddings=64)
BERT_BASE = dict(num_hidden_layers=2)

SEQ2SEQ = ("input_ids", "attention_mask", "decoder_input_ids")
NO_CACHE = dict(use_cache=False)
T5 = dict(vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0)
BART = dict(
    vocab_size=100, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
    decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=64,
)  # fmt: skip
MARIAN = BART | dict(pad_token_id=0, decoder_start_token_id=0)
WHISPER = BART | dict(
    max_source_positions=100, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    suppress_tokens=None, begin_suppress_tokens=None,
)  # fmt: skip
SPEECH = dict(
    vocab_size=32, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
    conv_dim=(32,) * 7, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, apply_spec_augment=False,
)  # fmt: skip
AST = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_length=128)


def seq2seq(sample: int) -> tuple[torch.Tensor, ...]:
    return tokens(), mask(), tokens(8)


def wave(sample: int) -> tuple[torch.Tensor, ...]:
    return (torch.randn(1, 2000),)


CASES = (
    row("bert", "BertForMaskedLM", "BertConfig", ENCODER),
    row("bert-nomask", "BertModel", "BertConfig", ENCODER, names=TEXT[:1], inputs=lambda sample: (tokens(),)),
    row("bert-eager-attn", "BertModel", "BertConfig", ENCODER, attention="eager"),
    row("bert-base-full", "BertModel", "BertConfig", BERT_BASE, inputs=lambda s: (tokens(32, 2, 30000), mask(32))),
    row("minilm-seqcls", "BertForSequenceClassification", "BertConfig", MINILM),
    row("distilbert", "DistilBertForSequenceClassification", "DistilBertConfig", DISTILBERT),
    row("roberta", "RobertaForMaskedLM", "RobertaConfig", ENCODER),
    row("xlm-roberta", "XLMRobertaModel", "XLMRobertaConfig", ENCODER),
    row("mobilebert", "MobileBertModel", "MobileBertConfig", MOBILEBERT),
    row("albert", "AlbertModel", "AlbertConfig", ENCODER | dict(embedding_size=16)),
    row("electra", "ElectraModel", "ElectraConfig", ENCODER | dict(embedding_size=16)),
    row("deberta-v2", "DebertaV2Model", "DebertaV2Config", DEBERTA),
    row("modernbert", "ModernBertModel", "ModernBertConfig", MODERNBERT),
    row("mpnet", "MPNetModel", "MPNetConfig", ENCODER),
    row("squeezebert", "SqueezeBertModel", "SqueezeBertConfig", ENCODER | dict(embedding_size=32)),
    row("longformer", "LongformerModel", "LongformerConfig", ENCODER | dict(attention_window=16, pad_token_id=1)),
    row("bigbird", "BigBirdModel", "BigBirdConfig", BIGBIRD, inputs=lambda sample: (tokens(48), mask(48))),
    row("xlnet", "XLNetModel", "XLNetConfig", XLNET),
    row("fnet", "FNetModel", "FNetConfig", FNET, names=TEXT[:1], inputs=lambda sample: (tokens(),)),
    row("roformer", "RoFormerModel", "RoFormerConfig", ENCODER | dict(embedding_size=32)),
    row("t5", "T5ForConditionalGeneration", "T5Config", T5, names=SEQ2SEQ, inputs=seq2seq, fixed=NO_CACHE),
    row("t5-encoder", "T5EncoderModel", "T5Config", T5),
    row("bart", "BartForConditionalGeneration", "BartConfig", BART, names=SEQ2SEQ, inputs=seq2seq, fixed=NO_CACHE),
    row("marian", "MarianMTModel", "MarianConfig", MARIAN, names=SEQ2SEQ, inputs=seq2seq, fixed=NO_CACHE),
    row(
        "whisper",
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        WHISPER,
        names=("input_features", "decoder_input_ids"),
        inputs=lambda sample: (torch.randn(1, 80, 200), tokens(8, 1)),
        fixed=NO_CACHE,
    ),
    row("wav2vec2", "Wav2Vec2ForCTC", "Wav2Vec2Config", SPEECH, names=("input_values",), inputs=wave),
    row("hubert", "HubertModel", "HubertConfig", SPEECH, names=("input_values",), inputs=wave),
    row(
        "ast",
        "ASTForAudioClassification",
        "ASTConfig",
        AST,
        names=("input_values",),
        inputs=lambda sample: (torch.randn(1, 128, 128),),
    ),
)
