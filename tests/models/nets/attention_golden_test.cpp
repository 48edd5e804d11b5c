// SPDX-License-Identifier: MIT
// Compares every kind of attention, with every option and under every mask that it honours, with sums that a Python
// program computes from the papers' equations (tests/golden/attention). The tables of kinds, masks and settings decide
// which results the golden file must contain.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "engine/base/random.h"
#include "engine/tensor/numbers.h"
#include "models/masks/mask.h"
#include "models/nets/backbone.h"
#include "models/runs/run.h"
#include "tests/train/files.h"

using namespace masquerade;

namespace {

constexpr int C = 8, P = 20;
const Documents documents = {{9, 7}, {4, 5}};

// Returns numbers that are uniform in [-1, 1), by FNV-1a of the name and SplitMix64. make.py computes the same numbers.
std::vector<double> numbers_of_name(const std::string& name, std::int64_t count, double times = 1) {
    std::vector<double> all;
    for (std::uint64_t i = 1; i <= std::uint64_t(count); i++) {
        std::uint64_t z = hash_of(name) + i * 0x9e3779b97f4a7c15ull;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ z >> 27) * 0x94d049bb133111ebull;
        all.push_back(times * (double((z ^ z >> 31) >> 11) * 0x1p-52 - 1));
    }
    return all;
}

struct Settings {
    BackboneOptions o;
    Config config;
    explicit Settings(const std::string& words = "") {
        o.width = C, o.positions = P;
        RunSettings::declare_backbone(config, o);
        RunSettings::declare_foreign(config, o);
        config.set("rotary=false");
        std::istringstream in(words);
        for (std::string word; in >> word;) config.set(word);
    }
};

struct Line {
    std::string kind, settings, salt;
    std::map<std::string, std::vector<double>> masks;
};

std::vector<Line> lines() {
    std::ifstream in("tests/golden/attention/golden.jsonl");
    std::vector<Line> all;
    for (std::string line; std::getline(in, line);) {
        const nlohmann::json j = nlohmann::json::parse(line);
        all.push_back({j["kind"], j["settings"], j["salt"], j["masks"]});
    }
    return all;
}

// Returns, for each half of each document that has queries, the sum of its outputs. Before they are summed, each number
// is multiplied by its own factor.
std::vector<double> result(const AttentionKind& kind, const BackboneOptions& o, const NamedMask& mask,
                           const std::string& salt) {
    const bool cross = mask.rows == MaskRows::cross;
    const std::string name = cross ? "cross" : "attention";
    Parameters parameters(DType::f64);
    std::vector<std::unique_ptr<const Attention>> layers;
    const AttentionShape shape{o.width,    o.heads, 0.02,   o.rotary_value, P,         o.attention_options,
                               o.pre_norm, o.eps,   o.norm, o.bias,         o.kv_heads};
    for (int i = 0; i < (kind.companion ? 2 : 1); i++)
        layers.push_back(kind.make(parameters, text("layer.", i), name, shape));
    std::shared_ptr<Companion> companion;
    if (kind.companion) companion = kind.companion(parameters, "slots", shape);
    parameters.allocate(1);
    for (const Tensor& p : parameters.all()) {
        const bool features = p.path.size() > 9 && p.path.substr(p.path.size() - 9) == ".features";
        write_numbers(parameters.master(p),
                      numbers_of_name(salt + "/" + p.path, p.shape.count(), features ? 2.5 : 0.8).data());
    }
    // part, document and query_position have a number for each query, and key_position for each key.
    std::vector<int> part, document, query_position, key_position;
    for (int d = 0; d < int(documents.size()); d++) {
        const int a = documents[std::size_t(d)].source, b = documents[std::size_t(d)].target;
        const bool source = mask.rows == MaskRows::tokens || mask.rows == MaskRows::source,
                   target = mask.rows != MaskRows::source;
        for (int i = 0; i < (source ? a : 0); i++)
            part.push_back(0), document.push_back(d), query_position.push_back(i);
        for (int i = 0; i < (target ? b : 0); i++)
            part.push_back(1), document.push_back(d), query_position.push_back(source ? a + i : i);
        for (int i = 0; i < (cross ? a : 0); i++) key_position.push_back(i);
    }
    if (!cross) key_position = query_position;
    Arena arena(Device::cpu, Blocks::loose);
    Tape tape(arena, DType::f64);
    tape.begin("golden");
    const auto rows = [&](const char* what, std::size_t count) {
        return tape.constant(what, {std::int64_t(count), C}, DType::f64,
                             numbers_of_name(salt + "/" + what, std::int64_t(count) * C).data());
    };
    const SegmentGraph graph = make_mask(mask.name, documents, example_details(documents));
    const std::vector<double> rotary_table = make_rotary_table(P, C / o.heads);
    AttentionContext context;
    context.rows = {tape.ints(document), tape.ints(query_position)};
    context.graph = &graph;
    if (o.rotary)
        context.rotary_table = tape.constant("rotary_table", {P, C / o.heads}, DType::f64, rotary_table.data());
    if (companion) companion = companion->start();
    context.companion = companion.get();
    Tensor* x = rows("x", query_position.size());
    Tensor* const keys = cross ? rows("keys", key_position.size()) : nullptr;
    Tensor* const memory = mask.rows == MaskRows::latent ? rows("memory", documents.size()) : nullptr;
    for (const auto& layer : layers) {
        Queries queries{x};
        x = (*layer)(tape, queries, {cross ? keys : x, tape.ints(key_position), memory}, context);
    }
    std::map<std::pair<int, int>, double> sums;
    const std::vector<double> times = numbers_of_name("times", x->shape.count());
    for (std::int64_t i = 0; i < x->shape.count(); i++)
        sums[{document[std::size_t(i / C)], part[std::size_t(i / C)]}] +=
            number_at(x->view(), i) * times[std::size_t(i)];
    tape.end();
    std::vector<double> all;
    for (const auto& each : sums) all.push_back(each.second);
    return all;
}

std::string value_of(const Line& line, const std::string& key) { return Settings(line.settings).config.value(key); }

bool has_word(const std::string& words, const std::string& word) {
    const auto inside = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    for (std::size_t at = words.find(word); at != words.npos; at = words.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        if ((at == 0 || !inside(words[at - 1])) && (end == words.size() || !inside(words[end]))) return true;
    }
    return false;
}

}  // namespace

TEST_CASE("attention golden: every kind, option and mask is the papers' sum, 1e-11") {
    for (const Line& line : lines())
        for (const auto& [mask, expected] : line.masks) {
            const std::string what = line.kind + " " + line.settings + " under " + mask;
            CAPTURE(what);
            const std::vector<double> found =
                result(find_attention(line.kind), Settings(line.settings).o, find_mask(mask), line.salt);
            REQUIRE(found.size() == expected.size());
            for (std::size_t i = 0; i < found.size(); i++)
                CHECK(std::abs(found[i] - expected[i]) <= 1e-11 * (1 + std::abs(expected[i])));
        }
}

TEST_CASE("attention golden: the file has every kind under every mask that it honours, and no other") {
    const std::vector<Line> all = lines();
    for (const AttentionKind& kind : attention_kinds())
        for (const NamedMask& mask : named_masks()) {
            if (mask.rows == MaskRows::decoded) continue;  // this mask needs a cache
            const bool honoured = kind.refuses(make_mask(mask.name, documents, example_details(documents))).empty();
            const bool held = std::any_of(all.begin(), all.end(), [&](const Line& line) {
                return line.kind == kind.name && line.masks.count(mask.name);
            });
            const std::string what = text(kind.name, " under ", mask.name);
            CAPTURE(what);
            CHECK(honoured == held);
        }
}

TEST_CASE("attention golden: the file has every option of every kind at two values, and all that are named") {
    const std::vector<Line> all = lines();
    const auto values = [&](const std::string& kind, const std::string& key) {
        std::set<std::string> some;
        for (const Line& line : all)
            if (line.kind == kind) some.insert(value_of(line, key));
        return some;
    };
    int options = 0;
    for (const auto& [topic, key, value, help, expected] : Settings().config.settings()) {
        // This setting is only for training.
        if (key == "redraw" || key == "attention_dropout") continue;
        for (const AttentionKind& kind : attention_kinds()) {
            const std::string what = text(key, " of ", kind.name);
            CAPTURE(what);
            const std::string about = help.substr(0, help.find(", as in '"));  // an example may name other settings
            const bool own = key != "attention" && has_word(about, kind.name);
            const std::set<std::string> found = values(kind.name, key);
            options += own;
            if (own || key == "heads" || (key == "rotary" && kind.rotates)) CHECK(found.size() >= 2);
            std::istringstream choices(expected.find('|') == expected.npos || !own ? "" : expected);
            for (std::string choice; std::getline(choices, choice, '|');) CHECK(found.count(choice));
        }
    }
    CHECK(options >= 20);
}

TEST_CASE(
    "attention golden: the file has both values of a setting of all stacks where it changes what a kind "
    "gives") {
    const std::vector<Line> all = lines();
    for (const AttentionKind& kind : attention_kinds())
        for (const auto& [one, other] :
             {std::pair("pre_norm=false", "pre_norm=true"), std::pair("norm_eps=1e-12", "norm_eps=0.1"),
              std::pair("bias=true", "bias=false"), std::pair("kv_heads=0", "kv_heads=1"),
              std::pair("norm=layer", "norm=rms"),
              std::pair("rotary=true rotary_value=false", "rotary=true rotary_value=true")}) {
            const std::string key = text(other).substr(text(other).find_last_of(" ") + 1),
                              name = key.substr(0, key.find('='));
            if ((!kind.rotates && name == "rotary_value") || (!kind.groups_heads && name == "kv_heads")) continue;
            const NamedMask& mask = find_mask("encoder");
            std::set<std::string> held;
            for (const Line& line : all)
                if (line.kind == kind.name) held.insert(value_of(line, name));
            const std::string what = text(kind.name, ": ", one, " and ", other);
            CAPTURE(what);
            if (result(kind, Settings(one).o, mask, "a") != result(kind, Settings(other).o, mask, "a"))
                CHECK(held.size() >= 2);
        }
}

// In the golden test, the features get given numbers. Therefore, it cannot show that the features that a kind draws
// have the right size. This test does.
TEST_CASE("attention golden: many features, as they are drawn, give what the kernel gives") {
    constexpr int N = 6, heads = 2, D = C / heads;
    const Documents one = {{N, 0}};
    const SegmentGraph graph = full_mask(one);
    const auto run = [&](const std::string& kind, const std::string& settings,
                         const std::function<void(Parameters&)>& write) {
        const Settings s("heads=2 " + settings);
        Parameters parameters(DType::f64);
        const auto attention = find_attention(kind).make(parameters, "layer", "attention",
                                                         {C, heads, 0.02, false, P, s.o.attention_options});
        parameters.allocate(2);
        write(parameters);
        Arena arena(Device::cpu, Blocks::loose);
        Tape tape(arena, DType::f64);
        tape.begin("kernel");
        const std::vector<int> document(N, 0);
        std::vector<int> position;
        for (int i = 0; i < N; i++) position.push_back(i);
        Queries queries{tape.constant("x", {N, C}, DType::f64, numbers_of_name("x", N * C).data())};
        AttentionContext context;
        context.rows = {tape.ints(document), tape.ints(position)};
        context.graph = &graph;
        return numbers_of((*attention)(tape, queries, {queries.x, tape.ints(position)}, context)->view());
    };
    const auto weight = [](const std::string& what, std::int64_t count) { return numbers_of_name(what, count, 0.6); };
    const auto write = [&](Parameters& p) {  // gives the same weights to all kinds
        for (const Tensor& t : p.all()) {
            const std::string what = t.path.substr(t.path.find("attention.") + 10);
            if (what == "key_value.weight" || what == "key_value.bias") {
                std::vector<double> both = weight("key" + what.substr(9), t.shape.count() / 2),
                                    value = weight("value" + what.substr(9), t.shape.count() / 2);
                both.insert(both.end(), value.begin(), value.end());
                write_numbers(p.master(t), both.data());
            } else if (what != "features") {
                write_numbers(p.master(t), what == "sharpness" ? std::vector<double>(C, 1).data()
                                                               : weight(what, t.shape.count()).data());
            }
        }
    };
    const auto apart = [](const std::vector<double>& a, const std::vector<double>& b) {
        double square = 0, all = 0;
        for (std::size_t i = 0; i < a.size(); i++) square += (a[i] - b[i]) * (a[i] - b[i]), all += b[i] * b[i];
        return std::sqrt(square / all);
    };
    const std::vector<double> exact = run("softmax", "", write);
    for (const char* map : {"positive", "hyperbolic", "trigonometric"}) {
        CAPTURE(std::string(map));
        CHECK(apart(run("performer", text("features=20000 feature_map=", map), write), exact) < 0.02);
    }
    // rfa: softmax over queries and keys that are scaled to length 1, without the division by the square root of D.
    const std::vector<double> x = numbers_of_name("x", N * C);
    const auto linear = [&](const std::vector<double>& rows, const std::string& what) {
        const std::vector<double> w = weight(what + ".weight", C * C), b = weight(what + ".bias", C);
        std::vector<double> y(rows.size());
        for (std::size_t n = 0; n < N; n++)
            for (std::size_t o = 0; o < C; o++) {
                y[n * C + o] = b[o];
                for (std::size_t i = 0; i < C; i++) y[n * C + o] += w[o * C + i] * rows[n * C + i];
            }
        return y;
    };
    std::vector<double> q = linear(x, "query"), k = linear(x, "key"), y(std::size_t(N * C), 0.0);
    const std::vector<double> v = linear(x, "value");
    for (std::vector<double>* each : {&q, &k})
        for (std::size_t from = 0; from < each->size(); from += D) {
            double square = 0;
            for (std::size_t i = from; i < from + D; i++) square += (*each)[i] * (*each)[i];
            for (std::size_t i = from; i < from + D; i++) (*each)[i] /= std::sqrt(square);
        }
    for (std::size_t n = 0; n < N; n++)
        for (std::size_t h = 0; h < C; h += D) {
            double sum = 0;
            std::vector<double> all(D, 0.0);
            for (std::size_t j = 0; j < N; j++) {
                double score = 0;
                for (std::size_t i = h; i < h + D; i++) score += q[n * C + i] * k[j * C + i];
                sum += std::exp(score);
                for (std::size_t i = 0; i < D; i++) all[i] += std::exp(score) * v[j * C + h + i];
            }
            for (std::size_t i = 0; i < D; i++) y[n * C + h + i] = all[i] / sum;
        }
    CHECK(apart(run("rfa", "features=20000", write), linear(y, "output")) < 0.01);
}
