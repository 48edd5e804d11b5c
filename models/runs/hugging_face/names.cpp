// SPDX-License-Identifier: MIT
#include "models/runs/hugging_face/names.h"

#include <cstring>

namespace masquerade {
namespace {

using K = TensorKind;
const RowPart whole, keys{0, 2, "keys"}, values{1, 2, "values"}, gate{0, 2, "gate"}, gated{1, 2, "gated"};
const RowPart first{0, 3}, second{1, 3}, third{2, 3};

const std::vector<TensorNames> bert_embedding = {{K::table, "embeddings.word_embeddings", "embedding.token"},
                                                 {K::table, "embeddings.position_embeddings", "embedding.position"},
                                                 {K::table, "embeddings.token_type_embeddings", "embedding.type"},
                                                 {K::norm, "embeddings.LayerNorm", "embedding.norm"},
                                                 {K::linear, "embeddings_project", "embedding.project"}};
const std::vector<TensorNames> bert_layer = {{K::linear, "attention.self.query", "attention.query"},
                                             {K::linear, "attention.self.key", "attention.key_value", keys},
                                             {K::linear, "attention.self.value", "attention.key_value", values},
                                             {K::linear, "attention.output.dense", "attention.output"},
                                             {K::norm, "attention.output.LayerNorm", "norm1"},
                                             {K::linear, "intermediate.dense", "ffn.up"},
                                             {K::linear, "output.dense", "ffn.down"},
                                             {K::norm, "output.LayerNorm", "norm2"}};
const std::vector<TensorNames> bert_head = {{K::linear, "cls.predictions.transform.dense", "head.dense"},
                                            {K::norm, "cls.predictions.transform.LayerNorm", "head.norm"}};

// The fifth entry of a row, if it has one, is old_name: the name in nomic-ai's own code, where fc12 is the gate.
// transformers also saves files with these old names.
const std::vector<TensorNames> nomic_embedding = {{K::table, "embeddings.word_embeddings", "embedding.token"},
                                                  {K::table, "embeddings.token_type_embeddings", "embedding.type"},
                                                  {K::norm, "embeddings.LayerNorm", "embedding.norm", whole, "emb_ln"}};
const std::vector<TensorNames> nomic_layer = {
    {K::linear, "self_attn.q_proj", "attention.query", whole, "attn.Wqkv", first, true},
    {K::linear, "self_attn.k_proj", "attention.key_value", keys, "attn.Wqkv", second, true},
    {K::linear, "self_attn.v_proj", "attention.key_value", values, "attn.Wqkv", third},
    {K::linear, "self_attn.o_proj", "attention.output", whole, "attn.out_proj"},
    {K::norm, "post_attention_layernorm", "norm1", whole, "norm1"},
    {K::linear, "mlp.gate_proj", "ffn.up", gate, "mlp.fc12"},
    {K::linear, "mlp.up_proj", "ffn.up", gated, "mlp.fc11"},
    {K::linear, "mlp.down_proj", "ffn.down", whole, "mlp.fc2"},
    {K::norm, "post_mlp_layernorm", "norm2", whole, "norm2"}};
const std::vector<TensorNames> nomic_head = {{K::linear, "cls.predictions.transform.dense", "head.dense"},
                                             {K::norm, "cls.predictions.transform.layer_norm", "head.norm"}};

const FamilyTensors bert{bert_embedding, bert_layer, bert_head, "encoder.layer."},
    nomic{nomic_embedding, nomic_layer, nomic_head, "layers.", "encoder.layers."};

// Files that were converted from Google's checkpoints call the tensors of a layer norm gamma and beta instead of weight
// and bias. Returns this other name, or "" if `name` does not contain LayerNorm.weight or LayerNorm.bias.
std::string google_norm_name(const std::string& name) {
    for (const auto& [now, old] :
         {std::pair{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}})
        if (const std::size_t at = name.rfind(now); at != name.npos) return name.substr(0, at) + old;
    return "";
}

}  // namespace

View RowPart::of(const View& whole) const {
    View some = whole;
    some.shape.size[0] /= parts;
    if (whole.data) some.data = static_cast<char*>(whole.data) + std::size_t(part) * some.bytes();
    return some;
}

std::string HuggingFaceName::place() const { return *rows.what ? path + ", " + rows.what : path; }

const std::vector<HuggingFaceFamily>& hugging_face_families() {
    static const std::vector<HuggingFaceFamily> all = {
        {"bert", "BERT", "BertForMaskedLM", false, false, false, 512, 0.1, 10000, bert},
        {"roformer", "RoFormer", "RoFormerForMaskedLM", true, false, true, 1536, 0.1, 10000, bert},
        {"nomic_bert", "NomicBERT", "NomicBertForMaskedLM", true, true, false, 2048, 0, 1000, nomic}};
    return all;
}

std::vector<HuggingFaceName> hugging_face_names(const BackboneOptions& o) {
    std::vector<HuggingFaceName> names;
    const HuggingFaceFamily* family = family_of(o);
    if (!family) return names;
    const FamilyTensors& tensors = family->tensors;
    const auto add = [&](const TensorNames& t, int layer = -1) {  // -1: the tensor is outside the layers
        for (const char* end : {".weight", ".bias"}) {
            const bool bias = end[1] == 'b', of_head = &t == &tensors.head[0];
            if (bias && (t.kind == K::table || (t.kind == K::linear && !o.bias && !of_head))) continue;
            const auto full = [&](const char* before, const char* name) {
                return layer < 0 ? text(name, end) : text(before, layer, ".", name, end);
            };
            const std::string name = full(tensors.layers, t.name);
            names.push_back({name, full("layer.", t.path), t.rows,
                             *t.old_name ? full(tensors.old_layers, t.old_name) : google_norm_name(name), t.old_rows,
                             t.half_split, bias && t.kind == K::linear && !o.bias ? o.embedding_width() : 0});
        }
    };
    for (const TensorNames& t : tensors.embedding) {
        const std::string path = t.path;
        if ((path != "embedding.position" || !o.rotary) &&
            (path != "embedding.project" || o.embedding_width() != o.width))
            add(t);
    }
    for (int i = 0; i < o.layers; i++)
        for (const TensorNames& t : tensors.layer) add(t, i);
    for (const TensorNames& t : tensors.head) add(t);
    names.push_back({head_bias, "head.bias", {}, tied_bias, {}, false, o.bias ? 0 : o.vocabulary});
    return names;
}

void reorder_heads(const View& from, void* to, int head_size, bool to_half_split) {
    const std::size_t bytes = from.bytes() / from.rows();
    for (std::int64_t row = 0; row < from.rows(); row++) {
        const std::int64_t i = row % head_size;
        const std::int64_t there = row - i + i / 2 + (i % 2) * (head_size / 2);  // the row in the half-split order
        const auto [source, target] = to_half_split ? std::pair(row, there) : std::pair(there, row);
        std::memcpy(static_cast<char*>(to) + target * bytes, static_cast<const char*>(from.data) + source * bytes,
                    bytes);
    }
}

}  // namespace masquerade
