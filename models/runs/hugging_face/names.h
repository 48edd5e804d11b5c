// SPDX-License-Identifier: MIT
// The families of Hugging Face models, and the names that their checkpoints use for files, for sizes in config.json and
// for tensors. Code outside models/runs/hugging_face uses only hugging_face_sizes() and RowPart from this header.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "models/nets/backbone.h"

namespace masquerade {

// A range of the rows of a tensor. The rows are divided into `parts` ranges of equal size, with the indices 0 to
// `parts` - 1; this is the range with the index `part`.
struct RowPart {
    int part = 0, parts = 1;
    const char* what = "";  // name of the part in messages, for example "keys"; may be empty
    View of(const View& whole) const;
};

// A tensor in the files of a checkpoint, and the rows of our parameter that hold the same values.
struct HuggingFaceName {
    std::string name;           // without the family's prefix; names that begin with "cls." never have a prefix
    std::string path;           // path of the parameter
    RowPart rows = {};          // which rows of the parameter; key_value, for example, has the keys, then the values
    std::string old_name = {};  // another name under which some files have the tensor; empty: none
    RowPart old_rows = {};      // which rows of the tensor `old_name` hold the values of the parameter
    bool half_split = false;    // whether files have the rows of a head in the half-split order of reorder_heads()
    int zeros = 0;              // if > 0: length of a bias that files or the stack may lack; a missing bias is 0

    bool of_head() const { return name.compare(0, 4, "cls.") == 0; }
    // Returns the path, followed by the name of the rows if they have one: "layer.0.attention.key_value.weight, keys".
    std::string place() const;
};

// table: has only a weight. linear: has a weight, and may have a bias. norm: has a weight and a bias.
enum class TensorKind { table, linear, norm };

// The names of a table, linear layer or norm, without ".weight" and ".bias" and, in a layer, without the beginning that
// FamilyTensors has. Each member has the meaning of the member of HuggingFaceName with the same name.
struct TensorNames {
    TensorKind kind;
    const char *name, *path;
    RowPart rows = {};
    const char* old_name = "";
    RowPart old_rows = {};
    bool half_split = false;
};

struct FamilyTensors {
    const std::vector<TensorNames>&embedding, &layer, &head;
    // The beginning of the names of a layer's tensors, before the number of the layer. old_layers: of their old names.
    const char *layers, *old_layers = "";
};

// A family of Hugging Face models, and the options by which its stacks differ from the stacks of other families.
struct HuggingFaceFamily {
    // type: model_type in config.json; the names of tensors outside the head begin with the type and a dot. title: the
    // name in messages. architecture: the entry of `architectures` in config.json.
    const char *type, *title, *architecture;
    bool rotary;
    bool gated;      // feed-forward parts have a gate, and linear layers outside the head have no biases
    bool own_width;  // the embedding may have another width than the layers, and rotary positions may rotate values
    int positions;   // default of max_position_embeddings
    double dropout;  // default dropout of hidden states and of attention probabilities
    double base;     // default of rope_theta, the base of rotary angles; only `gated` families support another base
    const FamilyTensors& tensors;
};
const std::vector<HuggingFaceFamily>& hugging_face_families();
// Returns the family that agrees with a stack in the positions (rotary or not) and in the feed-forward parts, or null
// if there is none. The family may not support the other options of the stack.
const HuggingFaceFamily* family_of(const BackboneOptions& options);

// Returns the path of the file `name` in a checkpoint's folder. If the file does not exist, throws BadInput with a
// message that says which files such a folder contains.
std::string file_of(const std::string& folder, const std::string& name);

// Returns the sizes and the activation of a stack, under the keys of Hugging Face's config.json.
nlohmann::json hugging_face_sizes(const BackboneOptions& options);

// Returns the contents of config.json. `pad` is pad_token_id. Throws BadUsage if no family supports the stack.
std::string hugging_face_config(const BackboneOptions& options, DType dtype, int pad);

// Returns the names of all tensors of a stack, in the order in which they are saved; none if family_of() is null. The
// final norm of a pre-norm stack is left out, because Hugging Face's models do not have it.
std::vector<HuggingFaceName> hugging_face_names(const BackboneOptions& options);

// Rotary positions rotate the D coordinates of a head in pairs: in Masquerade, coordinate 2i with 2i+1; in the
// half-split order of NomicBERT's files, i with i + D/2. This function copies `from`, the rows of the weights of
// queries or keys, to `to` in another order: if to_half_split is true, from Masquerade's order to the half-split order;
// otherwise from the half-split order to Masquerade's. head_size is D.
void reorder_heads(const View& from, void* to, int head_size, bool to_half_split);

const std::string word_embeddings = "embeddings.word_embeddings.weight";
// The names of the output matrix, whose numbers equal the word embeddings, and the two names of the output bias.
const std::string tied_matrix = "cls.predictions.decoder.weight", tied_bias = "cls.predictions.decoder.bias",
                  head_bias = "cls.predictions.bias";

}  // namespace masquerade
