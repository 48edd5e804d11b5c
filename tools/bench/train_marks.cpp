// SPDX-License-Identifier: MIT
#include "tools/bench/train.h"

#include <nlohmann/json.hpp>

#include "engine/base/named.h"
#include "engine/base/random.h"
#include "models/runs/univae_run.h"

namespace masquerade {
namespace {

constexpr int cls = 2, sep = 3, first_word = 5;
constexpr int shortest = 8, longest = 20;  // tokens per sentence, including [CLS] and [SEP]
constexpr int document_tokens = 64;        // tokens per document of a BERT

struct Sizes {
    int width, heads, inner, layers, vocabulary;
};
constexpr Sizes small = {256, 4, 1024, 6, 8000}, base = {768, 12, 3072, 12, 21128};
enum class Kind { bert, univae, settings };  // settings: UniVAE with the defaults of ./train

struct Row {
    const char* name;
    Kind kind;
    Sizes sizes;
    // sentences: the number of sentences per batch. If it is 0, the batch has as many sentences as fit into `tokens`
    // tokens. For Kind::settings, the limit is the default of the setting batch_tokens instead of `tokens`.
    int sentences, tokens;
    bool on_cpu, on_gpu;  // whether this model is measured by default on a CPU or a GPU
};
constexpr Row rows[] = {{"bert-small", Kind::bert, small, 32, 0, true, false},
                        {"bert-base", Kind::bert, base, 8, 0, true, false},
                        {"univae-small", Kind::univae, small, 64, 0, true, false},
                        {"univae-base", Kind::univae, base, 16, 0, true, false},
                        {"univae-default", Kind::settings, {}, 0, 0, true, true},
                        {"univae-small-16k", Kind::univae, small, 0, 16384, false, true},
                        {"univae-base-16k", Kind::univae, base, 0, 16384, false, true},
                        {"unilm-base-16k", Kind::bert, base, 256, 0, false, true}};

Tokens tokens_of(Sequence& random, int count, int first, int vocabulary) {
    Tokens ids(count);
    for (int& id : ids) id = first + random.below(vocabulary - first);
    return ids;
}

Tokens sentence(Sequence& random, int vocabulary) {
    const int length = shortest + random.below(longest - shortest + 1);
    Tokens ids = tokens_of(random, length, first_word, vocabulary);
    ids.front() = cls;
    ids.back() = sep;
    return ids;
}

}  // namespace

int TrainMark::tokens() const {
    int n = 0;
    for (const auto& ids : sentences) n += ids.size() - univae;
    return n;
}

Json TrainMark::sizes() const {
    const BackboneOptions& b = model.backbone;
    return {{"vocabulary", b.vocabulary},
            {"width", b.width},
            {"heads", b.heads},
            {"inner", b.inner},
            {"layers", b.layers},
            {"positions", b.positions},
            {"rotary", b.rotary},
            {"eps", b.eps},
            {"dropout", b.dropout},
            {"attention_dropout", b.attention_dropout},
            {"latent_layers", univae ? model.latent_layers : 0},
            {"latent_size", model.latent.size},
            {"max_length", model.max_length}};
}

Strings train_mark_names(std::optional<Device> device) {
    Strings names;
    for (const Row& row : rows)
        if (!device || (*device == Device::cuda ? row.on_gpu : row.on_cpu)) names.push_back(row.name);
    return names;
}

TrainMark train_mark(const std::string& name, std::uint64_t seed) {
    const Row& row = find_named(rows, name, "mark");
    const UniVaeSettings settings;
    TrainMark m;
    m.name = name;
    m.univae = row.kind != Kind::bert;
    BackboneOptions& b = m.model.backbone;
    int room = row.tokens;
    if (row.kind == Kind::settings) {
        m.model = settings.model;
        b.vocabulary = settings.vocabulary;
        room = settings.batch_tokens;
    } else {
        const Sizes& s = row.sizes;
        b.width = s.width, b.heads = s.heads, b.inner = s.inner, b.layers = s.layers, b.vocabulary = s.vocabulary;
    }
    if (row.kind == Kind::univae) m.model.latent.size = 16, m.model.latent.kappa = 32;
    if (m.univae) b.positions = 2 * m.model.max_length;

    Sequence random(seed, "bench.train." + name);
    if (!m.univae) {
        b.rotary = false;
        b.dropout = b.attention_dropout = 0.1;
        for (int i = 0; i < row.sentences; i++) {
            m.sentences.push_back(tokens_of(random, document_tokens, 0, b.vocabulary));
            m.targets.push_back(tokens_of(random, document_tokens, 0, b.vocabulary));
        }
        return m;
    }
    while (row.sentences == 0 || int(m.sentences.size()) < row.sentences) {
        Tokens ids = sentence(random, b.vocabulary);
        room -= ids.size();
        if (row.sentences == 0 && room < 0) break;
        m.sentences.push_back(std::move(ids));
    }
    return m;
}

}  // namespace masquerade
