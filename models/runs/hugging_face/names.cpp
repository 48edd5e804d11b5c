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
const std::vector<TensorNames> bert_layer = {
    {K::linear, "encoder.layer.#.attention.self.query", "layer.#.attention.query"},
    {K::linear, "encoder.layer.#.attention.self.key", "layer.#.attention.key_value", keys},
    {K::linear, "encoder.layer.#.attention.self.value", "layer.#.attention.key_value", values},
    {K::linear, "encoder.layer.#.attention.output.dense", "layer.#.attention.output"},
    {K::norm, "encoder.layer.#.attention.output.LayerNorm", "layer.#.norm1"},
    {K::linear, "encoder.layer.#.intermediate.dense", "layer.#.ffn.up"},
    {K::linear, "encoder.layer.#.output.dense", "layer.#.ffn.down"},
    {K::norm, "encoder.layer.#.output.LayerNorm", "layer.#.norm2"}};
const std::vector<TensorNames> bert_head = {{K::linear, "cls.predictions.transform.dense", "head.dense"},
                                            {K::norm, "cls.predictions.transform.LayerNorm", "head.norm"}};

// The fifth entry of a row, if it has one, is old_name: the name in nomic-ai's own code, where fc12 is the gate.
// transformers also saves files with these old names.
const std::vector<TensorNames> nomic_embedding = {{K::table, "embeddings.word_embeddings", "embedding.token"},
                                                  {K::table, "embeddings.token_type_embeddings", "embedding.type"},
                                                  {K::norm, "embeddings.LayerNorm", "embedding.norm", whole, "emb_ln"}};
const std::vector<TensorNames> nomic_layer = {
    {K::linear, "layers.#.self_attn.q_proj", "layer.#.attention.query", whole, "encoder.layers.#.attn.Wqkv", first,
     true},
    {K::linear, "layers.#.self_attn.k_proj", "layer.#.attention.key_value", keys, "encoder.layers.#.attn.Wqkv", second,
     true},
    {K::linear, "layers.#.self_attn.v_proj", "layer.#.attention.key_value", values, "encoder.layers.#.attn.Wqkv",
     third},
    {K::linear, "layers.#.self_attn.o_proj", "layer.#.attention.output", whole, "encoder.layers.#.attn.out_proj"},
    {K::norm, "layers.#.post_attention_layernorm", "layer.#.norm1", whole, "encoder.layers.#.norm1"},
    {K::linear, "layers.#.mlp.gate_proj", "layer.#.ffn.up", gate, "encoder.layers.#.mlp.fc12"},
    {K::linear, "layers.#.mlp.up_proj", "layer.#.ffn.up", gated, "encoder.layers.#.mlp.fc11"},
    {K::linear, "layers.#.mlp.down_proj", "layer.#.ffn.down", whole, "encoder.layers.#.mlp.fc2"},
    {K::norm, "layers.#.post_mlp_layernorm", "layer.#.norm2", whole, "encoder.layers.#.norm2"}};
const std::vector<TensorNames> nomic_head = {{K::linear, "cls.predictions.transform.dense", "head.dense"},
                                             {K::norm, "cls.predictions.transform.layer_norm", "head.norm"}};

const FamilyTensors bert{bert_embedding, bert_layer, bert_head}, nomic{nomic_embedding, nomic_layer, nomic_head};

// Files that were converted from Google's checkpoints call the tensors of a layer norm gamma and beta instead of weight
// and bias. Returns this other name, or "" if `name` does not contain LayerNorm.weight or LayerNorm.bias.
std::string google_norm_name(const std::string& name) {
    for (const auto& [now, old] :
         {std::pair{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}})
        if (const std::size_t at = name.rfind(now); at != name.npos) return name.substr(0, at) + old;
    return "";
}

std::string numbered(std::string name, int layer) {
    if (const std::size_t at = name.find('#'); at != name.npos) name.replace(at, 1, std::to_string(layer));
    return name;
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
    const auto add = [&](const TensorNames& t, int layer) {
        for (const char* end : {".weight", ".bias"}) {
            const bool bias = end[1] == 'b', of_head = &t == &family->tensors.head[0];
            if (bias && (t.kind == K::table || (t.kind == K::linear && !o.bias && !of_head))) continue;
            const std::string name = numbered(t.name, layer) + end;
            names.push_back({name, numbered(t.path, layer) + end, t.rows,
                             *t.old_name ? numbered(t.old_name, layer) + end : google_norm_name(name), t.old_rows,
                             t.half_split, bias && t.kind == K::linear && !o.bias ? o.embedding_width() : 0});
        }
    };
    for (const TensorNames& t : family->tensors.embedding) {
        const std::string path = t.path;
        if ((path != "embedding.position" || !o.rotary) &&
            (path != "embedding.project" || o.embedding_width() != o.width))
            add(t, 0);
    }
    for (int i = 0; i < o.layers; i++)
        for (const TensorNames& t : family->tensors.layer) add(t, i);
    for (const TensorNames& t : family->tensors.head) add(t, 0);
    names.push_back({head_bias, "head.bias", {}, tied_bias, {}, false, o.bias ? 0 : o.vocabulary});
    return names;
}

void reorder_heads(const View& from, void* to, int head_size, bool to_half_split) {
    const std::size_t bytes = from.bytes() / from.rows();
    for (std::int64_t row = 0; row < from.rows(); row++) {
        const std::int64_t i = row % head_size;
        const std::int64_t there = row - i + i / 2 + (i % 2) * (head_size / 2);  // the row in the half-split order
        const auto [source, target] = to_half_split ? std::pair(row, there) : std::pair(there, row);
        std::memcpy(static_cast<char*>(to) + std::size_t(target) * bytes,
                    static_cast<const char*>(from.data) + std::size_t(source) * bytes, bytes);
    }
}

}  // namespace masquerade
