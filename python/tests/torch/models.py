# SPDX-License-Identifier: MIT
"""Tiny random models of transformers, every rope_type and kind of position: what check is tried on."""
import torch
import transformers

SMALL = dict(vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=256, pad_token_id=0, bos_token_id=1, eos_token_id=2)
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64, "rope_theta": 5e5}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "rope_theta": 1e4}
LONGROPE = {"rope_type": "longrope", "short_factor": [1.0, 1.1, 1.2, 1.3], "long_factor": [1.0, 2.0, 3.0, 4.0],
            "original_max_position_embeddings": 64, "rope_theta": 1e4}
PROPORTIONAL = {"rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 1e4}
LINEAR = {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4}
DYNAMIC = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}

TWO = {"layer_types": ["sliding_attention", "full_attention"]}  # with two layers the usual pattern has but one kind

INKLING = {"head_dim": 8, "swa_head_dim": 8, "swa_num_attention_heads": 4, "swa_num_key_value_heads": 2, "sliding_window_size": 5, "d_rel": 6,
           "rel_extent": 9, "log_scaling_n_floor": 4, "n_routed_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 16}


def base(x):
    return {"rope_parameters": {"rope_type": "default", "rope_theta": x}}


def rope(parameters):
    return {"rope_parameters": parameters}


# name -> (class, settings, over those of SMALL or in their place)
MODELS = {
    "llama": ("LlamaForCausalLM", {}),
    "llama, linear": ("LlamaForCausalLM", rope(LINEAR)),
    "llama, dynamic": ("LlamaForCausalLM", rope(DYNAMIC)),
    "llama, llama3": ("LlamaForCausalLM", rope(LLAMA3)),
    "llama, yarn": ("LlamaForCausalLM", rope(YARN)),
    "llama, longrope": ("LlamaForCausalLM", rope(LONGROPE)),
    "llama, proportional": ("LlamaForCausalLM", rope(PROPORTIONAL)),
    "llama, base 5e5": ("LlamaForCausalLM", base(5e5)),
    "mistral": ("MistralForCausalLM", {"sliding_window": 5}),
    "mistral, whole": ("MistralForCausalLM", {"sliding_window": None}),
    "mixtral": ("MixtralForCausalLM", {"num_local_experts": 2, "num_experts_per_tok": 1, "sliding_window": None}),
    "qwen2": ("Qwen2ForCausalLM", {}),
    "qwen2, yarn": ("Qwen2ForCausalLM", rope(YARN)),
    "qwen3": ("Qwen3ForCausalLM", {"head_dim": 8}),
    "gemma": ("GemmaForCausalLM", {"head_dim": 8}),
    "gemma2": ("Gemma2ForCausalLM", {"head_dim": 8, "sliding_window": 5, "query_pre_attn_scalar": 8, "attn_logit_softcapping": None,
                                     "final_logit_softcapping": None}),
    "gemma2, capped": ("Gemma2ForCausalLM", {"head_dim": 8, "sliding_window": 5, "query_pre_attn_scalar": 8,
                                             "attn_logit_softcapping": 0.5, "initializer_range": 0.5}),
    "gemma3": ("Gemma3ForCausalLM", {"head_dim": 8, "sliding_window": 5, "query_pre_attn_scalar": 8, **TWO}),
    "gemma4": ("Gemma4ForCausalLM", {"head_dim": 8, "sliding_window": 5, "hidden_size_per_layer_input": 0,
                                     "vocab_size_per_layer_input": 97, **TWO}),
    "phi": ("PhiForCausalLM", {"partial_rotary_factor": 0.5}),
    "phi3": ("Phi3ForCausalLM", {}),
    "phi3, longrope": ("Phi3ForCausalLM", {**rope(LONGROPE), "original_max_position_embeddings": 64}),
    "olmo": ("OlmoForCausalLM", {}),
    "olmo2": ("Olmo2ForCausalLM", {}),
    "olmo3": ("Olmo3ForCausalLM", {"sliding_window": 5, **TWO}),
    "starcoder2": ("Starcoder2ForCausalLM", {}),
    "stablelm": ("StableLmForCausalLM", {"partial_rotary_factor": 0.5}),
    "granite": ("GraniteForCausalLM", {}),
    "cohere": ("CohereForCausalLM", {}),
    "cohere2": ("Cohere2ForCausalLM", {"sliding_window": 5, **TWO}),
    "glm": ("GlmForCausalLM", {"head_dim": 8, "partial_rotary_factor": 0.5}),
    "glm4": ("Glm4ForCausalLM", {"head_dim": 8, "partial_rotary_factor": 0.5}),
    "helium": ("HeliumForCausalLM", {"head_dim": 8}),
    "smollm3": ("SmolLM3ForCausalLM", {}),
    "exaone4": ("Exaone4ForCausalLM", {"sliding_window": 5, **TWO}),
    "ernie4_5": ("Ernie4_5ForCausalLM", {"head_dim": 8}),
    "seed_oss": ("SeedOssForCausalLM", {"head_dim": 8}),
    "arcee": ("ArceeForCausalLM", {}),
    "nemotron": ("NemotronForCausalLM", {"partial_rotary_factor": 0.5}),
    "persimmon": ("PersimmonForCausalLM", {}),
    "gpt_oss": ("GptOssForCausalLM", {"head_dim": 8, "sliding_window": 5, "num_local_experts": 2, "num_experts_per_tok": 1, **TWO}),
    "mimo_v2_flash": ("MiMoV2FlashForCausalLM", {"head_dim": 8, "v_head_dim": 8, "sliding_window": 5, "n_routed_experts": 2,
                                                 "num_experts_per_tok": 1, "moe_intermediate_size": 16, **TWO}),
    "llama4": ("Llama4ForCausalLM", {"head_dim": 8, "floor_scale": 4, "num_local_experts": 2, "intermediate_size_mlp": 48,
                                     "no_rope_layers": [1, 0], "attention_chunk_size": 64}),
    "ministral3": ("Ministral3ForCausalLM", {"head_dim": 8, "max_position_embeddings": 32, **rope(
        {**YARN, "llama_4_scaling_beta": 0.1, "original_max_position_embeddings": 8})}),
    "inkling": ("InklingForCausalLM", INKLING),
    "inkling2": ("Inkling2ForCausalLM", INKLING),
    "deepseek_v2": ("DeepseekV2ForCausalLM", {"q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8,
                                              "v_head_dim": 8, "n_routed_experts": 2, "num_experts_per_tok": 1, "n_group": 1,
                                              "topk_group": 1, "moe_intermediate_size": 16, "num_key_value_heads": 4,
                                              "first_k_dense_replace": 1}),
    "longt5": ("LongT5ForConditionalGeneration", {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4,
                                                  "decoder_start_token_id": 0}),
    "doge": ("DogeForCausalLM", {}),
    "gpt_neox": ("GPTNeoXForCausalLM", {"rotary_pct": 0.5}),
    "gptj": ("GPTJForCausalLM", {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4, "n_positions": 256}),
    "codegen": ("CodeGenForCausalLM", {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4, "n_positions": 256}),
    "falcon, alibi": ("FalconForCausalLM", {"alibi": True, "new_decoder_architecture": False, "multi_query": True}),
    "falcon": ("FalconForCausalLM", {"alibi": False, "new_decoder_architecture": False, "multi_query": True}),
    "bloom": ("BloomForCausalLM", {"n_layer": 2, "n_head": 4}),
    "mpt": ("MptForCausalLM", {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 256}),
    "gpt2": ("GPT2LMHeadModel", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256}),
    "opt": ("OPTForCausalLM", {"ffn_dim": 48, "word_embed_proj_dim": 32}),
    "t5": ("T5ForConditionalGeneration", {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4,
                                          "decoder_start_token_id": 0}),
    "mt5": ("MT5ForConditionalGeneration", {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4,
                                            "decoder_start_token_id": 0}),
    "whisper": ("WhisperForConditionalGeneration", {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
                                                    "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
                                                    "max_source_positions": 30, "max_target_positions": 64, "num_mel_bins": 8,
                                                    "decoder_start_token_id": 1}),
    "marian": ("MarianMTModel", {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
                                 "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
                                 "decoder_start_token_id": 0}),
    "bert": ("BertModel", {}),
    "deberta_v2": ("DebertaV2Model", {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8}),
    "xlnet": ("XLNetModel", {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48}),
    "swin": ("SwinModel", {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [2], "num_heads": [4], "window_size": 4}),
    "swinv2": ("Swinv2Model", {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [2], "num_heads": [4], "window_size": 4}),
    "vit": ("ViTModel", {"image_size": 32, "patch_size": 8}),
}


def make(name):
    kind, settings = MODELS[name]
    torch.manual_seed(0)
    model = getattr(transformers, kind)
    sized = {"d_model", "n_embd", "embed_dim"} & {*settings}
    small = {n: SMALL[n] for n in ("vocab_size", "pad_token_id", "bos_token_id", "eos_token_id")} if sized else SMALL
    return model(model.config_class(**{**small, **settings})).eval()
