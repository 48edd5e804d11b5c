// SPDX-License-Identifier: MIT
// Refuses to overwrite a file that the program also reads.
#pragma once
#include <string>
#include <vector>

namespace masquerade {

// A file or folder that the program writes, and the option that names it.
struct OutputFile {
    std::string option, path;
};

// Throws BadUsage if the program would overwrite something that it reads. For each output that is not a folder:
//   - The output must not be the same file as an input, not even through a link.
//   - The output must not be an existing file inside an input folder. Exception: inside a run folder, a name that runs
//     use for their own files is refused even if no file has this name yet; any other name is allowed.
// Standard input counts as an input, and standard output as an output. Also sets before_reading (input/input.h), so
// that later attempts of the program to read an output throw.
void refuse_to_read(const std::vector<OutputFile>& outputs, const std::vector<std::string>& inputs);

}  // namespace masquerade
