// SPDX-License-Identifier: MIT
#include "models/writing/search.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "engine/base/error.h"
#include "models/writing/beams.h"
#include "models/writing/token_scores.h"

namespace masquerade {
namespace {

// A shortlist has more tokens than the search needs, because the rules of the search may forbid some of them. It has at
// most `most_listed` tokens, because the time that a device needs for it grows with their number.
constexpr int spare_tokens = 16, most_listed = 256;

// A source whose search is not finished, with its rules and its beams.
struct Searched {
    Searched(int number, const SearchSource& from, const SearchOptions& options)
        : index(number), source(from), rules(from, options), beams(rules, options) {}
    int index;
    const SearchSource& source;
    const SearchRules rules;
    Beams beams;
};

// Returns the number of tokens that a shortlist must have, or 0 if the search needs all logits: if it samples from the
// whole vocabulary, or if a rule may raise the score of a token that is not listed.
int shortlist_width(const std::vector<std::unique_ptr<Searched>>& searched, const SearchOptions& options, int V) {
    if (options.repetition_penalty < 1 || (options.samples > 0 && options.top_k == 0)) return 0;
    int needed = options.samples > 0 ? options.top_k : 0;
    for (const auto& s : searched) needed = std::max(needed, s->beams.candidates());
    const std::int64_t width = std::int64_t(needed) + spare_tokens;
    return width < V && width <= most_listed && V <= 1 << 24 ? int(width) : 0;  // ids are floats
}

// A beam for which look() must find candidates, the tokens that can continue it.
struct Work {
    Searched* searched;
    std::size_t beam;
    bool done = false;
};

// The logits of a step: V numbers for each row or, if `lists` is not null, a shortlist for each row.
struct Logits {
    const Shortlists* lists;
    const float* all;
    int V;
};

// Finds the candidates of a beam: the tokens that can continue it. Sets Work::done unless a shortlist is too short.
void look(Work& work, const Logits& logits, const SearchOptions& options, std::uint64_t seed, int step,
          TokenScores& scores) {
    Beams& beams = work.searched->beams;
    const SearchSource& source = work.searched->source;
    Beam& beam = beams.all()[work.beam];
    beam.next.clear();
    if (logits.lists)
        scores.read(*logits.lists, beam.row, logits.V);
    else
        scores.read(logits.all + std::int64_t(beam.row) * logits.V, logits.V);
    const double log_sum = scores.log_sum();
    if (!std::isfinite(log_sum))
        throw Error("search: logits of the source of line ", source.line, ", step ", step,
                    ", hold NaN or infinity, or nothing else than minus infinity");
    // As in Hugging Face's generate, the repetition penalty changes logits if there is one beam, else log p.
    const bool one = options.beams == 1;
    work.searched->rules.apply(scores, beam.written, one ? 0 : log_sum);
    if (options.samples > 0) {
        const double u = sampling_draw(seed, source.line, source.sample + beams.sample(work.beam), step);
        const int token = scores.draw(options, u);
        work.done = scores.certain();
        if (token >= 0) beam.next.push_back({token, scores.logit(token) - log_sum});
        return;
    }
    const std::vector<TokenScores::Token>& best = scores.best(beams.candidates());
    work.done = scores.certain();
    for (const TokenScores::Token& t : best) {
        double log_p = (one ? scores.logit(t.id) : t.score) - log_sum;
        if (options.bert4keras) log_p = std::log(std::exp(log_p) + 1e-12);
        beam.next.push_back({t.id, log_p});
    }
}

}  // namespace

double sampling_draw(std::uint64_t seed, std::uint32_t line, std::uint32_t sample, std::uint32_t step,
                     const char* what) {
    const Four bits = make_stream(seed, what, step).at(line, sample, 0);
    return (double((std::uint64_t(bits[0]) << 20) | (bits[1] >> 12)) + 0.5) * 0x1p-52;
}

std::vector<Hypotheses> search(NextToken& model, const std::vector<SearchSource>& sources, const SearchOptions& options,
                               std::uint64_t seed) {
    const int V = model.vocabulary();
    check(options, V);
    std::vector<std::unique_ptr<Searched>> searched;
    for (std::size_t i = 0; i < sources.size(); i++) {
        check(sources[i], options, V);
        searched.push_back(std::make_unique<Searched>(i, sources[i], options));
    }
    int width = shortlist_width(searched, options, V);
    int short_steps = 0;  // how many of the last steps in a row had a shortlist that was too short
    std::vector<Hypotheses> found(sources.size());
    std::vector<NextToken::Row> rows;
    std::vector<Work> work;
    for (int step = 0; !searched.empty(); step++) {
        // Each beam has its own row. In the first step, however, all beams of a source have the same prefix and share
        // one row.
        rows.clear();
        work.clear();
        for (auto& s : searched) {
            if (step == 0) rows.push_back({s->index, -1, s->source.begin});
            for (std::size_t b = 0; b < s->beams.all().size(); b++) {
                Beam& beam = s->beams.all()[b];
                if (step > 0) rows.push_back({s->index, beam.row, beam.written.back()});
                beam.row = int(rows.size()) - 1;
                work.push_back({s.get(), b});
            }
        }
        bool too_short = false;
        Logits logits{width > 0 ? model.shortlists(rows, width) : nullptr, nullptr, V};
        if (!logits.lists) logits.all = model.step(rows);
        while (!work.empty()) {
            each_row_of_logits(work.size(), V, [&](std::int64_t i, TokenScores& scores) {
                look(work[i], logits, options, seed, step, scores);
            });
            work.erase(std::remove_if(work.begin(), work.end(), [](const Work& w) { return w.done; }), work.end());
            if (work.empty()) break;
            too_short = true;
            logits = {nullptr, model.logits(), V};
        }
        short_steps = too_short ? short_steps + 1 : 0;
        if (short_steps == 2) width = 0;  // shortlists would cost more than they save
        for (auto& s : searched) {
            s->beams.advance();
            if (s->beams.done()) found[s->index] = s->beams.results();
        }
        searched.erase(std::remove_if(searched.begin(), searched.end(), [](auto& s) { return s->beams.done(); }),
                       searched.end());
    }
    return found;
}

}  // namespace masquerade
