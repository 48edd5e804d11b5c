#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""generate of Hugging Face's transformers, measured for compare.py decode; see peer_system.serve. It is asked:
  {"do": "start", "device": "cpu" or "cuda", "threads": N}     imports both libraries, tells their versions
  {"do": "load", "folder": F, "sources": [[ID, ...], ...], "beams": B, "tokens": T, "seconds": S}
                            a BERT made a decoder, and what it is to go on from, all of one length; of the ways of calling
                            generate the fastest is kept: "way", and "tried", the seconds of each
  {"do": "run"}             mean seconds of a call, in runs of so long
  {"do": "written"}         "ids" of the best of each source; "scores", null of a greedy search"""
import platform
import sys

sys.dont_write_bytecode = True

import peer_system as system  # noqa: E402


class Bench:
    def __init__(self, request):
        self.device = request["device"]
        system.prepare(torch, request)
        transformers.logging.set_verbosity_error()

    def model(self, folder, attention):
        found = transformers.BertLMHeadModel.from_pretrained(
            folder, is_decoder=True, attn_implementation=attention, torch_dtype=torch.float32
        )
        return found.to(self.device).eval()

    def load(self, request):
        self.seconds = request["seconds"]
        self.source = torch.tensor(request["sources"], device=self.device)
        self.options = dict(
            num_beams=request["beams"],
            do_sample=False,
            min_new_tokens=request["tokens"],
            max_new_tokens=request["tokens"],
            suppress_tokens=request["forbidden"],
            eos_token_id=request["end"],
            pad_token_id=0,
            attention_mask=torch.ones_like(self.source),
            return_dict_in_generate=True,
        )
        tried, best = {}, None
        for attention in ("sdpa", "eager"):
            model = self.model(request["folder"], attention)
            for cache in ("dynamic", "static"):
                way = f"{attention}, {cache} cache"
                self.way = (model, {} if cache == "dynamic" else {"cache_implementation": cache})
                try:
                    tried[way] = self.run(request)["seconds"]
                except Exception as e:  # a library that lacks this way
                    tried[way] = system.said(e)
                    continue
                if best is None or tried[way] < tried[best[0]]:
                    best = (way, self.way)
        if best is None:
            raise RuntimeError(f"generate does not run: {tried}")
        self.way = best[1]
        return {"way": best[0], "tried": tried}

    def generate(self, scored=False):
        model, cache = self.way
        found = model.generate(self.source, output_scores=scored, **self.options, **cache)
        scores = getattr(found, "sequences_scores", None)
        ids = found.sequences[:, self.source.shape[1] :].tolist()  # a GPU has ended then
        return {"ids": ids, "scores": None if scores is None else scores.tolist()}

    def run(self, _):
        return {"seconds": system.mean_seconds(self.generate, self.seconds)}

    def written(self, _):
        return self.generate(scored=True)


def start(request):
    global torch, transformers
    import torch
    import transformers

    versions = f"transformers {transformers.__version__}, PyTorch {torch.__version__}"
    return Bench(request), {"version": f"{versions}, Python {platform.python_version()}"}


if __name__ == "__main__":
    system.serve(start)
