// SPDX-License-Identifier: MIT
// Tests Hugging Face folders that cannot be read, and stacks that cannot be written as such folders: what each message
// says.
#include "doctest/doctest.h"
#include "tests/models/runs/hugging_face.h"
#include "tests/train/files.h"

using namespace masquerade;

namespace {

std::string refused(
    const std::string& folder, const std::function<void(BackboneOptions&)>& change = [](BackboneOptions&) {}) {
    return message_of<BadInput>([&] { LoadedModel(folder, DType::f32, {}, change); });
}

// Returns the message with which a folder with a changed config is refused.
std::string config_refused(const char* golden, const std::function<void(nlohmann::json&)>& change) {
    const ChangedFolder folder(golden);
    folder.config(change);
    return refused(folder.path);
}

}  // namespace

TEST_CASE("hugging face: folders without weights that can be read") {
    const TemporaryFolder empty;
    CHECK_SAYS(refused(empty.path), "there is no " + empty.path +
                                        "/config.json; a folder of Hugging Face's with "
                                        "config.json, model.safetensors and vocab.txt is expected");
    const ChangedFolder folder("bert_unilm");
    std::filesystem::remove(folder.file("model.safetensors"));
    CHECK_SAYS(refused(folder.path), "/model.safetensors; a folder");
    folder.write("pytorch_model.bin", "pickle");
    CHECK_SAYS(refused(folder.path), "is expected; docs/checkpoints.md shows how to convert pytorch_model.bin once");
    const TemporaryFolder tensorflow;
    tensorflow.write("bert_model.ckpt.index", "");
    CHECK_SAYS(refused(tensorflow.path),
               "vocab.txt is expected; docs/checkpoints.md shows how to convert bert_model.ckpt.index once");
}

TEST_CASE("hugging face: configs of other models") {
    using nlohmann::json;
    CHECK_SAYS(config_refused("bert_unilm", [](json& c) { c["model_type"] = "gpt2"; }),
               "config.json: model_type is \"gpt2\", expected \"bert\" or \"roformer\" or \"nomic_bert\" (old files "
               "have none: add it)");
    CHECK_SAYS(config_refused("bert_unilm", [](json& c) { c.erase("model_type"); }),
               "model_type is missing or null, expected \"bert\"");
    CHECK_SAYS(config_refused("bert_unilm", [](json& c) { c["hidden_act"] = "relu"; }),
               "hidden_act is \"relu\", expected gelu or gelu_python (by erf), gelu_new, gelu_pytorch_tanh or "
               "gelu_fast (by tanh), or relu2");
    CHECK_SAYS(config_refused("bert_unilm", [](json& c) { c["position_embedding_type"] = "relative_key"; }),
               "position_embedding_type is \"relative_key\", expected \"absolute\"");
    CHECK_SAYS(config_refused("bert_unilm", [](json& c) { c["num_attention_heads"] = 5; }),
               "num_attention_heads is 5, expected a divisor of hidden_size, 32");
    CHECK_SAYS(config_refused("bert_unilm", [](json& c) { c.erase("hidden_size"); }),
               "hidden_size is missing or null, expected a whole number from 1 to 65536");
    CHECK_SAYS(config_refused("bert_unilm", [](json& c) { c["vocab_size"] = 48.5; }),
               "vocab_size is 48.5, expected a whole number");
    CHECK_SAYS(config_refused("bert_unilm", [](json& c) { c["pad_token_id"] = -1; }),
               "pad_token_id is -1, expected a whole number from 0");
    CHECK_SAYS(config_refused("bert_unilm", [](json& c) { c["layer_norm_eps"] = "small"; }),
               "layer_norm_eps is \"small\", expected a number from 0 to 1");
    CHECK_SAYS(config_refused("roformer_char", [](json& c) { c["rotary_value"] = 1; }),
               "rotary_value is 1, expected true or false");
    CHECK_SAYS(config_refused("bert_unilm", [](json& c) { c["hidden_act"] = 3; }),
               "hidden_act is 3, expected a string");
    CHECK_SAYS(config_refused("bert_unilm", [](json& c) { c = json::array({1}); }),
               "the whole is a list of 1, expected an object");
    for (const char* size : {"-32", "0", "1e300", "32.5", "\"32\"", "18446744073709551615", "65537", "[[32]]", "{}"})
        CHECK_SAYS(config_refused("bert_unilm", [&](json& c) { c["hidden_size"] = json::parse(size); }),
                   ", expected a whole number from 1 to 65536");
    CHECK_SAYS(config_refused("bert_unilm", [](json& c) { c["num_hidden_layers"] = 1 << 30; }),
               "num_hidden_layers is 1073741824, expected a whole number from 1 to 1024");
    CHECK_SAYS(config_refused("roformer_char", [](json& c) { c["num_attention_heads"] = c["hidden_size"]; }),
               "that makes heads of an even size");
    CHECK_SAYS(config_refused("roformer_char", [](json& c) { c["max_position_embeddings"] = 1 << 30; }),
               "max_position_embeddings is 1073741824, expected a whole number from 1 to 1048576");
    CHECK_SAYS(config_refused("bert_unilm", [](json& c) { c["hidden_act"] = std::string(1000000, 'a'); }),
               "aaa...\", expected gelu or");
    // These keys have no meaning for an encoder.
    CHECK(config_refused("bert_unilm", [](json& c) { c["is_decoder"] = c["add_cross_attention"] = true; }) == "");
}

TEST_CASE("hugging face: configs of a NomicBERT that is computed otherwise") {
    using nlohmann::json;
    auto said = [](const char* golden, const char* key, const json& value) {
        return config_refused(golden, [&](json& c) { c[key] = value; });
    };
    CHECK_SAYS(said("nomic_plain", "hidden_act", "relu2"),
               "hidden_act is \"relu2\", expected gelu or gelu_python (by erf), gelu_new, gelu_pytorch_tanh or "
               "gelu_fast (by tanh), or silu or swish");
    CHECK_SAYS(said("nomic_plain", "head_dim", 4), "head_dim is 4, expected hidden_size / num_attention_heads, 16 / 2");
    CHECK_SAYS(said("nomic_plain", "rope_parameters", {{"rope_type", "yarn"}}),
               "rope_parameters.rope_type is \"yarn\", expected \"default\": rotary positions without scaling");
    CHECK_SAYS(said("nomic_plain", "rope_parameters", {{"partial_rotary_factor", 0.5}}),
               "rope_parameters.partial_rotary_factor is 0.5, expected 1");
    CHECK_SAYS(said("nomic_plain", "rope_parameters", {{"full_attention", {{"rope_theta", 5}}}}),
               "rope_parameters.full_attention is an object, expected null");
    CHECK_SAYS(said("nomic_plain", "rope_scaling", {{"factor", 2}}), "rope_scaling.factor is 2, expected null");
    CHECK_SAYS(said("nomic_plain", "rope_parameters", {{"rope_theta", 0}}),
               "rope_parameters.rope_theta is 0, expected a number from 1 to");
    CHECK_SAYS(said("nomic_plain", "rope_parameters", 3), "rope_parameters is 3, expected an object");
    CHECK_SAYS(said("nomic_plain", "partial_rotary_factor", 0.5), "partial_rotary_factor is 0.5, expected 1:");
    for (const auto& [key, value] :
         std::initializer_list<std::pair<const char*, json>>{{"prenorm", true},
                                                             {"parallel_block", true},
                                                             {"causal", true},
                                                             {"use_rms_norm", true},
                                                             {"qkv_proj_bias", true},
                                                             {"mlp_fc1_bias", true},
                                                             {"mlp_fc2_bias", nullptr},
                                                             {"activation_function", "gelu"},
                                                             {"rotary_emb_fraction", 0.5},
                                                             {"rotary_emb_interleaved", true},
                                                             {"rotary_emb_scale_base", 512},
                                                             {"rotary_scaling_factor", 2}})
        CHECK_SAYS(said("nomic_2048", key, value), text("config.json: ", key, " is "));
    CHECK_SAYS(said("nomic_2048", "qkv_proj_bias", true),
               "qkv_proj_bias is true, expected false: NomicBERT is read as transformers computes it");
    for (const char* key : {"n_layer", "n_positions", "layer_norm_epsilon", "resid_pdrop", "rotary_emb_base"})
        CHECK_SAYS(said("nomic_2048", key, nullptr), text(key, " is missing or null, expected a "));
    CHECK_SAYS(said("nomic_2048", "n_head", 3), "n_head is 3, expected a divisor of hidden_size, 16");
    // This key has no meaning for a BERT.
    CHECK(said("bert_unilm", "prenorm", true) == "");
}

TEST_CASE("hugging face: tensors of a NomicBERT that are missing or misshapen") {
    const ChangedFolder folder("nomic_2048");
    folder.tensor("bert.encoder.layers.1.attn.Wqkv.weight", {16, 16});
    CHECK_SAYS(refused(folder.path), "attn.Wqkv.weight is (16,16); (48,16) is expected for layer.1.attention.query");
    folder.tensor("bert.encoder.layers.1.attn.Wqkv.weight", {});
    CHECK_SAYS(refused(folder.path), "has no tensor bert.layers.1.self_attn.q_proj.weight (16,16), which the model");
    folder.tensor("bert.encoder.layers.1.attn.Wqkv.weight", {48, 16}, NAN);
    CHECK_SAYS(refused(folder.path), "attn.Wqkv.weight (48,16) holds nan");
    folder.tensor("bert.encoder.layers.1.attn.Wqkv.weight", {48, 16}, 1);
    folder.tensor("cls.predictions.bias", {48}, 2);
    CHECK_SAYS(refused(folder.path), "has no tensor cls.predictions.transform.dense.bias (16), which the model needs");
    folder.tensor("cls.predictions.transform.dense.bias", {16}, 3);
    CHECK(refused(folder.path) == "");
    CHECK(LoadedModel(folder.path).master("head.dense.bias").as<float>()[15] == 3);
    folder.tensor("cls.predictions.bias", {47});
    CHECK_SAYS(refused(folder.path), "cls.predictions.bias is (47); (48) is expected for head.bias");
    folder.tensor("bert.embeddings.word_embeddings.weight", {});
    CHECK_SAYS(refused(folder.path),
               "tensors, nor with \"bert.\" before it, nor with \"roformer.\" before it, nor with \"nomic_bert.\" "
               "before it; the weights of a BERT, RoFormer or NomicBERT are expected");
}

TEST_CASE("hugging face: tensors that are missing, misshapen, or not tied") {
    const ChangedFolder folder("bert_google");
    const std::string path = folder.file("model.safetensors");
    const Shape none;
    folder.tensor("bert.encoder.layer.1.attention.self.key.bias", none);
    CHECK_SAYS(refused(folder.path),
               path +
                   " has no tensor bert.encoder.layer.1.attention.self.key.bias (24), which the "
                   "model needs for layer.1.attention.key_value.bias, keys; do config.json and the weights "
                   "come from one model?");
    folder.tensor("bert.encoder.layer.1.attention.self.key.bias", {23});
    CHECK_SAYS(refused(folder.path),
               path +
                   ": tensor bert.encoder.layer.1.attention.self.key.bias is (23); (24) is expected "
                   "for layer.1.attention.key_value.bias, keys. Set the sizes in");
    folder.tensor("bert.encoder.layer.1.attention.self.key.bias", {24});
    CHECK(refused(folder.path) == "");
    folder.config([](nlohmann::json& c) { c["vocab_size"] = 50; });
    CHECK_SAYS(refused(folder.path),
               "word_embeddings.weight is (48,24); (50,24) is expected for embedding.token.weight");
    folder.config([](nlohmann::json& c) { c["vocab_size"] = 48; });

    folder.tensor("cls.predictions.decoder.bias", {48}, 1);
    CHECK_SAYS(refused(folder.path),
               "cls.predictions.decoder.bias (48) is not cls.predictions.bias (48) once more; only");
    folder.tensor("cls.predictions.bias", none);  // without the other tensor, this one is the bias
    CHECK(refused(folder.path) == "");
    CHECK(LoadedModel(folder.path).master("head.bias").as<float>()[7] == 1);
    folder.tensor("cls.predictions.decoder.bias", none);
    CHECK_SAYS(refused(folder.path), "has no tensor cls.predictions.bias (48)");
    folder.tensor("cls.predictions.bias", {48});

    folder.config([](nlohmann::json& c) { c["tie_word_embeddings"] = false; });
    CHECK(refused(folder.path) == "");  // the decoder matrix is there, and equals the embedding
    folder.tensor("cls.predictions.decoder.weight", none);
    CHECK_SAYS(refused(folder.path),
               "tie_word_embeddings is false, and " + path + " has no cls.predictions.decoder.weight");
    folder.tensor("cls.predictions.decoder.weight", {48, 24}, 1);
    CHECK_SAYS(refused(folder.path),
               "cls.predictions.decoder.weight (48,24) is not bert.embeddings.word_embeddings.weight "
               "(48,24) once more");
    folder.tensor("bert.embeddings.word_embeddings.weight", none);
    CHECK_SAYS(refused(folder.path), path + " has no embeddings.word_embeddings.weight among its ");

    const ChangedFolder whole("roformer_char");
    const TensorFile good(whole.file("model.safetensors"));
    std::vector<StoredTensor> tensors;
    const std::vector<std::uint64_t> numbers(16);
    for (const StoredTensor& t : good.tensors())
        tensors.push_back(t.name == "roformer.embeddings.LayerNorm.bias"
                              ? StoredTensor{t.name, Element::u64, t.shape, numbers.data()}
                              : t);
    write_safetensors(whole.file("model.safetensors"), tensors);
    CHECK_SAYS(refused(whole.path), "roformer.embeddings.LayerNorm.bias (16) holds U64; real numbers are expected");
}

// If the config has sizes that the tensors do not have, no memory is allocated for them, because shapes are compared
// first.
TEST_CASE("hugging face: a model is not made before its tensors fit, and none of them may be NaN") {
    const ChangedFolder folder("bert_google");
    const auto load = [&] {
        const HuggingFaceConfig c = read_hugging_face_config(folder.path);
        Parameters parameters;
        const Backbone backbone(parameters, c.backbone);
        return message_of<BadInput>([&] { load_hugging_face(folder.path, backbone, parameters); });
    };
    CHECK(load() == "");
    folder.config(
        [](nlohmann::json& c) { c["hidden_size"] = c["intermediate_size"] = 65535, c["num_hidden_layers"] = 1024; });
    CHECK_SAYS(load(), "word_embeddings.weight is (48,24); (48,65535) is expected");
    folder.config(
        [](nlohmann::json& c) { c["hidden_size"] = 24, c["intermediate_size"] = 40, c["num_hidden_layers"] = 2; });
    folder.tensor("bert.encoder.layer.1.attention.self.key.bias", {24}, NAN);
    CHECK_SAYS(refused(folder.path),
               "tensor bert.encoder.layer.1.attention.self.key.bias (24) holds nan as number 0 of 0 to 23");
    folder.tensor("bert.pooler.dense.weight", {24, 24}, NAN);  // this tensor is not read
    folder.tensor("bert.encoder.layer.1.attention.self.key.bias", {24}, 1);
    CHECK(refused(folder.path) == "");
}

TEST_CASE("hugging face: shards that are not whole") {
    ChangedFolder folder("bert_shards");
    const std::string index = folder.file("model.safetensors.index.json");
    nlohmann::json map = read_json(index);
    map["weight_map"]["bert.pooler.dense.weight"] = "model-00001-of-00003.safetensors";
    folder.write("model.safetensors.index.json", map.dump());
    CHECK_SAYS(refused(folder.path), index +
                                         " puts bert.pooler.dense.weight into model-00001-of-00003.safetensors, which "
                                         "does not hold it; copy the folder again");
    map["weight_map"]["bert.pooler.dense.weight"] = 3;
    folder.write("model.safetensors.index.json", map.dump());
    CHECK_SAYS(refused(folder.path),
               "weight_map.bert.pooler.dense.weight is 3; the name of a file in the same folder is expected");
    for (const char* elsewhere : {"../a", "/dev/zero", ""}) {
        map["weight_map"]["bert.pooler.dense.weight"] = elsewhere;
        folder.write("model.safetensors.index.json", map.dump());
        CHECK_SAYS(refused(folder.path), "; the name of a file in the same folder is expected");
    }
    folder.write("model.safetensors.index.json", "{}");
    CHECK_SAYS(refused(folder.path), "has no object \"weight_map\"");
    map["weight_map"]["bert.pooler.dense.weight"] = "model-00004-of-00003.safetensors";
    folder.write("model.safetensors.index.json", map.dump());
    CHECK_SAYS(refused(folder.path), "model-00004-of-00003.safetensors");
}

TEST_CASE("hugging face: models that were made otherwise than the folder says") {
    const std::string bert = golden_folder("bert_google"), roformer = golden_folder("roformer_value");
    using O = BackboneOptions;
    CHECK_SAYS(refused(bert, [](O& o) { o.heads = 2; }),
               "num_attention_heads is 3, the model's is 2; make the model from");
    CHECK_SAYS(refused(bert, [](O& o) { o.gelu = GeluKind::tanh; }),
               "hidden_act is gelu (by erf), the model's is gelu_new (by tanh)");
    CHECK_SAYS(refused(bert, [](O& o) { o.eps = 1e-6; }), "layer_norm_eps is 1e-12, the model's is 1e-06");
    CHECK_SAYS(refused(bert, [](O& o) { o.rotary = true; }), "model_type is bert, the model's is roformer;");
    CHECK_SAYS(refused(roformer, [](O& o) { o.rotary_value = false; }),
               "model_type is roformer with rotary_value, the model's is roformer;");
    CHECK_SAYS(refused(bert, [](O& o) { o.pre_norm = true; }), "the model's are pre-LN (pre_norm)");
    CHECK_SAYS(refused(bert, [](O& o) { o.width = 12; }), "hidden_size is 24, the model's is 12;");
    CHECK_SAYS(refused(bert, [](O& o) { o.vocabulary = 50; }),
               "vocab_size is 48, of which 48 tokens are chosen; the model has 50. Make it with as many");
    CHECK_SAYS(refused(bert, [](O& o) { o.types = 3; }), "token_type_embeddings.weight is (2,24); (3,24) is expected");
    const std::string nomic = golden_folder("nomic_plain");
    CHECK_SAYS(refused(bert, [](O& o) { o.norm = "rms"; }), "norm is layer, the model's is rms");
    CHECK_SAYS(refused(bert, [](O& o) { o.ffn = "relu2"; }), "ffn is gelu, the model's is relu2");
    CHECK_SAYS(refused(bert, [](O& o) { o.ffn = "swiglu"; }), "model_type is bert, the model's is none");
    CHECK_SAYS(refused(roformer, [](O& o) { o.ffn = "geglu"; }), "the model's is nomic_bert with rotary_value");
    CHECK_SAYS(refused(bert, [](O& o) { o.bias = false; }), "bias is true, the model's is false");
    CHECK_SAYS(refused(bert, [](O& o) { o.kv_heads = 1; }), "kv_heads is 3, the model's is 1");
    CHECK(refused(bert, [](O& o) { o.kv_heads = 3; }) == "");
    CHECK_SAYS(refused(roformer, [](O& o) { o.rotary_base = 500; }), "rope_theta is 10000, the model's is 500");
    CHECK_SAYS(refused(nomic, [](O& o) { o.rotary_base = 10000; }), "rope_theta is 1000, the model's is 10000");
    CHECK_SAYS(refused(nomic, [](O& o) { o.bias = true; }), "bias is false, the model's is true");
    CHECK_SAYS(refused(nomic, [](O& o) { o.head_bias = false; }), "head_bias is true, the model's is false");
    CHECK_SAYS(refused(nomic, [](O& o) { o.ffn = "geglu"; }), "ffn is swiglu, the model's is geglu");
    CHECK(refused(bert, [](O& o) { o.layers = 1; }) == "");  // only the first layer of the folder is loaded
    CHECK(refused(roformer, [](O& o) { o.positions = 64; }) == "");
}

TEST_CASE("hugging face: stacks that it does not have") {
    const TemporaryFolder folder;
    auto said = [&](const std::function<void(BackboneOptions&)>& change) {
        BackboneOptions o;
        o.vocabulary = 5, o.width = 8, o.heads = 2, o.inner = 8, o.layers = 1;
        change(o);
        Parameters p;
        const Backbone backbone(p, o);
        p.allocate(1);
        const std::string what = message_of<Error>([&] {
            save_hugging_face(folder.file("out"), backbone, p, Vocabulary({"a", "b", "c", "d", "e", "f"}));
        });
        CHECK(!std::filesystem::exists(folder.file("out")));
        return what;
    };
    CHECK_SAYS(said([](BackboneOptions& o) { o.pre_norm = true; }),
               "pre_norm is true, but every Hugging Face RoFormer has pre_norm=false, so the weights would mean");
    CHECK_SAYS(said([](BackboneOptions& o) { o.attention = "window"; }),
               "attention is window, but every Hugging Face RoFormer has attention=softmax, so the weights would mean "
               "something else there; only a stack with attention=softmax can be written");
    CHECK_SAYS(said([](BackboneOptions& o) { o.rotary = false, o.embedding = 6; }),
               "embedding is 6, but every Hugging Face BERT has embedding=8");
    const auto nomic = [](BackboneOptions& o) { o.ffn = "swiglu", o.bias = false; };
    // This check comes after all checks of the options.
    const std::string too_many = "the vocabulary has 6 tokens, the model 5";
    CHECK_SAYS(said(nomic), too_many);
    CHECK_SAYS(said([&](BackboneOptions& o) { nomic(o), o.rotary_base = 7, o.kv_heads = 2, o.head_bias = true; }),
               too_many);
    CHECK_SAYS(
        said([&](BackboneOptions& o) { nomic(o), o.rotary = false; }),
        "ffn is swiglu and rotary is false: Hugging Face has no such BERT; its NomicBERT has ffn=swiglu or geglu");
    CHECK_SAYS(said([](BackboneOptions& o) { o.ffn = "swiglu"; }),
               "bias is true, but every Hugging Face NomicBERT has bias=false");
    CHECK_SAYS(said([&](BackboneOptions& o) { nomic(o), o.embedding = 6; }),
               "embedding is 6, but every Hugging Face NomicBERT has embedding=8");
    CHECK_SAYS(said([&](BackboneOptions& o) { nomic(o), o.rotary_value = true; }),
               "rotary_value is true, but every Hugging Face NomicBERT has rotary_value=false");
    CHECK_SAYS(said([](BackboneOptions& o) { o.bias = false; }),
               "bias is false, but every Hugging Face RoFormer has bias=true");
    CHECK_SAYS(said([](BackboneOptions& o) { o.norm = "rms"; }),
               "norm is rms, but every Hugging Face RoFormer has norm=layer");
    CHECK_SAYS(said([](BackboneOptions& o) { o.kv_heads = 1; }),
               "kv_heads is 1, but every Hugging Face RoFormer has kv_heads=2");
    CHECK_SAYS(said([](BackboneOptions& o) { o.rotary_base = 500; }),
               "rotary_base is 500, but every Hugging Face RoFormer has rotary_base=10000");
    CHECK_SAYS(said([](BackboneOptions& o) { o.ffn = "relu2"; }), too_many);
    CHECK_SAYS(said([](BackboneOptions&) {}), "the vocabulary has 6 tokens, the model 5; a row for every token");
    folder.write("file", "");
    Parameters p;
    BackboneOptions o;
    o.vocabulary = 5, o.width = 8, o.heads = 2, o.inner = 8, o.layers = 1;
    const Backbone backbone(p, o);
    p.allocate(1);
    CHECK_SAYS(message_of<BadInput>([&] { save_hugging_face(folder.file("file"), backbone, p, Vocabulary({"a"})); }),
               "cannot");
}
