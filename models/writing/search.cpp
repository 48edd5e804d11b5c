// SPDX-License-Identifier: MIT
#include "models/writing/search.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "engine/base/error.h"
#include "engine/base/random.h"
#include "engine/ops/cpu/parallel.h"
#include "models/writing/beams.h"

namespace masquerade {
namespace {

constexpr int numbers_a_piece = 1 << 15;  // least number of logits per thread; with fewer, a thread costs more time
                                          // than it saves

// A source whose search is not finished, with its rules and its beams.
struct Searched {
    Searched(int number, const SearchSource& from, const SearchOptions& options)
        : index(number), source(from), rules(from, options), beams(rules, options) {}
    int index;
    const SearchSource& source;
    const SearchRules rules;
    Beams beams;
};

class Search {
  public:
    Search(NextToken& model, const SearchOptions& options, std::uint64_t seed)
        : model_(model), options_(options), seed_(seed) {}

    void run(std::vector<std::unique_ptr<Searched>> searched, std::vector<std::vector<Hypothesis>>& found) {
        for (step_ = 0; !searched.empty(); step_++) {
            list_work(searched);
            const float* logits = model_.step(rows_);  // (rows, V)
            parallel_for(std::int64_t(work_.size()), std::max(1, numbers_a_piece / model_.vocabulary()),
                         [&](std::int64_t begin, std::int64_t end) {
                             static thread_local TokenScores scores;
                             for (std::int64_t i = begin; i < end; i++) look(work_[std::size_t(i)], logits, scores);
                         });
            for (auto& s : searched) {
                s->beams.advance();
                if (s->beams.done()) found[std::size_t(s->index)] = s->beams.results();
            }
            searched.erase(std::remove_if(searched.begin(), searched.end(), [](auto& s) { return s->beams.done(); }),
                           searched.end());
        }
    }

  private:
    // A beam for which look() must find candidates, the tokens that can continue it.
    struct Work {
        Searched* searched;
        std::size_t beam;
    };

    // Lists the rows of this step in rows_, and the beams in work_. Each beam has a row of its own, except in the first
    // step: all beams of a source then have the same prefix and share one row.
    void list_work(const std::vector<std::unique_ptr<Searched>>& searched) {
        rows_.clear();
        work_.clear();
        for (auto& s : searched) {
            if (step_ == 0) rows_.push_back(NextToken::Row{s->index, -1, s->source.begin});
            for (std::size_t b = 0; b < s->beams.all().size(); b++) {
                Beam& beam = s->beams.all()[b];
                if (step_ > 0) rows_.push_back(NextToken::Row{s->index, beam.row, beam.written.back()});
                beam.row = int(rows_.size()) - 1;
                work_.push_back(Work{s.get(), b});
            }
        }
    }

    void look(const Work& work, const float* logits, TokenScores& scores) const {
        Beam& beam = work.searched->beams.all()[work.beam];
        const int V = model_.vocabulary();
        const float* row = logits + std::int64_t(beam.row) * V;
        beam.next.clear();
        scores.read(row, V);
        const double log_sum = scores.log_sum();
        if (!std::isfinite(log_sum))
            throw Error(text("search: logits of the source of line ", work.searched->source.line, ", step ", step_,
                             ", hold NaN or infinity, or nothing else than minus infinity"));
        // As in Hugging Face's generate, the repetition penalty changes logits if there is one beam, else log p.
        const bool one = options_.beams == 1;
        work.searched->rules.apply(scores, beam.written, one ? 0 : log_sum);
        if (options_.samples > 0) {
            const double u = sampling_draw(seed_, work.searched->source.line,
                                           work.searched->source.sample + work.searched->beams.sample(work.beam),
                                           std::uint32_t(step_));
            const int token = scores.draw(options_, u);
            if (token >= 0) beam.next.push_back(Candidate{token, double(row[token]) - log_sum});
            return;
        }
        for (const TokenScores::Token& t : scores.best(work.searched->beams.candidates())) {
            double log_p = double(one ? row[t.id] : t.score) - log_sum;
            if (options_.bert4keras) log_p = std::log(std::exp(log_p) + 1e-12);
            beam.next.push_back(Candidate{t.id, log_p});
        }
    }

    NextToken& model_;
    const SearchOptions& options_;
    std::uint64_t seed_;
    std::size_t step_ = 0;
    std::vector<NextToken::Row> rows_;
    std::vector<Work> work_;
};

}  // namespace

double sampling_draw(std::uint64_t seed, std::uint32_t line, std::uint32_t sample, std::uint32_t step) {
    const Four bits = make_stream(seed, "generate.token", step).at(line, sample, 0);
    return (double((std::uint64_t(bits[0]) << 20) | (bits[1] >> 12)) + 0.5) * 0x1p-52;
}

std::vector<std::vector<Hypothesis>> search(NextToken& model, const std::vector<SearchSource>& sources,
                                            const SearchOptions& options, std::uint64_t seed) {
    check(options, model.vocabulary());
    std::vector<std::unique_ptr<Searched>> searched;
    for (std::size_t i = 0; i < sources.size(); i++) {
        check(sources[i], options, model.vocabulary());
        searched.push_back(std::make_unique<Searched>(int(i), sources[i], options));
    }
    std::vector<std::vector<Hypothesis>> found(sources.size());
    Search(model, options, seed).run(std::move(searched), found);
    return found;
}

}  // namespace masquerade
