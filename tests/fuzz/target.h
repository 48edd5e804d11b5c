// SPDX-License-Identifier: MIT
// A target of fuzzing, for the driver: how an input is made, and which property an input breaks.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "tests/fuzz/grammar.h"

namespace masquerade::fuzz {

struct Target {
    const char *name, *group;  // each of the two selects the target on the command line
    // Number of bytes at the beginning of an input that decide how the rest is used.
    std::size_t header;
    std::string (*make)(Grammar&);              // makes the next input
    std::string (*broken)(const std::string&);  // returns the first property that the input breaks; empty: none
    std::vector<std::string> (*known)();        // returns inputs that once broke a property
    std::string (*told)();                      // returns counts for the progress line
    bool quiet = true;                          // whether log messages of the target are hidden
};

// The targets of a program. The program fuzz has the targets of tokenizer.cpp and readers.cpp, and fuzz-runs has the
// targets of runs.cpp and run_library.cpp.
const std::vector<Target>& targets();

// The targets of readers.cpp: one for each kind of file or folder that is damaged and then read. These are safetensors,
// config.json, the index of shards (index.json), runs, the links of a run, settings, and tokenizer.json.
std::vector<Target> reader_targets();

}  // namespace masquerade::fuzz
