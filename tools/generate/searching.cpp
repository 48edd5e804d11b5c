// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "tools/generate/generate.h"

namespace masquerade {

void Searching::declare(CLI::App& app) {
    CLI::Option_group* group = app.add_option_group("how text is searched");
    group->add_option("--beam", search.beams, "beam search of this width (default: 1, greedy)")
        ->check(CLI::Range(1, 1024))
        ->option_text("K");
    group
        ->add_option("--n-best", search.n_best,
                     "write the best N of the beam, with tabs between (default: 1)")
        ->check(CLI::Range(1, 1024))
        ->option_text("N");
    group->add_option("--samples", search.samples, "draw N targets for each source, with tabs between")
        ->check(CLI::Range(1, 10000))
        ->option_text("N");
    group->add_flag("--scores", scores, "each target is followed by a tab and its score");
    group->add_option("--length-penalty", search.length_penalty, "alpha of the score (default: 1)")
        ->check(CLI::Range(-100.0, 100.0))
        ->option_text("ALPHA");
    group
        ->add_option("--length-form", length_form,
                     "score = sum / length^alpha (hf, default), or sum / ((5 + length) / 6)^alpha (gnmt)")
        ->check(CLI::IsMember({"hf", "gnmt"}))
        ->option_text("NAME");
    group
        ->add_option("--stop", stop,
                     "of a beam: full, heuristic (default) or never before no better can come")
        ->check(CLI::IsMember({"full", "heuristic", "never"}))
        ->option_text("WHEN");
    group->add_option("--groups", search.groups, "diverse beam search in so many groups (default: 1)")
        ->check(CLI::Range(1, 1024))
        ->option_text("N");
    group
        ->add_option("--diversity", search.diversity_penalty, "penalty for a token that earlier groups chose")
        ->check(CLI::Range(0.0, 1e6))
        ->option_text("X");
    group->add_option("--no-repeat", search.no_repeat_ngram, "no run of N tokens twice in a target")
        ->check(CLI::Range(1, 1024))
        ->option_text("N");
    group
        ->add_option("--repetition-penalty", search.repetition_penalty,
                     "above 1: of tokens that were written")
        ->check(CLI::Range(0.01, 100.0))
        ->option_text("X");
    group->add_option("--minimum", search.minimum, "tokens before a target may end")
        ->check(CLI::Range(0, 65536))
        ->option_text("N");
    maximum = group->add_option("--maximum", search.maximum, "tokens of a target at most, its end counted")
        ->check(CLI::Range(1, 65536))
        ->option_text("N");
    // One value each time, and brackets are part of it: CLI11 would take [UNK] for a list of one, UNK.
    group
        ->add_option("--forbid", forbidden,
                     "a token of the vocabulary that is never written; once for each of them")
        ->expected(1)
        ->take_all()
        ->allow_extra_args(false)
        ->option_text("TOKEN");
    group->add_flag("--bert4keras", search.bert4keras, "beam search as bert4keras does it");
}

// What the search would refuse, in the words of the options.
void Searching::expect_agreement(bool draws_by_count) const {
    const std::string beam = text("--beam ", search.beams);
    const bool draws = search.samples > 0 || choice.sampling.temperature > 0 ||
                       (draws_by_count && choice.count > 0 && !choice.temperature_given);
    if (search.beams > 1 && draws)
        throw BadUsage(text(beam, " searches, and ",
                            search.samples > 0 ? text("--samples ", search.samples)
                            : choice.count > 0 ? text("--count ", choice.count)
                                               : std::string("--temperature, --top-k or --top-p"),
                            " draws: leave out one of them"));
    if (search.samples > 0 && choice.temperature_given && choice.sampling.temperature == 0)
        throw BadUsage(text("--samples ", search.samples,
                            " draws at a temperature above 0: leave out --temperature 0, or --samples"));
    if (search.n_best > search.beams)
        throw BadUsage(text("--n-best ", search.n_best, " needs a beam of as many, found ", beam, ": give ",
                            draws ? text("--samples ", search.n_best, " in place of it")
                                  : text("--beam ", search.n_best, " or more")));
    if (search.beams % search.groups != 0)
        throw BadUsage(text(beam, " does not divide into --groups ", search.groups, ": give --beam ",
                            (search.beams / search.groups + 1) * search.groups, ", or any multiple of ",
                            search.groups));
    if (search.bert4keras && (search.groups > 1 || search.n_best > 1))
        throw BadUsage("--bert4keras writes the best of one beam: leave out --groups and --n-best");
    if (search.minimum > search.maximum)
        throw BadUsage(text("--minimum ", search.minimum, " is above --maximum ", search.maximum,
                            ": give --maximum ", search.minimum, " or more"));
}

SearchOptions Searching::options_for(const Run& run, bool draws) const {
    expect_agreement(draws);
    SearchOptions options = search;
    options.length_form =
        length_form == "gnmt" ? SearchOptions::Length::gnmt : SearchOptions::Length::hugging_face;
    options.stop = stop == "full"    ? SearchOptions::Stop::when_full
                   : stop == "never" ? SearchOptions::Stop::never
                                     : SearchOptions::Stop::heuristic;
    options.sampling = choice.sampling;
    if (!choice.temperature_given && (options.samples > 0 || (draws && choice.count > 0)))
        options.sampling.temperature = 1;
    if (options.sampling.temperature > 0) options.samples = std::max(options.samples, 1);
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
