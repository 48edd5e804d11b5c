// SPDX-License-Identifier: MIT
// The options for models that generate a text by inserting words into it, shared by ./generate and ./evaluate.
#pragma once
#include "models/writing/canvas.h"
#include "tools/program.h"

namespace masquerade {

// Declares these options as one group, whose title in --help is "of insertion", and returns the group.
inline Options declare_insertion(Options& app, CanvasOptions& o) {
    Options group = app.group("of insertion");
    group.flag("--parallel", o.parallel, "insert into all open slots each round (default: only the best)");
    group.number("--threshold", o.threshold, 0.0, 2.0,
                 "--parallel: only into slots with p(c|l) of P or more, and into the best", "P");
    group.number("--end-penalty", o.end_penalty, -1000.0, 1000.0, "subtracted from log p of the end of a slot", "X");
    group.number("--sure-end", o.sure_end, 0.0, 1.0,
                 "a slot ends only if p(end) is P or more; 0.5: more likely than all words together", "P");
    group.flag("--apart", o.apart,
               "let the slots around equal words decide separately, as in the paper (default: as one)");
    group.number("--rounds", o.most_rounds, 1, 1000000, "maximum number of rounds");
    return group;
}

}  // namespace masquerade
