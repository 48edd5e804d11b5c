// SPDX-License-Identifier: MIT
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

struct ActivationName {
    const char* name;
    std::optional<GeluKind> gelu;
    const char *plain, *gated;  // our feed-forward parts with this activation, without and with a gate; null: none
};
// The names of activations in transformers/activations.py, and our names. If several names mean the same activation,
// config.json is written with the first one.
constexpr ActivationName activations[] = {{"gelu", GeluKind::erf, "gelu", "geglu"},
                                          {"gelu_python", GeluKind::erf, "gelu", "geglu"},
                                          {"gelu_new", GeluKind::tanh, "gelu", "geglu"},
                                          {"gelu_pytorch_tanh", GeluKind::tanh, "gelu", "geglu"},
                                          {"gelu_fast", GeluKind::tanh, "gelu", "geglu"},
                                          {"silu", {}, nullptr, "swiglu"},
                                          {"swish", {}, nullptr, "swiglu"},
                                          {"relu2", {}, "relu2", nullptr}};

bool is(const char* ffn, const std::string& name) { return ffn && name == ffn; }

// Returns the first activation that fits the feed-forward parts of a stack, or null if none does.
const ActivationName* activation_of(const BackboneOptions& b) {
    for (const ActivationName& a : activations)
        if ((is(a.plain, b.ffn) || is(a.gated, b.ffn)) && a.gelu.value_or(b.gelu) == b.gelu) return &a;
    return nullptr;
}

using B = BackboneOptions;

// A numeric option of a stack, its keys in config.json, and the values that are allowed there.
template <class T>
struct Number {
    const char *key, *old_key;  // old_key: the key in nomic-ai's own code; "" if it is equal to `key`
    T B::*member;
    T low, high;
    // Whether a file may lack `key`; the option then keeps its default. If `old_key` is not "", a file with the keys of
    // nomic-ai's own code must have it.
    bool may_lack = false;
};
constexpr Number<int> whole_numbers[] = {{"vocab_size", "", &B::vocabulary, 1, 1 << 24},
                                         {"hidden_size", "n_embd", &B::width, 1, 65536},
                                         {"num_hidden_layers", "n_layer", &B::layers, 1, 1024},
                                         {"num_attention_heads", "n_head", &B::heads, 1, 1024},
                                         {"intermediate_size", "n_inner", &B::inner, 1, 262144},
                                         {"type_vocab_size", "", &B::types, 1, 65536, true},
                                         {"max_position_embeddings", "n_positions", &B::positions, 1, 1 << 20, true}};
constexpr Number<double> real_numbers[] = {{"layer_norm_eps", "layer_norm_epsilon", &B::eps, 0, 1, true},
                                           {"initializer_range", "", &B::deviation, 0, 10, true},
                                           {"hidden_dropout_prob", "resid_pdrop", &B::dropout, 0, 0.99, true},
                                           {"attention_probs_dropout_prob", "attn_pdrop", &B::attention_dropout, 0,
                                            0.99, true}};

using Field = JsonField<BadInput>;

// The following three functions return the value of a key or, if the key is absent or null, `missing`. As in
// transformers, null means the same as an absent key.
template <class T>
T number_in(const Field& field, T low, T high, std::optional<T> missing) {
    return missing && field.is_null() ? *missing : field.number(low, high);
}
bool flag_in(const Field& field, bool missing) { return field.is_null() ? missing : field.boolean(); }
std::string word_in(const Field& field, const char* missing) { return field.is_null() ? missing : field.string(); }

const HuggingFaceFamily& family_in(const Field& field) {
    const std::string type = word_in(field, "");
    std::string known;
    for (const HuggingFaceFamily& family : hugging_face_families()) {
        if (type == family.type) return family;
        known += text(known.empty() ? "\"" : "or \"", family.type, "\" ");
    }
    field.fail(known, "(old files have none: add it)");
}

void read_activation(const Field& field, bool gated, B& b) {
    const std::string name = word_in(field, gated ? "silu" : "gelu");
    for (const ActivationName& a : activations)
        if (const char* ffn = gated ? a.gated : a.plain; ffn && name == a.name) {
            b.ffn = ffn;
            b.gelu = a.gelu.value_or(GeluKind::erf);
            return;
        }
    field.fail("gelu or gelu_python (by erf), gelu_new, gelu_pytorch_tanh or gelu_fast (by tanh), or ",
               gated ? "silu or swish" : "relu2",
               ": another activation is another model, for which there is no op here");
}

// A key of config.json for which only one value is supported.
struct Fixed {
    const char* key;
    json value;
    // Whether a config.json with the keys of nomic-ai's own code must have this key, because that code's default
    // differs from `value`.
    bool required = false;
};
const std::vector<Fixed> nomic_fixed = {{"prenorm", false},
                                        {"parallel_block", false},
                                        {"causal", false},
                                        {"use_rms_norm", false},
                                        {"scale_attn_weights", true},
                                        {"scale_attn_by_inverse_layer_idx", false},
                                        {"qkv_proj_bias", false, true},
                                        {"mlp_fc1_bias", false, true},
                                        {"mlp_fc2_bias", false, true},
                                        {"activation_function", "swiglu", true},
                                        {"rotary_emb_fraction", 1, true},
                                        {"rotary_emb_interleaved", false},
                                        {"rotary_emb_scale_base", nullptr},
                                        {"rotary_scaling_factor", nullptr},
                                        {"partial_rotary_factor", 1}};

// Reads and checks the keys that only NomicBERT has. If `old` is true, the file has the keys of nomic-ai's own code.
void read_nomic(const Field& config, bool old, B& b) {
    for (const Fixed& fixed : nomic_fixed)
        if (const Field given = config[fixed.key]; (old && fixed.required) || !given.is_null())
            if (given.value() != fixed.value)
                given.fail(fixed.value.dump(), ": NomicBERT is read as transformers computes it");
    if (const Field size = config["head_dim"]; !size.is_null() && size.number(1, 65536) * b.heads != b.width)
        size.fail("hidden_size / num_attention_heads, ", b.width, " / ", b.heads);
    b.rotary_base = number_in<double>(config["rope_theta"], 1, 1e9, b.rotary_base);
    if (old) b.rotary_base = config["rotary_emb_base"].number(1.0, 1e9);
    for (const char* key : {"rope_parameters", "rope_scaling"})
        if (const Field rope = config[key]; !rope.is_null()) {
            b.rotary_base = number_in<double>(rope["rope_theta"], 1, 1e9, b.rotary_base);
            for (const auto& [name, value] : rope.value().items()) {
                const bool type = name == "rope_type" || name == "type";
                const json expected = type ? json("default") : name == "partial_rotary_factor" ? json(1) : json();
                if (name != "rope_theta" && value != expected)
                    rope[name].fail(expected.dump(), ": rotary positions without scaling are expected");
            }
        }
    b.bias = false;
    b.head_bias = true;
}

// Returns the family under which a stack can be saved. Throws BadUsage if no family supports all options of the stack.
const HuggingFaceFamily& family_for(const B& b) {
    const HuggingFaceFamily* family = family_of(b);
    if (!family)
        throw BadUsage(std::boolalpha, "ffn is ", b.ffn, " and rotary is ", b.rotary,
                       ": Hugging Face has no such BERT; its NomicBERT has ffn=swiglu or geglu with rotary=true");
    const auto same = [&](const char* setting, const auto& found, const auto& expected) {
        if (found != expected)
            throw BadUsage(std::boolalpha, setting, " is ", found, ", but every Hugging Face ", family->title, " has ",
                           setting, "=", expected,
                           ", so the weights would mean something else there; only a stack with ", setting, "=",
                           expected, " can be written");
    };
    same("attention", b.attention, "softmax");
    same("pre_norm", b.pre_norm, false);
    same("norm", b.norm, "layer");
    same("bias", b.bias, !family->gated);
    same("kv_heads", b.key_heads(), b.heads);
    if (!family->own_width) {
        same("embedding", b.embedding_width(), b.width);
        same("rotary_value", b.rotary_value, false);
    }
    if (family->rotary && !family->gated) same("rotary_base", b.rotary_base, family->base);
    return *family;
}

}  // namespace

const HuggingFaceFamily* family_of(const BackboneOptions& b) {
    const ActivationName* activation = activation_of(b);
    for (const HuggingFaceFamily& family : hugging_face_families())
        if (activation && family.rotary == b.rotary && family.gated == is(activation->gated, b.ffn)) return &family;
    return nullptr;
}

std::string file_of(const std::string& folder, const std::string& name) {
    namespace fs = std::filesystem;
    if (fs::exists(folder + "/" + name)) return folder + "/" + name;
    std::string what_to_do;
    for (const char* other : {"pytorch_model.bin", "pytorch_model.bin.index.json", "bert_model.ckpt.index"})
        if (fs::exists(folder + "/" + other))
            what_to_do = text("; docs/checkpoints.md shows how to convert ", other, " once");
    throw BadInput("there is no ", folder, "/", name,
                   "; a folder of Hugging Face's with config.json, model.safetensors and vocab.txt is expected",
                   what_to_do);
}

HuggingFaceConfig read_hugging_face_config(const std::string& folder) {
    const std::string path = file_of(folder, "config.json");
    const json file = read_json(path);
    const Field config(path, file);
    HuggingFaceConfig c;
    const HuggingFaceFamily& family = family_in(config["model_type"]);
    c.type = family.type;
    if (!family.rotary && word_in(config["position_embedding_type"], "absolute") != "absolute")
        config["position_embedding_type"].fail("\"absolute\": there are no relative ones here");
    // Whether the file has the keys of nomic-ai's own code, such as n_embd for hidden_size.
    const bool old = family.gated && !config["n_embd"].is_null();
    BackboneOptions& b = c.backbone;
    b.positions = family.positions;
    b.dropout = b.attention_dropout = family.dropout;
    b.rotary_base = family.base;
    const auto read = [&](const auto& n) {
        const Field field = config[old && *n.old_key ? n.old_key : n.key];
        if (!n.may_lack || !field.is_null() || (old && *n.old_key)) b.*n.member = field.number(n.low, n.high);
    };
    for (const auto& n : whole_numbers) read(n);
    for (const auto& n : real_numbers) read(n);
    b.rotary = family.rotary;
    if (family.own_width) {
        const int E = number_in<int>(config["embedding_size"], 1, 65536, b.width);
        b.embedding = E == b.width ? 0 : E;
        b.rotary_value = flag_in(config["rotary_value"], false);
    }
    if (b.width % b.heads || (b.rotary && b.width / b.heads % 2))
        config[old ? "n_head" : "num_attention_heads"].fail("a divisor of hidden_size, ", b.width,
                                                            b.rotary ? ", that makes heads of an even size" : "");
    if (b.rotary && b.positions > (1 << 26) / (b.width / b.heads))
        config[old ? "n_positions" : "max_position_embeddings"].fail("a number of positions for which heads of size ",
                                                                     b.width / b.heads, " have at most ", 1 << 26,
                                                                     " turns");
    read_activation(config["hidden_act"], family.gated, b);
    if (family.gated) read_nomic(config, old, b);
    c.tied = flag_in(config["tie_word_embeddings"], true);
    c.pad = number_in<int>(config["pad_token_id"], 0, 1 << 24, 0);
    return c;
}

json hugging_face_sizes(const BackboneOptions& b) {
    json sizes;
    for (const auto& n : whole_numbers) sizes[n.key] = b.*n.member;
    for (const auto& n : real_numbers) sizes[n.key] = b.*n.member;
    const ActivationName* activation = activation_of(b);
    sizes["hidden_act"] = activation ? activation->name : b.ffn;
    return sizes;
}

std::string hugging_face_config(const BackboneOptions& b, DType dtype, int pad) {
    const HuggingFaceFamily& family = family_for(b);
    json config = hugging_face_sizes(b);
    config["architectures"] = {family.architecture};
    config["model_type"] = family.type;
    config["pad_token_id"] = pad;
    config["tie_word_embeddings"] = true;
    config["torch_dtype"] = dtype == DType::f64 ? "float64" : "float32";
    if (family.own_width) {
        config["embedding_size"] = b.embedding_width();
        config["rotary_value"] = b.rotary_value;
    }
    if (family.gated) config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", b.rotary_base}};
    return config.dump(2) + '\n';
}

}  // namespace masquerade
