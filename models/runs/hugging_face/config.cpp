// SPDX-License-Identifier: MIT
#include "models/runs/hugging_face/config.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/io/file.h"
#include "models/runs/hugging_face/names.h"

namespace masquerade {
namespace {

using nlohmann::json;

struct GeluName {
    const char* name;
    GeluKind kind;
};
// What each computes in transformers/activations.py. The first of a kind is the one that is written.
constexpr GeluName gelu_names[] = {{"gelu", GeluKind::erf},
                                   {"gelu_python", GeluKind::erf},
                                   {"gelu_new", GeluKind::tanh},
                                   {"gelu_pytorch_tanh", GeluKind::tanh},
                                   {"gelu_fast", GeluKind::tanh}};

class Reader {
  public:
    explicit Reader(const std::string& path) : path_(path), all_(read_json(path)) {
        if (!all_.is_object())
            throw BadInput(text(path, " holds ", in_words(all_), "; a JSON object is expected"));
    }

    // null counts as missing, as in transformers.
    const json* find(const char* key) const {
        auto found = all_.find(key);
        return found == all_.end() || found->is_null() ? nullptr : &*found;
    }
    int whole(const char* key, int low, int high, int otherwise = -1) const {
        const json* found = find(key);
        if (!found && otherwise >= 0) return otherwise;
        if (!found || !found->is_number_integer() || *found < low || *found > high)
            refuse(key, text("a whole number from ", low, " to ", high));
        return found->get<int>();
    }
    double number(const char* key, double otherwise, double high) const {
        const json* found = find(key);
        if (!found) return otherwise;
        if (!found->is_number() || !(found->get<double>() >= 0 && found->get<double>() <= high))
            refuse(key, text("a number from 0 to ", high));
        return found->get<double>();
    }
    bool flag(const char* key, bool otherwise) const {
        const json* found = find(key);
        if (!found) return otherwise;
        if (!found->is_boolean()) refuse(key, "true or false");
        return found->get<bool>();
    }
    std::string word(const char* key, const char* otherwise) const {
        const json* found = find(key);
        if (!found) return otherwise;
        if (!found->is_string()) refuse(key, "a word in quotes");
        return found->get<std::string>();
    }
    [[noreturn]] void refuse(const char* key, const std::string& expected) const {
        const json* found = find(key);
        throw BadInput(text(path_, ": ", key, " is ", found ? in_words(*found) : "missing", "; ", expected,
                            " is expected"));
    }

  private:
    std::string path_;
    json all_;
};

GeluKind read_gelu(const Reader& config) {
    const std::string name = config.word("hidden_act", "gelu");
    for (const GeluName& known : gelu_names)
        if (name == known.name) return known.kind;
    config.refuse("hidden_act",
                  "gelu or gelu_python (by erf), or gelu_new, gelu_pytorch_tanh or gelu_fast (by tanh); "
                  "another activation is another model, for which there is no op here, and one of these");
}

}  // namespace

HuggingFaceConfig read_hugging_face_config(const std::string& folder) {
    if (!std::filesystem::exists(config_file(folder))) refuse_folder(folder, "config.json");
    const Reader config(config_file(folder));
    HuggingFaceConfig c;
    c.type = config.word("model_type", "");
    if (c.type != "bert" && c.type != "roformer")
        config.refuse("model_type", "\"bert\" or \"roformer\" (old files have none: add it)");
    const bool rotary = c.type == "roformer";
    if (const std::string positions = config.word("position_embedding_type", "absolute");
        !rotary && positions != "absolute")
        config.refuse("position_embedding_type", "\"absolute\": there are no relative ones here, and it");
    BackboneOptions& b = c.backbone;
    b.vocabulary = config.whole("vocab_size", 1, 1 << 24);
    b.width = config.whole("hidden_size", 1, 65536);
    b.heads = config.whole("num_attention_heads", 1, 1024);
    b.layers = config.whole("num_hidden_layers", 1, 1024);
    b.inner = config.whole("intermediate_size", 1, 262144);
    b.positions = config.whole("max_position_embeddings", 1, 1 << 20, rotary ? 1536 : 512);
    b.types = config.whole("type_vocab_size", 1, 65536, 2);
    b.rotary = rotary;
    if (rotary) {
        const int E = config.whole("embedding_size", 1, 65536, b.width);
        b.embedding = E == b.width ? 0 : E;
        b.rotary_value = config.flag("rotary_value", false);
    }
    if (b.width % b.heads || (rotary && b.width / b.heads % 2))
        config.refuse("num_attention_heads", text("a divisor of hidden_size, ", b.width,
                                                  rotary ? ", that makes heads of an even size" : "", ","));
    if (rotary && b.positions > (1 << 26) / (b.width / b.heads))
        config.refuse("max_position_embeddings",
                      text("a number of positions for which heads of size ", b.width / b.heads,
                           " have at most ", 1 << 26, " turns"));
    b.gelu = read_gelu(config);
    b.eps = config.number("layer_norm_eps", 1e-12, 1);
    b.deviation = config.number("initializer_range", 0.02, 10);
    b.dropout = config.number("hidden_dropout_prob", 0.1, 0.99);
    b.attention_dropout = config.number("attention_probs_dropout_prob", 0.1, 0.99);
    c.tied = config.flag("tie_word_embeddings", true);
    c.pad = config.whole("pad_token_id", 0, 1 << 24, 0);
    return c;
}

std::string hugging_face_config(const BackboneOptions& b, DType dtype, int pad) {
    if (b.pre_norm)
        throw BadUsage(
            "pre_norm is true: Hugging Face has neither a BERT nor a RoFormer with pre-LN layers, so there "
            "is "
            "nothing that could load it; only post-LN stacks are written");
    if (!b.rotary && b.embedding_width() != b.width)
        throw BadUsage(
            text("the embedding has a width of ", b.embedding, ", the layers of ", b.width,
                 ": Hugging Face's BERT knows one width; only a rotary stack (RoFormer) is written so"));
    const std::string type = hugging_face_type(b);
    json config = {{"architectures", {b.rotary ? "RoFormerForMaskedLM" : "BertForMaskedLM"}},
                   {"model_type", type},
                   {"vocab_size", b.vocabulary},
                   {"hidden_size", b.width},
                   {"num_hidden_layers", b.layers},
                   {"num_attention_heads", b.heads},
                   {"intermediate_size", b.inner},
                   {"hidden_act", ""},
                   {"hidden_dropout_prob", b.dropout},
                   {"attention_probs_dropout_prob", b.attention_dropout},
                   {"max_position_embeddings", b.positions},
                   {"type_vocab_size", b.types},
                   {"layer_norm_eps", b.eps},
                   {"initializer_range", b.deviation},
                   {"pad_token_id", pad},
                   {"tie_word_embeddings", true},
                   {"torch_dtype", dtype == DType::f64 ? "float64" : "float32"}};
    for (const GeluName& known : gelu_names)
        if (known.kind == b.gelu) {
            config["hidden_act"] = known.name;
            break;
        }
    if (b.rotary) {
        config["embedding_size"] = b.embedding_width();
        config["rotary_value"] = b.rotary_value;
    }
    return config.dump(2) + '\n';
}

}  // namespace masquerade
