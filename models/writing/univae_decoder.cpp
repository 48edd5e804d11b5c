// SPDX-License-Identifier: MIT
#include "models/writing/univae_decoder.h"

#include <algorithm>

#include "engine/tensor/numbers.h"
#include "models/masks/mask.h"

namespace masquerade {
namespace {
constexpr std::size_t slots = 64;  // documents that are written at a time
}

UniVaeDecoder::UniVaeDecoder(const UniVae& model, Special special)
    : model_(model),
      special_(std::move(special)),
      arena_(model.backbone.device(), Blocks::kept),
      tape_(arena_, model.backbone.storage()),
      capacity_(model.options.max_length) {
    const int L = model.options.backbone.layers, K = model.options.latent_layers;
    for (int l = 0; l < K; l++) memory_.push_back(stored("cache.memory", slots));
    for (int i = 0; i < L; i++) own_.push_back(stored("cache.own", std::int64_t(slots) * capacity_));
}

Tensor UniVaeDecoder::stored(const char* path, std::int64_t rows) {
    Tensor t;
    t.path = path;
    t.shape = {rows, 2 * model_.options.backbone.width};
    t.dtype = tape_.dtype;
    t.device = tape_.device;
    buffers_.emplace_back(t.bytes(), t.device);
    t.value = buffers_.back().data();
    return t;
}

// The latent keys and values of these documents, one row each.
void UniVaeDecoder::start(const DecodeRequest* requests, std::size_t count) {
    requests_.assign(requests, requests + count);
    const int K = model_.options.latent_layers, Z = model_.space.size(), k = model_.first_latent_layer();
    tape_.begin("latents");
    std::vector<double> z(count * std::size_t(Z));
    std::vector<int> all(count);
    for (std::size_t b = 0; b < count; b++) all[b] = int(b);
    for (int l = 0; l < K; l++) {
        for (std::size_t b = 0; b < count; b++) {
            if (requests[b].latent.size() != std::size_t(K * Z))
                throw Error(text("decode: a latent vector has ", requests[b].latent.size(),
                                 " numbers, the model ", K, " x ", Z));
            std::copy_n(requests[b].latent.begin() + l * Z, Z, z.begin() + std::ptrdiff_t(b) * Z);
        }
        Tensor* latent = tape_.constant("z", {std::int64_t(count), Z}, arithmetic_of(tape_.dtype), z.data());
        Tensor* u = model_.latents[std::size_t(l)].out(tape_, latent);  // (B,C)
        const Block& layer = model_.backbone.layers[std::size_t(k + l)];
        store_rows(layer.memory_keys(tape_, u)->view(), tape_.ints(all), memory_[std::size_t(l)].view());
    }
    tape_.end();
}

View UniVaeDecoder::step(const std::vector<Row>& rows, int t) {
    tape_.begin("step");
    rows_ = TokenRows();
    write_rows_.clear();
    std::vector<CachedDocument> plain,
        with_latent;  // what each row sees below the latents, and from there on
    for (const Row& r : rows) {
        const DecodeRequest& request = requests_[std::size_t(r.slot)];
        rows_.push(r.token, 1, request.start + t, int(request.line));
        write_rows_.push_back(r.slot * capacity_ + t);
        plain.push_back(CachedDocument{0, 0, r.slot * capacity_, t, 1});
        with_latent.push_back(CachedDocument{r.slot, r.slot + 1, r.slot * capacity_, t, 1});
    }
    graphs_[0] = cached_mask(plain, 0);
    graphs_[1] = cached_mask(with_latent, 1);
    const int L = model_.options.backbone.layers, k = model_.first_latent_layer();
    Pass pass = model_.backbone.pass(tape_, rows_, graphs_[0]);
    Tensor* x = model_.backbone.embed(tape_, rows_);  // (n,C)
    for (int i = 0; i < L; i++) {
        pass.graph = &graphs_[i >= k];
        LayerCache cache{i >= k ? &memory_[std::size_t(i - k)] : nullptr, &own_[std::size_t(i)],
                         tape_.ints(write_rows_)};
        pass.cache = &cache;
        x = model_.backbone.layers[std::size_t(i)](tape_, x, pass);
    }
    Tensor* h = model_.backbone.head(tape_, model_.backbone.finish(tape_, x));
    return model_.backbone.logits(tape_, h)->view();  // (n,V)
}

std::vector<Tokens> UniVaeDecoder::write(const std::vector<DecodeRequest>& requests,
                                         const SamplingOptions& sampling, std::uint64_t seed) {
    if (arithmetic_of(tape_.dtype) != DType::f32) throw Error("sentences are written by a model in f32 or bf16");
    std::vector<Tokens> texts(requests.size());
    for (std::size_t first = 0; first < requests.size(); first += slots) {
        std::size_t count = std::min(slots, requests.size() - first);
        start(&requests[first], count);
        std::vector<Row> rows, next;
        for (std::size_t b = 0; b < count; b++) rows.push_back(Row{int(b), special_.cls});
        for (int t = 0; t < capacity_ - 2 && !rows.empty(); t++) {
            const OnHost logits(step(rows, t));  // (n,V)
            const std::int64_t V = logits.view().columns();
            next.clear();
            for (std::size_t i = 0; i < rows.size(); i++) {
                const DecodeRequest& request = requests_[std::size_t(rows[i].slot)];
                double u = sampling.temperature > 0
                               ? sampling_draw(seed, request.line, request.sample, std::uint32_t(t))
                               : 0;
                int token = choose_token(logits.view().as<float>() + std::int64_t(i) * V, int(V), sampling,
                                         special_.forbidden, u);
                if (token == special_.sep) continue;
                texts[first + std::size_t(rows[i].slot)].push_back(token);
                next.push_back(Row{rows[i].slot, token});
            }
            rows.swap(next);
            tape_.end();
        }
    }
    return texts;
}

std::vector<std::vector<double>> UniVaeDecoder::forced_logits(const DecodeRequest& request,
                                                              const std::vector<int>& ids) {
    start(&request, 1);
    std::vector<std::vector<double>> all;
    for (std::size_t t = 0; t + 1 < ids.size(); t++) {
        const OnHost logits(step({Row{0, ids[t]}}, int(t)));
        all.emplace_back();
        for (std::int64_t v = 0; v < logits.view().count(); v++) all.back().push_back(logits[v]);
        tape_.end();
    }
    return all;
}

std::vector<Tokens> refined(UniVaeDecoder& decoder, std::vector<DecodeRequest> requests,
                            const SamplingOptions& sampling, std::uint64_t seed, int rounds) {
    std::vector<Tokens> texts = decoder.write(requests, sampling, seed);
    for (int round = 0; round < rounds && decoder.model().options.latent_layers > 0; round++) {
        std::vector<Sentence> sentences(texts.size());
        std::vector<const Sentence*> all;
        for (std::size_t i = 0; i < texts.size(); i++) {
            sentences[i].ids = {decoder.cls()};
            sentences[i].ids.insert(sentences[i].ids.end(), texts[i].begin(), texts[i].end());
            sentences[i].ids.push_back(decoder.sep());
            all.push_back(&sentences[i]);
        }
        auto latents = mean_latents(decoder.model(), all);
        for (std::size_t i = 0; i < texts.size(); i++) requests[i].latent = latents[i];
        texts = decoder.write(requests, sampling, seed);
    }
    return texts;
}

std::vector<std::vector<double>> mean_latents(const UniVae& model,
                                              const std::vector<const Sentence*>& sentences) {
    std::vector<std::vector<double>> all;
    Arena arena(model.backbone.device(), Blocks::kept);
    Tape tape(arena, model.backbone.storage());
    for (std::size_t first = 0; first < sentences.size(); first += slots) {
        std::size_t count = std::min(slots, sentences.size() - first);
        UniVaeBatch batch = model.batch({&sentences[first], &sentences[first] + count});
        tape.begin("encode");
        std::vector<LatentSample> samples = model.encode(tape, batch, nullptr);
        const std::size_t begin = all.size();
        all.resize(begin + count);
        for (const LatentSample& s : samples) {
            const OnHost z(s.z->view());  // (B,Z)
            for (std::int64_t i = 0; i < std::int64_t(count) * s.z->columns(); i++)
                all[begin + std::size_t(i / s.z->columns())].push_back(z[i]);
        }
        tape.end();
    }
    return all;
}

}  // namespace masquerade
