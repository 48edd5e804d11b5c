// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "models/runs/writer.h"

namespace masquerade {

// Throws BadUsage for options that search() would refuse later. Here, the message can name the command-line options.
void Writing::expect_agreement(bool draws) const {
    const std::string beam = text("--beam ", search.beams);
    if (search.beams > 1 && draws)
        throw BadUsage(beam, " searches, and ",
                       search.samples > 0 ? text("--samples ", search.samples)
                       : count > 0 && !temperature && search.top_k == 0 && search.top_p >= 1
                           ? text("--count ", count)
                           : std::string("--temperature, --top-k or --top-p"),
                       " draws: leave out one of them");
    if (search.samples > 0 && temperature == 0.0)
        throw BadUsage("--samples ", search.samples,
                       " draws at a temperature above 0: leave out --temperature 0, or --samples");
    if (search.n_best > search.beams)
        throw BadUsage("--n-best ", search.n_best, " needs a beam of as many, found ", beam, ": give ",
                       draws ? text("--samples ", search.n_best, " in place of it")
                             : text("--beam ", search.n_best, " or more, if the run writes from left to right"));
    if (search.bert4keras && search.n_best > 1)
        throw BadUsage("--bert4keras writes the best of one beam: leave out --n-best");
    if (search.minimum > search.maximum)
        throw BadUsage("--minimum ", search.minimum, " is above --maximum ", search.maximum, ": give --maximum ",
                       search.minimum, " or more");
}

void Writing::expect_room(int longest, const char* setting) const {
    if (search.minimum > longest)
        throw BadUsage("--minimum ", search.minimum, " is more than the ", longest, " tokens that ", run,
                       " can write (", setting, ")");
}

RunWriter Run::writer(const Writing& how) {
    throw BadUsage(how.run, " is a run of ", common().family(), ", which does not write");
}

SearchOptions Writing::options_for(const Run& writes, bool count_draws) const {
    const bool cut = search.top_k > 0 || search.top_p < 1;
    const bool draws = search.samples > 0 || (temperature ? *temperature > 0 : cut || (count_draws && count > 0));
    expect_agreement(draws);
    SearchOptions options = search;
    if (draws) options.samples = std::max(options.samples, 1);
    if (draws) options.temperature = temperature.value_or(1);
    for (const std::string& token : forbidden) {
        const int id = writes.tokenizer.vocabulary().id(token);
        if (id < 0) throw BadUsage("--forbid: there is no token ", token, " in the vocabulary");
        options.forbidden.push_back(id);
    }
    return options;
}

Split at_tabs(const Strings& lines) {
    Split split;
    for (const std::string& line : lines) {
        const std::size_t tab = std::min(line.find('\t'), line.size());
        split.left.push_back(line.substr(0, tab));
        split.right.push_back(line.substr(std::min(tab + 1, line.size())));
    }
    return split;
}

std::string Writing::line_of(const Run& writes, const Hypotheses& hypotheses) const {
    std::string line;
    for (const Hypothesis& h : hypotheses) {
        line += (&h == &hypotheses.front() ? "" : "\t") + writes.decode(h.tokens);
        if (scores) line += fmt::format("\t{:.4f}", h.score);
    }
    return line;
}

}  // namespace masquerade
