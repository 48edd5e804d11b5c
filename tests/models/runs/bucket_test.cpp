// SPDX-License-Identifier: MIT
// Tests that Batch::bucket names everything that determines the memory of a step. In every family, with every objective
// and every kind of attention, batches with equal buckets have equal memory plans. If batches of UniVAE differ in only
// one size, their buckets differ.
#include <doctest/doctest.h>

#include <set>

#include "models/runs/run.h"
#include "models/tasks/univae_objective.h"
#include "tests/models/runs/other_value.h"
#include "tests/models/runs/tiny_family.h"

using namespace masquerade;

namespace {

// Trains steps without an update. Returns how many of them had the bucket of an earlier step. If such a step takes
// other blocks than the earlier step, the arena throws Error.
int repeated_buckets(const Family& kind, const Strings& words, int steps) {
    const std::unique_ptr<RunSettings> s = tiny(kind);
    Config keys;
    s->declare(keys);
    for (const std::string& word : words) keys.set(word.substr(0, word.find('=')), word.substr(word.find('=') + 1));
    const TrainingText text = text_for(s->wants(kind.reads));
    const std::unique_ptr<Run> run = kind.fresh(*s, vocabulary_of(*s, text), DType::f32, Device::cpu);
    const std::unique_ptr<Task> task = run->task(text);
    Arena arena(Device::cpu, Blocks::planned);
    Tape tape(arena, DType::f32);
    std::set<std::string> seen;
    for (int step = 0; step < steps; step++) {
        const std::string bucket = task->next_batch(step);
        seen.insert(bucket);
        tape.begin(bucket, 1, std::uint32_t(step), true);
        Tensor* loss = task->loss(tape, step, 100);
        run->parameters.start_gradients();
        tape.backward(loss);
        task->learn(tape);
        tape.end();
    }
    return steps - int(seen.size());
}

// Returns false if the settings are refused.
bool check(const Family& kind, const Strings& words, int steps = 12) {
    const std::string first = words.empty() ? "" : words[0];
    CAPTURE(kind.name);
    CAPTURE(first);
    int repeated = 0;
    try {
        repeated = repeated_buckets(kind, words, steps);
    } catch (const BadUsage&) {
        return false;
    } catch (const Error& e) {
        FAIL_CHECK(std::string(e.what()));
    }
    CHECK(repeated > 3);
    return true;
}

}  // namespace

TEST_CASE("buckets: batches with equal buckets have one memory plan, in every family, with every objective") {
    // With 220 tokens, the numbers of labels and documents vary, too.
    const auto varied = [](const Family& kind, const std::string& objective) {
        return check(kind, {"objective=" + objective, "batch_tokens=220"}, 24);
    };
    for (const Family& kind : families()) {
        if (kind.objectives.empty()) CHECK(check(kind, {}));
        for (const std::string& objective : kind.objectives) CHECK(varied(kind, objective));
    }
    CHECK(varied(find_family("unilm"), "mlm:1,prefix-lm:1,plm:1"));
    CHECK(varied(find_family("seq2seq"), "seq2seq:1,mass:1"));
    const Family& univae = find_family("univae");
    for (const char* kinds : {"vmf,vq", "gaussian_chain,gaussian_chain", "flow,fsq"})
        CHECK(check(univae, {text("latent_kinds=", kinds)}));
    CHECK(check(univae, {"latent=gaussian", "free_bits=1", "free_bits_of=number"}));
    CHECK(check(univae, {"pairs=true"}));
    CHECK(check(univae, {"pairs=true", "conditional=true"}));
    CHECK(check(univae, {"pairs=true", "conditional=true", "latent=gaussian", "source_prior=true"}));
}

TEST_CASE("buckets: batches with equal buckets have one memory plan, with every kind of attention") {
    for (const AttentionKind& attention : attention_kinds()) {
        const std::string word = text("attention=", attention.name);
        CHECK(check(find_family("unilm"), {word, "objective=mlm"}));
        for (const char* name : {"unilm", "seq2seq", "univae"}) check(find_family(name), {word});  // some refuse luna
    }
}

TEST_CASE("buckets: UniVAE's batches that differ only in the number of documents, or in the sizes of their sources") {
    UniVaeOptions o;
    o.backbone.vocabulary = 50, o.backbone.width = 16, o.backbone.heads = 2, o.backbone.inner = 16;
    o.backbone.layers = 2, o.backbone.positions = 40;
    o.latent.kind = LatentKind::gaussian, o.latent.size = 4;
    o.latent_layers = 1, o.max_length = 20;
    struct Case {
        int documents, source, target;  // numbers of pairs, and of the tokens of each source and target
    };
    // Returns the buckets of two batches, and runs a step of each with the same arena.
    const auto buckets_of = [&](const Case& first, const Case& second) {
        Parameters p(DType::f32);
        const UniVae model(p, o);
        p.allocate(1);
        Arena arena(Device::cpu, Blocks::planned);
        Tape tape(arena, DType::f32);
        Strings buckets;
        for (const Case& c : {first, second}) {
            Sentence one;
            one.ids.assign(c.source, 7), one.ids.front() = 2, one.ids.back() = 3;
            one.target.assign(c.target, 3);
            const std::vector<Sentence> text(c.documents, one);
            const Batch batch = halves_batch(model, pointers_to(text), 64);
            buckets.push_back(batch.bucket);
            tape.begin(batch.bucket, 1, 0, true);
            tape.backward(model.loss(tape, batch, nullptr, 1).total);
            tape.end();
        }
        return buckets;
    };
    // Both batches are padded to 64 rows, the first one to 8 documents and the second one to 16.
    const Strings documents = buckets_of({7, 8, 0}, {14, 4, 0});
    CHECK(documents[0] != documents[1]);
    // The sources are padded to 64 and to 128 rows. All other sizes are the same.
    o.conditional = o.latent.source_prior = true;
    const Strings sources = buckets_of({7, 9, 9}, {7, 10, 8});
    CHECK(sources[0] != sources[1]);
    const auto of_pairs = [](const std::string& bucket) { return bucket.substr(0, bucket.find(';')); };
    CHECK(of_pairs(sources[0]) == of_pairs(sources[1]));
}
