// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "models/target_run.h"
#include "tools/generate/generate.h"

namespace masquerade {

void TargetWriting::declare(CLI::App& app) {
    CLI::Option_group* group = app.add_option_group("of unilm and seq2seq");
    own = group;
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
    group->add_option("--maximum", search.maximum, "tokens of a target at most, its end counted")
        ->check(CLI::Range(1, 65536))
        ->option_text("N");
    group->add_option("--forbid", forbidden, "tokens of the vocabulary that are never written")
        ->option_text("TOKEN ...");
    group->add_flag("--backward", backward,
                    "lines are endings: write what comes before them, of a unilm trained on lm-reverse (the "
                    "default where it was trained on nothing else that writes)");
    group->add_flag("--bert4keras", search.bert4keras, "beam search as bert4keras does it");
}

SearchOptions TargetWriting::options_for(const TargetRun& run) const {
    SearchOptions options = search;
    options.length_form =
        length_form == "gnmt" ? SearchOptions::Length::gnmt : SearchOptions::Length::hugging_face;
    options.stop = stop == "full"    ? SearchOptions::Stop::when_full
                   : stop == "never" ? SearchOptions::Stop::never
                                     : SearchOptions::Stop::heuristic;
    options.sampling = choice.sampling;
    if ((choice.temperature_given || choice.count > 0) && options.samples == 0) options.samples = 1;
    if (options.samples > 0 && !choice.temperature_given) options.sampling.temperature = 1;
    for (const std::string& token : forbidden) {
        const int id = run.tokenizer.vocabulary().id(token);
        if (id < 0) throw BadUsage(text("--forbid: there is no token ", token, " in the vocabulary"));
        options.forbidden.push_back(id);
    }
    return options;
}

bool TargetWriting::goes_backward(const TargetRun& run) const {
    return backward || (run.writes_backward() && !run.writes());
}

// A line for each of `lines`, numbered from `first`; what has nothing to be read stays empty.
void TargetWriting::write_for(const TargetRun& run, const std::vector<std::string>& lines,
                              std::uint32_t first, const SearchOptions& options, std::uint64_t seed) const {
    const bool before = goes_backward(run), after = !before && run.continues();
    const std::size_t least = before || after ? 1 : 3;  // tokens
    std::vector<Sentence> sources = before  ? run.endings(lines)
                                    : after ? run.beginnings(lines)
                                            : run.sentences(lines);
    std::vector<const Sentence*> some;
    for (std::size_t i = 0; i < sources.size(); i++) {
        sources[i].name = int(first + i);
        if (sources[i].ids.size() >= least) some.push_back(&sources[i]);
    }
    const auto written = before ? run.write_before(some, options, seed) : run.write(some, options, seed);
    std::size_t next = 0;
    for (const Sentence& s : sources) {
        std::string line;
        if (s.ids.size() >= least)
            for (const Hypothesis& h : written[next++]) {
                line += (line.empty() ? "" : "\t") + run.text(h.tokens);
                if (scores) line += fmt::format("\t{:.4f}", h.score);
            }
        fmt::print("{}\n", line);
    }
    std::fflush(stdout);
}

void TargetWriting::generate(const Common& common) const {
    const std::unique_ptr<Run> loaded = model_of_run(choice.run).load(choice.run, false, common.device);
    const TargetRun* run = &dynamic_cast<const TargetRun&>(*loaded);
    const bool before = goes_backward(*run);
    run->expect_to_write(before);
    const SearchOptions options = options_for(*run);
    if (choice.count > 0 && !before && !run->continues())
        throw BadUsage(
            "--count is of models of one text; this one writes a target for each line of standard input");
    if (choice.count > 0) {
        for (int first = 0; first < choice.count; first += 64)
            write_for(*run, std::vector<std::string>(std::size_t(std::min(64, choice.count - first))),
                      std::uint32_t(first), options, common.seed);
        return;
    }
    each_batch_of_lines([&](const std::vector<std::string>& lines, std::uint32_t first) {
        write_for(*run, lines, first, options, common.seed);
    });
}

}  // namespace masquerade
