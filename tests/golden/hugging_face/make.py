#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the folders beside this file anew: small random BERT and RoFormer checkpoints in the dialects in which
such files come, and what transformers makes of a batch. Needs torch, transformers and safetensors; loads nothing.

    tests/golden/hugging_face/make.py
    tests/golden/hugging_face/make.py base DIR   only the sizes of bert-base-chinese and roformer_chinese_char_base,
                                                 random, into DIR, for check_saved.py

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
from transformers import (BertConfig, BertForMaskedLM, BertForPreTraining, BertModel, RoFormerConfig,
                          RoFormerForMaskedLM)

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
         change_config=lambda config: None, **save):
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    torch.manual_seed(sum(name.encode()))
    randomise(saved_as(config)).to(dtype).save_pretrained(folder, **save)
    if not save:
        edit(folder, change, change_config)
    (folder / "generation_config.json").unlink(missing_ok=True)
    expect(folder, read_as, config.type_vocab_size)
    (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n")


def main():
    bert = dict(hidden_size=24, num_attention_heads=3, intermediate_size=40, num_hidden_layers=2, **SMALL)
    roformer = dict(hidden_size=16, num_attention_heads=2, intermediate_size=24, num_hidden_layers=2, **SMALL)
    # As Google's files are: gamma and beta, with pooler, next-sentence head, tied decoder; a config of 2018.
    make("bert_google", BertForPreTraining, BertForMaskedLM, BertConfig(**bert), change=google,
         change_config=old_config)
    # A BertModel: no prefix, no head.
    make("bert_bare", BertModel, BertModel, BertConfig(**{**bert, "num_hidden_layers": 3}), change=gamma_beta)
    # UniLM's six types, the other gelu, another eps.
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


def base(folder):
    for kind, config in ((BertForMaskedLM, BertConfig(vocab_size=21128)),
                         (RoFormerForMaskedLM, RoFormerConfig(vocab_size=12000, max_position_embeddings=512))):
        torch.manual_seed(1)
        path = folder / config.model_type
        randomise(kind(config)).save_pretrained(path)
        others = (f"token{n}" for n in range(len(TOKENS), config.vocab_size))
        (path / "vocab.txt").write_text("\n".join((*TOKENS, *others)) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["base"] and len(sys.argv) == 3:
        base(pathlib.Path(sys.argv[2]))
    elif len(sys.argv) == 1:
        main()
    else:
        sys.exit(__doc__)
