// SPDX-License-Identifier: MIT
// The options of ./generate, which masquerade_generate() of the library reads as well.
#pragma once
#include "models/runs/writer.h"
#include "tools/run_options.h"

namespace masquerade {

class GenerateOptions {
  public:
    void declare(Options& app);
    // Returns the writer of this run, as the options that were given ask for it. Throws BadUsage if its family or the
    // run does not support one of them.
    RunWriter writer(Run& run, const Family& kind);
    // Returns the text of --help (help_of_runs).
    std::string help(const Options& app, const Strings& runs, bool all) const;

    Writing how;  // the caller sets how.run and how.seed before it calls writer()

  private:
    // Throws BadUsage if the user gave an option that this kind of model does not support. Some options, such as
    // --codes, make the program write no text. If the user gave one of them, `silent` must be its name, and options
    // about written text are refused as well. Otherwise, `silent` must be "".
    void expect_only_of(const Family& kind, const std::string& silent) const;

    // Options that are checked after parsing, because not every model or use of the program supports them.
    std::vector<Option> draws_;  // the options that say how samples are drawn
    Options search_, vectors_;
    OptionGroups of_text_;  // the groups of options that say how text is written
};

}  // namespace masquerade
