#!/usr/bin/env python3
"""Makes folders of the Hugging Face hub with random configurations, for attune_hub_test. See make_model.py.

    make_random_models.py OUT [--seed 1] [--count 5] [CLASS ...]

Makes COUNT models of each class, or of those whose name has one of the given parts: OUT/llamaforcausallm-1-0 and so on.
A configuration that transformers refuses is left out and named. Each folder has it as fields.json, too.
"""

import argparse
import json
import pathlib
import random
import shutil

import torch
import transformers
from make_model import expected_of, inputs, randomise, write_model

ACTIVATIONS = ["gelu", "relu", "silu", "gelu_new", "gelu_pytorch_tanh", "quick_gelu", "gelu_fast"]
GATE_ACTIVATIONS = ["silu", "gelu", "relu", "gelu_pytorch_tanh"]
EPSILONS = [1e-6, 1e-5, 1e-2]
YES_OR_NO = [True, False]


class Fields:
    """Random fields of the configurations of a class. What is returned is read by transformers and by Attune."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def any(self, *choices):
        return self.random.choice(choices)

    def rope(self, *kinds):
        kind = self.any(*(kinds or ("default", "default", "linear", "yarn", "llama3", "dynamic")))
        fields = {"rope_type": kind, "rope_theta": self.any(100.0, 10000.0, 500000.0)}
        if kind in ("linear", "dynamic", "yarn"):
            fields["factor"] = self.any(2.0, 4.0)
        if kind == "yarn":
            fields["original_max_position_embeddings"] = self.any(8, 16, 32)
            if self.any(*YES_OR_NO):
                fields |= {"beta_fast": self.any(16.0, 32.0), "beta_slow": self.any(1.0, 2.0)}
            if self.any(*YES_OR_NO):
                fields["attention_factor"] = self.any(0.8, 1.3)
            elif self.any(*YES_OR_NO):
                fields |= {"mscale": self.any(0.7, 1.0), "mscale_all_dim": self.any(0.7, 1.0)}
            if self.any(*YES_OR_NO):
                fields["truncate"] = self.any(*YES_OR_NO)
        if kind == "llama3":
            fields |= {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
            fields["original_max_position_embeddings"] = self.any(16, 32)
        return fields

    def language_model(self):
        return {
            "vocab_size": self.any(64, 80, 97),
            "num_hidden_layers": self.any(1, 2, 3),
            "max_position_embeddings": self.any(48, 64),
            "bos_token_id": 2,
            "eos_token_id": 3,
            "pad_token_id": 0,
            "tie_word_embeddings": self.any(*YES_OR_NO),
        }

    def grouped_heads(self, d_head):
        kv_heads, group = self.any(1, 2, 3), self.any(1, 2, 3)
        heads = kv_heads * group
        return {"num_attention_heads": heads, "num_key_value_heads": kv_heads, "hidden_size": heads * d_head}

    def window(self, layers):
        fields = {"use_sliding_window": self.any(*YES_OR_NO), "sliding_window": self.any(3, 6)}
        if self.any(*YES_OR_NO):
            fields["layer_types"] = [self.any("full_attention", "sliding_attention") for _ in range(layers)]
            if "sliding_attention" in fields["layer_types"]:
                fields["use_sliding_window"] = True
        else:
            fields["max_window_layers"] = self.any(0, 1, 2)
        return fields

    def llama(self):
        fields = self.language_model() | self.grouped_heads(self.any(4, 8))
        fields |= {"intermediate_size": self.any(20, 24, 36), "rms_norm_eps": self.any(*EPSILONS)}
        fields |= {"hidden_act": self.any(*GATE_ACTIVATIONS), "rope_parameters": self.rope()}
        if self.any(*YES_OR_NO):
            fields["head_dim"] = self.any(4, 6, 8)
        return fields

    def llama_for_causal_lm(self):
        return self.llama() | {"attention_bias": self.any(*YES_OR_NO), "mlp_bias": self.any(*YES_OR_NO)}

    def mistral(self):
        return self.llama() | {"sliding_window": self.any(None, 3, 6, 64)}

    def qwen2(self):
        fields = self.llama()
        return fields | self.window(fields["num_hidden_layers"])

    def qwen3(self):
        return self.qwen2() | {"head_dim": self.any(4, 6, 8), "attention_bias": self.any(*YES_OR_NO)}

    def qwen3_moe(self):
        return self.llama() | {
            "head_dim": self.any(4, 6, 8),
            "attention_bias": self.any(*YES_OR_NO),
            "num_experts": self.any(3, 4, 6),
            "num_experts_per_tok": self.any(1, 2, 3),
            "moe_intermediate_size": self.any(8, 12),
            "norm_topk_prob": self.any(*YES_OR_NO),
            "decoder_sparse_step": self.any(1, 2),
            "mlp_only_layers": self.any([], [0], [1]),
            "use_sliding_window": self.any(*YES_OR_NO),
            "sliding_window": self.any(3, 6),
        }

    def mixtral(self):
        return self.llama() | {
            "intermediate_size": self.any(20, 24, 36),
            "num_local_experts": self.any(3, 4),
            "num_experts_per_tok": self.any(1, 2, 3),
            "sliding_window": self.any(None, 5),
        }

    def phi3(self):
        fields = self.language_model() | self.grouped_heads(8)
        share = self.any(0.5, 0.75, 1.0)
        rope = self.rope("default") | {"partial_rotary_factor": share}
        if self.any(*YES_OR_NO):
            factors = [[first + self.random.random() for _ in range(int(8 * share) // 2)] for first in (1, 2)]
            rope |= {"rope_type": "longrope", "short_factor": factors[0], "long_factor": factors[1]}
            rope["original_max_position_embeddings"] = fields["max_position_embeddings"]
            fields["max_position_embeddings"] *= 4
        return fields | {
            "original_max_position_embeddings": rope.get(
                "original_max_position_embeddings", fields["max_position_embeddings"]
            ),
            "intermediate_size": self.any(20, 24),
            "rms_norm_eps": self.any(*EPSILONS),
            "hidden_act": self.any(*GATE_ACTIVATIONS),
            "rope_parameters": rope,
            "sliding_window": self.any(None, 5),
        }

    def gemma(self):
        fields = self.language_model() | self.grouped_heads(self.any(4, 8))
        if self.any(*YES_OR_NO):
            fields["layer_types"] = [
                self.any("full_attention", "sliding_attention") for _ in range(fields["num_hidden_layers"])
            ]
        return fields | {
            "intermediate_size": self.any(20, 24),
            "head_dim": self.any(4, 8),
            "query_pre_attn_scalar": self.any(4, 8, 16),
            "sliding_window": self.any(3, 6, 16),
            "hidden_activation": self.any("gelu_pytorch_tanh", "silu"),
            "attention_bias": self.any(*YES_OR_NO),
            "rms_norm_eps": self.any(*EPSILONS),
            "final_logit_softcapping": self.any(None, 5.0, 30.0),
            "attn_logit_softcapping": self.any(None, 2.0, 50.0),
        }

    def gemma2(self):
        return self.gemma() | {"rope_parameters": self.rope()}

    def gemma3(self):
        fields = self.gemma()
        if self.any(*YES_OR_NO):
            of_layers = {kind: self.rope("default", "linear") for kind in ("full_attention", "sliding_attention")}
            fields["rope_parameters"] = of_layers
        return fields

    def gpt2(self):
        heads = self.any(1, 2, 3)
        return {
            "vocab_size": self.any(64, 97),
            "n_positions": 48,
            "n_embd": heads * self.any(4, 8),
            "n_layer": self.any(1, 2, 3),
            "n_head": heads,
            "n_inner": self.any(None, 20, 33),
            "activation_function": self.any(*ACTIVATIONS),
            "layer_norm_epsilon": self.any(*EPSILONS),
            "scale_attn_weights": self.any(*YES_OR_NO),
            "scale_attn_by_inverse_layer_idx": self.any(*YES_OR_NO),
            "reorder_and_upcast_attn": self.any(*YES_OR_NO),
            "tie_word_embeddings": self.any(*YES_OR_NO),
            "bos_token_id": 1,
            "eos_token_id": 2,
        }

    def gpt_neox(self):
        heads = self.any(1, 2, 3)
        return self.language_model() | {
            "hidden_size": heads * 8,
            "num_attention_heads": heads,
            "intermediate_size": self.any(20, 33),
            "hidden_act": self.any(*ACTIVATIONS),
            "layer_norm_eps": self.any(*EPSILONS),
            "rope_parameters": self.rope() | {"partial_rotary_factor": self.any(0.5, 0.75, 1.0)},
            "use_parallel_residual": self.any(*YES_OR_NO),
            "attention_bias": self.any(*YES_OR_NO),
        }

    def opt(self):
        heads = self.any(1, 2, 3)
        return {
            "vocab_size": self.any(64, 97),
            "hidden_size": heads * 8,
            "num_hidden_layers": self.any(1, 2, 3),
            "ffn_dim": self.any(20, 33),
            "max_position_embeddings": 48,
            "do_layer_norm_before": self.any(*YES_OR_NO),
            "word_embed_proj_dim": self.any(heads * 8, 12),
            "num_attention_heads": heads,
            "activation_function": self.any("relu", "gelu", "silu"),
            "enable_bias": self.any(*YES_OR_NO),
            "tie_word_embeddings": self.any(*YES_OR_NO),
            "pad_token_id": 1,
            "bos_token_id": 2,
            "eos_token_id": 2,
        }

    def starcoder2(self):
        return self.language_model() | self.grouped_heads(self.any(4, 8)) | {
            "intermediate_size": self.any(20, 33),
            "hidden_act": self.any(*ACTIVATIONS),
            "norm_epsilon": self.any(*EPSILONS),
            "use_bias": self.any(*YES_OR_NO),
            "sliding_window": self.any(None, 5),
            "rope_parameters": self.rope(),
        }

    def deepseek(self):
        heads, experts, groups, chosen = self.any(1, 2, 4), self.any(4, 6, 8), self.any(1, 2), self.any(1, 2, 3)
        kept = self.any(1, groups)
        if experts // groups * kept < chosen:
            groups = kept = 1
        return self.language_model() | {
            "hidden_size": self.any(16, 24),
            "intermediate_size": 24,
            "moe_intermediate_size": self.any(8, 12),
            "num_attention_heads": heads,
            "num_key_value_heads": heads,
            "n_routed_experts": experts,
            "n_shared_experts": self.any(1, 2),
            "num_experts_per_tok": chosen,
            "n_group": groups,
            "topk_group": kept,
            "first_k_dense_replace": self.any(0, 1, 2),
            "kv_lora_rank": self.any(8, 12),
            "q_lora_rank": self.any(None, 10),
            "qk_nope_head_dim": self.any(4, 6),
            "qk_rope_head_dim": self.any(4, 8),
            "v_head_dim": self.any(4, 6),
            "routed_scaling_factor": self.any(1.0, 2.5),
            "norm_topk_prob": self.any(*YES_OR_NO),
            "rope_parameters": self.rope("default", "yarn"),
            "attention_bias": self.any(*YES_OR_NO),
            "rms_norm_eps": self.any(*EPSILONS),
        }

    def deepseek_v2(self):
        return self.deepseek() | {"topk_method": self.any("greedy", "group_limited_greedy"), "norm_topk_prob": False}

    def deepseek_v3(self):
        return self.deepseek() | {"rope_interleave": self.any(*YES_OR_NO)}

    def encoder(self):
        heads = self.any(1, 2, 3)
        return {
            "vocab_size": self.any(64, 97),
            "hidden_size": heads * self.any(4, 8),
            "num_hidden_layers": self.any(1, 2, 3),
            "num_attention_heads": heads,
            "intermediate_size": self.any(20, 33),
            "hidden_act": self.any(*ACTIVATIONS),
            "max_position_embeddings": 48,
            "type_vocab_size": self.any(1, 2),
            "layer_norm_eps": self.any(1e-12, 1e-2),
        }

    def roberta(self):
        return self.encoder() | {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}

    def distilbert(self):
        heads = self.any(1, 2, 3)
        return {
            "vocab_size": self.any(64, 97),
            "dim": heads * self.any(4, 8),
            "hidden_dim": self.any(20, 33),
            "n_layers": self.any(1, 2, 3),
            "n_heads": heads,
            "activation": self.any("gelu", "relu", "silu"),
            "max_position_embeddings": 48,
            "sinusoidal_pos_embds": self.any(*YES_OR_NO),
        }

    def albert(self):
        return self.encoder() | {
            "num_hidden_layers": self.any(2, 4),
            "embedding_size": self.any(8, 12),
            "num_hidden_groups": self.any(1, 2),
            "inner_group_num": self.any(1, 2),
            "bos_token_id": 2,
            "eos_token_id": 3,
        }

    def electra(self):
        fields = self.encoder()
        return fields | {"embedding_size": self.any(8, fields["hidden_size"])}

    def modernbert(self):
        heads = self.any(1, 2, 3)
        return {
            "vocab_size": self.any(64, 97),
            "hidden_size": heads * self.any(4, 8),
            "intermediate_size": self.any(20, 33),
            "num_hidden_layers": self.any(1, 2, 4),
            "num_attention_heads": heads,
            "hidden_activation": self.any("gelu", "silu", "relu"),
            "max_position_embeddings": 64,
            "norm_eps": self.any(*EPSILONS),
            "norm_bias": self.any(*YES_OR_NO),
            "attention_bias": self.any(*YES_OR_NO),
            "mlp_bias": self.any(*YES_OR_NO),
            "decoder_bias": self.any(*YES_OR_NO),
            "classifier_bias": self.any(*YES_OR_NO),
            "classifier_pooling": self.any("cls", "mean"),
            "classifier_activation": self.any("gelu", "relu"),
            "local_attention": self.any(4, 6, 8),
            "global_attn_every_n_layers": self.any(1, 2, 3),
            "pad_token_id": 0,
            "bos_token_id": 2,
            "eos_token_id": 3,
            "cls_token_id": 2,
            "sep_token_id": 3,
        }

    def bart(self):
        return {
            "vocab_size": self.any(64, 97),
            "d_model": self.any(16, 24),
            "encoder_layers": self.any(1, 2),
            "decoder_layers": self.any(1, 2),
            "encoder_attention_heads": self.any(1, 2, 4),
            "decoder_attention_heads": self.any(1, 2, 4),
            "encoder_ffn_dim": self.any(20, 33),
            "decoder_ffn_dim": self.any(20, 24),
            "activation_function": self.any(*ACTIVATIONS),
            "scale_embedding": self.any(*YES_OR_NO),
            "tie_word_embeddings": self.any(*YES_OR_NO),
            "forced_eos_token_id": self.any(None, 2),
            "max_position_embeddings": 48,
            "pad_token_id": 1,
            "bos_token_id": 0,
            "eos_token_id": 2,
            "decoder_start_token_id": 2,
        }

    def marian(self):
        fields, shared = self.bart(), self.any(*YES_OR_NO)
        last = fields["vocab_size"] - 1
        fields |= {"share_encoder_decoder_embeddings": shared, "forced_eos_token_id": self.any(None, 0)}
        if not shared:
            fields |= {"decoder_vocab_size": fields["vocab_size"], "tie_word_embeddings": False}
        return fields | {"pad_token_id": last, "bos_token_id": None, "eos_token_id": 0, "decoder_start_token_id": last}

    def t5(self):
        layers = self.any(1, 2)
        return {
            "vocab_size": self.any(64, 97),
            "d_model": self.any(16, 24),
            "d_kv": self.any(4, 6, 8),
            "d_ff": self.any(20, 33),
            "num_layers": layers,
            "num_decoder_layers": self.any(1, layers),
            "num_heads": self.any(1, 2, 3),
            "relative_attention_num_buckets": self.any(8, 16, 32),
            "relative_attention_max_distance": self.any(20, 40, 128),
            "feed_forward_proj": self.any("relu", "gelu", "silu", "gated-relu", "gated-gelu", "gated-silu"),
            "tie_word_embeddings": self.any(*YES_OR_NO),
            "layer_norm_epsilon": self.any(*EPSILONS),
            "decoder_start_token_id": 0,
        }

    def classifier(self, encoder):
        return encoder() | {"num_labels": self.any(1, 2, 5)}


def classes(of):
    """The classes, and what makes the fields of each."""
    encoders = {
        "Bert": of.encoder,
        "Roberta": of.roberta,
        "XLMRoberta": of.roberta,
        "Camembert": of.roberta,
        "DistilBert": of.distilbert,
        "Albert": of.albert,
        "Electra": of.electra,
        "ModernBert": of.modernbert,
    }
    makers = {
        "LlamaForCausalLM": of.llama_for_causal_lm,
        "MistralForCausalLM": of.mistral,
        "Qwen2ForCausalLM": of.qwen2,
        "Qwen3ForCausalLM": of.qwen3,
        "Qwen3MoeForCausalLM": of.qwen3_moe,
        "MixtralForCausalLM": of.mixtral,
        "Phi3ForCausalLM": of.phi3,
        "Gemma2ForCausalLM": of.gemma2,
        "Gemma3ForCausalLM": of.gemma3,
        "GPT2LMHeadModel": of.gpt2,
        "GPTNeoXForCausalLM": of.gpt_neox,
        "OPTForCausalLM": of.opt,
        "Starcoder2ForCausalLM": of.starcoder2,
        "DeepseekV2ForCausalLM": of.deepseek_v2,
        "DeepseekV3ForCausalLM": of.deepseek_v3,
        "BartForConditionalGeneration": of.bart,
        "MBartForConditionalGeneration": of.bart,
        "M2M100ForConditionalGeneration": of.bart,
        "MarianMTModel": of.marian,
        "T5ForConditionalGeneration": of.t5,
        "MT5ForConditionalGeneration": of.t5,
    }
    for name, encoder in encoders.items():
        makers[f"{name}Model"] = makers[f"{name}ForMaskedLM"] = encoder
        makers[f"{name}ForSequenceClassification"] = lambda encoder=encoder: of.classifier(encoder)
    return makers


def make(name, fields, out, seed):
    model_class = getattr(transformers, name)
    model = model_class(model_class.config_class(**fields)).eval()
    randomise(model, seed)
    tensors, tokens = expected_of(model, *inputs(model.config.vocab_size - 1))
    write_model(model, out, tensors, tokens)
    (out / "fields.json").write_text(json.dumps(fields) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("classes", nargs="*")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    of = Fields(options.seed)
    made = 0
    for name, maker in classes(of).items():
        if options.classes and not any(part in name for part in options.classes):
            continue
        for number in range(options.count):
            fields, out = maker(), options.out / f"{name.lower()}-{options.seed}-{number}"
            try:
                make(name, fields, out, of.random.randrange(1000000))
                made += 1
            except Exception as error:  # of many kinds
                shutil.rmtree(out, ignore_errors=True)
                print(f"{out.name}: {type(error).__name__}: {' '.join(str(error).split())[:200]}: {json.dumps(fields)}")
    print(f"{made} models")


if __name__ == "__main__":
    main()
