#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the folders beside this file anew: small random BERT, RoFormer and NomicBERT checkpoints in the dialects in
which such files come, and what transformers makes of a batch. Needs torch, transformers and safetensors; loads nothing.

    tests/golden/hugging_face/make.py
    tests/golden/hugging_face/make.py NAME ...   only these folders
    tests/golden/hugging_face/make.py base DIR   only the sizes of bert-base-chinese, roformer_chinese_char_base and
                                                 nomic-bert-2048, random, into DIR, for check_saved.py

A folder is a checkpoint, config.json and model.safetensors (or shards), and expected.safetensors: the ids, types
and positions of all tokens, the sentences one after the other, `begin` of each, and for these rows `hidden.0` (what
the first layer reads) to `hidden.L` and the `logits`. transformers runs them as one batch, padded, with an
attention_mask, in double.
"""
import json
import pathlib
import shutil
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import (BertConfig, BertForMaskedLM, BertForPreTraining, BertModel, NomicBertConfig,
                          NomicBertForMaskedLM, RoFormerConfig, RoFormerForMaskedLM)

HERE = pathlib.Path(__file__).resolve().parent
TOKENS = ("[PAD] [UNK] [CLS] [SEP] [MASK] a b c d e f g h i j k l m n o p q r s t u v w x y z . , "
          "##a ##b ##c ##d ##e ##f ##g ##h ##i an the of in on ab").split()
LENGTHS = (9, 2, 6)  # of the batch's sentences
SMALL = dict(vocab_size=len(TOKENS), max_position_embeddings=12, initializer_range=0.2)


def randomise(model):
    """Norms and biases are ones and zeros at first, which would hide them."""
    with torch.no_grad():
        for name, x in model.named_parameters():
            if x.dim() == 1:
                x.add_(0.2 * torch.randn_like(x))
        model.get_input_embeddings().weight[0] = 0.2 * torch.randn_like(model.get_input_embeddings().weight[0])
    return model


def edit(folder, change_tensors, change_config=lambda config: None):
    """The saved folder in somebody else's dialect."""
    file = folder / "model.safetensors"
    tensors = {name: x.clone() for name, x in load_file(file).items()}
    save_file(change_tensors(tensors), file, {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    for key in ("transformers_version", "dtype"):
        config.pop(key, None)
    change_config(config)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")


def gamma_beta(tensors):
    return {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): x
            for name, x in tensors.items()}


def google(tensors):
    tensors = gamma_beta(tensors)
    tensors["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"].clone()
    tensors["cls.predictions.decoder.bias"] = tensors["cls.predictions.bias"].clone()
    tensors["bert.embeddings.position_ids"] = torch.arange(SMALL["max_position_embeddings"])[None]
    return tensors


def old_config(config):
    for key in ("layer_norm_eps", "pad_token_id", "bos_token_id", "eos_token_id", "classifier_dropout",
                "tie_word_embeddings", "add_cross_attention", "is_decoder"):
        config.pop(key, None)


def without_positions(tensors):
    """A half-precision file rounds the table of sines and cosines, too, and transformers then turns by it."""
    return {name: x for name, x in tensors.items() if "embed_positions" not in name}


def module_names(tensors):
    """The names of NomicBERT's modules. transformers saves others, those of nomic-ai's own code, and reads both."""
    renamed = (("emb_ln", "embeddings.LayerNorm"), ("encoder.layers", "layers"), ("attn.out_proj", "self_attn.o_proj"),
               ("fc11", "up_proj"), ("fc12", "gate_proj"), ("fc2", "down_proj"), ("norm1", "post_attention_layernorm"),
               ("norm2", "post_mlp_layernorm"))
    result = {}
    for name, x in tensors.items():
        for old, new in renamed:
            name = name.replace(old, new)
        parts = zip("qkv", x.chunk(3)) if "attn.Wqkv" in name else [("", x)]
        for letter, part in parts:
            result[name.replace("attn.Wqkv", f"self_attn.{letter}_proj")] = part.clone()
    return result


HEAD_BIASES = "cls.predictions.bias", "cls.predictions.transform.dense.bias"


def no_head_biases(tensors):
    return {name: torch.zeros_like(x) if name in HEAD_BIASES else x for name, x in tensors.items()}


def nomic_2048(tensors):
    """As nomic-bert-2048 was published: the prefix "bert.", the decoder, and no biases in the head."""
    tensors = {name.replace("nomic_bert.", "bert."): x for name, x in tensors.items() if name not in HEAD_BIASES}
    tensors["cls.predictions.decoder.weight"] = tensors["bert.embeddings.word_embeddings.weight"].clone()
    return tensors


def config_2048(config):
    """The keys of nomic-ai's own code, in place of all of transformers'."""
    new = dict(config)
    config.clear()
    config.update(
        activation_function="swiglu", architectures=["NomicBertForPreTraining"], attn_pdrop=0.0, causal=False,
        embd_pdrop=0.1, initializer_range=new["initializer_range"], layer_norm_epsilon=new["layer_norm_eps"],
        mlp_fc1_bias=False, mlp_fc2_bias=False, model_type="nomic_bert", n_embd=new["hidden_size"],
        n_head=new["num_attention_heads"], n_inner=new["intermediate_size"], n_layer=new["num_hidden_layers"],
        n_positions=new["max_position_embeddings"], pad_vocab_size_multiple=64, parallel_block=False, prenorm=False,
        qkv_proj_bias=False, resid_pdrop=0.0, rotary_emb_base=new["rope_parameters"]["rope_theta"],
        rotary_emb_fraction=1.0, rotary_emb_interleaved=False, rotary_emb_scale_base=None, rotary_scaling_factor=None,
        scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, type_vocab_size=new["type_vocab_size"],
        use_rms_norm=False, vocab_size=new["vocab_size"])


def expect(folder, kind, types):
    """What the folder's model makes of the batch, as transformers reads it."""
    model, info = kind.from_pretrained(folder, dtype=torch.float64, output_loading_info=True)
    assert not info["mismatched_keys"], info
    missing = [key for key in info["missing_keys"] if "pooler" not in key and "embed_positions" not in key]
    assert not missing, missing
    model.eval()
    rng = torch.Generator().manual_seed(17)
    B, T = len(LENGTHS), max(LENGTHS)
    ids, segments, mask = (torch.zeros(B, T, dtype=torch.long) for _ in range(3))
    for b, n in enumerate(LENGTHS):
        ids[b, :n] = torch.randint(4, len(TOKENS), (n,), generator=rng)
        ids[b, 0], ids[b, n - 1] = 2, 3
        segments[b, :n] = torch.arange(n) * types // n
        mask[b, :n] = 1
    with torch.no_grad():
        out = model(input_ids=ids, token_type_ids=segments, attention_mask=mask, output_hidden_states=True)
    real = mask.bool()
    begin = [sum(LENGTHS[:b]) for b in range(B + 1)]
    result = {"ids": ids[real].double(), "types": segments[real].double(),
              "positions": torch.arange(T).repeat(B, 1)[real].double(), "begin": torch.tensor(begin).double()}
    for layer, hidden in enumerate(out.hidden_states):
        result[f"hidden.{layer}"] = hidden[real]
    if hasattr(out, "logits"):
        result["logits"] = out.logits[real]
    save_file({name: x.contiguous() for name, x in result.items()}, folder / "expected.safetensors")


def make(name, saved_as, read_as, config, dtype=torch.float32, change=lambda tensors: tensors,
         change_config=lambda config: None, afterwards=None, **save):
    """afterwards: the changes into a dialect that transformers does not read."""
    if sys.argv[1:] and name not in sys.argv[1:]:
        return
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    torch.manual_seed(sum(name.encode()))
    randomise(saved_as(config)).to(dtype).save_pretrained(folder, **save)
    if not save:
        edit(folder, change, change_config)
    (folder / "generation_config.json").unlink(missing_ok=True)
    expect(folder, read_as, config.type_vocab_size)
    if afterwards:
        edit(folder, *afterwards)
    (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n")


def main():
    bert = dict(hidden_size=24, num_attention_heads=3, intermediate_size=40, num_hidden_layers=2, **SMALL)
    roformer = dict(hidden_size=16, num_attention_heads=2, intermediate_size=24, num_hidden_layers=2, **SMALL)
    # Like Google's files: gamma and beta, with pooler, next-sentence head and tied decoder; a config of 2018.
    make("bert_google", BertForPreTraining, BertForMaskedLM, BertConfig(**bert), change=google,
         change_config=old_config)
    # A BertModel: no prefix, no head.
    make("bert_bare", BertModel, BertModel, BertConfig(**{**bert, "num_hidden_layers": 3}), change=gamma_beta)
    # UniLM's six types, the tanh form of gelu, another eps.
    make("bert_unilm", BertForMaskedLM, BertForMaskedLM,
         BertConfig(**{**bert, "hidden_size": 32, "num_attention_heads": 4}, hidden_act="gelu_new", type_vocab_size=6,
                    layer_norm_eps=1e-3))
    # bf16, in shards.
    make("bert_shards", BertForMaskedLM, BertForMaskedLM, BertConfig(**bert, hidden_act="gelu_fast"),
         dtype=torch.bfloat16, max_shard_size="9KB")
    make("roformer_char", RoFormerForMaskedLM, RoFormerForMaskedLM, RoFormerConfig(**roformer))
    make("roformer_narrow", RoFormerForMaskedLM, RoFormerForMaskedLM,
         RoFormerConfig(**roformer, embedding_size=10, hidden_act="gelu_pytorch_tanh"), change=without_positions)
    make("roformer_value", RoFormerForMaskedLM, RoFormerForMaskedLM,
         RoFormerConfig(**{**roformer, "hidden_size": 32}, embedding_size=12, rotary_value=True), dtype=torch.float16,
         change=lambda tensors: gamma_beta(without_positions(tensors)))
    # The square of relu, in the layers and in the head.
    make("bert_relu2", BertForMaskedLM, BertForMaskedLM,
         BertConfig(**{**bert, "num_hidden_layers": 1}, hidden_act="relu2"))
    nomic = NomicBertForMaskedLM, NomicBertForMaskedLM
    make("nomic_plain", *nomic, NomicBertConfig(**roformer))
    # A gate by gelu, another base of the rotary angles, three types; bf16, in shards.
    make("nomic_gelu", *nomic,
         NomicBertConfig(**roformer, hidden_act="gelu_new", type_vocab_size=3, layer_norm_eps=1e-3,
                         rope_parameters={"rope_type": "default", "rope_theta": 50.0}),
         dtype=torch.bfloat16, max_shard_size="5KB")
    make("nomic_modules", *nomic, NomicBertConfig(**{**roformer, "num_attention_heads": 1}), change=module_names)
    make("nomic_2048", *nomic, NomicBertConfig(**roformer), change=no_head_biases, afterwards=(nomic_2048, config_2048))


def base(folder):
    for kind, config in ((BertForMaskedLM, BertConfig(vocab_size=21128)),
                         (RoFormerForMaskedLM, RoFormerConfig(vocab_size=12000, max_position_embeddings=512)),
                         (NomicBertForMaskedLM, NomicBertConfig())):
        torch.manual_seed(1)
        path = folder / config.model_type
        randomise(kind(config)).save_pretrained(path)
        others = (f"token{n}" for n in range(len(TOKENS), config.vocab_size))
        (path / "vocab.txt").write_text("\n".join((*TOKENS, *others)) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["base"] and len(sys.argv) == 3:
        base(pathlib.Path(sys.argv[2]))
    elif any(name.startswith("-") or name == "base" for name in sys.argv[1:]):
        sys.exit(__doc__)
    else:
        main()
