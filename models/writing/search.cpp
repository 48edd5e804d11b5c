// SPDX-License-Identifier: MIT
#include "models/writing/search.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "engine/base/error.h"
#include "engine/ops/cpu/parallel.h"
#include "models/writing/beams.h"

namespace masquerade {
namespace {

// Minimum number of logits per thread. With fewer logits, starting a thread takes more time than the thread saves.
constexpr int numbers_a_piece = 1 << 15;

// A source whose search is not finished, with its rules and its beams.
struct Searched {
    Searched(int number, const SearchSource& from, const SearchOptions& options)
        : index(number), source(from), rules(from, options), beams(rules, options) {}
    int index;
    const SearchSource& source;
    const SearchRules rules;
    Beams beams;
};

// A beam for which look() must find candidates, the tokens that can continue it.
struct Work {
    Searched* searched;
    std::size_t beam;
};

// Finds the candidates of a beam: the tokens that can continue it. `logits` has V numbers for each row of the step.
void look(const Work& work, const float* logits, int V, const SearchOptions& options, std::uint64_t seed, int step,
          TokenScores& scores) {
    Beams& beams = work.searched->beams;
    const SearchSource& source = work.searched->source;
    Beam& beam = beams.all()[work.beam];
    const float* row = logits + std::int64_t(beam.row) * V;
    beam.next.clear();
    scores.read(row, V);
    const double log_sum = scores.log_sum();
    if (!std::isfinite(log_sum))
        throw Error(text("search: logits of the source of line ", source.line, ", step ", step,
                         ", hold NaN or infinity, or nothing else than minus infinity"));
    // As in Hugging Face's generate, the repetition penalty changes logits if there is one beam, else log p.
    const bool one = options.beams == 1;
    work.searched->rules.apply(scores, beam.written, one ? 0 : log_sum);
    if (options.samples > 0) {
        const double u = sampling_draw(seed, source.line, source.sample + beams.sample(work.beam), step);
        const int token = scores.draw(options, u);
        if (token >= 0) beam.next.push_back({token, row[token] - log_sum});
        return;
    }
    for (const TokenScores::Token& t : scores.best(beams.candidates())) {
        double log_p = (one ? row[t.id] : t.score) - log_sum;
        if (options.bert4keras) log_p = std::log(std::exp(log_p) + 1e-12);
        beam.next.push_back({t.id, log_p});
    }
}

}  // namespace

double sampling_draw(std::uint64_t seed, std::uint32_t line, std::uint32_t sample, std::uint32_t step) {
    const Four bits = make_stream(seed, "generate.token", step).at(line, sample, 0);
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
        const float* logits = model.step(rows);  // (rows, V): V logits per row
        parallel_for(work.size(), std::max(1, numbers_a_piece / V), [&](std::int64_t begin, std::int64_t end) {
            static thread_local TokenScores scores;
            for (std::int64_t i = begin; i < end; i++) look(work[i], logits, V, options, seed, step, scores);
        });
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
