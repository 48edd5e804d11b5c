// SPDX-License-Identifier: MIT
#include "models/runs/hugging_face/names.h"

namespace masquerade {
namespace {

class Names {
  public:
    void add(const std::string& name, const std::string& path) { all.push_back({name, path}); }
    // weight and bias of a matrix or a norm
    void add_pair(const std::string& name, const std::string& path, int part = 0, int parts = 1) {
        for (const char* end : {".weight", ".bias"}) all.push_back({name + end, path + end, part, parts});
    }
    std::vector<HuggingFaceName> all;
};

}  // namespace

std::string HuggingFaceName::place() const {
    return parts == 1 ? path : path + (part == 0 ? ", keys" : ", values");
}

View HuggingFaceName::rows(const View& whole) const {
    View some = whole;
    some.shape.size[0] /= parts;
    if (whole.data) some.data = static_cast<char*>(whole.data) + std::size_t(part) * some.bytes();
    return some;
}

std::vector<HuggingFaceName> hugging_face_names(const BackboneOptions& o) {
    Names n;
    n.add(word_embeddings, "embedding.token.weight");
    if (!o.rotary) n.add("embeddings.position_embeddings.weight", "embedding.position.weight");
    n.add("embeddings.token_type_embeddings.weight", "embedding.type.weight");
    n.add_pair("embeddings.LayerNorm", "embedding.norm");
    if (o.embedding_width() != o.width) n.add_pair("embeddings_project", "embedding.project");
    for (int i = 0; i < o.layers; i++) {
        const std::string theirs = text("encoder.layer.", i, "."), ours = text("layer.", i, ".");
        n.add_pair(theirs + "attention.self.query", ours + "attention.query");
        n.add_pair(theirs + "attention.self.key", ours + "attention.key_value", 0, 2);
        n.add_pair(theirs + "attention.self.value", ours + "attention.key_value", 1, 2);
        n.add_pair(theirs + "attention.output.dense", ours + "attention.output");
        n.add_pair(theirs + "attention.output.LayerNorm", ours + "norm1");
        n.add_pair(theirs + "intermediate.dense", ours + "ffn.up");
        n.add_pair(theirs + "output.dense", ours + "ffn.down");
        n.add_pair(theirs + "output.LayerNorm", ours + "norm2");
    }
    n.add_pair("cls.predictions.transform.dense", "head.dense");
    n.add_pair("cls.predictions.transform.LayerNorm", "head.norm");
    n.add(head_bias, "head.bias");
    return n.all;
}

std::string old_norm_name(const std::string& name) {
    for (const auto& [now, old] :
         {std::pair{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}})
        if (const std::size_t at = name.rfind(now); at != name.npos) return name.substr(0, at) + old;
    return name;
}

const char* hugging_face_type(const BackboneOptions& options) { return options.rotary ? "roformer" : "bert"; }

}  // namespace masquerade
