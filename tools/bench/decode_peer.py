#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures generate of Hugging Face transformers for compare.py decode. See peer.serve. A BERT is used as a decoder,
which continues sources of equal length. Several ways of calling generate are tried, and the fastest is kept. If ./bench
measures in bf16, the ways are tried in bf16 and in f32."""
import itertools
import sys

sys.dont_write_bytecode = True

import peer  # noqa: E402


class Generate:
    def __init__(self):
        global torch, transformers
        import torch
        import transformers

        transformers.logging.set_verbosity_error()

    def work(self, request):
        peer.prepare(torch, request)
        self.source = torch.tensor(request["sources"], device=request["device"])
        self.options = dict(
            num_beams=request["beams"],
            do_sample=False,
            min_new_tokens=request["target_tokens"],
            max_new_tokens=request["target_tokens"],
            suppress_tokens=request["forbidden"],
            eos_token_id=request["end"],
            pad_token_id=0,
            attention_mask=torch.ones_like(self.source),
            return_dict_in_generate=True,
        )
        rounded = request["precision"] == "bf16"
        tried = {}
        types = ("bfloat16", "float32") if rounded else ("float32",)
        for attention, dtype in itertools.product(("sdpa", "eager"), types):
            model = transformers.BertLMHeadModel.from_pretrained(
                request["folder"], is_decoder=True, attn_implementation=attention, torch_dtype=getattr(torch, dtype)
            ).to(request["device"]).eval()
            for cache in ({}, {"cache_implementation": "static"}):
                self.way = model, cache
                try:
                    seconds = self.turn()["seconds"]
                    tried[f"{dtype}, {attention}, {'static' if cache else 'dynamic'} cache"] = seconds, self.way
                except Exception as error:  # this version of the library does not support it
                    why = error
        if not tried:
            raise why
        fastest = min(tried, key=lambda name: tried[name][0])
        self.way = tried[fastest][1]
        same, error = self.compare(request["written"])
        return {
            "version": peer.version(transformers, torch),
            "said": f"{fastest}; {same} of {len(self.source)} targets the same, scores within {error:.1e}",
            "tried": {name: seconds for name, (seconds, _) in tried.items()},
            "same_targets": same,
            "score_error": error,
            # Some scores are equal up to rounding. In bf16, rounding can also choose another target of a similar score.
            "agrees": error < 5e-2 if rounded else same >= 0.9 * len(self.source) and error < 1e-5,
        }

    def generate(self, scored=False):
        model, cache = self.way
        found = model.generate(self.source, output_scores=scored, **self.options, **cache)
        ids = found.sequences[:, self.source.shape[1] :].tolist()  # also waits for a GPU
        scores = getattr(found, "sequences_scores", None)  # a greedy search has no scores
        return ids, [] if scores is None else scores.tolist()

    def compare(self, written):
        """Returns how many best targets equal those of ./bench, and the largest difference of their scores."""
        ids, scores = self.generate(scored=True)
        same = sum(one == tokens for one, (tokens, _) in zip(ids, written))
        return same, max((abs(one - score) for one, (_, score) in zip(scores, written)), default=0.0)

    def turn(self):
        self.generate()
        return {"seconds": peer.seconds_of(self.generate)}


if __name__ == "__main__":
    peer.serve(Generate)
