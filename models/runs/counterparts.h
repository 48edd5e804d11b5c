// SPDX-License-Identifier: MIT
// Finds the counterparts of the parameters of a new model in the weights of another model, whose kind of attention may
// differ.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "models/runs/hugging_face/names.h"
#include "models/runs/run.h"

namespace masquerade {

// A parameter, or a half of one: the keys or the values of a parameter key_value. Parts with equal keys are
// counterparts.
struct ParameterPart {
    std::string key;   // outside attention the path; else the path with the role of the part (AttentionKind::role)
    std::string name;  // what messages call the part, such as "attention.query"
    RowPart rows = {};
};
// Returns the parts of a parameter. `path` is its path, and `rows` its number of rows. `kind` is the kind of attention
// that it belongs to (attention_of), or null. `key_width` is the number of rows of a projection of keys.
std::vector<ParameterPart> parts_of(const std::string& path, std::int64_t rows, const AttentionKind* kind,
                                    int key_width);

// Returns these names of parts with commas between. The keys and the values of one parameter become the parameter.
std::string joined_parts(std::set<std::string> names);

// Returns the kind of attention that a parameter belongs to, or null.
const AttentionKind* attention_of(const std::string& path, const Stacks& stacks);

// Returns the path of the parameter with the same meaning in a layer whose rows of A and B have different kinds of
// attention or, from such a layer, in a layer with one kind.
std::string of_other_part(std::string path);

// The index of the layer of a parameter in its stack; -1 if the parameter does not belong to a layer.
int layer_of(const std::string& path);

}  // namespace masquerade
