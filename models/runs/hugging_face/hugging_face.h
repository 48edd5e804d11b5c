// SPDX-License-Identifier: MIT
// Reads and writes Hugging Face checkpoints of BERT, RoFormer and NomicBERT: folders with config.json,
// model.safetensors and vocab.txt. A checkpoint of a model that a Backbone cannot compute is never accepted: BadInput
// is thrown, which names the file, the key or tensor, what was found, what was expected and what to do.
#pragma once
#include <string>
#include <vector>

#include "engine/io/safetensors.h"
#include "models/nets/backbone.h"
#include "models/runs/hugging_face/token_choice.h"

namespace masquerade {

struct HuggingFaceConfig {
    std::string type;  // model_type, a type of hugging_face_families()
    BackboneOptions backbone;
    bool tied = true;  // tie_word_embeddings
    int pad = 0;       // pad_token_id
};

// Reads config.json. Keys that old files lack get the values that such files imply: layer_norm_eps 1e-12,
// pad_token_id 0, and so on. Sizes are required.
HuggingFaceConfig read_hugging_face_config(const std::string& folder);

struct HuggingFaceTensor {
    std::string name;
    Element element;
    Shape shape;
    std::string unreadable;  // dtype and shape, if no parameter can have them
    std::string place;       // path of the parameter that was read from the tensor, and which rows; empty: none
};

struct HuggingFaceWeights {
    std::vector<HuggingFaceTensor> tensors;  // all tensors of the folder, file by file
    std::vector<std::string> unused;         // names of tensors without a place: pooler, classifiers, other buffers
    // Whether the folder has a head. If not (a BertModel), the parameters of the head keep their initial values.
    bool head = true;
};

// Reads model.safetensors, or the shards of model.safetensors.index.json, into parameters on any device. If the
// parameters have no memory yet, allocates it, with `seed` for their initial values.
//   types    F16, BF16, F32 or F64
//   names    with "bert.", "roformer.", "nomic_bert." or no prefix; norms as weight and bias or as gamma and beta;
//            NomicBERT also as in nomic-ai's own code
// `backbone` must have the options of the folder's config, with V = choice.size(vocab_size). Only its dropouts may
// differ, and its positions if it is rotary, and it may have fewer layers.
HuggingFaceWeights load_hugging_face(const std::string& folder, const Backbone& backbone, Parameters& parameters,
                                     const TokenChoice& choice = {}, std::uint64_t seed = 1);

// Writes config.json, model.safetensors and vocab.txt, for BertForMaskedLM, RoFormerForMaskedLM or
// NomicBertForMaskedLM. Creates the folder if it does not exist. Parameters outside the stack, such as the latents of a
// UniVAE, are saved under their own names. Throws BadUsage if none of the three models supports the stack; the message
// names the setting and the value that is expected.
void save_hugging_face(const std::string& folder, const Backbone& backbone, const Parameters& parameters,
                       const Vocabulary& vocabulary);
// As above, but also writes what transformers needs to read text as the tokenizer does: tokenizer.json and
// tokenizer_config.json.
void save_hugging_face(const std::string& folder, const Backbone& backbone, const Parameters& parameters,
                       const WordPiece& tokenizer);

}  // namespace masquerade
