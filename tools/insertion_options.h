// SPDX-License-Identifier: MIT
// The options of writing by insertion, of ./generate and ./evaluate.
#pragma once
#include "models/runs/insertion_run.h"
#include "tools/program.h"

namespace masquerade {

// Declares them as a group of their own, and returns it.
inline CLI::App* declare_insertion(CLI::App& app, CanvasOptions& o) {
    CLI::App* group = app.add_option_group("of insertion");
    group->add_flag("--parallel", o.parallel, "a round inserts into every slot that does not end; else into the best of them");
    number_option(*group, "--threshold", o.threshold, 0.0, 2.0, "--parallel: only where p(c|l) is P or more, and at the best", "P");
    number_option(*group, "--end-penalty", o.end_penalty, -1000.0, 1000.0, "taken off log p of the end of a slot", "X");
    number_option(*group, "--sure-end", o.sure_end, 0.0, 1.0, "a slot ends only where p(end) is P or more; 0.5: than all words together", "P");
    group->add_flag("--apart", o.apart, "slots before and behind equal words decide apart, as in the paper; else as one");
    number_option(*group, "--rounds", o.most_rounds, 1, 1000000, "at most so many rounds");
    return group;
}

}  // namespace masquerade
