// SPDX-License-Identifier: MIT
// BERT, RoFormer and NomicBERT as Hugging Face keeps them: a folder with config.json, model.safetensors and vocab.txt,
// into the parameters of a Backbone and back. What the folder describes and a Backbone is not is refused,
// never passed over: BadInput names the file, the key or tensor, what was found, what is expected and what to
// do.
#pragma once
#include <string>
#include <vector>

#include "engine/io/safetensors.h"
#include "models/nets/backbone.h"
#include "models/runs/hugging_face/token_choice.h"

namespace masquerade {

struct HuggingFaceConfig {
    std::string type;  // model_type, of hugging_face_families()
    BackboneOptions backbone;
    bool tied = true;  // tie_word_embeddings
    int pad = 0;       // pad_token_id
};

// config.json. Keys that old files lack have the values that they stood for: layer_norm_eps 1e-12,
// pad_token_id 0, and so on; sizes must be there.
HuggingFaceConfig read_hugging_face_config(const std::string& folder);

struct HuggingFaceTensor {
    std::string name;
    Element element;
    Shape shape;
    std::string unreadable;  // its dtype and shape, if no parameter could hold them
    std::string place;       // of the parameter, with keys or values; empty: nowhere
};

struct HuggingFaceWeights {
    std::vector<HuggingFaceTensor> tensors;  // all of the folder, file by file
    std::vector<std::string> unused;         // those of them that have no place: pooler, classifiers, other buffers
    // false: the folder has none (a BertModel), and the parameters of `head` keep their first values
    bool head = true;
};

// Reads model.safetensors, or the shards of model.safetensors.index.json, into parameters on any device, which are
// allocated with `seed` where they are not: F16, BF16, F32 or F64; names with "bert.", "roformer.", "nomic_bert." or no
// prefix, norms as weight and bias or gamma and beta, NomicBERT also by the names of nomic-ai's own code. The model is
// made from the folder's config with V = choice.size(vocab_size); it may have other dropouts, other positions if it is
// rotary, and fewer layers.
HuggingFaceWeights load_hugging_face(const std::string& folder, const Backbone& backbone, Parameters& parameters,
                                     const TokenChoice& choice = {}, std::uint64_t seed = 1);

// Writes config.json, model.safetensors and vocab.txt, for BertForMaskedLM, RoFormerForMaskedLM or
// NomicBertForMaskedLM; the folder is made where there is none. Parameters beside the stack, as the latents of a
// UniVAE, have their own names there. BadUsage for a stack that none of them is: the message names the setting and the
// value that it has there.
void save_hugging_face(const std::string& folder, const Backbone& backbone, const Parameters& parameters,
                       const Vocabulary& vocabulary);
// As above, with all that transformers needs to read text as the tokenizer does: tokenizer.json, tokenizer_config.json.
void save_hugging_face(const std::string& folder, const Backbone& backbone, const Parameters& parameters,
                       const WordPiece& tokenizer);

}  // namespace masquerade
