// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "tools/generate/generate.h"
#include "tools/insertion_options.h"

namespace masquerade {

void InsertionWriting::declare(Options& app) {
    own = declare_insertion(app, canvas);
    own.flag("--canvas", from_canvas,
                  "lines are source<TAB>words to start with, in their order; _ between two: nothing comes between them");
    own.flag("--show-rounds", show_rounds, "each target is written as its rounds, what is new in [brackets]");
}

void InsertionWriting::generate(const InsertionRun& run) const {
    SearchOptions options = searching.options_for(run, true);
    for (const Option& option : searching.own.given())
        if (option.name() != "--maximum" && option.name() != "--forbid")
            throw BadUsage(text(option.name(), " is of models that write token by token; insertion takes --maximum, --forbid and the options of insertion"));
    if (searching.count > 0) throw BadUsage("--count is of models of one text; insertion writes a target for each line of standard input");
    options.canvas = canvas;
    run.insert({}, options, {});  // what is refused is refused before a line is read
    each_batch_of_lines([&](const std::vector<std::string>& lines, std::uint32_t first) {
        std::vector<std::string> sources;
        std::vector<Canvas> starts;
        for (const std::string& line : lines) {
            const std::size_t tab = std::min(line.find('\t'), line.size());
            sources.push_back(line.substr(0, tab));
            starts.push_back(from_canvas && tab < line.size() ? run.canvas_of(line.substr(tab + 1)) : Canvas());
        }
        std::vector<Sentence> sentences = run.sentences(sources);
        for (std::size_t i = 0; i < sentences.size(); i++) sentences[i].name = int(first + i);
        for (const Written& w : run.insert(pointers_to(sentences), options, std::move(starts))) {
            if (!show_rounds) {
                fmt::print("{}\n", run.text(w.tokens));
                continue;
            }
            std::vector<std::string> words;
            for (int token : w.tokens) words.push_back(run.tokenizer.vocabulary().token(token));
            fmt::print("{}\n", draw_rounds(w, words));
        }
        flush_out();
    });
}

}  // namespace masquerade
