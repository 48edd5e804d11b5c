// SPDX-License-Identifier: MIT
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/io/file.h"
#include "input/json_field.h"
#include "models/runs/hugging_face/hugging_face.h"
#include "models/runs/hugging_face/names.h"

namespace masquerade {
namespace {

using nlohmann::json;

struct GeluName {
    const char* name;
    GeluKind kind;
};
// Each name, and what transformers/activations.py computes for it. The first name of a kind is the one that is written.
constexpr GeluName gelu_names[] = {{"gelu", GeluKind::erf},
                                   {"gelu_python", GeluKind::erf},
                                   {"gelu_new", GeluKind::tanh},
                                   {"gelu_pytorch_tanh", GeluKind::tanh},
                                   {"gelu_fast", GeluKind::tanh}};

using B = BackboneOptions;

// A number of a stack, and the values that config.json may give it.
template <class T>
struct Number {
    const char* key;
    T B::*member;
    T low, high;
    std::optional<T> missing = {};  // what a file without the key means; none: it must be there
};
constexpr Number<int> whole_numbers[] = {
    {"vocab_size", &B::vocabulary, 1, 1 << 24},  {"hidden_size", &B::width, 1, 65536},
    {"num_hidden_layers", &B::layers, 1, 1024},  {"num_attention_heads", &B::heads, 1, 1024},
    {"intermediate_size", &B::inner, 1, 262144}, {"type_vocab_size", &B::types, 1, 65536, 2}};
constexpr Number<double> real_numbers[] = {{"layer_norm_eps", &B::eps, 0, 1, 1e-12},
                                           {"initializer_range", &B::deviation, 0, 10, 0.02},
                                           {"hidden_dropout_prob", &B::dropout, 0, 0.99, 0.1},
                                           {"attention_probs_dropout_prob", &B::attention_dropout, 0, 0.99, 0.1}};

using Field = JsonField<BadInput>;

// null counts as missing, as in transformers.
template <class T>
T number_in(const Field& field, T low, T high, std::optional<T> missing) {
    return missing && field.is_null() ? *missing : field.number(low, high);
}
bool flag_in(const Field& field, bool missing) { return field.is_null() ? missing : field.boolean(); }
std::string word_in(const Field& field, const char* missing) { return field.is_null() ? missing : field.string(); }

GeluKind read_gelu(const Field& field) {
    const std::string name = word_in(field, "gelu");
    for (const GeluName& known : gelu_names)
        if (name == known.name) return known.kind;
    field.fail(
        "gelu or gelu_python (by erf), or gelu_new, gelu_pytorch_tanh or gelu_fast (by tanh): another "
        "activation is another model, for which there is no op here");
}

}  // namespace

std::string file_of(const std::string& folder, const std::string& name) {
    namespace fs = std::filesystem;
    if (fs::exists(folder + "/" + name)) return folder + "/" + name;
    std::string what_to_do;
    for (const char* other : {"pytorch_model.bin", "pytorch_model.bin.index.json", "bert_model.ckpt.index"})
        if (fs::exists(folder + "/" + other))
            what_to_do = text("; docs/checkpoints.md shows how to convert ", other, " once");
    throw BadInput(text("there is no ", folder, "/", name,
                        "; a folder of Hugging Face's with config.json, model.safetensors and vocab.txt is expected",
                        what_to_do));
}

HuggingFaceConfig read_hugging_face_config(const std::string& folder) {
    const std::string path = file_of(folder, "config.json");
    const json file = read_json(path);
    const Field config(path, file);
    HuggingFaceConfig c;
    c.type = word_in(config["model_type"], "");
    if (c.type != "bert" && c.type != "roformer")
        config["model_type"].fail("\"bert\" or \"roformer\" (old files have none: add it)");
    const bool rotary = c.type == "roformer";
    if (!rotary && word_in(config["position_embedding_type"], "absolute") != "absolute")
        config["position_embedding_type"].fail("\"absolute\": there are no relative ones here");
    BackboneOptions& b = c.backbone;
    for (const auto& n : whole_numbers) b.*n.member = number_in(config[n.key], n.low, n.high, n.missing);
    for (const auto& n : real_numbers) b.*n.member = number_in(config[n.key], n.low, n.high, n.missing);
    b.positions = number_in<int>(config["max_position_embeddings"], 1, 1 << 20, rotary ? 1536 : 512);
    b.rotary = rotary;
    if (rotary) {
        const int E = number_in<int>(config["embedding_size"], 1, 65536, b.width);
        b.embedding = E == b.width ? 0 : E;
        b.rotary_value = flag_in(config["rotary_value"], false);
    }
    if (b.width % b.heads || (rotary && b.width / b.heads % 2))
        config["num_attention_heads"].fail("a divisor of hidden_size, ", b.width,
                                           rotary ? ", that makes heads of an even size" : "");
    if (rotary && b.positions > (1 << 26) / (b.width / b.heads))
        config["max_position_embeddings"].fail("a number of positions for which heads of size ", b.width / b.heads,
                                               " have at most ", 1 << 26, " turns");
    b.gelu = read_gelu(config["hidden_act"]);
    c.tied = flag_in(config["tie_word_embeddings"], true);
    c.pad = number_in<int>(config["pad_token_id"], 0, 1 << 24, 0);
    return c;
}

json hugging_face_sizes(const BackboneOptions& b) {
    json sizes = {{"max_position_embeddings", b.positions}};
    for (const auto& n : whole_numbers) sizes[n.key] = b.*n.member;
    for (const auto& n : real_numbers) sizes[n.key] = b.*n.member;
    const auto same_kind = [&](const GeluName& known) { return known.kind == b.gelu; };
    sizes["hidden_act"] = std::find_if(std::begin(gelu_names), std::end(gelu_names), same_kind)->name;
    return sizes;
}

std::string hugging_face_config(const BackboneOptions& b, DType dtype, int pad) {
    if (b.attention != "softmax")
        throw BadUsage(text("attention is ", b.attention,
                            ": Hugging Face's BERT and RoFormer read every key by softmax, so the weights would mean "
                            "something else there"));
    if (b.pre_norm)
        throw BadUsage(
            "pre_norm is true: Hugging Face has neither a BERT nor a RoFormer with pre-LN layers, so there "
            "is nothing that could load it; only post-LN stacks are written");
    if (!b.rotary && b.embedding_width() != b.width)
        throw BadUsage(text("the embedding has a width of ", b.embedding, ", the layers of ", b.width,
                            ": Hugging Face's BERT knows one width; only a rotary stack (RoFormer) is written so"));
    json config = hugging_face_sizes(b);
    config["architectures"] = {b.rotary ? "RoFormerForMaskedLM" : "BertForMaskedLM"};
    config["model_type"] = hugging_face_type(b);
    config["pad_token_id"] = pad;
    config["tie_word_embeddings"] = true;
    config["torch_dtype"] = dtype == DType::f64 ? "float64" : "float32";
    if (b.rotary) {
        config["embedding_size"] = b.embedding_width();
        config["rotary_value"] = b.rotary_value;
    }
    return config.dump(2) + '\n';
}

}  // namespace masquerade
