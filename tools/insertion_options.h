// SPDX-License-Identifier: MIT
// The options for generation by insertion, shared by ./generate and ./evaluate.
#pragma once
#include "models/writing/canvas.h"
#include "tools/program.h"

namespace masquerade {

// Declares the options as a group, and returns the group.
inline Options declare_insertion(Options& app, CanvasOptions& o) {
    Options group = app.group("of insertion");
    group.flag("--parallel", o.parallel,
               "a round inserts into every slot that does not end; else into the best of them");
    group.number("--threshold", o.threshold, 0.0, 2.0, "--parallel: only where p(c|l) is P or more, and at the best",
                 "P");
    group.number("--end-penalty", o.end_penalty, -1000.0, 1000.0, "taken off log p of the end of a slot", "X");
    group.number("--sure-end", o.sure_end, 0.0, 1.0,
                 "a slot ends only where p(end) is P or more; 0.5: than all words together", "P");
    group.flag("--apart", o.apart, "slots before and behind equal words decide apart, as in the paper; else as one");
    group.number("--rounds", o.most_rounds, 1, 1000000, "at most so many rounds");
    return group;
}

}  // namespace masquerade
