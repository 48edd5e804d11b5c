// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "tools/generate/generate.h"

namespace masquerade {

void Searching::declare(Options& app) {
    app.number("--count", count, 1, 100000000, "so many samples (default of univae: 10)");
    app.number("--temperature", temperature, 0.0, 100.0, "0: the most likely token (default)", "T");
    app.number("--top-k", search.top_k, 1, 100000000, "draw among the K most likely", "K");
    app.number("--top-p", search.top_p, 0.0, 1.0, "draw among the fewest that have share P", "P");

    Options group = app.group("how text is searched");
    own = group;
    group.number("--beam", search.beams, 1, 1024, "beam search of this width (default: 1, greedy)", "K");
    group.number("--n-best", search.n_best, 1, 1024, "write the best N of the beam, with tabs between (default: 1)");
    group.number("--samples", search.samples, 1, 10000, "draw N targets for each source, with tabs between");
    group.flag("--scores", scores, "each target is followed by a tab and its score");
    group.number("--length-penalty", search.length_penalty, -100.0, 100.0,
                 "alpha of the score, sum / length^alpha (default: 1)", "ALPHA");
    group.number("--no-repeat", search.no_repeat_ngram, 1, 1024, "no run of N tokens twice in a target");
    group.number("--repetition-penalty", search.repetition_penalty, 0.01, 100.0, "above 1: of tokens that were written",
                 "X");
    group.number("--minimum", search.minimum, 0, 65536, "tokens before a target may end");
    maximum = group.number("--maximum", search.maximum, 1, 65536, "tokens of a target at most, its end counted");
    group.value("--forbid", forbidden, "TOKEN", "a token that is never written; once for each of them").one_at_a_time();
    group.flag("--bert4keras", search.bert4keras, "beam search as bert4keras does it");
}

// Refuses what the search would refuse, in the words of the options.
void Searching::expect_agreement(bool draws) const {
    const std::string beam = text("--beam ", search.beams);
    if (search.beams > 1 && draws)
        throw BadUsage(text(beam, " searches, and ",
                            search.samples > 0 ? text("--samples ", search.samples)
                            : count > 0 && !temperature && search.top_k == 0 && search.top_p >= 1
                                ? text("--count ", count)
                                : std::string("--temperature, --top-k or --top-p"),
                            " draws: leave out one of them"));
    if (search.samples > 0 && temperature == 0.0)
        throw BadUsage(text("--samples ", search.samples,
                            " draws at a temperature above 0: leave out --temperature 0, or --samples"));
    if (search.n_best > search.beams)
        throw BadUsage(text("--n-best ", search.n_best, " needs a beam of as many, found ", beam, ": give ",
                            draws ? text("--samples ", search.n_best, " in place of it")
                                  : text("--beam ", search.n_best, " or more")));
    if (search.bert4keras && search.n_best > 1)
        throw BadUsage("--bert4keras writes the best of one beam: leave out --n-best");
    if (search.minimum > search.maximum)
        throw BadUsage(text("--minimum ", search.minimum, " is above --maximum ", search.maximum, ": give --maximum ",
                            search.minimum, " or more"));
}

SearchOptions Searching::options_for(const Run& run, bool count_draws) const {
    const bool cut = search.top_k > 0 || search.top_p<1, draws = search.samples> 0 ||
                     (temperature ? *temperature > 0 : cut || (count_draws && count > 0));
    expect_agreement(draws);
    SearchOptions options = search;
    if (draws) options.samples = std::max(options.samples, 1);
    if (draws) options.temperature = temperature.value_or(1);
    for (const std::string& token : forbidden) {
        const int id = run.tokenizer.vocabulary().id(token);
        if (id < 0) throw BadUsage(text("--forbid: there is no token ", token, " in the vocabulary"));
        options.forbidden.push_back(id);
    }
    return options;
}

std::string Searching::line_of(const Run& run, const std::vector<Hypothesis>& hypotheses) const {
    std::string line;
    for (const Hypothesis& h : hypotheses) {
        line += (&h == &hypotheses.front() ? "" : "\t") + run.text(h.tokens);
        if (scores) line += fmt::format("\t{:.4f}", h.score);
    }
    return line;
}

}  // namespace masquerade
