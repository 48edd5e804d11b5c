// SPDX-License-Identifier: MIT
// The options of ./generate, which masquerade_generate() of the library reads as well.
#pragma once
#include <memory>

#include "models/runs/writer.h"
#include "tools/options.h"

namespace masquerade {

struct Groups;

class GenerateOptions {
  public:
    void declare(Options& app);
    // Returns the writer of this run, as the options that were given ask for it. Throws BadUsage if its family or the
    // run does not support one of them.
    RunWriter writer(Run& run, const Family& kind);
    // Returns the text of --help (help_of_runs).
    std::string help(const Options& app, const Strings& runs, bool all) const;
    bool saves_vectors() const { return !how.vectors.empty(); }

    Writing how;  // the caller sets how.run and how.seed before it calls writer()

  private:
    std::shared_ptr<const Groups> groups_;
};

}  // namespace masquerade
