// SPDX-License-Identifier: MIT
// Tests that a batch that is cut into parts has the loss, the gradient and the learned states of the whole batch, in
// every family, with every objective, kind of attention and kind of latent.
#include <doctest/doctest.h>

#include <cmath>

#include "engine/tensor/numbers.h"
#include "models/tasks/batch_parts.h"
#include "tests/folder.h"
#include "tests/models/runs/other_value.h"
#include "tests/models/runs/tiny_family.h"
#include "tests/train/threads_as_processes.h"
#include "tests/train/tiny_run.h"

using namespace masquerade;

namespace {

// A run in double that has trained two steps with `parts` parts in each batch.
struct Trained {
    std::vector<double> losses;  // loss, norm of the gradient and metrics of each step
    std::vector<std::pair<std::string, Numbers>> initial, values;  // of each parameter and state, by path
    int parts = 0;                                                 // largest number of parts of a batch
    std::vector<std::int64_t> tokens;                              // tokens of each batch
    std::size_t memory = 0;

    // If `unreadable`, two sentences in three consist of [UNK] alone.
    Trained(const Family& kind, const Strings& words, int wanted, DType type = DType::f64, bool unreadable = false) {
        const std::unique_ptr<RunSettings> s = tiny(kind);
        Config keys;
        s->declare(keys);
        for (const std::string& word : words) keys.set(word.substr(0, word.find('=')), word.substr(word.find('=') + 1));
        s->train.parts = wanted;
        s->train.eps = 1e-3;  // with a smaller eps, AdamW would turn rounding errors of tiny gradients into steps
        TrainingText text = text_for(s->wants(kind.reads));
        const std::unique_ptr<Run> run = kind.fresh(*s, vocabulary_of(*s, text), type, Device::cpu);
        for (std::size_t i = 0; unreadable && i < text.train.size(); i++)
            if (i % 3 > 0) text.train[i] = "\u2603 \u2603";
        const auto all_values = [&] {
            std::vector<std::pair<std::string, Numbers>> all;
            for (const Tensor& t : run->parameters.all())
                all.emplace_back(t.path, numbers_of(run->parameters.master(t)));
            return all;
        };
        initial = all_values();
        const std::unique_ptr<Task> task = run->task(text);
        const TemporaryFolder place;
        RunFolder folder = RunFolder::create(place.file("run"));
        Trainer trainer(run->parameters, *task, folder, run->common().train);
        for (int step = 0; step < 2; step++) {
            losses.push_back(trainer.train_step());
            losses.push_back(trainer.norm());
            for (const Metric& m : trainer.metrics()) losses.push_back(m.value);
            parts = std::max(parts, task->parts());
            tokens.push_back(task->batch_tokens());
        }
        memory = trainer.planned_bytes();
        values = all_values();
    }
};

void expect_near(const Trained& found, const Trained& expected) {
    for (std::size_t i = 0; i < expected.losses.size(); i++)
        CHECK(found.losses[i] == doctest::Approx(expected.losses[i]).epsilon(1e-12));
    for (std::size_t i = 0; i < expected.values.size(); i++) {
        double apart = 0, size = 0;
        for (std::size_t j = 0; j < expected.values[i].second.size(); j++) {
            apart = std::max(apart, std::abs(found.values[i].second[j] - expected.values[i].second[j]));
            size = std::max(size, std::abs(expected.values[i].second[j]));
        }
        INFO(expected.values[i].first);
        CHECK(apart <= 1e-11 * (1 + size));
    }
}

// Returns false if the settings are refused.
bool check(const Family& kind, const Strings& words) {
    std::string all = kind.name;
    for (const std::string& word : words) all += " " + word;
    CAPTURE(all);
    try {
        const Trained whole(kind, words, 1), three(kind, words, 3);
        CHECK(whole.parts == 1);
        CHECK(three.parts == 3);
        CHECK(three.tokens == whole.tokens);
        expect_near(three, whole);
    } catch (const BadUsage&) {
        return false;
    }
    return true;
}

}  // namespace

TEST_CASE("parts: the loss and the gradient of the whole batch, in every family, with every objective") {
    for (const Family& kind : families()) {
        CHECK(check(kind, kind.name == std::string("classify") ? Strings{"batch_tokens=300"} : Strings{}));
        for (const std::string& objective : kind.objectives) CHECK(check(kind, {"objective=" + objective}));
    }
    for (const char* mixture : {"mlm:1,prefix-lm:1,plm:1", "lm:1,pmlm:1"})
        CHECK(check(find_family("unilm"), {text("objective=", mixture), "label_smoothing=0.1"}));
    CHECK(check(find_family("insertion"), {"canvases=3"}));
    CHECK(check(find_family("flow"), {"flow_actnorm=true", "flow_linear=lu"}));
    CHECK(check(find_family("classify"), {"task=recall", "batch_tokens=300"}));
}

TEST_CASE("parts: the loss, the gradient and the codebooks of the whole batch, with every kind of latent") {
    const Family& univae = find_family("univae");
    // With few codes, no two rows of a codebook begin as copies of one vector and then differ only by rounding errors.
    for (const LatentKindRow& row : latent_kinds()) CHECK(check(univae, {text("latent=", row.name), "codes=3"}));
    for (const Strings& words :
         std::vector<Strings>{{"latent_kinds=vq,gaussian", "codes=3"},
                              {"latent=flow", "flow_actnorm=true"},
                              {"latent=vmf", "learn_kappa=true"},
                              {"latent=gaussian", "free_bits=1"},
                              {"latent=gaussian", "free_bits=1", "free_bits_of=number"},
                              {"word_dropout=0.3"},
                              {"decoder=insertion"},
                              {"decoder=diffusion"},
                              {"pairs=true"},
                              {"pairs=true", "conditional=true"},
                              {"pairs=true", "conditional=true", "decoder=insertion"},
                              {"pairs=true", "conditional=true", "decoder=diffusion"},
                              {"pairs=true", "conditional=true", "latent=gaussian", "source_prior=true"}})
        CHECK(check(univae, words));
}

// If a codebook learned from its own codes, its rows would only be exchanged.
TEST_CASE("parts: codebooks learn from the inputs of the latents, with one part and with several") {
    for (int parts : {1, 3}) {
        const Trained run(find_family("univae"), {"latent=vq", "codes=3"}, parts);
        int codebooks = 0;
        for (std::size_t i = 0; i < run.values.size(); i++) {
            if (run.values[i].first.find(".codes") == std::string::npos) continue;
            const Numbers &before = run.initial[i].second, &after = run.values[i].second;
            codebooks++;
            for (double code : after) CHECK(std::find(before.begin(), before.end(), code) == before.end());
        }
        CHECK(codebooks == 2);
    }
}

TEST_CASE("parts: the loss and the gradient of the whole batch, with every kind of attention") {
    std::size_t trained = 0;
    for (const AttentionKind& attention : attention_kinds()) {
        const std::string word = text("attention=", attention.name);
        CHECK(check(find_family("unilm"), {word, "objective=mlm"}));
        trained += check(find_family("univae"), {word});
    }
    CHECK(trained > attention_kinds().size() / 2);  // some kinds are refused under a causal mask
}

TEST_CASE("parts: a part without any label adds nothing") {
    for (const char* objective : {"mlm", "plm", "pmlm", "k-bert"}) {
        const Strings words = {text("objective=", objective)};
        const Trained whole(find_family("unilm"), words, 1, DType::f64, true);
        const Trained many(find_family("unilm"), words, 65536, DType::f64, true);
        INFO(objective);
        CHECK(many.parts > 4);
        expect_near(many, whole);
    }
}

TEST_CASE("parts: free bits of a batch need the whole batch") {
    const Strings words = {"latent=gaussian", "free_bits=1", "free_bits_of=batch"};
    CHECK_NOTHROW(Trained(find_family("univae"), words, 1));
    CHECK_THROWS_WITH_AS(Trained(find_family("univae"), words, 2),
                         doctest::Contains("parts=2: free_bits_of=batch needs the KL of the whole batch"), BadUsage);
}

TEST_CASE("parts: never more parts than documents, and less memory with more parts") {
    const Strings large = {"batch_tokens=1500"};
    for (const Family& kind : families()) {
        INFO(kind.name);
        if (kind.options == Family::of_vectors) continue;
        const Trained one(kind, large, 1, DType::f32), eight(kind, large, 8, DType::f32);
        CHECK(eight.parts == 8);
        CHECK(eight.memory < one.memory / 3);
        const Trained most(kind, {}, 65536, DType::f32);
        CHECK(most.parts >= 2);
        CHECK(most.parts < 97);  // a batch has 96 tokens
    }
}

TEST_CASE("parts: pieces are about as large as each other, none is empty, and none is left out") {
    CHECK(cut_evenly({5}, 3) == std::vector<std::size_t>{0, 1});
    CHECK(cut_evenly({1, 1, 1, 1}, 2) == std::vector<std::size_t>{0, 2, 4});
    CHECK(cut_evenly({1, 1, 1, 1, 1}, 2) == std::vector<std::size_t>{0, 3, 5});
    CHECK(cut_evenly({9, 1, 1, 1}, 2) == std::vector<std::size_t>{0, 1, 4});
    CHECK(cut_evenly({1, 1, 1, 9}, 2) == std::vector<std::size_t>{0, 3, 4});
    CHECK(cut_evenly({9, 1, 1, 1}, 4) == std::vector<std::size_t>{0, 1, 2, 3, 4});
    CHECK(cut_evenly({1, 1, 1, 9}, 4) == std::vector<std::size_t>{0, 1, 2, 3, 4});
    Sequence random(1, "pieces");
    for (int round = 0; round < 500; round++) {
        std::vector<std::size_t> sizes(1 + random.below(40));
        std::size_t all = 0, largest = 0;
        for (std::size_t& size : sizes) {
            size = 1 + random.below(30);
            all += size;
            largest = std::max(largest, size);
        }
        const int parts = 1 + int(random.below(60));
        const std::vector<std::size_t> begin = cut_evenly(sizes, parts);
        REQUIRE(begin.size() == std::min<std::size_t>(parts, sizes.size()) + 1);
        CHECK(begin.front() == 0);
        CHECK(begin.back() == sizes.size());
        for (std::size_t i = 0; i + 1 < begin.size(); i++) {
            CHECK(begin[i] < begin[i + 1]);
            std::size_t own = 0;
            for (std::size_t j = begin[i]; j < begin[i + 1]; j++) own += sizes[j];
            if (sizes.size() > 4 * begin.size()) CHECK(own <= all / (begin.size() - 1) + largest);
        }
    }
}

namespace {

// Trains two steps with five parts, alone and as several processes, and compares bits.
void check_processes(const Family& kind, const Strings& words) {
    std::string all = kind.name;
    for (const std::string& word : words) all += " " + word;
    CAPTURE(all);
    for (DType type : {DType::f32, DType::bf16}) {
        const Trained one(kind, words, 5, type);
        for (int count : {2, 3, 7}) {
            CAPTURE(count);
            std::vector<std::unique_ptr<Trained>> shared(static_cast<std::size_t>(count));
            as_processes(count, [&](int rank) {
                shared[std::size_t(rank)] = std::make_unique<Trained>(kind, words, 5, type);
            });
            CHECK(shared[0]->losses == one.losses);
            for (const auto& each : shared) {
                CHECK(each->losses[0] == one.losses[0]);
                CHECK(each->values == one.values);
            }
        }
    }
}

}  // namespace

TEST_CASE("parts: several processes have the bits of one, in every family and with every kind of latent") {
    for (const Family& kind : families())
        check_processes(kind, kind.name == std::string("classify") ? Strings{"batch_tokens=300"} : Strings{});
    for (const LatentKindRow& row : latent_kinds())
        check_processes(find_family("univae"), {text("latent=", row.name), "codes=3", "dropout=0.1"});
}

// Process 0 shows samples by itself, and may have measured held-out text for them.
TEST_CASE("parts: several processes measure held-out text as one does, in every family") {
    for (const Family& kind : families()) {
        CAPTURE(std::string(kind.name));
        const auto measured = [&](bool shows) {
            const std::unique_ptr<RunSettings> s = tiny(kind);
            Config keys;
            s->declare(keys);
            if (keys.has("held_out")) keys.set("held_out", "700");
            const TrainingText text = text_for(s->wants(kind.reads));
            const std::unique_ptr<Run> run = kind.fresh(*s, vocabulary_of(*s, text), DType::f32, Device::cpu);
            const std::unique_ptr<Task> task = run->task(text);
            task->next_batch(0);
            if (shows) {
                const ByItself alone;
                task->show(0);
            }
            Numbers values;
            for (const Metric& m : task->validate()) values.push_back(m.value);
            return values;
        };
        const Numbers one = measured(false);
        CHECK(one.size() > 0);
        for (int count : {2, 5}) as_processes(count, [&](int rank) { CHECK(measured(rank == 0) == one); });
    }
}
