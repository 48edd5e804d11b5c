// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/base/log.h"
#include "models/runs/target_run.h"
#include "tools/generate/generate.h"

namespace masquerade {
namespace {

// Of source<TAB>target the source alone. Whether there was a tab.
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

void TargetWriting::declare(CLI::App& app) {
    own = app.add_option_group("of unilm and seq2seq");
    own->add_flag("--backward", backward,
                  "lines are endings: write what comes before them, of a unilm trained on lm-reverse (the "
                  "default where it was trained on nothing else that writes)");
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
        if (s.ids.size() >= least) line = searching.line_of(run, written[next++]);
        fmt::print("{}\n", line);
    }
    flush_out();
}

void TargetWriting::generate(const TargetRun& run, const Common& common) const {
    const SearchOptions options = searching.options_for(run, true);
    const bool before = goes_backward(run);
    run.expect_to_write(before);
    if (choice.count > 0 && !before && !run.continues())
        throw BadUsage(
            "--count is of models of one text; this one writes a target for each line of standard input");
    if (choice.count > 0) {
        for (int first = 0; first < choice.count; first += 64)
            write_for(run, std::vector<std::string>(std::size_t(std::min(64, choice.count - first))),
                      std::uint32_t(first), options, common.seed);
        return;
    }
    const bool sources = !before && !run.continues();
    bool noted = false;
    each_batch_of_lines([&](std::vector<std::string>& lines, std::uint32_t first) {
        if (sources && keep_sources(lines) && !std::exchange(noted, true))
            log_line("note: standard input: of a line with a tab the source before it is read");
        write_for(run, lines, first, options, common.seed);
    });
}

}  // namespace masquerade
