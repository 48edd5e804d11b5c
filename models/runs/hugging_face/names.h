// SPDX-License-Identifier: MIT
// The families of Hugging Face models, and the names in their folders: of files, of sizes in config.json, of tensors.
// Only for the files of this folder.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "models/nets/backbone.h"

namespace masquerade {

// One of several equal parts of the rows of a tensor.
struct RowPart {
    int part = 0, parts = 1;
    const char* what = "";  // name of the part: "keys"
    View of(const View& whole) const;
};

struct HuggingFaceName {
    std::string name;           // without the family's prefix; names that begin with "cls." never have a prefix
    std::string path;           // path of the parameter
    RowPart rows = {};          // rows of the parameter: key_value has the keys, then the values
    std::string old_name = {};  // another name of the tensor in the files; empty: none
    RowPart old_rows = {};      // rows of the tensor with the old name
    bool half_split = false;    // whether files have the coordinates of a head in another order: reorder_heads()
    int zeros = 0;              // size of a bias that folder or stack may lack, because it is zero; 0: both have it

    bool of_head() const { return name.compare(0, 4, "cls.") == 0; }
    // Returns the path and, if `rows` is only a part, its name: "layer.0.attention.key_value.weight, keys".
    std::string place() const;
};

// A table has a weight, a linear layer a weight and perhaps a bias, a norm a weight and a bias.
enum class TensorKind { table, linear, norm };

// The names of a table, linear layer or norm, without ".weight" and ".bias". '#' stands for the number of a layer.
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
};

// A family of models, and what distinguishes its stacks.
struct HuggingFaceFamily {
    // type: model_type, and with a dot the prefix of tensor names; architecture: the entry of `architectures`
    const char *type, *title, *architecture;
    bool rotary;
    bool gated;      // feed-forward parts are gated; linear layers have no biases, except in the head
    bool own_width;  // the embedding may have its own width, and rotary positions may rotate values
    int positions;   // default of max_position_embeddings
    double dropout;  // default of both dropouts
    double base;     // default of rope_theta; if not gated, the only rotary base that is possible
    const FamilyTensors& tensors;
};
const std::vector<HuggingFaceFamily>& hugging_face_families();
// Returns the family that has the positions and feed-forward parts of a stack, or null. Other options of the stack may
// not be supported by the family.
const HuggingFaceFamily* family_of(const BackboneOptions& options);

// Returns the path of a file of the folder. If the file does not exist, throws BadInput, which says what such a folder
// contains.
std::string file_of(const std::string& folder, const std::string& name);

// Returns the sizes of a stack and its activation, under Hugging Face's keys.
nlohmann::json hugging_face_sizes(const BackboneOptions& options);

// Returns the text of config.json. Throws BadUsage if no family supports the stack.
std::string hugging_face_config(const BackboneOptions& options, DType dtype, int pad);

// Returns the names of all tensors of a stack, in the order of the files, except for the final norm of a pre-norm
// stack, which Hugging Face's models do not have.
std::vector<HuggingFaceName> hugging_face_names(const BackboneOptions& options);

// Rotary positions rotate the coordinates of a head in pairs: 2i and 2i+1 here, i and i + D/2 in half-split files.
// Copies the rows of query or key weights from one order to the other.
void reorder_heads(const View& from, void* to, int head_size, bool to_half_split);

const std::string word_embeddings = "embeddings.word_embeddings.weight";
// The output matrix, which equals the word embeddings, and the two names of its bias.
const std::string tied_matrix = "cls.predictions.decoder.weight", tied_bias = "cls.predictions.decoder.bias",
                  head_bias = "cls.predictions.bias";

}  // namespace masquerade
