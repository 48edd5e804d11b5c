// SPDX-License-Identifier: MIT
// Tests how runs of masked diffusion write: with the rows of training, the same text alone and in any batch, and what
// they refuse.
#include "tests/models/runs/tiny_training.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <nlohmann/json.hpp>

#include "models/runs/writer.h"
#include "models/tasks/objective_parts.h"
#include "models/writing/unmask_decoder.h"

using namespace masquerade;

namespace {

// A run with random weights that are large enough for its texts to differ.
std::unique_ptr<UniLmRun> run_of(const std::string& objective, bool pairs,
                                 DiffusionRule::Canvas canvas = DiffusionRule::ends,
                                 const std::function<void(BackboneOptions&)>& change = {},
                                 const std::string& mask = "") {
    UniLmSettings s = tiny_unilm(objective);
    s.model.deviation = 0.4;
    if (change) change(s.model);
    s.mask = mask;
    s.how.diffusion.canvas = canvas;
    s.how.diffusion.block = 2;
    TrainingText text = questions();
    if (!pairs) text.train_targets.clear(), text.held_out_targets.clear();
    auto run = std::make_unique<UniLmRun>(s, train_vocabulary(text.train, s.vocabulary));
    run->task(text);  // tells the run whether there are pairs
    return run;
}

std::string written(TargetRun& run, const Writing& how, const Strings& lines, std::uint32_t first = 0) {
    return run.writer(how).write(lines, first);
}

Writing drawing(int samples = 1) {
    Writing how;
    how.search.samples = samples;
    return how;
}

const Strings lines = {"where are you?", "what do you think of it?", "who?", "", "where is the house?"};

// Compares the logits of hidden places with those of a batch of training.
void check_logits(const TargetRun& run, bool pairs) {
    const ObjectiveOptions o = run.objective_options();
    const bool blocks = run.diffusion()->has(Objective::ranks);
    const std::vector<Sentence> sentences = run.sentences(lines, pairs ? lines : Strings());
    for (std::uint32_t step = 0; step < 5; step++) {
        const Batch batch = run.diffusion()->batch(pointers_to(sentences), step, o);
        Arena arena(Device::cpu, Blocks::kept);
        Tape tape(arena, DType::f32);
        tape.begin("training");
        const auto wanted = numbers_of(run.net().head_stack().logits(tape, run.net().hidden(tape, batch))->view());
        // One canvas for each block, or for each sentence. The blocks before it hold their true tokens.
        std::vector<MaskedCanvas> canvases;
        int row = 0;
        for (std::size_t i = 0; i < sentences.size(); i++) {
            const Document& d = batch.parts[i];
            const int place_of_first = batch.source.count() > 0 ? row : row + d.source;
            Tokens truth;
            const int block = blocks ? o.diffusion.block : d.target;
            for (int first = 0; first < d.target; first += block) {
                MaskedCanvas c;
                c.source = int(i);
                c.tokens = truth;
                for (int place = first; place < std::min(first + block, d.target); place++) {
                    const int at = place_of_first + place, token = batch.rows.ids[std::size_t(at)];
                    const auto label = std::find(batch.labels.rows.begin(), batch.labels.rows.end(), at);
                    const bool asked = label != batch.labels.rows.end();
                    CHECK(asked == (token == o.mask));
                    c.tokens.push_back(asked ? int(MaskedCanvas::hidden) : token);
                    truth.push_back(asked ? batch.labels.tokens[std::size_t(label - batch.labels.rows.begin())]
                                          : token);
                    if (asked) c.asked.push_back(place);
                }
                c.tokens.resize(std::size_t(d.target), int(MaskedCanvas::hidden));
                if (!c.asked.empty()) canvases.push_back(c);
            }
            row = place_of_first + d.target;
        }
        CHECK((canvases.size() > 2 * sentences.size()) == blocks);
        UnmaskDecoder decoder(run.net(), *run.diffusion(), o, !pairs);
        std::vector<const MaskedCanvas*> all;
        for (MaskedCanvas& c : canvases) {
            c.number = int(all.size());
            all.push_back(&c);
        }
        decoder.read(pointers_to(sentences), int(all.size()), o.diffusion.target_places + o.diffusion.text_places);
        const float* const found = decoder.logits(all);
        REQUIRE(wanted.size() > 100);
        for (std::size_t i = 0; i < wanted.size(); i++)
            if (float(wanted[i]) != found[i]) FAIL(i);
    }
}

}  // namespace

TEST_CASE("unmask run: a place has the logits that it has in a batch of training, in pairs, texts and blocks") {
    for (DiffusionRule::Canvas canvas : {DiffusionRule::ends, DiffusionRule::drawn}) {
        for (bool pairs : {false, true}) {
            check_logits(*run_of("diffusion", pairs, canvas), pairs);
            check_logits(*run_of("block-diffusion", pairs, canvas), pairs);
        }
        Seq2SeqSettings s = tiny_seq2seq("diffusion");
        s.model.stack.deviation = 0.4;
        s.how.diffusion.canvas = canvas;
        Seq2SeqRun two_stacks(s, train_vocabulary(questions().train, s.vocabulary));
        two_stacks.task(questions());
        check_logits(two_stacks, true);
        if (canvas == DiffusionRule::drawn) continue;
        const std::string together = written(two_stacks, drawing(2), lines, 7);
        std::string alone;
        for (std::size_t i = 0; i < lines.size(); i++)
            alone += written(two_stacks, drawing(2), {lines[i]}, 7 + std::uint32_t(i));
        CHECK(together == alone);
        CHECK(together.size() > 20);
    }
}

TEST_CASE("unmask run: any-order: the logits of a place after those before it are those of training, in every order") {
    for (bool pairs : {false, true}) {
        const auto run = run_of("any-order", pairs);
        const ObjectiveOptions o = run->objective_options();
        const std::vector<Sentence> sentences = run->sentences(lines, pairs ? lines : Strings());
        for (std::uint32_t step = 0; step < 3; step++) {
            const Batch batch = run->diffusion()->batch(pointers_to(sentences), step, o);
            Arena arena(Device::cpu, Blocks::kept);
            Tape tape(arena, DType::f32);
            tape.begin("training");
            const auto wanted =
                numbers_of(run->net().head_stack().logits(tape, run->net().hidden(tape, batch))->view());
            std::vector<MaskedCanvas> canvases;  // one for each token, with those before it in the order
            int row = 0;
            for (std::size_t i = 0; i < sentences.size(); i++) {
                const Document& d = batch.parts[i];
                const int n = d.target, content = row + d.source - n - 1;
                for (int asked = 0; asked < n; asked++) {
                    MaskedCanvas c;
                    c.source = int(i), c.number = int(canvases.size());
                    c.end = run->tokenizer.vocabulary().sep();
                    const int own = batch.rank[std::size_t(content + asked)];
                    for (int place = 0; place < n; place++) {
                        const int rank = batch.rank[std::size_t(content + place)];
                        c.tokens.push_back(rank < own ? batch.rows.ids[std::size_t(content + place)] : -1);
                        c.came.push_back(rank < own ? rank + 1 : 0);
                    }
                    c.tokens.push_back(c.end), c.came.push_back(0);
                    c.asked = {asked};
                    canvases.push_back(c);
                }
                row += d.source + d.target;
            }
            UnmaskDecoder decoder(run->net(), *run->diffusion(), o, !pairs);
            std::vector<const MaskedCanvas*> all;
            for (const MaskedCanvas& c : canvases) all.push_back(&c);
            decoder.read(pointers_to(sentences), int(all.size()), 20);
            const float* const found = decoder.logits(all);
            REQUIRE(wanted.size() == all.size() * std::size_t(decoder.vocabulary()));
            REQUIRE(all.size() > 15);
            for (std::size_t i = 0; i < wanted.size(); i++)
                if (float(wanted[i]) != found[i]) FAIL(i);
        }
    }
}

TEST_CASE(
    "unmask run: any-order: the loss of training is the bound that drawn orders give, and gaps may say the length") {
    for (bool pairs : {false, true}) {
        const auto run = run_of("any-order", pairs);
        std::vector<Sentence> sentences =
            run->sentences(Strings(40, lines[1]), pairs ? Strings(40, lines[0]) : Strings());
        for (std::size_t i = 0; i < sentences.size(); i++) sentences[i].name = int(i);
        const Sentences all = pointers_to(sentences);
        const LikelihoodBound one = run->bound(*run->diffusion(), all, 1);
        double mean = 0;  // of a bound by one order each
        for (int seed = 0; seed < 16; seed++)
            mean += run->bound_by_orders(*run->diffusion(), all, 1, std::uint64_t(seed)).per_token.mean / 16;
        CHECK(one.noise > 0);
        CHECK(std::abs(one.per_token.mean - mean) < 6 * one.noise);
        CHECK(run->bound(*run->diffusion(), all, 2).per_token.mean != one.per_token.mean);  // other orders
        CHECK(run->bound_by_orders(*run->diffusion(), all, 16, 1).per_token.mean < mean);
        const auto counted = run_of("any-order:1,gaps:1", pairs);
        CHECK(counted->counter());
        CHECK(counted->unmasks());
    }
}

namespace {

// Computes the logits with and without a cache, and compares them.
struct Compared : PlaceModel {
    UnmaskDecoder cached, whole;
    int rows = 0, whole_rows = 0, passes = 0;
    Compared(const TargetRun& run, bool pairs)
        : cached(run.net(), *run.diffusion(), run.objective_options(), !pairs),
          whole(run.net(), *run.diffusion(), run.objective_options(), !pairs) {
        whole.cache = false;
    }
    int vocabulary() const override { return cached.vocabulary(); }
    const float* logits(const std::vector<const MaskedCanvas*>& canvases) override {
        std::size_t asked = 0;
        for (const MaskedCanvas* c : canvases) asked += c->asked.size();
        const float *x = cached.logits(canvases), *y = whole.logits(canvases);
        CHECK(std::memcmp(x, y, asked * std::size_t(vocabulary()) * sizeof(float)) == 0);
        rows += cached.rows(), whole_rows += whole.rows(), passes++;
        return x;
    }
};

// Returns by how many rows a pass is smaller, on average, because of the cache.
double check_cache(const TargetRun& run, bool pairs) {
    const std::vector<Sentence> sentences = run.sentences(lines, pairs ? lines : Strings());
    std::vector<MaskedCanvas> starts;
    for (int i = 0; i < int(sentences.size()); i++)
        for (int sample : {0, 1}) {
            MaskedCanvas c;
            c.source = i, c.line = std::uint32_t(i), c.sample = std::uint32_t(sample);
            c.tokens = {7, 8, 9};  // in some canvases, a block and a half are given
            c.tokens.resize(sample == 0 || i > 2 ? 0 : 3);
            c.tokens.resize(std::size_t(7 + i % 2), int(MaskedCanvas::hidden));
            starts.push_back(c);
        }
    Compared model(run, pairs);
    for (const int count : {int(sentences.size()), 2}) {  // the second time, for fewer sources
        Sentences some = pointers_to(sentences);
        some.resize(std::size_t(count));
        for (UnmaskDecoder* each : {&model.cached, &model.whole}) each->read(some, 2 * count, 8);
        SearchOptions o;
        o.samples = 1;
        o.unmask.block = run.diffusion()->has(Objective::ranks) ? run.objective_options().diffusion.block : 0;
        unmask_canvases(model, {starts.begin(), starts.begin() + 2 * count}, o, 5);
    }
    CHECK(model.passes == 8 + 8);
    return double(model.whole_rows - model.rows) / model.passes;
}

}  // namespace

TEST_CASE("unmask run: cached == computed anew, bit for bit, for every kind of attention") {
    std::set<std::string> saving;  // the kinds of attention that the cache helps on one stack
    for (const AttentionKind& kind : attention_kinds())
        for (const char* mask :
             {"", "A causal; B full sees A | layers 1: A full; B full window=2 sees A[0]", "AB full"})
            for (const char* objective : {"diffusion", "block-diffusion", "two stacks"})
                for (const bool pairs : {false, true}) {
                    const bool two_stacks = objective == std::string("two stacks");
                    if ((two_stacks || *mask) && !pairs) continue;
                    if (*mask && objective != std::string("diffusion")) continue;
                    INFO(std::string(kind.name), " ", std::string(mask), " ", std::string(objective), " ", pairs);
                    const auto of_kind = [&](BackboneOptions& o) {
                        o.attention = kind.name;
                        o.attention_options = {{"slots", 3}, {"features", 4}, {"chunk", 3}, {"window", 2}};
                        o.rotary = kind.rotates;
                        o.pre_norm = pairs;
                        o.deviation = 0.4;
                    };
                    bool saves = false, keeps = true;
                    try {
                        if (two_stacks) {
                            Seq2SeqSettings s = tiny_seq2seq("diffusion");
                            of_kind(s.model.stack);
                            Seq2SeqRun run(s, train_vocabulary(questions().train, s.vocabulary));
                            run.task(questions());
                            saves = check_cache(run, true) > 0;
                        } else {
                            const auto run = run_of(objective, pairs, DiffusionRule::ends, of_kind, mask);
                            saves = check_cache(*run, pairs) > 0;
                            keeps = run->net().head_stack().keeps_rows() && mask != std::string("AB full");
                        }
                    } catch (const BadUsage& e) {
                        CHECK_SAYS(std::string(e.what()), "mask");
                        continue;
                    }
                    CHECK(saves == keeps);
                    if (saves && !two_stacks) saving.insert(kind.name);
                }
    for (const char* kind : {"softmax", "window", "by_head", "lsh"}) CHECK(saving.count(kind));
}

TEST_CASE("unmask run: a line alone is written as in any batch, by any number of threads") {
    Writing steps = drawing(2);
    steps.search.unmask.steps = 3;
    steps.search.unmask.remask = 0.5;
    Writing shown = drawing();
    shown.show_rounds = true;
    Writing noisy;
    noisy.search.unmask.choice_temperature = 1;
    Writing sure;
    sure.search.canvas.threshold = 0.1;
    for (bool pairs : {false, true})
        for (const char* objective : {"diffusion", "block-diffusion", "any-order"}) {
            const auto run = run_of(objective, pairs);
            for (const Writing& how : {Writing(), drawing(3), steps, shown, noisy, sure}) {
                if (how.search.unmask.steps > 0 && objective == std::string("block-diffusion")) continue;
                const std::string together = written(*run, how, lines, 7);
                std::string alone;
                for (std::size_t i = 0; i < lines.size(); i++)
                    alone += written(*run, how, {lines[i]}, 7 + std::uint32_t(i));
                CHECK(together == alone);
                const int before = threads();
                set_threads(before == 1 ? 3 : 1);
                CHECK(written(*run, how, lines, 7) == together);
                set_threads(before);
                // These are more places than one group has. With any-order, texts may have the length 0.
                const bool drawn = objective == std::string("any-order");
                CHECK(written(*run, how, Strings(300, "who?"), 7).size() > (drawn ? 299 : 600));
            }
        }
}

TEST_CASE("unmask run: one block is diffusion, and a block does not know those behind it") {
    const auto whole = run_of("diffusion", true), blocks = run_of("block-diffusion", true);
    const Strings canvases = {"where?\t[MASK] are [MASK] you", "where?\t[MASK] are [MASK] who"};
    Writing how;
    how.from_canvas = true;
    const std::string words = written(*blocks, how, canvases);
    const std::size_t second = words.find('\n') + 1, block = words.find(" are");
    CHECK(words.substr(0, block) == words.substr(second, block));
    blocks->settings.how.diffusion.block = 1000;
    CHECK(written(*whole, how, canvases) == written(*blocks, how, canvases));
    CHECK(written(*whole, drawing(2), lines) == written(*blocks, drawing(2), lines));
    how.search.unmask.block = 3;
    CHECK_SAYS(message_of<BadUsage>([&] { written(*blocks, how, canvases); }),
               "--block is of runs of objective=diffusion");
    how.search.unmask = {};
    how.search.unmask.steps = 3;
    CHECK_SAYS(message_of<BadUsage>([&] { written(*blocks, how, canvases); }),
               "--steps is of runs of objective=diffusion");
}

TEST_CASE("unmask run: what is written keeps its rules") {
    const auto pairs = run_of("diffusion", true), texts = run_of("diffusion", false);
    const Vocabulary& words = pairs->tokenizer.vocabulary();
    const std::vector<Sentence> sources = pairs->sentences(Strings(200, "who?"));
    std::vector<Sentence> begun = texts->beginnings(Strings(200, "where are"));
    for (std::size_t i = 0; i < begun.size(); i++) begun[i].name = int(i);
    SearchOptions o;
    o.samples = 2;
    o.minimum = 2;
    o.maximum = 6;
    o.temperature = 1000;  // all tokens that are allowed are about equally likely
    const int who = words.id("who"), where = words.id("where");
    for (int id = 0; id < words.size(); id++)
        if (id != who && id != where && id != words.sep()) o.forbidden.push_back(id);
    std::size_t shortest = 99, longest = 0;
    for (const bool text : {false, true}) {
        for (const auto& samples : (text ? *texts : *pairs).unmask(pointers_to(text ? begun : sources), o, 1)) {
            REQUIRE(samples.size() == 2);
            for (const Written& w : samples) {
                const std::size_t given = text ? begun[0].ids.size() - 1 : 0;
                for (std::size_t i = given; i < w.tokens.size(); i++)
                    CHECK((w.tokens[i] == who || w.tokens[i] == where));
                CHECK(w.ended == (w.tokens.size() - given < 5));  // the last place that may be written
                CHECK(std::equal(begun[0].ids.begin() + 1, begun[0].ids.begin() + 1 + int(given), w.tokens.begin()));
                shortest = std::min(shortest, w.tokens.size() - given);
                longest = std::max(longest, w.tokens.size() - given);
            }
        }
    }
    CHECK(shortest == 2);
    CHECK(longest == 5);
}

TEST_CASE("unmask run: lines with [MASK] are filled, and keep their words and their length") {
    for (DiffusionRule::Canvas canvas : {DiffusionRule::ends, DiffusionRule::drawn})
        for (bool pairs : {false, true}) {
            const auto run = run_of("diffusion", pairs, canvas);
            const std::string before = pairs ? "who?\t" : "";
            Writing how;
            how.from_canvas = true;
            for (int samples : {0, 1}) {
                how.search.samples = samples;
                const Tokens ids =
                    run->tokenizer.encode(written(*run, how, {before + "where [MASK] [MASK] you [MASK]"}));
                CHECK(ids.size() >= 5);
                CHECK(ids.front() == run->tokenizer.encode("where")[0]);
            }
            how.show_rounds = true;
            how.search.samples = 0;
            const std::string rounds = written(*run, how, {before + "where [MASK] you"});
            CHECK(rounds.find("  0  where _ you\n  1  where [") == 0);
            CHECK_SAYS(message_of<BadInput>([&] {
                           written(*run, how, {before + "[MASK]", before + "where"});
                       }),
                       "standard input, line 2: nothing to write, expected at least one [MASK]");
            std::string longer = before + "[MASK]";
            for (int i = 0; i < 20; i++) longer += " where";
            CHECK_SAYS(message_of<BadInput>([&] { written(*run, how, {longer}); }),
                       pairs ? "21 tokens, expected at most 11 (max_target)"
                             : "21 tokens, expected at most 14 (max_length)");
            CHECK_SAYS(message_of<BadInput>([&] { written(*run, how, {before + "where [MASK], [MASK]"}); }),
                       "standard input, line 1: found \"[MASK],\", expected spaces around each [MASK]");
            if (pairs)
                CHECK_SAYS(message_of<BadInput>([&] {
                               written(*run, how, {"who?\t[MASK]", "where [MASK]"}, 4);
                           }),
                           "standard input, line 6: there is no tab");
        }
}

TEST_CASE("unmask run: an empty source has an empty line, and what follows a tab is not read") {
    for (DiffusionRule::Canvas canvas : {DiffusionRule::ends, DiffusionRule::drawn}) {
        const auto run = run_of("diffusion", true, canvas);
        const std::string all = written(*run, drawing(2), {"", "where are you?", "\twho"});
        CHECK(all.substr(0, 1) == "\n");
        CHECK(all.substr(all.size() - 2) == "\n\n");
        CHECK(std::count(all.begin(), all.end(), '\n') == 3);
        CHECK(all == written(*run, drawing(2), {"", "where are you?\twho", ""}));
    }
}

TEST_CASE("unmask run: a text that leaves no room is kept") {
    UniLmSettings s = tiny_unilm("diffusion");
    s.max_length = 3;
    s.how.diffusion.canvas = DiffusionRule::drawn;
    TrainingText text = questions();
    text.train_targets.clear(), text.held_out_targets.clear();
    UniLmRun run(s, train_vocabulary(text.train, s.vocabulary));
    run.task(text);
    for (int samples : {0, 3}) {
        const std::vector<Sentence> begun = run.beginnings({"where are you?"});
        REQUIRE(begun[0].ids.size() == 3);
        SearchOptions o;
        o.samples = samples;
        const std::vector<Written> all = run.unmask({&begun[0]}, o, 1).at(0);
        for (const Written& w : all) CHECK(w.tokens == Tokens(begun[0].ids.begin() + 1, begun[0].ids.end()));
        CHECK(written(run, drawing(samples), {"where are you?"}) == (samples > 1 ? "\t\t\n" : "\n"));
    }
}

TEST_CASE("unmask run: what cannot be written, and options of other runs, are refused") {
    const auto drawn = run_of("diffusion", true, DiffusionRule::drawn), pairs = run_of("diffusion", true),
               lm = run_of("lm", false), both = run_of("lm,diffusion", false);
    UniLmSettings unread = tiny_unilm("diffusion");
    unread.how.diffusion.canvas = DiffusionRule::drawn;
    UniLmRun no_table(unread, drawn->tokenizer.vocabulary());
    CHECK_SAYS(message_of<BadUsage>([&] { no_table.writer({}); }), "this run has no file lengths.txt");
    CHECK(no_table.writing_command("folder").empty());
    CHECK(drawn->writing_command("folder") == "./generate folder < SOURCES");
    Writing tries;
    tries.search.unmask.lengths = 3;
    CHECK_SAYS(message_of<BadUsage>([&] { pairs->writer(tries); }), "--lengths is of runs with canvas=drawn");
    CHECK(pairs->writing_command("folder") == "./generate folder < SOURCES");
    Writing count;
    count.count = 3;
    CHECK_SAYS(message_of<BadUsage>([&] { pairs->writer(count); }), "--count needs a model that samples text");
    Writing beam;
    beam.search.beams = 3;
    CHECK_SAYS(message_of<BadUsage>([&] { pairs->writer(beam); }), "a run of diffusion writes by --order");
    beam.search.beams = 1, beam.search.n_best = 2;
    CHECK_SAYS(message_of<BadUsage>([&] { pairs->writer(beam); }), "if the run writes from left to right");
    beam.search.beams = 3, beam.search.n_best = 1;
    Writing plan, remask;
    plan.search.unmask.plan = "cosine", remask.search.unmask.remask = 0.5;
    const auto blocks = run_of("block-diffusion", true);
    CHECK_SAYS(message_of<BadUsage>([&] { blocks->writer(plan); }), "--plan is of runs of objective=diffusion");
    CHECK_SAYS(message_of<BadUsage>([&] { blocks->writer(remask); }), "--remask is of runs of objective=diffusion");
    CHECK_SAYS(message_of<BadUsage>([&] { pairs->writer(plan); }), "give --steps as well");
    Writing longest, shortest, filled;
    longest.search.maximum = 3, shortest.search.minimum = 3;
    filled.search.minimum = 1000;
    for (Writing* how : {&longest, &shortest}) {
        pairs->writer(*how);
        how->from_canvas = true;
        CHECK_SAYS(message_of<BadUsage>([&] { pairs->writer(*how); }), "a text has as many tokens as its canvas");
    }
    CHECK_SAYS(message_of<BadUsage>([&] { pairs->writer(filled); }), "can write (max_target");
    CHECK_SAYS(message_of<BadUsage>([&] { lm->writer(filled); }), "can write (max_length less one)");
    const auto counts = run_of("diffusion:1,gaps:1", true, DiffusionRule::drawn);
    for (const Writing& how : {longest, shortest})
        CHECK_SAYS(message_of<BadUsage>([&] { counts->writer(how); }),
                   "the number of tokens follows from the canvas (--canvas) and the model: leave it out");
    // A target of 12 places has 12 tokens without an end, or 11 if its length is drawn.
    filled.search.minimum = 12;
    pairs->writer(filled);
    for (const auto& run : {drawn.get(), counts.get()})
        CHECK_SAYS(message_of<BadUsage>([&] { run->writer(filled); }), "--minimum 12 is more than the 11 tokens that");
    filled.search.minimum = 11;
    filled.show_rounds = true;
    for (const auto& run : {drawn.get(), counts.get()})
        CHECK(written(*run, filled, {"who?"}).find("\n 11 ") != std::string::npos);
    Writing backward;
    backward.backward = true;
    CHECK_SAYS(message_of<BadUsage>([&] { pairs->writer(backward); }), "does not train to generate what precedes");
    Writing steps, threshold, canvas, rounds;
    steps.search.unmask.steps = 3, threshold.search.canvas.threshold = 0.5;
    canvas.from_canvas = true, rounds.show_rounds = true;
    for (const auto& [how, option] : {std::pair(steps, "--steps"), std::pair(threshold, "--threshold"),
                                      std::pair(canvas, "--canvas"), std::pair(rounds, "--show-rounds")})
        CHECK_SAYS(message_of<BadUsage>([&, h = how] { lm->writer(h); }),
                   text(option,
                        " is an option of runs of objective=diffusion; this run was trained with objective=lm"));
    // A run that was trained for it says why it does not write so.
    const auto texts = run_of("diffusion", false);
    count.from_canvas = true;
    CHECK_SAYS(message_of<BadUsage>([&] { texts->writer(count); }), "--canvas reads lines: leave out --count");
    const auto reverse = run_of("lm-reverse,diffusion", false);
    steps.backward = true;
    CHECK_SAYS(message_of<BadUsage>([&] { reverse->writer(steps); }),
               "--steps is about writing by masked diffusion, but --backward writes from right to left");
    steps.backward = false;
    unread.objective = "lm,diffusion";
    UniLmRun both_without_table(unread, drawn->tokenizer.vocabulary());
    CHECK_SAYS(message_of<BadUsage>([&] { both_without_table.writer(steps); }),
               "--steps is about writing by masked diffusion, but this run has no file lengths.txt");
    // A threshold of 0 is reached by every place.
    Writing all_at_once;
    all_at_once.search.canvas.threshold = 0, all_at_once.search.samples = 1, all_at_once.show_rounds = true;
    const std::string at_once = written(*pairs, all_at_once, {"who?"});
    CHECK(at_once.find("\n  2 ") == at_once.npos);
    // A run that writes in both ways writes from left to right, unless an option asks for the other way.
    both->writer(beam);
    CHECK(written(*both, {}, lines) == [&] {
        std::string all;
        const std::vector<Sentence> begun = both->beginnings(lines);
        for (const Hypotheses& h : both->write(pointers_to(begun), {}, 1)) all += both->decode(h.at(0).tokens) + '\n';
        return all;
    }());
    steps.show_rounds = true;
    CHECK_SAYS(written(*both, steps, {"who?"}).substr(0, 10), "  0  who ?");
}

namespace {

// Returns log p of each number of tokens of the target of a sentence or, if `text`, of its [CLS]: the row of [SEP]
// behind an empty target predicts the number n as token V + n.
Numbers counted_law(const TargetRun& run, const Sentence& sentence, bool text, int places) {
    const ObjectiveOptions o = run.objective_options();
    Example e;
    const int context = text ? 1 : int(sentence.ids.size());
    for (int i = 0; i < context; i++) e.rows.push(sentence.ids[std::size_t(i)], o.source_type, i, sentence.name);
    e.rows.push(run.tokenizer.vocabulary().sep(), text ? o.source_type : o.target_type, context, sentence.name);
    e.document = {context, 1};
    Numbers scores;
    for (int n = 0; n < places; n++) {
        e.labels = Labels();
        e.labels.push(context, o.vocabulary + n);
        Batch batch = pack({e}, 1);
        run.counter()->give_masks(batch, o);
        Arena arena(Device::cpu, Blocks::kept);
        Tape tape(arena, DType::f32);
        tape.begin("law");
        scores.push_back(-numbers_of(run.net().losses(tape, batch).each->view()).at(0));
    }
    return length_law(scores, {0, places - 1});
}

}  // namespace

TEST_CASE("unmask run: with canvas=drawn, a target has a length of the training text") {
    const TrainingText text = questions();
    for (const int kind : {0, 1, 2, 3}) {
        const bool pairs = kind & 1, counts = kind & 2;
        const auto run = run_of(counts ? "diffusion:1,gaps:1" : "diffusion", pairs, DiffusionRule::drawn);
        // The table has the lengths of all sentences.
        std::vector<Sentence> all = run->sentences(text.train, pairs ? text.train_targets : Strings());
        LengthTable wanted;
        for (const Sentence& s : all)
            wanted.add(pairs ? int(s.ids.size()) : 1, pairs ? int(s.target.size()) - 1 : int(s.ids.size()) - 2);
        CHECK(run->lengths().lines() == (counts ? "" : wanted.lines()));
        const int places = pairs ? 12 : 15, context = pairs ? int(all[0].ids.size()) : 1;
        const LengthRange range{0, places - 1};
        const Numbers law = counts ? counted_law(*run, all[0], !pairs, places) : wanted.law(context, range);

        // The target with the best mean log p is kept, with log p of the length and a token for the end.
        std::vector<Sentence> sources = pairs ? run->sentences({text.train[0]}) : run->beginnings({""});
        SearchOptions o;
        const auto tried = [&](int count) {
            o.unmask.lengths = count;
            return run->unmask(pointers_to(sources), o, 1).at(0);
        };
        REQUIRE(tried(1).size() == 1);
        CHECK(int(tried(1)[0].tokens.size()) == best_lengths(law, 1).at(0));
        double best = -INFINITY;
        for (int n : best_lengths(law, 4)) {
            if (n == 0 && counts) continue;  // such a canvas would be a text from which tokens are missing
            MaskedCanvas start;
            start.end = run->tokenizer.vocabulary().sep(), start.minimum = n;
            start.tokens = Tokens(std::size_t(n), int(MaskedCanvas::hidden));
            start.tokens.push_back(start.end);
            o.unmask.lengths = 0;
            const Written w = run->unmask(pointers_to(sources), o, 1, {start}).at(0).at(0);
            best = std::max(best, (w.score + law[std::size_t(n)]) / (n + 1));
        }
        const Written found = tried(4).at(0);
        int rounds = 0;  // without a threshold, a pass writes one token
        for (int n : best_lengths(law, 4)) rounds += n;
        CHECK(found.rounds == int(found.tokens.size()));
        CHECK(found.rounds + found.rounds_of_others == rounds);
        CHECK(std::abs(found.score / double(found.tokens.size() + 1) - best) < (counts ? 1e-7 : 1e-9));

        // Samples draw their lengths.
        SearchOptions draws;
        draws.samples = 400;
        double sum = 0, expected = 0;
        const auto drawn = [&] { return run->unmask(pointers_to(sources), draws, 1).at(0); };
        for (const Written& w : drawn()) sum += double(w.tokens.size()) / 400;
        for (int n = 0; n < places; n++) expected += n * std::exp(law[std::size_t(n)]);
        CHECK(std::abs(sum - expected) < 0.5);
        draws.minimum = 3, draws.maximum = 5;
        for (const Written& w : drawn()) CHECK((w.tokens.size() == 3 || w.tokens.size() == 4));
        // A text in a run of pairs is the target of [CLS], with the places of a text.
        const std::vector<Sentence> text_alone = run->sentences({text.train[0]});
        const Numbers of_text = counts ? counted_law(*run, text_alone[0], true, 15) : wanted.law(1, {0, 14});
        CHECK(std::abs(run->length_cost({&text_alone[0]}) + of_text[text_alone[0].ids.size() - 2]) < 1e-6);
        const double cost = run->length_cost({&all[0]});
        CHECK(std::abs(cost + law[pairs ? all[0].target.size() - 1 : all[0].ids.size() - 2]) < 1e-6);
    }
}

TEST_CASE("unmask run: a text without [MASK] gets as many as are missing before each of its tokens") {
    for (bool pairs : {false, true}) {
        const auto run = run_of("diffusion:1,gaps:1", pairs, DiffusionRule::drawn);
        const std::vector<Sentence> sources = pairs ? run->sentences({"who?"}) : run->beginnings({""});
        const Tokens words = run->tokenizer.encode("where are you");
        const int sep = run->tokenizer.vocabulary().sep(), places = pairs ? 12 : 15;
        UnmaskDecoder decoder(run->net(), *run->counter(), run->objective_options(), !pairs);
        const std::vector<Numbers> missing = decoder.missing({&sources[0]}, {words}, sep).at(0);
        REQUIRE(missing.size() == words.size() + 1);
        Tokens expected;  // with -1 for what is missing
        double score = 0;
        for (std::size_t i = 0; i <= words.size(); i++) {
            const int room = places - 1 - int(expected.size()) - int(words.size() - i);
            const Numbers law = length_law(missing[i], {0, room});
            const auto best = std::max_element(law.begin(), law.end());
            expected.insert(expected.end(), std::size_t(best - law.begin()), -1);
            if (i < words.size()) expected.push_back(words[i]);
            score += *best;
        }
        MaskedCanvas start = run->canvas_of("where are you", 0);
        SearchOptions o;
        o.unmask.per_pass = 1000;
        const Written w = run->unmask(pointers_to(sources), o, 1, {start}).at(0).at(0);
        REQUIRE(w.tokens.size() == expected.size());
        for (std::size_t i = 0; i < expected.size(); i++) {
            CHECK((w.came[i] == 0) == (expected[i] >= 0));
            CHECK((expected[i] < 0 || w.tokens[i] == expected[i]));
        }
        MaskedCanvas hidden = start;
        hidden.tokens = expected;
        hidden.tokens.push_back(sep);
        hidden.minimum = int(expected.size());
        const Written same = run->unmask(pointers_to(sources), o, 1, {hidden}).at(0).at(0);
        CHECK(same.tokens == w.tokens);
        CHECK(std::count(expected.begin(), expected.end(), -1) > 0);
        CHECK(std::abs(w.score - same.score - score) < 1e-6);
        // Drawn numbers follow the law, and each sample has its own.
        o.samples = 600;
        std::vector<int> seen(std::size_t(places), 0);
        const std::vector<Written> drawn = run->unmask(pointers_to(sources), o, 1, {start}).at(0);
        for (const Written& each : drawn) {
            int first = 0;
            while (each.came[std::size_t(first)] > 0) first++;
            seen[std::size_t(first)]++;
        }
        const Numbers law = length_law(missing[0], {0, places - 1 - int(words.size())});
        for (std::size_t n = 0; n < law.size(); n++)
            CHECK(std::abs(seen[n] - 600 * std::exp(law[n])) < 5 + 4 * std::sqrt(600 * std::exp(law[n])));
        // An empty line is a text from which all tokens are missing.
        CHECK(run->canvas_of("", 0).tokens == Tokens{sep});
    }
}

TEST_CASE("unmask run: a text that is continued gets as many tokens as are missing at its end") {
    const auto run = run_of("diffusion:1,gaps:1", false, DiffusionRule::drawn);
    std::vector<Sentence> sources = run->beginnings({"where are you", "who", ""});
    std::size_t longer = 0;
    for (const Sentence& s : sources) {
        const Tokens given(s.ids.begin() + 1, s.ids.end());
        UnmaskDecoder decoder(run->net(), *run->counter(), run->objective_options(), true);
        const Numbers last = decoder.missing({&s}, {given}, run->tokenizer.vocabulary().sep()).at(0).back();
        const auto end = last.begin() + 15 - std::ptrdiff_t(given.size());  // the longest text has 14 tokens
        const std::size_t most = std::size_t(std::max_element(last.begin(), end) - last.begin());
        CHECK(run->unmask({&s}, SearchOptions(), 1).at(0).at(0).tokens.size() == given.size() + most);
        longer += most;
    }
    CHECK(longer > 0);
}

TEST_CASE("unmask run: numbers are never written, however unlikely the words are") {
    for (bool pairs : {false, true})
        for (const char* objective : {"diffusion:1,gaps:1", "lm:1,gaps:1"}) {
            const auto run = run_of(objective, pairs, DiffusionRule::drawn);
            std::vector<Sentence> sources =
                pairs ? run->sentences(Strings(100, "who?")) : run->beginnings(Strings(100, "who"));
            for (std::size_t i = 0; i < sources.size(); i++) sources[i].name = int(i);
            SearchOptions o;
            o.samples = 2;
            o.temperature = 1000;
            std::set<int> seen;
            const int V = run->tokenizer.vocabulary().size();
            for (const Hypotheses& all : run->write(pointers_to(sources), o, 1))
                for (const Hypothesis& h : all) seen.insert(h.tokens.begin(), h.tokens.end());
            CHECK(int(seen.size()) > V / 2);
            CHECK(*seen.rbegin() < V);
        }
}

TEST_CASE("unmask run: the lengths are kept in the run folder") {
    TemporaryFolder folder;
    UniLmSettings s = tiny_unilm("diffusion");
    s.how.diffusion.canvas = DiffusionRule::drawn;
    TinyTraining<UniLmRun> t(s, RunFolder::create(folder.file("run")), 2);
    t.run.start(t.folder, nlohmann::json::object());
    t.trainer.run(never);
    const std::string lines = t.run.lengths().lines(), path = folder.file("run/lengths.txt");
    CHECK(lines.size() > 10);
    const auto loaded = load_run<UniLmRun>(folder.file("run"));
    CHECK(loaded->lengths().lines() == lines);
    loaded->step = 0;
    loaded->task(t.text);
    CHECK(loaded->lengths().lines() == lines);  // not counted twice
    std::ofstream(path) << "3\t4\n";
    CHECK_SAYS(message_of<BadInput>([&] { load_run<UniLmRun>(folder.file("run")); }),
               "lengths.txt:1: expected three numbers");
    std::filesystem::remove(path);
    const auto without = load_run<UniLmRun>(folder.file("run"));
    CHECK_FALSE(without->unmasks());
    without->task(t.text);  // another text than that of its training would give other lengths
    CHECK_FALSE(without->unmasks());
}
