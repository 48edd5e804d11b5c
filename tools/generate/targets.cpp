// SPDX-License-Identifier: MIT
#include <algorithm>
#include <utility>

#include "engine/base/log.h"
#include "tools/generate/generate.h"
#include "tools/insertion_options.h"

namespace masquerade {
namespace {

// Keeps only the source of each source<TAB>target. Returns whether there was a tab.
bool keep_sources(std::vector<std::string>& lines) {
    bool tabs = false;
    for (std::string& line : lines) {
        const std::size_t tab = line.find('\t');
        if (tab == line.npos) continue;
        line.resize(tab);
        tabs = true;
    }
    return tabs;
}

}  // namespace

void TargetWriting::declare(Options& app) {
    own = app.group("of unilm and seq2seq");
    own.flag("--backward", backward,
             "lines are endings: write what comes before them, of a unilm trained on lm-reverse (the "
             "default where it was trained on nothing else that writes)");
}

void TargetWriting::generate(const TargetRun& run, const Common& common) const {
    const SearchOptions options = searching.options_for(run, true);
    // Lines are endings, beginnings, or else sources.
    const bool before = backward || (run.writes_backward() && !run.writes()), after = !before && run.continues();
    const std::size_t least = before || after ? 1 : 3;  // tokens; what has nothing to be read stays empty
    run.expect_to_write(before);
    auto write_for = [&](const std::vector<std::string>& lines, std::uint32_t first) {
        std::vector<Sentence> sources = before  ? run.endings(lines)
                                        : after ? run.beginnings(lines)
                                                : run.sentences(lines);
        std::vector<const Sentence*> some;
        for (std::size_t i = 0; i < sources.size(); i++) {
            sources[i].name = int(first + i);
            if (sources[i].ids.size() >= least) some.push_back(&sources[i]);
        }
        const auto written =
            before ? run.write_before(some, options, common.seed) : run.write(some, options, common.seed);
        std::size_t next = 0;
        for (const Sentence& s : sources)
            write_out((s.ids.size() >= least ? searching.line_of(run, written[next++]) : "") + '\n');
        flush_out();
    };
    const int count = searching.count;
    if (count > 0 && !before && !after)
        throw BadUsage("--count is of models of one text; this one writes a target for each line of standard input");
    for (int first = 0; first < count; first += 64)
        write_for(std::vector<std::string>(std::size_t(std::min(64, count - first))), std::uint32_t(first));
    if (count > 0) return;
    bool noted = false;
    each_batch_of_lines([&](std::vector<std::string>& lines, std::uint32_t first) {
        if (!before && !after && keep_sources(lines) && !std::exchange(noted, true))
            log_line("note: standard input: of a line with a tab the source before it is read");
        write_for(lines, first);
    });
}

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
            throw BadUsage(text(
                option.name(),
                " is of models that write token by token; insertion takes --maximum, --forbid and the options of insertion"));
    if (searching.count > 0)
        throw BadUsage("--count is of models of one text; insertion writes a target for each line of standard input");
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
                write_out(run.text(w.tokens) + '\n');
                continue;
            }
            std::vector<std::string> words;
            for (int token : w.tokens) words.push_back(run.tokenizer.vocabulary().token(token));
            write_out(draw_rounds(w, words) + '\n');
        }
        flush_out();
    });
}

}  // namespace masquerade
