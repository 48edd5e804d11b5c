// SPDX-License-Identifier: MIT
// Reads and writes Hugging Face checkpoints of BERT, RoFormer and NomicBERT: folders with config.json,
// model.safetensors and vocab.txt. A checkpoint whose model a Backbone cannot compute is refused: BadInput is thrown
// with a message that names the file, the key or tensor, what was found, what was expected and what to do.
#pragma once
#include <string>
#include <vector>

#include "engine/io/safetensors.h"
#include "models/nets/backbone.h"
#include "models/runs/hugging_face/token_choice.h"

namespace masquerade {

struct HuggingFaceConfig {
    std::string type;  // model_type, one of HuggingFaceFamily::type
    BackboneOptions backbone;
    bool tied = true;  // tie_word_embeddings: whether the output matrix is the word embedding
    int pad = 0;       // pad_token_id: id of [PAD]
};

// Reads config.json. Old files may lack keys. For a missing key, a default is used: layer_norm_eps 1e-12, pad_token_id
// 0, and so on. The keys model_type, vocab_size, hidden_size, intermediate_size and the numbers of layers and heads are
// required; a file with the keys of nomic-ai's own code (n_embd, n_layer ...) must have most of these keys.
HuggingFaceConfig read_hugging_face_config(const std::string& folder);

struct HuggingFaceTensor {
    std::string name;
    Element element;
    Shape shape;
    std::string unreadable;  // dtype and shape as text, if no parameter can have them; else empty
    std::string place;       // as text: the parameters, or parts of their rows, that were read from the tensor
};

struct HuggingFaceWeights {
    std::vector<HuggingFaceTensor> tensors;  // all tensors of the folder, file by file
    Strings unused;                          // names of tensors from which nothing was read, such as the pooler
    // Whether the folder has the head of a masked language model. If it has none (a BertModel), the parameters of the
    // head keep their initial values.
    bool head = true;
};

// Reads model.safetensors, or the shards that model.safetensors.index.json names, into parameters on any device. If the
// parameters have no memory yet, allocates it and draws their initial values with `seed`. The files may have:
//   types    F16, BF16, F32 or F64
//   names    with the prefix "bert.", "roformer.", "nomic_bert." or without a prefix; norms with .weight and .bias or
//            with .gamma and .beta; for NomicBERT, also the names of nomic-ai's own code
// `backbone` must have the options in the folder's config.json, and choice.size(vocab_size) tokens. However, it may
// have fewer layers, other dropouts, another deviation of the initial weights and, if it is rotary, another number of
// positions.
HuggingFaceWeights load_hugging_face(const std::string& folder, const Backbone& backbone, Parameters& parameters,
                                     const TokenChoice& choice = {}, std::uint64_t seed = 1);

// Writes config.json, model.safetensors and vocab.txt for transformers' class BertForMaskedLM, RoFormerForMaskedLM or
// NomicBertForMaskedLM. Creates the folder if it does not exist. Parameters outside the stack, such as those of the
// latents of a UniVAE, are saved under the names that they have in Masquerade. Throws BadUsage if none of the three
// classes supports the stack; the message names the setting and the value that is expected.
void save_hugging_face(const std::string& folder, const Backbone& backbone, const Parameters& parameters,
                       const Vocabulary& vocabulary);
// Like the function above, but also writes tokenizer.json and tokenizer_config.json, so that transformers splits text
// into tokens as `tokenizer` does.
void save_hugging_face(const std::string& folder, const Backbone& backbone, const Parameters& parameters,
                       const WordPiece& tokenizer);

}  // namespace masquerade
