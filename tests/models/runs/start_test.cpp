// SPDX-License-Identifier: MIT
// Tests new runs that start with the weights of another run. A run of the same kind gets all of them. If two stacks
// start from one stack, each of them computes what the one stack computed. Other sizes and other models are refused.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "engine/base/log.h"
#include "engine/io/safetensors.h"
#include "engine/tensor/copy.h"
#include "models/latent/latent.h"
#include "models/runs/hugging_face/hugging_face.h"
#include "models/runs/start.h"
#include "tests/models/runs/tiny_family.h"
#include "tests/models/runs/tiny_training.h"

using namespace masquerade;

namespace {

// A run that was trained for five steps, in a temporary folder.
template <class R>
struct Trained {
    TemporaryFolder folder;
    TinyTraining<R> training;
    template <class Settings>
    explicit Trained(const Settings& s) : training(s, RunFolder::create(folder.file("run")), 5) {
        training.trainer.run(never);
    }
    std::string path() const { return folder.file("run"); }
    R& run() { return training.run; }
};

// While an object of this class exists, `logged` gets the lines of the log.
std::string logged;
struct LogKept {
    LogKept() {
        logged.clear();
        log_sink = [](const char* line) { logged += line; };
    }
    ~LogKept() { log_sink = nullptr; }
};

// Returns a new run with the sizes of the start's weights, after `change` has changed its settings. `said` is the
// description of the copied weights, with what was logged.
template <class R, class Settings, class Change>
std::unique_ptr<R> started(const Start& start, Settings s, std::string& said, Change change) {
    start.adopt(s);
    change(s);
    auto run = std::make_unique<R>(s, start.tokenizer().vocabulary());
    const LogKept log;
    said = start.give_weights(*run);
    if (!logged.empty()) said += "; " + logged;
    return run;
}
template <class R, class Settings>
std::unique_ptr<R> started(const Start& start, Settings s, std::string& said) {
    return started<R>(start, s, said, [](Settings&) {});
}

std::vector<float> numbers_of(const Tensor* t) {
    const OnHost here(t->view());
    std::vector<float> all;
    for (std::int64_t i = 0; i < here.view().count(); i++) all.push_back(float(here[i]));
    return all;
}

// Returns the output of a stack without cross-attention for these rows: after its head if `head` is true, otherwise
// before.
std::vector<float> read_by(const Backbone& stack, const TokenRows& rows, const SegmentGraph& graph, bool head) {
    Arena arena(Device::cpu, Blocks::loose);
    Tape tape(arena, DType::f32);
    tape.begin("read");
    Tensor* x = stack.finish(tape, stack.run(tape, rows, graph));
    return numbers_of(head ? stack.head(tape, x) : x);
}

// Sets the output matrices of the cross-attention to 0, and returns the output of the decoder for a batch.
std::vector<float> written_without_source(Seq2SeqRun& run, const Batch& batch) {
    for (const Tensor& t : run.parameters.all())
        if (t.path.find("cross.output.") != t.path.npos) fill_bytes(run.parameters.master(t), 0);
    Arena arena(Device::cpu, Blocks::loose);
    Tape tape(arena, DType::f32);
    tape.begin("write");
    return numbers_of(run.model.hidden(tape, batch));
}

Batch batch_for(const Seq2SeqRun& run) {
    const TrainingText text = questions();
    const std::vector<Sentence> sentences = run.sentences(text.held_out, text.held_out_targets);
    return find_objective("seq2seq", true).batch(pointers_to(sentences), 0, run.objective_options());
}

// For each kind of attention: the parameters that softmax's weights cannot give, and softmax's parameters that have no
// place in this kind.
struct BesideSoftmax {
    const char *kind, *fresh, *left;
};
constexpr BesideSoftmax beside_softmax[] = {
    {"softmax", "", ""},
    {"window", "", ""},
    {"longformer", "", ""},
    {"strided", "", ""},
    {"fixed", "", ""},
    {"local", "", ""},
    {"by_head", "", ""},
    {"sinkhorn", "", ""},
    {"lsh", "rotations", "rotations"},
    {"luna", "key_value, norm_packed, pack_query, slots", "key_value, norm_packed, pack_query, slots"},
    {"luna_causal", "pack_key, pack_query, slots", "pack_key, pack_query, slots"},
    {"linformer", "positions", "positions"},
    {"performer", "features", "features"},
    {"rfa", "features, sharpness", "features, sharpness"},
    {"linear", "", ""},
    {"lambda", "", ""},
};

// Removes "attention." and "embedding." from names.
std::string brief(std::string names) {
    for (const std::string part : {"attention.", "embedding."})
        for (std::size_t at; (at = names.find(part)) != names.npos;) names.erase(at, part.size());
    return names;
}
std::string listed(const std::string& said, const std::string& what) {
    const std::size_t at = said.find("; " + what + ": ");
    if (at == said.npos) return "";
    const std::size_t from = at + what.size() + 4;
    return brief(said.substr(from, said.find(';', from) - from));
}

// Returns a parameter of attention by its name in softmax. A kind may store keys and values in other tensors; they are
// found there.
std::vector<float> part_of(const Parameters& parameters, const std::string& what) {
    const bool key = what == "key", value = what == "value";
    const std::string site = "layer.1.attention.";
    const Tensor* alone = parameters.find(site + what + (what == "features" ? "" : ".weight"));
    const Tensor* pack = parameters.find(site + "pack_key_value.weight");
    const Tensor* both = pack ? pack : parameters.find(site + "key_value.weight");
    if (alone || (!key && !value) || !both) return alone ? numbers_of(alone) : std::vector<float>();
    const std::vector<float> all = numbers_of(both);
    const auto half = all.begin() + std::ptrdiff_t(all.size() / 2);
    return key ? std::vector<float>(all.begin(), half) : std::vector<float>(half, all.end());
}

const auto unilm_with = [](auto change) {
    UniLmSettings s = tiny_unilm("lm");
    change(s.model);
    return s;
};

}  // namespace

TEST_CASE("start: a unilm has all weights of another, or its first layers") {
    Trained<UniLmRun> first(tiny_unilm("lm"));
    const auto start = Start::open(first.path());
    std::string said;
    const auto second = started<UniLmRun>(*start, UniLmSettings(), said);
    CHECK(bits_of(second->parameters.values()) == bits_of(first.run().parameters.values()));
    CHECK(said == "all 2 layers, embedding, head");
    CHECK(second->settings.max_length == 16);
    CHECK(second->settings.objective == "unilm");
    // A step without the state of its training is a run, too.
    const RunFolder folder = RunFolder::open(first.path());
    const std::string step = folder.step_folder(folder.latest_step());
    std::filesystem::remove(step + "/state.safetensors");
    CHECK(is_run(step));
    started<UniLmRun>(*Start::open(step), UniLmSettings(), said);
    CHECK(said == "all 2 layers, embedding, head");
    const auto lower = started<UniLmRun>(*start, UniLmSettings(), said, [](auto& s) { s.model.layers = 1; });
    CHECK(said == "the first 1 of 2 layers, embedding, head");
    for (const Tensor& t : lower->parameters.all())
        CHECK(bits_of(lower->parameters.master(t)) ==
              bits_of(first.run().parameters.master(*first.run().parameters.find(t.path))));
}

TEST_CASE("start: a unilm starts with a BERT of Hugging Face's, and goes back there") {
    TemporaryFolder folder;
    UniLmSettings bert = tiny_unilm("mlm");
    bert.model.rotary = false;
    bert.model.positions = 64;
    bert.model.types = 3;
    UniLmRun first(bert, train_vocabulary(questions().train, 200));
    save_hugging_face(folder.file("bert"), first.model.backbone, first.parameters, first.tokenizer.vocabulary());
    const auto start = Start::open(folder.file("bert"));
    std::string said;
    const auto second = started<UniLmRun>(*start, tiny_unilm("unilm"), said);
    CHECK_FALSE(is_run(folder.file("bert")));
    CHECK(second->settings.model.types == 3);
    CHECK(bits_of(second->parameters.values()) == bits_of(first.parameters.values()));
    CHECK_SAYS(message_of<BadInput>(
                   [&] { started<UniLmRun>(*start, tiny_unilm("unilm"), said, [](auto& s) { s.max_length = 60; }); }),
               "has 64 positions, but max_length, max_target and positions need 72");
}

TEST_CASE("start: every kind of attention takes what it can of every other; what is new and what is left is said") {
    for (const AttentionKind& theirs : attention_kinds()) {
        UniLmSettings s = tiny_unilm("mlm");
        s.model.rotary = false;
        s.model.attention = theirs.name;
        s.model.positions = 64;
        Trained<UniLmRun> given(s);
        const auto start = Start::open(given.path());
        for (const AttentionKind& ours : attention_kinds()) {
            INFO(std::string(theirs.name), " to ", std::string(ours.name));
            std::string said;
            const auto run =
                started<UniLmRun>(*start, s, said, [&](auto& changed) { changed.model.attention = ours.name; });
            for (const std::string part : {"query", "key", "value", "output", "pack_query", "features"})
                if (const auto had = part_of(given.run().parameters, part), has = part_of(run->parameters, part);
                    !had.empty() && !has.empty())
                    CHECK_MESSAGE(has == had, part);
            const UniLmRun untouched(run->settings, start->tokenizer().vocabulary());
            const std::string fresh = listed(said, "new"), left = listed(said, "left out");
            CHECK((said.find(text("; attention: ", ours.name, " in place of ", theirs.name)) != said.npos) ==
                  (&theirs != &ours));
            const auto is_new = [&](const std::string& name) {
                return (", " + fresh + ", ").find(", " + name + ", ") != fresh.npos;
            };
            for (const Tensor& own : run->parameters.all()) {
                const std::size_t at = own.path.find("attention.");
                std::string name = own.path == "embedding.slots" ? "slots" : "";
                if (at != own.path.npos) name = own.path.substr(at + 10, own.path.find('.', at + 10) - at - 10);
                const bool keys = is_new(name + " (keys)"), values = is_new(name + " (values)");
                const bool all_new = !name.empty() && (is_new(name) || (keys && values));
                // A tensor that is only partly new is compared by part_of() above.
                if (keys != values || (!all_new && !name.empty() && &ours != &theirs)) continue;
                const Parameters& from = all_new ? untouched.parameters : given.run().parameters;
                REQUIRE(from.find(own.path));
                CHECK_MESSAGE(bits_of(run->parameters.master(own)) == bits_of(from.master(*from.find(own.path))),
                              own.path);
            }
            const bool lost = left.find_first_not_of(" ,") != left.npos && left != "features" && left != "rotations";
            CHECK((said.find("; warning: ") != said.npos) == lost);
            for (const BesideSoftmax& row : beside_softmax) {
                if (theirs.name == std::string("softmax") && row.kind == std::string(ours.name))
                    CHECK(fresh == row.fresh);
                if (ours.name == std::string("softmax") && row.kind == std::string(theirs.name))
                    CHECK(left == row.left);
            }
        }
    }
    CHECK(names_of(attention_kinds()).size() == std::size(beside_softmax));
}

TEST_CASE("start: a kind that cannot rotate gets a table of positions from a rotary stack") {
    UniLmSettings s = tiny_unilm("mlm");
    Trained<UniLmRun> rotary(s);
    for (const AttentionKind& ours : attention_kinds()) {
        CAPTURE(std::string(ours.name));
        std::string said;
        const auto start = [&](bool rotates) {
            return started<UniLmRun>(*Start::open(rotary.path()), s, said, [&](auto& changed) {
                changed.model.attention = ours.name;
                changed.model.rotary = rotates;
            });
        };
        if (ours.rotates)
            CHECK_SAYS(message_of<BadInput>([&] { start(false); }), "has rotary=true, but this model has rotary=false");
        else
            CHECK(start(false)->parameters.find("embedding.position.weight"));
        CHECK((said.find("embedding.position") != said.npos) == !ours.rotates);
    }
    UniLmSettings grouped = s;
    grouped.model.kv_heads = 1;
    Trained<UniLmRun> few(grouped);
    for (const AttentionKind& ours : attention_kinds()) {
        if (ours.groups_heads) continue;
        std::string said;
        CHECK_SAYS(message_of<BadUsage>([&] {
                       started<UniLmRun>(*Start::open(few.path()), s, said, [&](auto& c) {
                           c.model.attention = ours.name, c.model.rotary = ours.rotates;
                       });
                   }),
                   text("attention ", ours.name, " has as many heads of keys as of queries"));
    }
}

TEST_CASE("start: kinds of attention by layer and part take the weights of either part") {
    UniLmSettings s = tiny_unilm("unilm");
    for (const auto& [ours, theirs] : {std::pair("A lsh; B softmax", "softmax"),
                                       {"A window; B lsh", "softmax"},
                                       {"A lsh; B softmax", "A lsh; B softmax"},
                                       {"A linear; B softmax | layers 1:: softmax", "A sinkhorn; B softmax"}}) {
        const std::string words = ours;
        CAPTURE(words);
        s.model.attention = theirs;
        Trained<UniLmRun> given(s);
        const auto start = Start::open(given.path());
        std::string said;
        const auto run = started<UniLmRun>(*start, s, said, [&](auto& changed) { changed.model.attention = words; });
        int taken = 0;
        for (const Tensor& own : run->parameters.all()) {
            std::string other = own.path;
            if (const std::size_t at = other.find("target_"); at != other.npos) other.erase(at, 7);
            const Tensor* from = given.run().parameters.find(own.path);
            if (!from) from = given.run().parameters.find(other);
            if (!from) continue;
            CHECK_MESSAGE(bits_of(run->parameters.master(own)) == bits_of(given.run().parameters.master(*from)),
                          own.path);
            taken += own.path.find("target_") != std::string::npos;
        }
        CHECK(taken > 0);
    }
}

TEST_CASE("start: a run of mass starts one of pairs, with all its weights") {
    Seq2SeqSettings s = tiny_seq2seq("mass");
    s.model.rotary_cross = false;
    Trained<Seq2SeqRun> mass(s);
    const auto start = Start::open(mass.path());
    std::string said;
    const auto pairs = started<Seq2SeqRun>(*start, Seq2SeqSettings(), said);
    CHECK(bits_of(pairs->parameters.values()) == bits_of(mass.run().parameters.values()));
    CHECK(said == "encoder all 1 layers, decoder all 2 layers, embedding, head");
    CHECK(pairs->settings.objective == "seq2seq");
    CHECK(pairs->writes());
    CHECK_FALSE(pairs->model.options.rotary_cross);
    CHECK_SAYS(message_of<BadInput>(
                   [&] { started<Seq2SeqRun>(*start, s, said, [](auto& c) { c.model.rotary_cross = true; }); }),
               "has rotary_cross=false, but this model has rotary_cross=true");
}

// The token of the level's bar is the last one of the vocabulary. Rows are therefore copied by token, not by id.
TEST_CASE("start: a run that counts missing tokens takes the rows of the words, and of the numbers that both have") {
    const Trained<UniLmRun> words(tiny_unilm("lm"));
    UniLmSettings counting = tiny_unilm("gaps");
    const Trained<UniLmRun> numbers(counting);
    for (const auto* from : {&words, &numbers})
        for (const int longest : {0, 10, 16, 20}) {  // 0: a run that does not count
            CAPTURE(longest);
            const auto start = Start::open(from->path());
            std::string said;
            const auto run =
                started<UniLmRun>(*start, tiny_unilm(longest > 0 ? "gaps" : "lm"), said, [&](UniLmSettings& s) {
                    s.max_length = std::max(longest, 3);
                    s.max_target = 2;
                });
            const std::size_t V = std::size_t(run->tokenizer.vocabulary().size());
            for (const char* path : {"embedding.token.weight", "head.bias"}) {
                const auto *theirs = const_cast<Trained<UniLmRun>*>(from)->run().parameters.find(path),
                           *ours = run->parameters.find(path);
                const std::vector<float> before = numbers_of(theirs), after = numbers_of(ours);
                const std::size_t E = before.size() / std::size_t(theirs->shape[0]);
                CHECK(after.size() == (V + std::size_t(longest > 0 ? std::max(longest - 1, 2) : 0)) * E);
                const std::size_t same = std::min(before.size(), after.size());
                CHECK(std::equal(before.begin(), before.begin() + std::ptrdiff_t(same), after.begin()));
                CHECK(same >= V * E);
                if (from == &numbers && longest > 9) CHECK(same > V * E);
            }
        }
}

TEST_CASE("start: a task with more words keeps the rows of those that it had; others are new, and as large") {
    Seq2SeqSettings s = tiny_seq2seq("seq2seq");
    s.made.task = "star_graph";
    s.max_length = 60;
    s.made.words = 24;
    Trained<Seq2SeqRun> few(s);
    const auto start = Start::open(few.path());
    const int E = s.model.stack.width;
    const auto rows_of = [&](Seq2SeqRun& run, const char* path) { return numbers_of(run.parameters.find(path)); };
    std::string said;
    const auto change = [](auto& c) { c.made.task = "star_graph", c.made.words = 56, c.made.level = "hard"; };
    Seq2SeqSettings more = s;
    change(more);
    start->extend(more, "star_graph");
    const auto run = started<Seq2SeqRun>(*start, s, said, change);
    CHECK(said == "encoder all 1 layers, decoder all 2 layers, embedding, head; 32 tokens that it does not know");
    const Vocabulary &known = few.run().tokenizer.vocabulary(), &all = run->tokenizer.vocabulary();
    CHECK(all.size() == 5 + 56 + 1);
    CHECK(all.id("|") == 61);
    const std::vector<float> before = rows_of(few.run(), "embedding.token.weight"),
                             after = rows_of(*run, "embedding.token.weight");
    double of_known = 0, of_new = 0;
    for (int id = 0; id < all.size(); id++) {
        const int old = known.id(all.token(id));
        double square = 0;
        for (int i = 0; i < E; i++) {
            const float x = after[std::size_t(id * E + i)];
            square += double(x) * x;
            if (old >= 0) CHECK(x == before[std::size_t(old * E + i)]);
        }
        (old >= 0 ? of_known : of_new) += square / (old >= 0 ? known.size() : all.size() - known.size());
    }
    CHECK(of_new / of_known == doctest::Approx(1).epsilon(0.4));
    for (const Tensor& own : few.run().parameters.all())
        if (own.path != "embedding.token.weight" && own.path != "head.bias")
            CHECK_MESSAGE(rows_of(*run, own.path.c_str()) == rows_of(few.run(), own.path.c_str()), own.path);

    // If a token of the start is no word of the task, extend() throws BadInput. (Exception: settings with
    // takes_any_stack().)
    Seq2SeqSettings fewer = s;
    fewer.made.words = 20;
    const auto again = Start::open(few.path());
    CHECK_SAYS(message_of<BadInput>([&] { again->extend(fewer, "star_graph"); }),
               "the vocabulary is not that of task star_graph");
}

// In pre-LN stacks, cross-attention is added to x and not normalised. Without cross-attention, the decoder must
// therefore compute what the language model computes.
TEST_CASE("start: of one stack come an encoder and a decoder that compute what it did") {
    Trained<UniLmRun> one(unilm_with([](BackboneOptions& o) {
        o.pre_norm = true;
        o.types = 3;
    }));
    const auto start = Start::open(one.path());
    std::string said;
    const auto two = started<Seq2SeqRun>(*start, Seq2SeqSettings(), said);
    CHECK(said == "encoder all 2 layers, decoder all 2 layers, embedding, head; new: cross-attention");
    Seq2SeqRun untouched(two->settings, start->tokenizer().vocabulary());
    int fresh = 0;
    for (const Tensor& t : two->parameters.all())
        if (t.path.find("cross.") != t.path.npos) {
            CHECK(bits_of(two->parameters.master(t)) ==
                  bits_of(untouched.parameters.master(*untouched.parameters.find(t.path))));
            fresh++;
        }
    CHECK(fresh == 2 * 8);

    const Batch batch = batch_for(*two);
    const Backbone& stack = one.run().model.backbone;
    const auto encoder = read_by(two->model.encoder, batch.source, batch.source_graph, false);
    CHECK(encoder == read_by(stack, batch.source, batch.source_graph, false));
    CHECK(written_without_source(*two, batch) == read_by(stack, batch.rows, batch.graph, true));
}

TEST_CASE("start: two stacks start with a BERT of Hugging Face's, and keep its sizes in their config") {
    const std::string golden = "tests/golden/hugging_face/";
    const auto start = Start::open(golden + "bert_unilm");
    std::string said;
    Seq2SeqSettings wanted = tiny_seq2seq("seq2seq");
    wanted.max_length = 12;  // as many positions as the weights have
    const auto two = started<Seq2SeqRun>(*start, wanted, said, [](auto& s) { s.model.decoder_layers = 1; });
    CHECK_SAYS(said, "decoder the first 1 of ");
    const BackboneOptions theirs = read_hugging_face_config(golden + "bert_unilm").backbone;
    Parameters parameters;
    Backbone bert(parameters, theirs);
    parameters.allocate(1);
    load_hugging_face(golden + "bert_unilm", bert, parameters);
    const Batch batch = batch_for(*two);
    CHECK(read_by(two->model.encoder, batch.source, batch.source_graph, false) ==
          read_by(bert, batch.source, batch.source_graph, false));

    Config written, read;
    Seq2SeqSettings same = two->settings, again;
    same.declare(written);
    again.declare(read);
    read.from_json(written.to_json(), "config.json");
    CHECK(again.model.stack.types == theirs.types);
    CHECK(again.model.stack.eps == theirs.eps);

    started<Seq2SeqRun>(*Start::open(golden + "bert_bare"), wanted, said);
    CHECK_SAYS(said, "layers, embedding; new: cross-attention, head");
    const auto narrow = started<Seq2SeqRun>(*Start::open(golden + "roformer_narrow"), wanted, said);
    CHECK(narrow->model.encoder.options.embedding_width() < narrow->model.encoder.options.width);

    const auto nomic = started<Seq2SeqRun>(*Start::open(golden + "nomic_plain"), wanted, said);
    const BackboneOptions& options = nomic->model.encoder.options;
    CHECK(options.ffn == "swiglu");
    CHECK(options.rotary_base == 1000);
    CHECK(!options.bias);
    CHECK(nomic->parameters.find("head.bias"));
    Config kept;
    Seq2SeqSettings of_nomic = nomic->settings, same_again;
    of_nomic.declare(kept);
    Config reread;
    same_again.declare(reread);
    reread.from_json(kept.to_json(), "config.json");
    CHECK(same_again.model.stack.rotary_base == 1000);
    CHECK(same_again.model.stack.head_bias);
}

TEST_CASE("start: a run starts with a NomicBERT of Hugging Face's, and is written as one bit by bit") {
    const std::string golden = "tests/golden/hugging_face/nomic_modules";
    std::string said;
    const auto run = started<UniLmRun>(*Start::open(golden), tiny_unilm("mlm"), said);
    TemporaryFolder folder;
    save_hugging_face(folder.path, *run->bert(), run->parameters, run->tokenizer.vocabulary());
    const TensorFile theirs(golden + "/model.safetensors"), ours(folder.file("model.safetensors"));
    for (const StoredTensor& tensor : theirs.tensors())
        CHECK(std::memcmp(ours.at(tensor.name).data, tensor.data, tensor.bytes()) == 0);
}

TEST_CASE("start: other sizes and other models are refused, with what was found and expected") {
    Trained<UniLmRun> one(tiny_unilm("lm"));
    Trained<Seq2SeqRun> two(tiny_seq2seq("mass"));
    std::string said;
    const auto to_unilm = Start::open(one.path()), to_two = Start::open(one.path());
    auto refused = [&](auto change) {
        const std::string message = message_of<BadInput>(
            [&] { started<UniLmRun>(*to_unilm, UniLmSettings(), said, [&](auto& s) { change(s.model); }); });
        CHECK(message == message_of<BadInput>([&] {
                  started<Seq2SeqRun>(*to_two, Seq2SeqSettings(), said, [&](auto& s) { change(s.model.stack); });
              }));
        return message;
    };
    CHECK_SAYS(refused([](BackboneOptions& o) { o.width = 24; }),
               "has width=16, but this model has width=24; sizes must equal those of the checkpoint: leave width out");
    CHECK_SAYS(refused([](BackboneOptions& o) { o.heads = 4; }), "has heads=2, but this model has heads=4");
    CHECK_SAYS(refused([](BackboneOptions& o) { o.inner = 33; }), "has inner=32, but this model has inner=33");
    CHECK_SAYS(refused([](BackboneOptions& o) { o.types = 4; }), "has types=2, but this model has types=4");
    CHECK_SAYS(refused([](BackboneOptions& o) { o.embedding = 8; }),
               "has embedding=16, but this model has embedding=8");
    CHECK_SAYS(refused([](BackboneOptions& o) { o.rotary = false; }),
               "has rotary=true, but this model has rotary=false");
    CHECK_SAYS(refused([](BackboneOptions& o) { o.rotary_value = true; }), "has rotary_value=false");
    CHECK_SAYS(refused([](BackboneOptions& o) { o.pre_norm = true; }), "has pre_norm=false");
    CHECK_SAYS(refused([](BackboneOptions& o) { o.gelu = GeluKind::tanh; }),
               "has gelu=erf, but this model has gelu=tanh");
    CHECK_SAYS(refused([](BackboneOptions& o) { o.eps = 1e-5; }),
               "has norm_eps=1e-12, but this model has norm_eps=1e-05");
    CHECK_SAYS(refused([](BackboneOptions& o) { o.rotary_base = 1000; }),
               "has rotary_base=10000, but this model has rotary_base=1000");
    CHECK_SAYS(refused([](BackboneOptions& o) { o.bias = false; }), "has bias=true, but this model has bias=false");
    CHECK_SAYS(refused([](BackboneOptions& o) { o.layers = 3; }), "has only 2 layers, but layers is 3");
    CHECK_SAYS(message_of<BadInput>([&] {
                   started<Seq2SeqRun>(*to_two, Seq2SeqSettings(), said, [](auto& s) { s.model.decoder_layers = 4; });
               }),
               "has only 2 layers, but decoder_layers is 4; choose at most 2");

    CHECK_SAYS(message_of<BadInput>([&] { started<UniLmRun>(*Start::open(two.path()), UniLmSettings(), said); }),
               "has an encoder and a decoder, but this model is one stack; --init needs a run of one stack, or a");
    TemporaryFolder folder;
    CHECK_SAYS(message_of<BadInput>([&] { Start::open(folder.file("nowhere")); }), "there is no folder");
}

// Tensors that are not part of the stack are saved under their own names.
TEST_CASE("start: every run of one stack goes to Hugging Face and back, every latent with all of its own") {
    int saved = 0;
    for (const Family& kind : families())
        for (const LatentKindRow& latent : latent_kinds()) {
            const std::unique_ptr<RunSettings> settings = tiny(kind);
            Config keys;
            settings->declare(keys);
            if (keys.has("latent"))
                keys.set("latent", latent.name);
            else if (&latent != &latent_kinds()[0])
                continue;
            if (kind.reads == TextKind::none) continue;
            CAPTURE(masquerade::text(kind.name, " ", latent.name));
            const std::unique_ptr<Run> run =
                kind.fresh(*settings, train_vocabulary(text_for(kind).train, 200), DType::f32, Device::cpu);
            if (!run->bert()) continue;
            TemporaryFolder folder;
            save_hugging_face(folder.path, *run->bert(), run->parameters, run->tokenizer.vocabulary());
            const HuggingFaceConfig config = read_hugging_face_config(folder.path);
            Parameters parameters;
            const Backbone stack(parameters, config.backbone);
            const HuggingFaceWeights weights = load_hugging_face(folder.path, stack, parameters);
            std::set<std::string> beside;
            for (const Tensor& t : run->parameters.all())
                if (!parameters.find(t.path))
                    beside.insert(t.path);
                else
                    CHECK(bits_of(parameters.master(*parameters.find(t.path))) == bits_of(run->parameters.master(t)));
            CHECK(beside.empty() == !keys.has("latent"));
            CHECK(weights.unused.size() == beside.size() + (config.backbone.rotary ? 1 : 0));  // 1: table of positions
            TensorFile file(folder.file("model.safetensors"));
            for (const std::string& path : beside) {
                CHECK(std::count(weights.unused.begin(), weights.unused.end(), path) == 1);
                const Tensor& ours = *run->parameters.find(path);
                Buffer there(std::size_t(ours.shape.count()) * sizeof(float), Device::cpu);
                const View view{there.data(), DType::f32, Device::cpu, ours.shape, path.c_str()};
                file.convert_to(path, view);
                CHECK(bits_of(view) == bits_of(run->parameters.master(ours)));
            }
            saved++;
        }
    CHECK(saved == int(latent_kinds().size()) + 1);
}

// The families come from their table, and so every pair of families is tested.
TEST_CASE("start: every family starts with every other, or refuses it") {
    for (const Family& from : families()) {
        if (from.reads == TextKind::none) continue;  // its vocabulary comes from its task
        TemporaryFolder folder;
        const std::unique_ptr<RunSettings> settings = tiny(from);
        Config keys;
        settings->declare(keys);
        for (const auto& [key, value] :
             {std::pair("rotary_cross", "false"), {"norm", "rms"}, {"ffn", "swiglu"}, {"bias", "false"}})
            if (keys.has(key)) keys.set(key, value);
        const TrainingText text = text_for(from);
        const std::unique_ptr<Run> first =
            from.fresh(*settings, train_vocabulary(text.train, 200), DType::f32, Device::cpu);
        RunFolder runs = RunFolder::create(folder.file("run"));
        runs.write("run.json", "{}");
        first->save_tokenizer(runs);
        const std::unique_ptr<Task> task = first->task(text);
        TrainOptions options = settings->train;
        options.steps = 1, options.minutes = 0;
        Trainer trainer(first->parameters, *task, runs, options);
        trainer.quiet = true;
        trainer.run(never);
        for (const Family& to : families())
            for (bool keep : {false, true}) {
                if (to.reads == TextKind::none) continue;
                CAPTURE(masquerade::text(from.name, " to ", to.name));
                const auto start = Start::open(folder.file("run"));
                const std::unique_ptr<RunSettings> ours = to.settings();
                start->adopt(*ours);
                TrainingText few = text_for(to);
                few.train.resize(3), few.held_out.clear(), few.held_out_targets.clear();
                if (!few.train_targets.empty()) few.train_targets.resize(3);
                if (keep) start->keep(few);
                const std::unique_ptr<Run> second =
                    to.fresh(*ours, start->tokenizer().vocabulary(), DType::f32, Device::cpu);
                if (first->stacks().decoder && !second->stacks().decoder) {
                    CHECK_THROWS_AS(start->give_weights(*second), BadInput);
                    continue;
                }
                const std::string said = start->give_weights(*second);
                CHECK((said.find("tokens") != said.npos) == keep);
                // Every word has the same row as before.
                const Tensor *words = first->parameters.find("embedding.token.weight"),
                             *same = second->parameters.find("embedding.token.weight");
                const Vocabulary &all = first->tokenizer.vocabulary(), &some = second->tokenizer.vocabulary();
                CHECK((some.size() < all.size()) == keep);
                const std::int64_t E = words->columns();
                for (int id = 0; id < some.size(); id++)
                    CHECK(number_at(second->parameters.master(*same), id * E) ==
                          number_at(first->parameters.master(*words), all.id(some.token(id)) * E));
                const std::string layer = second->stacks().decoder ? "decoder.layer.1.norm1.weight"
                                                                   : "layer.1.norm1.weight",
                                  theirs = first->stacks().decoder ? layer : "layer.1.norm1.weight";
                CHECK(bits_of(second->parameters.master(*second->parameters.find(layer))) ==
                      bits_of(first->parameters.master(*first->parameters.find(theirs))));
            }
    }
}

TEST_CASE("start: a UniVAE keeps the latents of another, and makes those of another shape anew") {
    TemporaryFolder folder;
    TinyRun vae(tiny_settings(LatentKind::none), RunFolder::create(folder.file("vae")), 1);
    vae.trainer.run(never);
    vae.folder.write("run.json", "{}");
    vae.model.save_tokenizer(vae.folder);
    const auto start = Start::open(folder.file("vae"));
    std::string said;
    const auto same = started<UniVaeRun>(*start, UniVaeSettings(), said);
    CHECK(bits_of(same->parameters.values()) == bits_of(vae.model.parameters.values()));
    CHECK(said.find("new") == said.npos);
    // In has twice as many outputs, for a mean and a variance.
    const auto other = started<UniVaeRun>(*start, UniVaeSettings(), said,
                                          [](UniVaeSettings& s) { s.model.latent.kind = LatentKind::gaussian; });
    CHECK_SAYS(said, "; new: latents");
    for (const Tensor& t : other->parameters.all()) {
        const Tensor* given = vae.model.parameters.find(t.path);
        if (given && given->shape == t.shape)
            CHECK(bits_of(other->parameters.master(t)) == bits_of(vae.model.parameters.master(*given)));
    }
}
