// SPDX-License-Identifier: MIT
// Tiny good runs of every family, and their text. runs.cpp combines parts of these runs.
#pragma once
#include <cstddef>
#include <string>

namespace masquerade::fuzz {

// Returns the number of runs. For every family, there is one run for each objective and kind of latent that it has, one
// with another seed, one with other sizes, one with another vocabulary, and so on.
std::size_t run_count();
// Returns the folder of a run with two checkpoints. The run is trained when it is first requested.
const std::string& run_sample(std::size_t number);
std::string name_of_run(std::size_t number);

// Returns the folder that contains the runs, their text (text.tsv) and a folder of files with labels (classes/).
const std::string& run_folder();
// Restores the original contents of classes/.
void make_classes();

}  // namespace masquerade::fuzz
