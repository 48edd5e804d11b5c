// SPDX-License-Identifier: MIT
// Words, examples and clues of the tasks in the table.
#pragma once
#include "data/tasks/examples.h"

namespace masquerade {

using Words = std::vector<std::string>;

Words listops_words(const TaskOptions&);  // max min med sum end 0 .. 9
Solved listops(const TaskOptions&, Sequence& random);
Solved listops_mini(const TaskOptions&, Sequence& random);
int root_operator(const Solved&);  // clues
int root_and_digits(const Solved&);

Words numbered_words(const TaskOptions&);  // w0 w1 ...
Words keys_and_values(const TaskOptions&);  // k0 k1 ... v0 v1 ...
Solved recall(const TaskOptions&, Sequence& random);
Solved copy_of_words(const TaskOptions&, Sequence& random);
Solved induction(const TaskOptions&, Sequence& random);
int last_value(const Solved&);

Words grey_levels(const TaskOptions&);  // apart joined 0 1 ...
Solved pathfinder(const TaskOptions&, Sequence& random);
int disc_distance(const Solved&);

std::unique_ptr<Examples> open_files(const TaskOptions& options, std::uint64_t seed);

}  // namespace masquerade
