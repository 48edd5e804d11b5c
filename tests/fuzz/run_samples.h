// SPDX-License-Identifier: MIT
// Good runs of every family, tiny, with their text: what runs.cpp takes parts from.
#pragma once
#include <cstddef>
#include <string>

namespace masquerade::fuzz {

// How many runs there are: of every family one for each objective and latent that it has, one of another seed, one of
// other sizes, one of another vocabulary, and so on.
std::size_t run_count();
// The folder of a run of two checkpoints, made when it is first asked for.
const std::string& run_sample(std::size_t number);
std::string name_of_run(std::size_t number);

// The folder that holds the runs, their text (text.tsv) and a folder of files with labels (classes/).
const std::string& run_folder();
// Makes classes/ as it was.
void make_classes();

}  // namespace masquerade::fuzz
