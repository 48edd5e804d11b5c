// SPDX-License-Identifier: MIT
// Refuses to overwrite a file that the program also reads.
#pragma once
#include <string>
#include <vector>

namespace masquerade {

// A file or folder that the program writes, and the option that names it.
struct Output {
    std::string option, path;
};

// Throws BadUsage if an output is the same file as an input (also through a link), is inside an input folder, or has a
// name that an input run uses for its own files. Sets before_reading (input/input.h), so that later attempts to read an
// output throw as well. Standard input is treated as an input, standard output as an output.
void refuse_to_read(const std::vector<Output>& outputs, const std::vector<std::string>& inputs);

}  // namespace masquerade
