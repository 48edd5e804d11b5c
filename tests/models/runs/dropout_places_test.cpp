// SPDX-License-Identifier: MIT
// Tests every place at which numbers are dropped, for every family, objective, kind of attention and kind of latent.
// The test finds the places in the records of the tape, so a new place is tested without a change here.
//   counts        each place drops the fraction that the settings say, in pre-LN layers and in post-LN layers
//   independence  no two rows of a place drop the same channels, and neither do two places, steps or seeds; no two
//                 heads, rows or places drop the same keys
//   invariance    the losses of a sentence have the same bits, whatever other sentences are in the batch
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "models/latent/latent.h"
#include "models/runs/target_run.h"
#include "tests/models/runs/tiny_family.h"
#include "tests/train/files.h"
#include "tokenizer/trainer.h"
#include "models/runs/training.h"

using namespace masquerade;

namespace {

constexpr int width = 64, heads = 2, head_size = width / heads;
constexpr double hidden_rate = 0.5, key_rate = 0.25;

// The channels that are dropped at a place: in the mask of a row, bit c is 1 if channel c is dropped. The inert rows at
// the end of a batch all have the same name, so they drop the same channels. Only the first of them is kept here.
struct Place {
    std::string name;
    std::vector<std::uint64_t> masks;  // for each row
    std::size_t rows;                  // including inert rows that are left out of `masks`
};

// The output of an attention in which all values differ: for each row and column, a number, which is 0 if the key of
// this column is dropped.
struct Seen {
    std::string name;
    std::int64_t rows = 0;
    std::vector<float> left;
};

// Observes the records of a forward. In attention, sets the queries to 0 and the value of key i to unit vector i of the
// head, so that the output of a row shows which of its keys are dropped. `losses` has the losses of the questions or
// documents with a weight above 0.
struct XRay : Observer {
    bool into_attention = true;
    std::vector<Place> places;
    std::vector<Seen> attentions;
    std::multiset<float> losses;
    int embeddings = 0, dropped_embeddings = 0;

    static bool attends(const Record& r) {
        return r.op == std::string("attention") || r.op == std::string("lsh_attention");
    }

    void before(const Record& r, bool backward) override {
        if (backward || !into_attention || !attends(r)) return;
        const bool buckets = r.op == std::string("lsh_attention");
        std::memset(r.in[0]->value, 0, r.in[0]->bytes());
        const std::size_t begin = buckets ? 2 : 1, end = buckets ? 3 : r.in.size();
        // The columns of a head are divided among the key/value tensors of the call; each tensor gets this many.
        const std::int64_t part = head_size / std::int64_t(end - begin);
        for (std::size_t s = begin; s < end; s++) {
            const Tensor& kv = *r.in[s];
            // The tensor has keys and values, or only values.
            const std::int64_t columns = kv.columns(), first = columns - width;
            const auto place = [&](std::int64_t row) { return std::int64_t(s - begin) * part + row % part; };
            float* numbers = static_cast<float*>(kv.value);
            for (std::int64_t row = 0; row < kv.rows(); row++)
                for (std::int64_t c = first; c < columns; c++)
                    numbers[row * columns + c] = (c - first) % head_size == place(row) ? 1.0f : 0.0f;
        }
    }

    void after(const Record& r, bool backward) override {
        if (backward) return;
        const std::string op = r.op;
        const auto ends = [&](const std::string& end) {
            return r.path.size() >= end.size() && r.path.substr(r.path.size() - end.size()) == end;
        };
        embeddings += ends("embedding.norm"), dropped_embeddings += ends("embedding.dropout");
        if (op == "dropout") note(r.path, r.in[0], nullptr, r.out[0]);
        if (op == "residual_norm") note(r.path, r.in[1], r.in[0], r.out[1]);
        if (attends(r)) {
            const float* y = static_cast<const float*>(r.out[0]->value);
            attentions.push_back({r.path, r.out[0]->rows(), {y, y + r.out[0]->shape.count()}});
        }
        if (op == "cross_entropy")
            for (std::int64_t m = 0; m < r.out[1]->shape.count(); m++)
                if (static_cast<const float*>(r.in[3]->value)[m] != 0)
                    losses.insert(static_cast<const float*>(r.out[1]->value)[m]);
        if (op == "slot_loss")
            for (std::int64_t b = 0; b < r.out[0]->shape.count(); b++)
                losses.insert(static_cast<const float*>(r.out[0]->value)[b]);
    }

  private:
    // Notes the dropped channels. y is dropout(x) or, if `before` is not null, before + dropout(x).
    void note(const std::string& name, const Tensor* x, const Tensor* before, const Tensor* y) {
        Place place{name, {}, std::size_t(x->rows())};
        const std::int64_t C = x->columns();
        for (std::int64_t row = 0; row < x->rows(); row++) {
            const float* to = static_cast<const float*>(y->value) + row * C;
            const float* from = before ? static_cast<const float*>(before->value) + row * C : nullptr;
            std::uint64_t mask = 0;
            for (std::int64_t c = 0; c < C && c < 64; c++) mask |= std::uint64_t(to[c] == (from ? from[c] : 0.0f)) << c;
            place.masks.push_back(mask);
        }
        while (place.masks.size() > 1 && place.masks[place.masks.size() - 2] == place.masks.back())
            place.masks.pop_back();
        places.push_back(std::move(place));
    }
};

std::unique_ptr<RunSettings> settings_of(const Family& kind,
                                         const std::vector<std::pair<std::string, std::string>>& given) {
    auto settings = tiny(kind);
    Config keys;
    settings->declare(keys);
    std::vector<std::pair<std::string, std::string>> all = {{"width", std::to_string(width)},
                                                            {"heads", std::to_string(heads)},
                                                            {"layers", "2"},
                                                            {"latent_layers", "1"},
                                                            {"batch_tokens", "2000"},
                                                            {"hidden", "0.4"},
                                                            {"predicted", "0.5"},
                                                            {"word_dropout", "0.3"},
                                                            {"canvases", "2"},
                                                            {"length", "12"},
                                                            {"rotary", "true"}};
    if (std::string(kind.name) == "classify") all.emplace_back("task", "copy"), all.emplace_back("batch_tokens", "150");
    all.insert(all.end(), given.begin(), given.end());
    for (const auto& [key, value] : all)
        if (keys.has(key)) keys.set(key, value);
    return settings;
}

// Returns eight sentences. The sentences with odd numbers are `others`.
TrainingText eight(const Family& kind, const RunSettings& settings, const std::string& others) {
    const std::vector<std::string> questions = grammar_questions(3, 12);
    TrainingText t;
    for (int i = 0; i < 8; i++) t.train.push_back(i % 2 ? others + " " + std::to_string(i) : questions[std::size_t(i)]);
    if (settings.wants(kind.reads) == TextKind::none) return {};
    if (settings.wants(kind.reads) == TextKind::sentences) return t;
    t.train_targets = t.train;
    // Moves by two, so that even sentences keep even targets.
    std::rotate(t.train_targets.begin(), t.train_targets.begin() + 2, t.train_targets.end());
    return t;
}

Vocabulary vocabulary_for(const RunSettings& settings) {
    if (std::vector<std::string> words = settings.words(); !words.empty()) return Vocabulary(std::move(words));
    static const Vocabulary learned = train_vocabulary(grammar_questions(3, 100), 200);
    return learned;
}

// Runs the forwards of the first training steps, with the random numbers of `seed`. Every forward uses the weights of a
// fresh run.
XRay forwards(const Family& kind, const RunSettings& settings, const TrainingText& text, bool into_attention,
              int steps = 1, std::uint64_t seed = 1) {
    const auto run = kind.fresh(settings, vocabulary_for(settings), DType::f32, Device::cpu);
    const auto task = run->task(text);
    XRay ray;
    ray.into_attention = into_attention;
    Arena arena;
    Tape tape(arena, DType::f32);
    tape.observe(&ray);
    for (int step = 0; step < steps; step++) {
        tape.begin(task->next_batch(step), seed, std::uint32_t(step), true);
        task->loss(tape, step, 100);
        tape.end();
    }
    return ray;
}

// Returns the difference of the found and the expected fraction, in standard deviations for `count` draws.
double off(double found, double expected, double count) {
    return std::fabs(found / count - expected) / std::sqrt(expected * (1 - expected) / count);
}
constexpr double most_off = 6;

// `twins`: the number of other rows of a place with which a row may share its dropped channels. In a permutation
// language model, the query row and the content row of a token have the same document and position, and so the same
// random numbers. In pmlm, a hidden token has three such rows.
void check_hidden(const std::vector<XRay>& passes, int twins) {
    struct Row {
        const Place* place;
        std::size_t row;
        int twins = 0;
    };
    std::map<std::uint64_t, Row> known;
    for (const XRay& pass : passes)
        for (const Place& place : pass.places) {
            INFO("place ", place.name);
            REQUIRE(4 * place.masks.size() >= place.rows);
            double dropped = 0, same[3] = {0, 0, 0};
            for (std::size_t row = 0; row < place.masks.size(); row++) {
                const std::uint64_t mask = place.masks[row];
                dropped += __builtin_popcountll(mask);
                for (int k = 0; k < 3; k++)
                    same[k] += __builtin_popcountll(~(mask ^ (mask << (1 << 2 * k) | mask >> (64 - (1 << 2 * k)))));
                const auto [at, fresh] = known.insert({mask, {&place, row}});
                if (fresh) continue;
                Row& other = at->second;
                INFO("row ", row, " drops as row ", other.row, " of ", other.place->name);
                const bool may = other.place == &place && other.twins < twins;
                CHECK(may);
                other.twins++;
            }
            const double count = 64.0 * double(place.masks.size());
            CHECK(off(dropped, hidden_rate, count) < most_off);
            for (double agree : same) CHECK(off(agree, 0.5, count) < most_off);
        }
}

// `whole`: the same pass without dropout, which shows the keys that each row sees.
void check_keys(const XRay& pass, const XRay& whole) {
    REQUIRE(pass.attentions.size() == whole.attentions.size());
    const auto dropped = [](const Seen& a, std::size_t i) { return a.left[i] == 0; };
    for (std::size_t n = 0; n < pass.attentions.size(); n++) {
        const Seen &a = pass.attentions[n], &w = whole.attentions[n];
        INFO("place ", a.name);
        REQUIRE(a.left.size() == w.left.size());
        std::int64_t rows = a.rows;
        for (const Place& place : pass.places)
            if (std::int64_t(place.rows) == a.rows &&
                place.name.substr(0, place.name.find('.')) == a.name.substr(0, a.name.find('.')))
                rows = std::int64_t(place.masks.size());
        double count = 0, gone = 0, both = 0, heads_agree = 0, next = 0, rows_agree = 0, others = 0, others_agree = 0;
        // Several keys may share a column. Only columns with a single key are counted.
        const auto alone = [&w](std::int64_t row, int c) {
            const float* const first = &w.left[std::size_t(row * width)];
            const float share = *std::min_element(first, first + width,
                                                  [](float x, float y) { return (x == 0 ? 2 : x) < (y == 0 ? 2 : y); });
            return first[c] != 0 && first[c] <= 1.5f * share;
        };
        for (std::int64_t row = 0; row < rows; row++)
            for (int c = 0; c < head_size; c++) {
                const auto i = std::size_t(row * width + c), j = i + head_size, below = i + width;
                if (!alone(row, c)) continue;
                count++, gone += dropped(a, i);
                both++, heads_agree += dropped(a, i) == dropped(a, j);
                if (row + 1 < rows && alone(row + 1, c)) next++, rows_agree += dropped(a, i) == dropped(a, below);
                const Seen& other = pass.attentions[(n + 1) % pass.attentions.size()];
                if (&other != &a && other.rows == a.rows &&
                    whole.attentions[(n + 1) % pass.attentions.size()].left[i] > 0)
                    others++, others_agree += dropped(a, i) == dropped(other, i);
            }
        REQUIRE(count > 0);
        const double agree = key_rate * key_rate + (1 - key_rate) * (1 - key_rate);
        CHECK(off(gone, key_rate, count) < most_off);
        CHECK(off(heads_agree, agree, both) < most_off);
        if (next > 0) CHECK(off(rows_agree, agree, next) < most_off);
        if (others > 0) CHECK(off(others_agree, agree, others) < most_off);
    }
}

// Returns the number of different losses that occur in both, with the same bits.
std::size_t common(const std::multiset<float>& a, const std::multiset<float>& b) {
    std::vector<float> both;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    return std::set<float>(both.begin(), both.end()).size();
}

void check(const Family& kind, std::vector<std::pair<std::string, std::string>> given) {
    std::string name = kind.name;
    for (const auto& [key, value] : given) name += " " + key + "=" + value;
    INFO(name);
    std::map<std::string, std::size_t> counts[2];
    for (const char* pre_norm : {"false", "true"}) {
        INFO("pre_norm=", std::string(pre_norm));
        const auto settings = [&](double hidden, double keys) {
            auto with = given;
            with.insert(with.end(),
                        {{"pre_norm", pre_norm}, {"dropout", text(hidden)}, {"attention_dropout", text(keys)}});
            return settings_of(kind, with);
        };
        const auto both = settings(hidden_rate, key_rate), hidden = settings(hidden_rate, 0);
        const TrainingText text = eight(kind, *both, "who");
        std::vector<XRay> passes;
        try {
            passes.push_back(forwards(kind, *hidden, text, false, 2));
        } catch (const BadUsage& refusal) {
            // This kind of attention cannot honour the masks of the family.
            CHECK(std::string(refusal.what()).find("attention ") != std::string::npos);
            return;
        }
        passes.push_back(forwards(kind, *hidden, text, false, 1, 2));
        const auto trains = [&](const char* objective) {
            return std::count(given.begin(), given.end(), std::pair<std::string, std::string>("objective", objective));
        };
        check_hidden(passes, int(trains("plm") + 2 * trains("pmlm")));
        if (pre_norm[0] == 'f')
            check_keys(forwards(kind, *both, text, true, 2), forwards(kind, *hidden, text, true, 2));
        // Counts by layer, because records have other names if they include a norm.
        for (const Place& place : passes[0].places) {
            const std::size_t layer = place.name.find("layer.");
            const std::string scope =
                layer == std::string::npos ? place.name : place.name.substr(0, place.name.find('.', layer + 6));
            counts[pre_norm[0] == 't'][scope]++;
        }
        CHECK(passes[0].embeddings > 0);
        CHECK(passes[0].dropped_embeddings == passes[0].embeddings);
        if (text.train.empty()) continue;
        const auto seen = forwards(kind, *both, text, false).losses,
                   beside =
                       forwards(kind, *both, eight(kind, *both, "who is the one that sees what he does not"), false)
                           .losses;
        REQUIRE(seen.size() >= 4);
        CHECK(common(seen, beside) >= 4);
        CHECK(common(seen, forwards(kind, *both, text, false, 1, 2).losses) < 4);
    }
    CHECK(counts[0] == counts[1]);
}

}  // namespace

TEST_CASE("dropout: every place of every family drops its share, by names of its own, the same in any batch") {
    for (const Family& kind : families()) {
        const auto settings = tiny(kind);
        Config keys;
        settings->declare(keys);
        if (!keys.has("dropout")) continue;
        for (const std::string& objective : kind.objectives)
            if (keys.has("objective")) check(kind, {{"objective", objective}});
        for (const AttentionKind& attention : attention_kinds()) {
            std::vector<std::pair<std::string, std::string>> given = {{"attention", attention.name},
                                                                      {"chunk", "4"},
                                                                      {"slots", "3"}};
            if (!attention.rotates) given.emplace_back("rotary", "false");
            // Each op computes two of the four heads, so that it has `width` columns.
            if (std::string(attention.name) == "by_head")
                given.insert(given.end(), {{"width", text(2 * width)}, {"heads", text(2 * heads)}});
            if (std::string(kind.name) == "unilm") given.emplace_back("objective", "mlm");
            check(kind, given);
            // In this objective, documents have several groups of slots.
            given.emplace_back("objective", "insertion-one-stack");
            if (attention.companion && std::string(kind.name) == "insertion") check(kind, given);
        }
        if (!keys.has("latent")) continue;
        for (const LatentKindRow& latent : latent_kinds()) check(kind, {{"latent", latent.name}});
    }
}
