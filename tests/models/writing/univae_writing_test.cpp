// SPDX-License-Identifier: MIT
// Tests what a UniVAE writes, token by token: each token is the draw of (seed, line, sample, step) from the logits, and
// no token is missing.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/models/writing/choose_token.h"
#include "tests/train/tiny_run.h"

using namespace masquerade;

namespace {

struct Writer {
    Parameters parameters;
    UniVae model;
    UniVaeDecoder::Special special;
    Writer() : model(parameters, tiny_model(LatentKind::vmf, false)) {
        parameters.allocate(1);
        special.cls = 2;
        special.sep = 3;
        special.forbidden = {0, 2, 3};  // a text ends only at its maximum length
    }
};

}  // namespace

TEST_CASE(
    "univae writing: every token is the draw of its seed, line, sample and step, and the text is as long as it may be") {
    Writer w;
    UniVaeDecoder decoder(w.model, w.special);
    const SearchOptions sampling = drawing(1.5, 0, 1);
    std::vector<DecodeRequest> requests;
    for (auto [line, sample] : {std::pair{0u, 0u}, {1u, 0u}, {0u, 1u}})
        requests.push_back({w.model.space.prior(1, 0, 0), line, sample, w.model.start_position(9)});
    for (std::uint64_t seed : {1, 2}) {
        const std::vector<Tokens> texts = decoder.write(requests, sampling, seed);
        for (std::size_t i = 0; i < requests.size(); i++) {
            REQUIRE(int(texts[i].size()) == w.model.options.max_length - 2);
            std::vector<int> ids = {w.special.cls};
            ids.insert(ids.end(), texts[i].begin(), texts[i].end());
            const auto logits = decoder.forced_logits(requests[i], ids);
            for (std::size_t t = 0; t < texts[i].size(); t++) {
                const std::vector<float> row(logits[t].begin(), logits[t].end());
                const double u = sampling_draw(seed, requests[i].line, requests[i].sample, std::uint32_t(t));
                CHECK(texts[i][t] == choose_token(row.data(), int(row.size()), sampling, w.special.forbidden, u));
            }
        }
        CHECK(texts[0] != texts[1]);
        CHECK(texts[0] != texts[2]);
    }
}

TEST_CASE("univae writing: the mean latents of sentences are those of each alone") {
    Writer w;
    const std::vector<Sentence> all = random_sentences(3);
    const auto together = mean_latents(w.model, {&all[0], &all[1], &all[2]});
    REQUIRE(together.size() == 3);
    for (std::size_t i = 0; i < 3; i++) {
        const auto alone = mean_latents(w.model, {&all[i]});
        REQUIRE(alone[0].size() == together[i].size());
        CHECK(alone[0] == together[i]);
    }
    CHECK(together[0] != together[1]);
}

TEST_CASE("univae writing: a run writes no special token, and [SEP] ends a text") {
    const std::vector<std::string> lines = grammar_questions(3, 300);
    const UniVaeRun run(tiny_settings(LatentKind::vmf), train_vocabulary(lines, 200));
    const Vocabulary& words = run.tokenizer.vocabulary();
    UniVaeDecoder decoder(run.model, run.special());
    std::vector<DecodeRequest> requests;
    for (std::uint32_t i = 0; i < 64; i++) requests.push_back({run.draw(1, i, 0), i, 0, run.model.start_position(9)});
    std::size_t written = 0, longest = std::size_t(run.model.options.max_length) - 2;
    for (const Tokens& text : decoder.write(requests, drawing(1, 0, 1), 1)) {  // all tokens are about equally likely
        for (int id : {words.pad(), words.cls(), words.mask(), words.sep()})
            CHECK(std::count(text.begin(), text.end(), id) == 0);
        written += text.size();
    }
    CHECK(written > 1000);
    CHECK(written < 64 * longest);  // some texts ended earlier
}

TEST_CASE("univae writing: the score of a beam is its log p by forced logits, over its length; rules hold") {
    Writer w;
    w.special.forbidden = {0, 2};
    UniVaeDecoder decoder(w.model, w.special);
    const DecodeRequest request{w.model.space.prior(1, 0, 0), 0, 0, w.model.start_position(9)};
    SearchOptions options;
    options.beams = options.n_best = 4;
    options.no_repeat_ngram = 1;
    options.maximum = 6;
    const auto found = decoder.search({request}, options, 1);
    REQUIRE(found.size() == 1);
    REQUIRE(found[0].size() == 4);
    for (const Hypothesis& h : found[0]) {
        std::vector<int> ids = {w.special.cls};
        ids.insert(ids.end(), h.tokens.begin(), h.tokens.end());
        if (h.ended) ids.push_back(w.special.sep);
        const auto logits = decoder.forced_logits(request, [&] {  // the last token is no input of the decoder
            std::vector<int> fed = ids;
            if (h.ended) return fed;
            fed.push_back(w.special.sep);
            return fed;
        }());
        double sum = 0;
        for (std::size_t t = 1; t < ids.size(); t++) {
            const std::vector<double>& row = logits[t - 1];
            const double top = *std::max_element(row.begin(), row.end());
            double total = 0;
            for (double x : row) total += std::exp(x - top);
            sum += row[std::size_t(ids[t])] - top - std::log(total);
        }
        CHECK(std::abs(h.score - sum / double(ids.size() - 1)) < 1e-5);
        CHECK(h.tokens.size() <= 6);
        std::vector<int> sorted = h.tokens;
        std::sort(sorted.begin(), sorted.end());
        CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
    }
    CHECK(found[0][0].score >= found[0][1].score);
}
