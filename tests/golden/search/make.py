#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes what others find in the tables of table.py.

    tests/golden/search/make.py beams        beams.json: generate() of transformers 5 (made with 5.23.0)
    tests/golden/search/make.py bert4keras   bert4keras.json: the rules restated in bert4keras.py

A file lists cases: the options, and for every table the hypotheses, each "tokens score": a digit a token,
without BEGIN, with the end. A greedy search reports no score.
"""
import itertools
import json
import pathlib
import sys

from table import BEGIN, END, V, table

FOLDER = pathlib.Path(__file__).resolve().parent
TABLES = 50
PAD = 5


def model():
    import torch
    from transformers import GenerationConfig, GenerationMixin, PretrainedConfig, PreTrainedModel
    from transformers.modeling_outputs import CausalLMOutput

    class Table(PreTrainedModel, GenerationMixin):
        config_class = PretrainedConfig

        def __init__(self, config):
            super().__init__(config)
            self.nothing = torch.nn.Parameter(torch.zeros(1))
            self.generation_config = GenerationConfig()

        def prepare_inputs_for_generation(self, input_ids, attention_mask=None, **_):
            return {"input_ids": input_ids}

        def forward(self, input_ids, attention_mask=None, **_):
            last = input_ids[:, -1]
            before = input_ids[:, -2] if input_ids.shape[1] > 1 else torch.full_like(last, END)
            return CausalLMOutput(logits=self.table[before, last][:, None, :])

    config = PretrainedConfig(vocab_size=V, bos_token_id=BEGIN, eos_token_id=END, num_hidden_layers=1,
                              hidden_size=1, num_attention_heads=1)
    return Table(config).eval()


def written(tokens):
    tokens = [int(t) for t in tokens][1:]
    end = tokens.index(END) + 1 if END in tokens else len(tokens)
    return "".join(map(str, tokens[:end]))


def found(options, number, one):
    import torch

    one.table = torch.tensor(table(number))
    start = [BEGIN]
    out = one.generate(torch.tensor([start]), do_sample=False, use_cache=False, pad_token_id=PAD,
                       bos_token_id=BEGIN, eos_token_id=END, return_dict_in_generate=True, output_scores=True,
                       attention_mask=torch.ones(1, len(start), dtype=torch.long), **options)
    scores = out.sequences_scores.tolist() if options["num_beams"] > 1 else [None]
    rows = out.sequences[:, len(start) - 1 :]
    return [written(row) + (f" {score:.7g}" if score is not None else "") for row, score in zip(rows, scores)]


def beam_cases():
    yield {"num_beams": 1, "max_new_tokens": 8}
    for beams, length in itertools.product((2, 4), (-1.0, 0.0, 0.6, 1.0, 2.0)):
        yield {"num_beams": beams, "num_return_sequences": beams, "length_penalty": length,
               "early_stopping": False, "max_new_tokens": 8}
    rules = [{"no_repeat_ngram_size": 2}, {"no_repeat_ngram_size": 1}, {"min_new_tokens": 3},
             {"repetition_penalty": 1.4}, {"repetition_penalty": 0.7}, {"bad_words_ids": [[5], [2]]},
             {"no_repeat_ngram_size": 2, "min_new_tokens": 2, "repetition_penalty": 1.2, "bad_words_ids": [[6]]}]
    for rule, beams in itertools.product(rules, (1, 2, 3)):
        if rule.get("no_repeat_ngram_size") == 1 and beams > 1:
            continue  # the beams run out of tokens, and transformers goes on with beams of -1e9
        more = {"num_return_sequences": 2, "early_stopping": False} if beams > 1 else {}
        yield {"num_beams": beams, "max_new_tokens": 8, **more, **rule}


def main(kind):
    if kind == "bert4keras":
        from bert4keras import cases
        result = {"cases": list(cases(TABLES))}
    else:
        import transformers
        one, result = model(), {"transformers": transformers.__version__, "cases": []}
        result["first_logits"] = [float(x) for x in table(0).flatten()[:3]]
        for options in beam_cases():
            answers = [found(options, number, one) for number in range(TABLES)]
            result["cases"].append({"options": options, "found": answers})
            print(options, file=sys.stderr)
    lines = ",\n".join(json.dumps(case) for case in result.pop("cases"))
    head = json.dumps(result)[:-1] + (", " if result else "")
    (FOLDER / f"{kind}.json").write_text(head + f'"cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ("beams", "bert4keras"):
        sys.exit(__doc__)
    main(sys.argv[1])
