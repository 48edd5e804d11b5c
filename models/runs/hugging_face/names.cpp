// SPDX-License-Identifier: MIT
#include "models/runs/hugging_face/names.h"

namespace masquerade {

std::string HuggingFaceName::place() const { return parts == 1 ? path : path + (part == 0 ? ", keys" : ", values"); }

View HuggingFaceName::rows(const View& whole) const {
    View some = whole;
    some.shape.size[0] /= parts;
    if (whole.data) some.data = static_cast<char*>(whole.data) + std::size_t(part) * some.bytes();
    return some;
}

std::vector<HuggingFaceName> hugging_face_names(const BackboneOptions& o) {
    std::vector<HuggingFaceName> names;
    const auto add = [&](const std::string& name, const std::string& path) { names.push_back({name, path}); };
    // weight and bias of a matrix or a norm
    const auto add_pair = [&](const std::string& name, const std::string& path, int part = 0, int parts = 1) {
        for (const char* end : {".weight", ".bias"}) names.push_back({name + end, path + end, part, parts});
    };
    add(word_embeddings, "embedding.token.weight");
    if (!o.rotary) add("embeddings.position_embeddings.weight", "embedding.position.weight");
    add("embeddings.token_type_embeddings.weight", "embedding.type.weight");
    add_pair("embeddings.LayerNorm", "embedding.norm");
    if (o.embedding_width() != o.width) add_pair("embeddings_project", "embedding.project");
    for (int i = 0; i < o.layers; i++) {
        const std::string theirs = text("encoder.layer.", i, "."), ours = text("layer.", i, ".");
        add_pair(theirs + "attention.self.query", ours + "attention.query");
        add_pair(theirs + "attention.self.key", ours + "attention.key_value", 0, 2);
        add_pair(theirs + "attention.self.value", ours + "attention.key_value", 1, 2);
        add_pair(theirs + "attention.output.dense", ours + "attention.output");
        add_pair(theirs + "attention.output.LayerNorm", ours + "norm1");
        add_pair(theirs + "intermediate.dense", ours + "ffn.up");
        add_pair(theirs + "output.dense", ours + "ffn.down");
        add_pair(theirs + "output.LayerNorm", ours + "norm2");
    }
    add_pair("cls.predictions.transform.dense", "head.dense");
    add_pair("cls.predictions.transform.LayerNorm", "head.norm");
    add(head_bias, "head.bias");
    return names;
}

std::string old_norm_name(const std::string& name) {
    for (const auto& [now, old] :
         {std::pair{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}})
        if (const std::size_t at = name.rfind(now); at != name.npos) return name.substr(0, at) + old;
    return name;
}

const char* hugging_face_type(const BackboneOptions& options) { return options.rotary ? "roformer" : "bert"; }

}  // namespace masquerade
