// SPDX-License-Identifier: MIT
// Finds, for each parameter of a new model, its counterpart in the weights of another model: the parameter with the
// same meaning. The kinds of attention of the two models may differ.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "models/runs/hugging_face/names.h"
#include "models/runs/run.h"

namespace masquerade {

// A whole parameter, or one half of a parameter key_value of attention: the rows that project to keys, or the rows that
// project to values. Two parts with an equal `key` are counterparts.
struct ParameterPart {
    // The path of the parameter. In attention, the role of the parameter, such as "query", replaces its name, because
    // kinds of attention may give the same role different names (AttentionKind::role).
    std::string key;
    std::string name;  // name of the part in messages, such as "attention.query"
    RowPart rows = {};
};
// Returns the parts of a parameter. `path` is its path, and `rows` its number of rows. `kind` is the kind of attention
// to which the parameter belongs (attention_of), or null. `key_width` is the number of rows of a projection to keys.
std::vector<ParameterPart> parts_of(const std::string& path, std::int64_t rows, const AttentionKind* kind,
                                    int key_width);

// Returns the names of parts with commas between them. If both halves of a parameter are among the names, the name of
// the parameter takes their place.
std::string joined_parts(std::set<std::string> names);

// Returns the kind of attention to which a parameter belongs; null if it belongs to none.
const AttentionKind* attention_of(const std::string& path, const Stacks& stacks);

// Replaces ".attention." in a path by ".target_attention.", or the reverse. If the target of a document has another
// kind of attention than the source, a layer has both: ".attention." for the source, ".target_attention." for the
// target.
std::string of_other_part(std::string path);

// Returns the index, within its stack, of the layer to which a parameter belongs; -1 if it belongs to no layer.
int layer_of(const std::string& path);

}  // namespace masquerade
