// SPDX-License-Identifier: MIT
// Compares Hugging Face checkpoints with the results of transformers (tests/golden/hugging_face). Also checks that a
// model that is saved and read again has the same bits.
#include "tests/models/runs/hugging_face.h"

#include <cmath>
#include <set>

#include "doctest/doctest.h"
#include "engine/tensor/numbers.h"
#include "models/masks/mask.h"

using namespace masquerade;

namespace {

struct Golden {
    std::string name;
    bool head;
    std::vector<std::string> unused;
};
const std::vector<Golden> goldens = {{"bert_google",
                                      true,
                                      {"bert.embeddings.position_ids", "bert.pooler.dense.bias",
                                       "bert.pooler.dense.weight", "cls.seq_relationship.bias",
                                       "cls.seq_relationship.weight"}},
                                     {"bert_bare", false, {"pooler.dense.bias", "pooler.dense.weight"}},
                                     {"bert_unilm", true, {}},
                                     {"bert_shards", true, {}},
                                     {"bert_relu2", true, {}},
                                     {"roformer_char", true, {"roformer.encoder.embed_positions.weight"}},
                                     {"roformer_narrow", true, {}},
                                     {"roformer_value", true, {}},
                                     {"nomic_plain", true, {}},
                                     {"nomic_gelu", true, {}},
                                     {"nomic_modules", true, {}},
                                     {"nomic_2048", true, {}}};

// Inputs and results of transformers: the rows of all sentences, and a graph in which each sentence sees only itself.
struct Expected {
    TensorFile file;
    TokenRows rows;
    SegmentGraph graph;

    explicit Expected(const std::string& folder) : file(folder + "/expected.safetensors") {
        const auto ids = file.reals("ids"), types = file.reals("types"), positions = file.reals("positions"),
                   begin = file.reals("begin");
        Documents documents;
        for (std::size_t b = 0; b + 1 < begin.size(); b++) {
            documents.push_back({int(begin[b + 1] - begin[b]), 0});
            for (std::size_t n = std::size_t(begin[b]); n < std::size_t(begin[b + 1]); n++)
                rows.push(int(ids[n]), int(types[n]), int(positions[n]), int(b));
        }
        graph = full_mask(documents);
    }
    // Returns the largest difference; infinity if the shapes differ or a number is NaN.
    double difference(const std::string& name, const Tensor* found) const {
        const StoredTensor& tensor = file.at(name);
        if (tensor.shape != found->shape) return INFINITY;
        const std::vector<double> numbers = file.reals(name);
        double most = 0;
        for (std::size_t i = 0; i < numbers.size(); i++) {
            const double d = std::abs(number_at(found->view(), std::int64_t(i)) - numbers[i]);
            if (!(d <= most)) most = std::isnan(d) ? INFINITY : d;
        }
        return most;
    }
};

// Returns the largest difference of the hidden states and, if the folder has a head, of the logits.
double difference(const Golden& golden, DType type) {
    const std::string folder = golden_folder(golden.name);
    const Expected expected(folder);
    const LoadedModel model(folder, type);
    Arena arena;
    Tape tape(arena, type);
    tape.begin("golden");
    double most = 0;
    const auto compare = [&](int layer, Tensor*& x, Pass&) {
        most = std::max(most, expected.difference(text("hidden.", layer), x));
    };
    Pass pass = model.backbone.pass(tape, expected.rows, expected.graph);
    Tensor* x = model.backbone.run(tape, expected.rows, pass, compare);
    compare(model.backbone.options.layers, x, pass);
    Tensor* logits = model.backbone.logits(tape, model.backbone.head(tape, model.backbone.finish(tape, x)));
    if (golden.head) most = std::max(most, expected.difference("logits", logits));
    CHECK((expected.file.find("logits") != nullptr) == golden.head);
    CHECK(!expected.file.find(text("hidden.", model.backbone.layers.size() + 1)));
    tape.end();
    return most;
}

}  // namespace

TEST_CASE("hugging face: hidden states of every layer and logits are those of transformers") {
    for (const Golden& golden : goldens) {
        CAPTURE(golden.name);
        const double f32 = difference(golden, DType::f32), f64 = difference(golden, DType::f64);
        CHECK(f32 <= 1e-5);
        // transformers computes the sines of rotary positions in float.
        CHECK(f64 <= (golden.name.rfind("bert", 0) == 0 ? 1e-10 : 1e-6));
    }
}

TEST_CASE("hugging face: what a folder holds beside the model is listed, and what it lacks is known") {
    for (const Golden& golden : goldens) {
        CAPTURE(golden.name);
        const LoadedModel model(golden_folder(golden.name));
        CHECK(model.weights.head == golden.head);
        CHECK(model.weights.unused == golden.unused);
        Parameters fresh;
        const Backbone same(fresh, model.backbone.options);
        fresh.allocate(5);
        std::set<std::string> kept;  // tensors that still have their initial values
        for (const Tensor& t : fresh.all()) {
            const View a = fresh.master(t), b = model.master(t.path);
            if (std::memcmp(a.data, b.data, a.bytes()) == 0) kept.insert(t.path);
        }
        std::set<std::string> expected;
        if (!golden.head)
            expected = {"head.bias", "head.dense.bias", "head.dense.weight", "head.norm.bias", "head.norm.weight"};
        if (golden.name == "nomic_2048") expected = {"head.bias", "head.dense.bias"};  // these start as zeros
        CHECK(kept == expected);
    }
    const LoadedModel model(golden_folder("bert_google"));
    auto place = [&](const std::string& name) -> std::string {
        for (const HuggingFaceTensor& t : model.weights.tensors)
            if (t.name == name) return t.place;
        return "not there";
    };
    CHECK(place("bert.encoder.layer.1.attention.self.value.bias") == "layer.1.attention.key_value.bias, values");
    CHECK(place("bert.encoder.layer.0.output.LayerNorm.gamma") == "layer.0.norm2.weight");
    CHECK(place("cls.predictions.decoder.weight") == "as bert.embeddings.word_embeddings.weight");
    CHECK(place("bert.embeddings.position_ids") == "");
}

TEST_CASE("hugging face: names of nomic-ai's own code go where transformers' names go") {
    const LoadedModel model(golden_folder("nomic_2048"));
    std::map<std::string, std::string> places;
    for (const HuggingFaceTensor& t : model.weights.tensors) places[t.name] = t.place;
    CHECK(places["bert.encoder.layers.1.attn.Wqkv.weight"] ==
          "layer.1.attention.query.weight; layer.1.attention.key_value.weight, keys; "
          "layer.1.attention.key_value.weight, values");
    CHECK(places["bert.encoder.layers.0.mlp.fc12.weight"] == "layer.0.ffn.up.weight, gate");
    CHECK(places["bert.emb_ln.bias"] == "embedding.norm.bias");
    for (const char* bias : {"head.bias", "head.dense.bias"})  // the folder does not have these tensors
        for (const double number : numbers_of(model.master(bias))) CHECK(number == 0);
}

TEST_CASE("hugging face: a config says all that a model is made of") {
    auto options = [](const char* name) { return read_hugging_face_config(golden_folder(name)).backbone; };
    const BackboneOptions google = options("bert_google"), unilm = options("bert_unilm"),
                          value = options("roformer_value");
    CHECK(google.vocabulary == 48);
    CHECK(google.width == 24);
    CHECK(google.heads == 3);
    CHECK(google.inner == 40);
    CHECK(google.layers == 2);
    CHECK(google.positions == 12);
    CHECK(google.eps == 1e-12);
    CHECK(google.deviation == 0.2);
    CHECK(google.dropout == 0.1);
    CHECK(google.attention_dropout == 0.1);
    CHECK(!google.rotary);
    CHECK(google.embedding_width() == 24);
    CHECK(unilm.types == 6);
    CHECK(unilm.gelu == GeluKind::tanh);
    CHECK(unilm.eps == 1e-3);
    CHECK(value.rotary);
    CHECK(value.rotary_value);
    CHECK(value.embedding_width() == 12);
    CHECK(value.width == 32);

    const ChangedFolder folder("roformer_value");
    for (const auto& [name, kind] : {std::pair{"gelu", GeluKind::erf},
                                     {"gelu_python", GeluKind::erf},
                                     {"gelu_new", GeluKind::tanh},
                                     {"gelu_pytorch_tanh", GeluKind::tanh},
                                     {"gelu_fast", GeluKind::tanh}}) {
        const std::string word = name;
        folder.config([&](nlohmann::json& c) { c["hidden_act"] = word; });
        CHECK(read_hugging_face_config(folder.path).backbone.gelu == kind);
    }
    folder.config([](nlohmann::json& c) {
        for (const char* key : {"max_position_embeddings", "embedding_size", "rotary_value", "type_vocab_size"})
            c.erase(key);
        c["pad_token_id"] = nullptr;
    });
    const HuggingFaceConfig bare = read_hugging_face_config(folder.path);
    CHECK(bare.backbone.positions == 1536);
    CHECK(bare.backbone.embedding == 0);
    CHECK(!bare.backbone.rotary_value);
    CHECK(bare.backbone.types == 2);
    CHECK(bare.pad == 0);
}

TEST_CASE("hugging face: a config of NomicBERT, by the keys of transformers and of nomic-ai's own code") {
    auto options = [](const char* name) { return read_hugging_face_config(golden_folder(name)).backbone; };
    for (const char* name : {"nomic_plain", "nomic_2048"}) {
        CAPTURE(std::string(name));
        const BackboneOptions o = options(name);
        CHECK(o.width == 16);
        CHECK(o.layers == 2);
        CHECK(o.heads == 2);
        CHECK(o.inner == 24);
        CHECK(o.positions == 12);
        CHECK(o.eps == 1e-12);
        CHECK(o.dropout == 0);
        CHECK(o.attention_dropout == 0);
        CHECK(o.deviation == 0.2);
        CHECK(o.rotary);
        CHECK(o.rotary_base == 1000);
        CHECK(o.ffn == "swiglu");
        CHECK(!o.bias);
        CHECK(o.head_bias);
    }
    const BackboneOptions gelu = options("nomic_gelu");
    CHECK(gelu.ffn == "geglu");
    CHECK(gelu.gelu == GeluKind::tanh);
    CHECK(gelu.rotary_base == 50);
    CHECK(gelu.types == 3);
    CHECK(options("bert_relu2").ffn == "relu2");
    CHECK(options("roformer_char").rotary_base == 10000);

    const ChangedFolder folder("nomic_plain");
    folder.config([](nlohmann::json& c) {
        for (const char* key : {"max_position_embeddings", "rope_parameters", "hidden_act", "head_dim"}) c.erase(key);
    });
    CHECK(read_hugging_face_config(folder.path).backbone.positions == 2048);
    CHECK(read_hugging_face_config(folder.path).backbone.rotary_base == 1000);
    CHECK(read_hugging_face_config(folder.path).backbone.ffn == "swiglu");
    folder.config([](nlohmann::json& c) { c["rope_theta"] = 7; });
    CHECK(read_hugging_face_config(folder.path).backbone.rotary_base == 7);
}

TEST_CASE("hugging face: saved and loaded again, every bit is the same") {
    for (const Golden& golden : goldens)
        for (DType type : {DType::f32, DType::f64}) {
            CAPTURE(golden.name);
            const LoadedModel model(golden_folder(golden.name), type);
            const TemporaryFolder folder;
            const std::string saved = folder.file("saved"), again = folder.file("again");
            const Vocabulary vocabulary = Vocabulary::load(golden_folder(golden.name) + "/vocab.txt");
            save_hugging_face(saved, model.backbone, model.parameters, vocabulary);
            const LoadedModel back(saved, type);
            CHECK(back.weights.head);
            // A RoFormer checkpoint also has the table of positions, which the model does not use.
            CHECK(back.weights.unused.size() == (golden.name.rfind("roformer", 0) == 0 ? 1 : 0));
            CHECK(same_bits(model.parameters, back.parameters));
            save_hugging_face(again, back.backbone, back.parameters, Vocabulary::load(saved + "/vocab.txt"));
            for (const char* name : {"config.json", "model.safetensors", "vocab.txt"})
                CHECK(read_file(saved + "/" + name) == read_file(again + "/" + name));
            CHECK(TensorFile(saved + "/model.safetensors").metadata().at("format") == "pt");
        }
}

TEST_CASE("hugging face: every tensor of a NomicBERT is written as it was read") {
    const std::string golden = golden_folder("nomic_modules");
    const LoadedModel model(golden);
    const TemporaryFolder folder;
    save_hugging_face(folder.path, model.backbone, model.parameters, Vocabulary({"[PAD]", "[UNK]"}));
    const TensorFile read(golden + "/model.safetensors"), written(folder.file("model.safetensors"));
    CHECK(read.tensors().size() == written.tensors().size());
    for (const StoredTensor& tensor : read.tensors()) {
        CAPTURE(tensor.name);
        const StoredTensor& again = written.at(tensor.name);
        CHECK(again.shape == tensor.shape);
        CHECK(std::memcmp(again.data, tensor.data, tensor.bytes()) == 0);
    }
}

TEST_CASE("hugging face: a head without biases is written with zeros") {
    BackboneOptions o = read_hugging_face_config(golden_folder("nomic_plain")).backbone;
    o.head_bias = false;
    for (DType type : {DType::f32, DType::f64}) {
        Parameters parameters(type);
        const Backbone stack(parameters, o);
        parameters.allocate(3);
        const TemporaryFolder folder;
        save_hugging_face(folder.path, stack, parameters, Vocabulary({"[PAD]", "[UNK]"}));
        const LoadedModel back(folder.path, type);
        CHECK(back.parameters.all().size() == parameters.all().size() + 2);
        for (const Tensor& t : back.parameters.all()) {
            const Tensor* ours = parameters.find(t.path);
            const std::vector<double> zeros(std::size_t(t.shape.count()));
            CHECK(numbers_of(back.master(t.path)) == (ours ? numbers_of(parameters.master(*ours)) : zeros));
        }
    }
}

TEST_CASE("hugging face: the table of positions that is written is transformers'") {
    const LoadedModel model(golden_folder("roformer_char"));
    const TemporaryFolder folder;
    save_hugging_face(folder.path, model.backbone, model.parameters, Vocabulary({"[PAD]", "[UNK]"}));
    const char* name = "roformer.encoder.embed_positions.weight";
    float ours[12 * 8], theirs[12 * 8];
    auto read = [&](const std::string& path, float* to) {
        TensorFile(path + "/model.safetensors").convert_to(name, View{to, DType::f32, Device::cpu, {12, 8}, name});
    };
    read(folder.path, ours);
    read(golden_folder("roformer_char"), theirs);
    for (int i = 0; i < 12 * 8; i++) CHECK(std::abs(ours[i] - theirs[i]) <= 1e-7);
}

TEST_CASE("hugging face: weights go into bf16 storage through their masters") {
    const LoadedModel model(golden_folder("roformer_narrow"), DType::bf16), plain(golden_folder("roformer_narrow"));
    CHECK(same_bits(model.parameters, plain.parameters));
    const Tensor* token = model.parameters.find("embedding.token.weight");
    for (std::int64_t i = 0; i < token->shape.count(); i++)
        CHECK(float(token->view().as<bfloat16>()[i]) == float(bfloat16(model.master(token->path).as<float>()[i])));
}
