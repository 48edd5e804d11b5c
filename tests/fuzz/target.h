// SPDX-License-Identifier: MIT
// A target of fuzzing, as the driver sees it: how an input is made, and what is asked of it.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "tests/fuzz/grammar.h"

namespace masquerade::fuzz {

struct Target {
    const char *name, *group;                   // either chooses it on the command line
    std::size_t header;                         // the first bytes, which choose how the rest is read
    std::string (*make)(Grammar&);              // the next input
    std::string (*broken)(const std::string&);  // the first property that does not hold; empty: all do
    std::vector<std::string> (*known)();        // inputs that once broke a property
    std::string (*told)();                      // what has been counted, for the progress line
    bool quiet = true;                          // what it logs is not shown
};

// Those of a program: of fuzz the tokenizer and readers.cpp, of fuzz-runs that of runs.cpp.
const std::vector<Target>& targets();

// Those of readers.cpp: files, by what reads them.
std::vector<Target> reader_targets();

}  // namespace masquerade::fuzz
