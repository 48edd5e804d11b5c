// SPDX-License-Identifier: MIT
// A file that a program writes is none of those that it reads.
#pragma once
#include <string>
#include <vector>

namespace masquerade {

// A file or a folder that is written, and the option that names it.
struct Output {
    std::string option, path;
};

// BadUsage where a file that is written is one of the inputs, also through a link, or belongs to a run or lies in a
// folder among them; and from here on where anything reads such a file (before_reading, input/input.h). Standard input
// is an input, standard output is an output.
void refuse_to_read(const std::vector<Output>& outputs, const std::vector<std::string>& inputs);

}  // namespace masquerade
