// SPDX-License-Identifier: MIT
#include <algorithm>
#include <utility>

#include "engine/base/log.h"
#include "models/runs/target_run.h"
#include "models/runs/writer.h"

namespace masquerade {
namespace {

// Keeps only the source of each line source<TAB>target. Returns whether any line has a tab.
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

class FromSources : public RunWriter {
  public:
    FromSources(const TargetRun& run, const Writing& how)
        : how_(how),
          run_(run),
          options_(how.options_for(run, true)),
          before_(how.backward || (run.writes_backward() && !run.writes())),
          after_(!before_ && run.continues()) {
        run.expect_to_write(before_);
        if (how.count > 0 && !before_ && !after_)
            throw BadUsage(
                "--count needs a model that samples text; this one writes a target for each line of standard input");
    }

    int samples() const override { return how_.count; }
    std::string write(std::vector<std::string> lines, std::uint32_t first) override {
        if (!before_ && !after_ && keep_sources(lines) && !std::exchange(noted_, true))
            log_line("note: standard input: if a line has a tab, only the source before the tab is read");
        std::vector<Sentence> sources = before_  ? run_.endings(lines)
                                        : after_ ? run_.beginnings(lines)
                                                 : run_.sentences(lines);
        const std::size_t least = before_ || after_ ? 1 : 3;  // a source with fewer tokens gives an empty line
        std::vector<const Sentence*> some;
        for (std::size_t i = 0; i < sources.size(); i++) {
            sources[i].name = int(first + i);
            if (sources[i].ids.size() >= least) some.push_back(&sources[i]);
        }
        const auto written =
            before_ ? run_.write_before(some, options_, how_.seed) : run_.write(some, options_, how_.seed);
        std::size_t next = 0;
        std::string all;
        for (const Sentence& s : sources)
            all += (s.ids.size() >= least ? how_.line_of(run_, written[next++]) : "") + '\n';
        return all;
    }

  private:
    const Writing how_;
    const TargetRun& run_;
    const SearchOptions options_;
    // before_: the text before each input line is generated. after_: each input line is continued. If both are false,
    // each input line is a source, whose target is generated.
    const bool before_, after_;
    bool noted_ = false;
};

}  // namespace

std::unique_ptr<RunWriter> TargetRun::writer(const Writing& how) { return std::make_unique<FromSources>(*this, how); }

}  // namespace masquerade
