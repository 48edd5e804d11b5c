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

// Throws BadUsage if the program would overwrite something that it reads. An output that is not a folder must not be
//   - an input file,
//   - an existing file inside an input folder that is not a run folder, or
//   - a path inside an input folder that is a run folder, under a name that runs use for their own files, even if the
//     file does not exist yet. Other files in a run folder may be overwritten.
// An output that is a link to one of these files is refused, too. If `standard` is true, standard input counts as an
// input, and standard output as an output. Also sets before_reading (input/input.h), so that later attempts of the
// program to read an output throw.
void refuse_to_read(const std::vector<OutputFile>& outputs, const std::vector<std::string>& inputs,
                    bool standard = true);

}  // namespace masquerade
