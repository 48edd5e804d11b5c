// SPDX-License-Identifier: MIT
#include "tools/bench/train_marks.h"

#include "engine/base/random.h"
#include "models/latent/vmf.h"
#include "models/runs/univae_run.h"

namespace masquerade {
namespace {

using Json = nlohmann::ordered_json;

constexpr int cls = 2, sep = 3, first_word = 5;
constexpr int shortest = 8, longest = 20;  // tokens of a sentence with [CLS] and [SEP]
constexpr int document_tokens = 64;        // of a BERT
constexpr int quantile_steps = 1024;
constexpr int many_tokens = 16384;  // what keeps a GPU busy

struct Sizes {
    const char* name;
    int width, heads, inner, layers, vocabulary, documents, sentences;
};
constexpr Sizes sizes_of_marks[] = {{"small", 256, 4, 1024, 6, 8000, 32, 64},
                                    {"base", 768, 12, 3072, 12, 21128, 8, 16}};

TrainMark sized(const Sizes& s) {
    TrainMark m;
    BackboneOptions& b = m.model.backbone;
    b.width = s.width, b.heads = s.heads, b.inner = s.inner, b.layers = s.layers, b.vocabulary = s.vocabulary;
    m.rule = {0.9, 0.999, 1e-8, 0.01, 1};
    m.learning_rate = 1e-4;
    return m;
}

TrainMark bert(const Sizes& s, Sequence random) {
    TrainMark m = sized(s);
    BackboneOptions& b = m.model.backbone;
    b.rotary = false;
    b.dropout = b.attention_dropout = 0.1;
    auto document = [&] {
        std::vector<int> ids(document_tokens);
        for (int& id : ids) id = int(random.below(std::uint32_t(s.vocabulary)));
        return ids;
    };
    for (int i = 0; i < s.documents; i++) m.sentences.push_back(document()), m.targets.push_back(document());
    return m;
}

std::vector<int> sentence(Sequence& random, int vocabulary) {
    std::vector<int> ids(std::size_t(shortest + int(random.below(longest - shortest + 1))));
    for (int& id : ids) id = first_word + int(random.below(std::uint32_t(vocabulary - first_word)));
    ids.front() = cls;
    ids.back() = sep;
    return ids;
}

// Sentences as long as all their tokens are no more than `most`.
void fill(TrainMark& m, int most, Sequence& random) {
    while (true) {
        std::vector<int> ids = sentence(random, m.model.backbone.vocabulary);
        most -= int(ids.size());
        if (most < 0) return;
        m.sentences.push_back(std::move(ids));
    }
}

// With a number of sentences, or with as many as fit `tokens`.
TrainMark univae(const Sizes& s, Sequence random, int tokens = 0) {
    TrainMark m = sized(s);
    m.univae = true;
    m.model.latent = {LatentKind::vmf, 16, 32};
    m.model.backbone.positions = 2 * m.model.max_length;
    if (tokens > 0)
        fill(m, tokens, random);
    else
        for (int i = 0; i < s.sentences; i++) m.sentences.push_back(sentence(random, s.vocabulary));
    return m;
}

TrainMark univae_default(Sequence random) {
    const UniVaeSettings settings;
    TrainMark m;
    m.univae = true;
    m.model = settings.model;
    m.model.backbone.vocabulary = settings.vocabulary;
    m.model.backbone.positions = 2 * m.model.max_length;
    const TrainOptions& t = settings.train;
    m.rule = {t.beta1, t.beta2, t.eps, t.weight_decay, t.clip};
    m.learning_rate = 1e-4;
    fill(m, settings.batch_tokens, random);
    return m;
}

// The component of a vmf sample along its mean, at equal steps of its distribution function.
std::vector<double> quantiles(const LatentOptions& o) {
    const VonMisesFisher distribution(o.size, o.kappa);
    std::vector<double> w;
    for (int i = 0; i <= quantile_steps; i++)
        w.push_back(distribution.quantile(std::clamp(double(i) / quantile_steps, 1e-7, 1 - 1e-7)));
    return w;
}

}  // namespace

int TrainMark::tokens() const {
    int n = 0;
    for (const auto& ids : sentences) n += int(ids.size()) - (univae ? 1 : 0);
    return n;
}

Json TrainMark::sizes() const {
    const BackboneOptions& b = model.backbone;
    return {{"vocabulary", b.vocabulary}, {"width", b.width}, {"heads", b.heads}, {"inner", b.inner},
            {"layers", b.layers}, {"positions", b.positions}, {"rotary", b.rotary}, {"eps", b.eps},
            {"dropout", b.dropout}, {"attention_dropout", b.attention_dropout},
            {"latent_layers", univae ? model.latent_layers : 0}, {"latent_size", model.latent.size},
            {"max_length", model.max_length}};
}

Json TrainMark::batch() const {
    Json batch = {{"sentences", sentences}};
    if (univae)
        batch["quantiles"] = quantiles(model.latent);
    else
        batch["targets"] = targets;
    return batch;
}

Json TrainMark::optimiser() const {
    return {{"rate", learning_rate}, {"beta1", rule.beta1}, {"beta2", rule.beta2},
            {"eps", rule.eps},       {"decay", rule.decay}, {"clip", rule.clip}};
}

std::vector<std::string> train_mark_names() {
    return {"bert-small",     "bert-base",        "univae-small",    "univae-base",
            "univae-default", "univae-small-16k", "univae-base-16k", "unilm-base-16k"};
}

std::vector<std::string> default_train_marks(Device device) {
    if (device == Device::cuda)
        return {"univae-default", "univae-small-16k", "univae-base-16k", "unilm-base-16k"};
    return {"bert-small", "bert-base", "univae-small", "univae-base", "univae-default"};
}

TrainMark train_mark(const std::string& name, std::uint64_t seed) {
    const Sequence random(seed, "bench.train." + name);
    TrainMark mark;
    for (const Sizes& s : sizes_of_marks) {
        if (name == text("bert-", s.name)) mark = bert(s, random);
        if (name == text("univae-", s.name)) mark = univae(s, random);
        if (name == text("univae-", s.name, "-16k")) mark = univae(s, random, many_tokens);
    }
    if (name == "univae-default") mark = univae_default(random);
    if (name == "unilm-base-16k") {
        Sizes many = sizes_of_marks[1];
        many.documents = many_tokens / document_tokens;
        mark = bert(many, random);
    }
    if (mark.sentences.empty())
        throw BadUsage(text("there is no mark ", name, "; ./bench train --help lists them"));
    mark.name = name;
    return mark;
}

}  // namespace masquerade
